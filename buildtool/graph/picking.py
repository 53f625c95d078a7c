"""Slices that both readers make: of elements that are equally far apart, and of parts side by side."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from buildtool.graph.types import Attrs, GatherAttrs, OpKind, SliceAttrs


def picking(shape: Sequence[int], axis: int, indices: Sequence[int]) -> tuple[OpKind, Attrs]:
    """STRIDED_SLICE if it takes these elements of dimension `axis`, else GATHER."""
    steps = {b - a for a, b in itertools.pairwise(indices)} or {1}
    if len(steps) > 1 or steps == {0} or not indices:
        return OpKind.GATHER, GatherAttrs(axis, tuple(indices))
    begin, stride, extent = [0] * len(shape), [1] * len(shape), list(shape)
    begin[axis], stride[axis], extent[axis] = indices[0], steps.pop(), len(indices)
    return OpKind.STRIDED_SLICE, SliceAttrs(tuple(begin), tuple(stride), tuple(extent))


def cuts(shape: Sequence[int], axis: int, sizes: Sequence[int]) -> list[SliceAttrs]:
    """Slices of those sizes, one after the other along `axis`."""
    found = []
    for start, size in zip(itertools.accumulate(sizes, initial=0), sizes, strict=False):
        begin, extent = [0] * len(shape), list(shape)
        begin[axis], extent[axis] = start, size
        found.append(SliceAttrs(tuple(begin), (1,) * len(shape), tuple(extent)))
    return found
