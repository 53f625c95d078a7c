"""Which slices and concatenations of channels may be views, as the kernels of their readers and makers allow.

Kernels may rely on the alignment of pixels that follows from a tensor's number of channels. In a wider
tensor, the pixels of some channels may be less aligned. Such channels cannot be a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from buildtool.graph.partviews import joins_channels, takes_channels, tensors_with_own_memory
from buildtool.graph.types import Graph, SliceAttrs
from buildtool.plan.schedule.receptive import accumulates
from buildtool.target.catalogue import takes_parts, writes_parts
from buildtool.target.types import KernelVariant

WIDEST_ACCESS = 8  # bytes that a kernel may load at once from an aligned address


def possible_views(
    graph: Graph, kernels: Sequence[KernelVariant | None], *, joined: bool = False
) -> tuple[int, ...]:
    """Returns the positions of all slices of channels that may be views, ascending.

    A view has no memory of its own: its readers read the wider tensor. `kernels`: one per operator, None for
    aliases. `joined`: whether the result also has the concatenations whose parts can be written in place.
    """
    slices: list[int] = []
    lasting_tensors, readers = tensors_with_own_memory(graph), graph.consumers()
    for position in reversed(range(len(graph.ops))):
        op = graph.ops[position]
        if not takes_channels(graph, op) or lasting_tensors & {op.inputs[0], op.outputs[0]}:
            continue
        assert isinstance(op.attrs, SliceAttrs)
        source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
        first = op.attrs.begin[-1] * result.dtype.size
        own_readers = readers.get(op.outputs[0], ())
        aligned = fits_words(first, result.pixel_bytes, source.pixel_bytes)
        read_in_place = (
            p in slices or ((kernel := kernels[p]) is not None and takes_parts(graph, kernel, graph.ops[p]))
            for p in own_readers
        )
        if aligned and own_readers and all(read_in_place):
            slices.append(position)
    return tuple(sorted((*slices, *(_concatenations(graph, kernels, slices) if joined else ()))))


def _concatenations(
    graph: Graph, kernels: Sequence[KernelVariant | None], slices: Sequence[int]
) -> list[int]:
    views: list[int] = []
    makers, states = graph.producers(), {t for s in graph.states for t in (s.before, s.after)}

    def writes_in_place(position: int) -> bool:
        # Poolings over all of an image may be fed row by row: then they write their output by address.
        op, kernel = graph.ops[position], kernels[position]
        alone = position not in slices and kernel is not None and not accumulates(graph, op)
        return position in views or (alone and kernel is not None and writes_parts(graph, kernel, op))

    for position, op in enumerate(graph.ops):
        if not joins_channels(graph, op) or op.outputs[0] in states:
            continue
        pitch = graph.tensors[op.outputs[0]].pixel_bytes
        sizes = [graph.tensors[t].pixel_bytes for t in op.inputs]
        firsts = accumulate(sizes[:-1], initial=0)
        aligned = all(fits_words(first, size, pitch) for first, size in zip(firsts, sizes, strict=True))
        if aligned and all(writes_in_place(makers[t]) for t in op.inputs):
            views.append(position)
    return views


def fits_words(first: int, pixel: int, pitch: int) -> bool:
    """Returns whether a view's pixels are aligned as well as in a tensor without gaps.

    `first`: the byte where the first pixel begins. `pixel`: bytes of a pixel. `pitch`: bytes from the start
    of a pixel to the start of the next one.
    """
    word = 2
    while word <= WIDEST_ACCESS and pixel % word == 0:
        if first % word or pitch % word:
            return False
        word *= 2
    return True
