"""Which slices and concatenations of channels may be views, as the kernels of their readers and makers allow.

Kernels may take it that the pixels of a tensor are as aligned as its channels are many. So some channels of
a wider tensor are no view where they begin in the midst of a word that they have by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.graph.partviews import joins_channels, lasting, takes_channels
from buildtool.graph.types import Graph, Op, SliceAttrs
from buildtool.plan.schedule.receptive import accumulates
from buildtool.target.catalogue import takes_parts, writes_parts
from buildtool.target.types import KernelVariant

WIDEST_ACCESS = 8  # bytes that a kernel may load at once from an aligned place


def possible_views(
    graph: Graph, kernels: Sequence[KernelVariant | None], *, joined: bool = False
) -> tuple[int, ...]:
    """The positions of all slices that may be views; `kernels`: one an operator, None for aliases.

    `joined`: of all concatenations, too, whose parts can be written in place.
    """
    slices = _slices(graph, kernels)
    return tuple(sorted((*slices, *_concatenations(graph, kernels, slices)))) if joined else slices


def _slices(graph: Graph, kernels: Sequence[KernelVariant | None]) -> tuple[int, ...]:
    found: list[int] = []
    kept, readers = lasting(graph), graph.consumers()
    for position in reversed(range(len(graph.ops))):
        op = graph.ops[position]
        if not takes_channels(graph, op) or kept & {op.inputs[0], op.outputs[0]} or not aligned(graph, op):
            continue
        mine = readers.get(op.outputs[0], ())
        if mine and all(reader in found or reads_parts(graph, kernels, reader) for reader in mine):
            found.append(position)
    return tuple(sorted(found))


def _concatenations(
    graph: Graph, kernels: Sequence[KernelVariant | None], slices: Sequence[int]
) -> tuple[int, ...]:
    found: list[int] = []
    makers, states = graph.producers(), {t for s in graph.states for t in (s.before, s.after)}
    for position, op in enumerate(graph.ops):
        if not joins_channels(graph, op) or op.outputs[0] in states:
            continue
        made = [makers[t] for t in op.inputs]
        if fits(graph, op) and all(
            maker in found or (maker not in slices and makes_parts(graph, kernels, maker)) for maker in made
        ):
            found.append(position)
    return tuple(found)


def fits(graph: Graph, op: Op) -> bool:
    """Whether each part of a concatenation of channels lies as aligned in it as by itself."""
    pitch, first = graph.tensors[op.outputs[0]].pixel_bytes, 0
    for part in (graph.tensors[t] for t in op.inputs):
        if not fits_words(first, part.pixel_bytes, pitch):
            return False
        first += part.pixel_bytes
    return True


def makes_parts(graph: Graph, kernels: Sequence[KernelVariant | None], position: int) -> bool:
    """Whether an operator can write some channels of a wider tensor's pixels.

    Poolings over all of an image may be fed row by row: then they write their output by address.
    """
    kernel, op = kernels[position], graph.ops[position]
    return kernel is not None and not accumulates(graph, op) and writes_parts(graph, kernel, op)


def reads_parts(graph: Graph, kernels: Sequence[KernelVariant | None], position: int) -> bool:
    """Whether an operator can read some channels of a wider tensor's pixels."""
    kernel = kernels[position]
    return kernel is not None and takes_parts(graph, kernel, graph.ops[position])


def aligned(graph: Graph, op: Op) -> bool:
    """Whether the channels that a slice takes lie as aligned in the pixels as they do by themselves."""
    assert isinstance(op.attrs, SliceAttrs)
    source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    first = op.attrs.begin[-1] * result.dtype.size
    return fits_words(first, result.pixel_bytes, source.pixel_bytes)


def fits_words(first: int, pixel: int, pitch: int) -> bool:
    """Whether pixels of so many bytes are as aligned from byte `first` on, `pitch` bytes apart, as alone."""
    word = 2
    while word <= WIDEST_ACCESS and pixel % word == 0:
        if first % word or pitch % word:
            return False
        word *= 2
    return True
