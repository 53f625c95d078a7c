"""Helpers for the shape rules in `ops`. They raise GeometryError where shapes and attributes do not fit."""

import itertools
from collections.abc import Sequence
from typing import TypeVar

from buildtool.base.errors import ModelError
from buildtool.graph import types as g
from buildtool.graph.types import Attrs, Op, OpKind, Pad

Shape = tuple[int, ...]
_A = TypeVar("_A", bound=Attrs)


class GeometryError(ValueError):
    """The inputs' shapes and the attributes do not fit together."""


def demand(condition: bool, text: str) -> None:
    """Raises GeometryError(text) unless `condition` holds."""
    if not condition:
        raise GeometryError(text)


def window_outputs(size: int, pad: int, extent: int, stride: int) -> int:
    """Counts the positions of a window of `extent` (dilation included) over `size` + `pad` elements."""
    return (size + pad - extent) // stride + 1


def dilated_extent(kernel: int, dilation: int) -> int:
    """Returns the extent of a kernel whose taps lie `dilation` apart."""
    return (kernel - 1) * dilation + 1


def same_padding(size: int, extent: int, stride: int) -> tuple[int, int, int]:
    """Returns (outputs, padding before, padding after) for TFLite's SAME padding.

    The number of outputs is ceil(size / stride).
    """
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + extent - size, 0)
    return outputs, total // 2, total - total // 2


def same_pad(
    sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int] = (1, 1)
) -> Pad:
    """Returns the padding of rows and columns for TFLite's SAME."""
    (_, *rows), (_, *columns) = map(same_padding, sizes, map(dilated_extent, kernel, dilation), stride)
    return Pad(*rows, *columns)


def attributes(op: Op, cls: type[_A]) -> _A:
    """Returns the operator's attributes. Raises ModelError unless they are of class `cls`."""
    if not isinstance(op.attrs, cls):
        raise ModelError(f"attributes of {op.kind} must be {cls.__name__}")
    return op.attrs


def check_window(attrs: g.ConvAttrs | g.PoolAttrs, *, crops: bool = False) -> None:
    """Raises GeometryError unless strides are above 0 and paddings are at least 0.

    With `crops`, paddings may be negative: the windows then leave out rows or columns.
    """
    demand(all(s >= 1 for s in attrs.stride), f"stride {list(attrs.stride)} is not positive")
    demand(crops or not is_cropped(attrs), "negative padding")


def is_cropped(attrs: Attrs) -> bool:
    """Whether the windows leave out rows or columns at a side of the input (a negative padding)."""
    pad = attrs.pad if isinstance(attrs, g.ConvAttrs | g.PoolAttrs) else Pad()
    return min(pad.top, pad.bottom, pad.left, pad.right) < 0


def spatial(x: Shape, attrs: g.ConvAttrs | g.PoolAttrs, kernel: Sequence[int]) -> tuple[int, int]:
    """Returns the output rows and columns of a window of `kernel` (dilation included)."""
    pad = attrs.pad
    rows = window_outputs(x[1], pad.top + pad.bottom, kernel[0], attrs.stride[0])
    cols = window_outputs(x[2], pad.left + pad.right, kernel[1], attrs.stride[1])
    demand(rows >= 1 and cols >= 1, f"the window {list(kernel)} is larger than the padded input")
    return rows, cols


def check_images(shapes: list[Shape], count: int) -> None:
    """Raises GeometryError unless the first `count` shapes have 4 dimensions."""
    demand(len(shapes) >= count, f"{len(shapes)} inputs, expected at least {count}")
    for shape in shapes[:count]:
        demand(len(shape) == 4, f"shape {list(shape)} must have 4 dimensions")


def broadcast(a: Shape, b: Shape) -> Shape:
    """Returns the common shape of two operands. Raises GeometryError where they do not broadcast."""
    sides = list(itertools.zip_longest(reversed(a), reversed(b), fillvalue=1))
    demand(all(n == m or 1 in (n, m) for n, m in sides), f"shapes {list(a)} and {list(b)} do not broadcast")
    return tuple(m if n == 1 else n for n, m in reversed(sides))


def same(_op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    """Returns the shape of the first input: the shape rule of operators that keep it."""
    return shapes[0]


def axis_of(op: Op, rank: int) -> int:
    """Returns the operator's axis, which must be below `rank`."""
    axis = attributes(op, g.AxisAttrs).axis
    demand(0 <= axis < rank, f"axis {axis} of {rank} dimensions")
    return axis


def pick_elements(shape: Sequence[int], axis: int, indices: Sequence[int]) -> tuple[OpKind, Attrs]:
    """Returns an operator that takes the elements `indices` along dimension `axis`.

    It is a STRIDED_SLICE if the indices differ and are equally far apart, otherwise a GATHER.
    """
    steps = {b - a for a, b in itertools.pairwise(indices)} or {1}
    if len(steps) > 1 or steps == {0} or not indices:
        return OpKind.GATHER, g.GatherAttrs(axis, tuple(indices))
    begin, stride, extent = [0] * len(shape), [1] * len(shape), list(shape)
    begin[axis], stride[axis], extent[axis] = indices[0], steps.pop(), len(indices)
    return OpKind.STRIDED_SLICE, g.SliceAttrs(tuple(begin), tuple(stride), tuple(extent))


def cuts(shape: Sequence[int], axis: int, sizes: Sequence[int]) -> list[g.SliceAttrs]:
    """Returns slices that cut `shape` along `axis` into neighbouring parts, whose sizes are `sizes`."""
    slices = []
    for start, size in zip(itertools.accumulate(sizes, initial=0), sizes, strict=False):
        begin, extent = [0] * len(shape), list(shape)
        begin[axis], extent[axis] = start, size
        slices.append(g.SliceAttrs(tuple(begin), (1,) * len(shape), tuple(extent)))
    return slices
