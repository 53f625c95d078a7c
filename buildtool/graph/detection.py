"""Checks DETECTION_POSTPROCESS: shapes, types, and numbers with which LiteRT's kernel would fail."""

import math

import numpy as np

from buildtool.graph.geometry import attributes, demand
from buildtool.graph.quantrules import QuantError, per_tensor
from buildtool.graph.reference import detection as reference
from buildtool.graph.types import DetectionAttrs, DType, Graph, Op, Tensor

_MOST_CLASSES = 1 << 24  # a class's number is written as a float32
_MOST_ROWS = 1 << 20


def check(graph: Graph, op: Op) -> None:
    """Raises GeometryError or QuantError unless the operator's tensors and attributes fit together."""
    attrs = attributes(op, DetectionAttrs)
    boxes, scores, anchors = (graph.tensors[t] for t in op.inputs)
    count = anchors.shape[0] if anchors.shape else 0
    text = f"boxes {list(boxes.shape)}, scores {list(scores.shape)}, anchors {list(anchors.shape)}"
    is_box = len(boxes.shape) == 3 and boxes.shape[:2] == (1, count) and boxes.shape[2] >= 4
    is_score = len(scores.shape) == 3 and scores.shape[:2] == (1, count)
    demand(is_box and is_score and anchors.shape == (count, 4), f"shapes that do not fit: {text}")
    demand(
        scores.shape[2] - attrs.classes in (0, 1),
        f"{attrs.classes} classes, but scores for {scores.shape[2]}",
    )
    check_numbers(attrs)
    for t, shape in zip(op.outputs, reference.output_shapes(attrs), strict=True):
        out = graph.tensors[t]
        demand(out.shape == shape, f"an output has shape {list(out.shape)}, expected {list(shape)}")
        if out.dtype is not DType.FLOAT32:
            raise QuantError(f"type {out.dtype}, expected float32", out)
    for tensor in (boxes, scores, anchors):
        if tensor.dtype is not DType.FLOAT32:
            per_tensor(tensor, DType.INT8)
    _check_values(attrs, boxes, scores, anchors)


def check_numbers(attrs: DetectionAttrs) -> None:
    """Raises GeometryError for counts and limits that LiteRT's kernel does not accept."""
    demand(1 <= attrs.classes < _MOST_CLASSES, f"{attrs.classes} classes")
    rows = attrs.detections, attrs.classes_each
    demand(min(rows) >= 1 and math.prod(rows) <= _MOST_ROWS, f"{rows[0]} detections of {rows[1]} classes")
    demand(not attrs.regular or attrs.per_class >= 1, f"{attrs.per_class} detections for each class")
    demand(0 < attrs.most_overlap <= 1, f"an overlap of {attrs.most_overlap}")
    demand(math.isfinite(attrs.least_score), f"a least score of {attrs.least_score}")


def _check_values(attrs: DetectionAttrs, boxes: Tensor, scores: Tensor, anchors: Tensor) -> None:
    """Raises QuantError unless anchors are finite constants, decoded boxes finite, and scores distinct.

    Quantised boxes and scores are checked for all their 256 values.
    """
    if anchors.data is None:
        raise QuantError("the anchors must be a constant", anchors)
    places = reference.real_values(anchors, anchors.data)
    if not np.isfinite(places).all() or places[:, 2:].min() < 0:
        raise QuantError("an anchor is not finite, or its height or width is negative", anchors)
    if scores.dtype is DType.INT8 and np.unique(reference.every_value(scores)).size < 256:
        raise QuantError("the scores' scale is too small", scores)
    if boxes.dtype is not DType.INT8:
        return
    with np.errstate(all="ignore"):
        ends = reference.every_value(boxes)[[0, -1]]
        corners = [reference.decode(attrs, np.full((len(places), 4), end), places) for end in ends]
    if not np.isfinite(corners).all():
        raise QuantError(
            "a decoded box may be infinite: a scale of the boxes does not fit the operator's", boxes
        )
