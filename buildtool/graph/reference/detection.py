"""DETECTION_POSTPROCESS as LiteRT's kernel computes it: in doubles, rounded to float32 at the same places.

Boxes are (ymin, xmin, ymax, xmax). Rows of the outputs that LiteRT does not write are zeros here.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UnsupportedError
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Values
from buildtool.graph.types import DetectionAttrs, DType, Graph, Op, Tensor

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


def output_shapes(attrs: DetectionAttrs) -> list[tuple[int, ...]]:
    """Returns the shapes of the outputs: boxes, their classes, their scores, and the number of boxes."""
    rows = attrs.detections * attrs.classes_each
    return [(1, rows, 4), (1, rows), (1, rows), (1,)]


def real_values(tensor: Tensor, value: Values) -> Floats:
    """Returns the float32 values of an operand, as DEQUANTIZE computes them."""
    quant = tensor.quant
    if tensor.dtype is DType.FLOAT32 or quant is None:
        return value.astype(np.float32)
    return (quant.scale * (value.astype(np.float64) - quant.zero_point)).astype(np.float32)


def every_value(tensor: Tensor) -> Floats:
    """Returns the real value of each int8 value of a tensor, from -128 to 127."""
    return real_values(tensor, np.arange(-128, 128).astype(np.int8))


def half_sizes(encoded: Floats, scale: float) -> Doubles:
    """Returns 0.5 * exp(encoded / scale): half of a box's side, relative to the anchor's side.

    The exp is that of the C library, like LiteRT's; numpy's differs.
    """
    values, places = np.unique(encoded, return_inverse=True)
    return np.array([0.5 * _exp(float(value) / scale) for value in values])[places].reshape(encoded.shape)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def decode(attrs: DetectionAttrs, boxes: Floats, anchors: Floats) -> Floats:
    """Returns the corners (top, left, bottom, right) of boxes.

    `boxes`: encoded y, x, height and width, relative to the anchors.
    """
    encoded, wide = boxes.astype(np.float64), anchors.astype(np.float64)
    corners = []
    for axis in (0, 1):
        side = wide[:, 2 + axis]
        centre = (encoded[:, axis] / attrs.scales[axis] * side + wide[:, axis]).astype(np.float32)
        half = (half_sizes(boxes[:, 2 + axis], attrs.scales[2 + axis]) * side).astype(np.float32)
        corners.append((centre - half, centre + half))
    (top, bottom), (left, right) = corners
    return np.stack([top, left, bottom, right], axis=1)


def overlaps(box: Floats, others: Floats) -> Floats:
    """Returns the intersection over union of a box with each of `others`; 0 for a box without an area."""
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    area = (box[2] - box[0]) * (box[3] - box[1])
    height = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    width = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    common = np.maximum(height, np.float32(0)) * np.maximum(width, np.float32(0))
    with np.errstate(all="ignore"):
        share = common / (area + areas - common)
    return np.where((area <= 0) | (areas <= 0), np.float32(0), share)


def _suppress(attrs: DetectionAttrs, corners: Floats, scores: Floats, most: int) -> list[int]:
    """Returns the numbers of the boxes that are not suppressed, best first, at most `most`.

    `corners` and `scores`: of all boxes. Of equal scores, the first one is the better one.
    """
    kept: list[int] = []
    for box in np.argsort(-scores, kind="stable"):
        if len(kept) >= most or not scores[box] >= attrs.least_score:
            break
        if not np.any(overlaps(corners[box], corners[kept]) > np.float32(attrs.most_overlap)):
            kept.append(int(box))
    return kept


def rank(scores: Sequence[float], count: int) -> list[int]:
    """Returns the positions of the `count` best scores, best first.

    Equal scores have the order of std::partial_sort in GNU's C++ library, with which LiteRT's package is
    built: it keeps a heap of `count` elements, whose worst one is at the top.
    """
    heap = list(range(len(scores)))
    better: Callable[[int, int], bool] = lambda a, b: scores[a] > scores[b]  # noqa: E731

    def sift(hole: int, size: int, place: int) -> None:
        """Moves the hole at `hole` down to a leaf, along the worse children, then `place` up from there."""
        top = hole
        while 2 * hole + 2 < size:
            child = 2 * hole + 2
            child -= better(heap[child], heap[child - 1])
            heap[hole], hole = heap[child], child
        if 2 * hole + 2 == size:
            heap[hole], hole = heap[size - 1], size - 1
        while hole > top and better(heap[(hole - 1) // 2], place):
            heap[hole], hole = heap[(hole - 1) // 2], (hole - 1) // 2
        heap[hole] = place

    for first in reversed(range(count // 2)):
        sift(first, count, heap[first])
    for place in range(count, len(scores)):
        if better(place, heap[0]):
            sift(0, count, place)
    for last in reversed(range(1, count)):
        place, heap[last] = heap[last], heap[0]
        sift(0, last, place)
    return heap[:count]


def postprocess(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes DETECTION_POSTPROCESS."""
    attrs = attributes(op, DetectionAttrs)
    boxes, scores, anchors = (
        np.atleast_2d(real_values(graph.tensors[t], value.reshape(value.shape[-2:])))
        for t, value in zip(op.inputs, inputs, strict=True)
    )
    corners = decode(attrs, boxes[:, :4], anchors)
    if not (corners[:, 0] <= corners[:, 2]).all() or not (corners[:, 1] <= corners[:, 3]).all():
        raise UnsupportedError("a box whose end is before its start: LiteRT's kernel stops")
    scores = scores[:, scores.shape[1] - attrs.classes :]
    rows = _regular(attrs, corners, scores) if attrs.regular else _fast(attrs, corners, scores)
    results = [np.zeros(shape, np.float32) for shape in output_shapes(attrs)]
    for row, box, number in rows:
        results[0][0, row], results[1][0, row], results[2][0, row] = corners[box], number, scores[box, number]
    results[3][0] = len({row // (1 if attrs.regular else attrs.classes_each) for row, _, _ in rows})
    return list(results)


Rows = list[tuple[int, int, int]]  # row of the outputs, box, class


def _fast(attrs: DetectionAttrs, corners: Floats, scores: Floats) -> Rows:
    count = min(attrs.classes_each, attrs.classes)
    kept = _suppress(attrs, corners, scores.max(axis=1), attrs.detections)
    return [
        (place * attrs.classes_each + n, box, number)
        for place, box in enumerate(kept)
        for n, number in enumerate(rank(scores[box].tolist(), count))
    ]


def _regular(attrs: DetectionAttrs, corners: Floats, scores: Floats) -> Rows:
    found: list[tuple[int, int]] = []
    for number in range(attrs.classes):
        kept = _suppress(attrs, corners, scores[:, number], attrs.per_class)
        found += [(box, number) for box in kept]
        found.sort(key=lambda one: -scores[one])
    return [(row, *one) for row, one in enumerate(found[: attrs.detections])]
