"""Slices: begins, ends, sizes and masks resolved to the elements taken of every dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.base.errors import ModelError
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import SliceAttrs


def slice_spec(shape: Sequence[int], begin: Sequence[int], size: Sequence[int]) -> SliceAttrs:
    """SLICE's parameters; a size of -1 takes all that follows."""
    if not len(shape) == len(begin) == len(size):
        raise ModelError(f"{len(begin)} begins and {len(size)} sizes for {len(shape)} dimensions")
    extent = tuple(n - b if s == -1 else s for n, b, s in zip(shape, begin, size, strict=True))
    return SliceAttrs(tuple(begin), (1,) * len(shape), extent)


@dataclass
class _Dim:
    """What STRIDED_SLICE does to one dimension of the input (or adds to the output)."""

    begin: int | None = None  # None: from the first element in the stride's direction
    end: int | None = None  # None: to the last
    stride: int = 1
    shrink: bool = False
    new: bool = False


def strided_spec(view: OpView) -> tuple[SliceAttrs, tuple[int, ...]]:
    """STRIDED_SLICE's (attributes, output shape), as TFLite resolves begins, ends and masks.

    An ellipsis stands for as many whole dimensions as are missing, a new axis for none; begins and
    ends are clamped to the dimension; a shrunk axis takes one element and vanishes.
    """
    shape = view.input(0).shape
    begin: list[int] = []
    stride: list[int] = []
    extent: list[int] = []
    output: list[int] = []
    position = 0
    for dim in _dimensions(view, len(shape)):
        if dim.new:
            output.append(1)
            continue
        first, count = _resolve(dim, shape[position])
        if count < 1:
            raise ModelError(f"the slice takes nothing of dimension {position}")
        begin.append(first)
        stride.append(dim.stride)
        extent.append(count)
        if not dim.shrink:
            output.append(count)
        position += 1
    return SliceAttrs(tuple(begin), tuple(stride), tuple(extent)), tuple(output)


def _dimensions(view: OpView, rank: int) -> list[_Dim]:
    """The specification one entry a dimension, ellipsis and missing ones written out."""
    begin, end, strides = view.ints(1), view.ints(2), view.ints(3)
    options = view.options(tflite.StridedSliceOptions)
    if not len(begin) == len(end) == len(strides) or len(begin) > 16:
        raise ModelError(f"{len(begin)} begins, {len(end)} ends, {len(strides)} strides")
    if options.Offset():
        view.refuse("ends given as offsets from the begins", "re-export with absolute ends")
    count = len(begin)
    given = [
        i for i in range(count) if not (options.EllipsisMask() >> i & 1 or options.NewAxisMask() >> i & 1)
    ]
    missing = rank - len(given)
    if missing < 0:
        raise ModelError(f"{len(given)} dimensions sliced of {rank}")
    found: list[_Dim] = []
    for i in range(count):
        bit = 1 << i
        if options.EllipsisMask() & bit:
            found += [_Dim() for _ in range(missing)]
            missing = 0
        elif options.NewAxisMask() & bit:
            found.append(_Dim(new=True))
        else:
            if strides[i] == 0:
                raise ModelError("a stride of 0")
            found.append(
                _Dim(
                    None if options.BeginMask() & bit else begin[i],
                    None if options.EndMask() & bit else end[i],
                    strides[i],
                    bool(options.ShrinkAxisMask() & bit),
                )
            )
    return found + [_Dim() for _ in range(missing)]


def _resolve(dim: _Dim, size: int) -> tuple[int, int]:
    """(first element, number of elements) taken of a dimension of `size`."""
    low, high = (0, size) if dim.stride > 0 else (-1, size - 1)
    first = low if dim.stride > 0 else high
    if dim.begin is not None:
        first = min(max(dim.begin + size if dim.begin < 0 else dim.begin, low), high)
    if dim.shrink:
        return first, int(0 <= first < size)
    last = high if dim.stride > 0 else low
    if dim.end is not None:
        last = min(max(dim.end + size if dim.end < 0 else dim.end, low), high)
    return first, max(0, -((first - last) // dim.stride))
