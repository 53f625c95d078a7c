"""Which slices of channels may be views: those whose readers' kernels go from pixel to pixel as they are told.

Kernels may take it that the pixels of a tensor are as aligned as its channels are many. So some channels of
a wider tensor are no view where they begin in the midst of a word that the slice's output would have.
"""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.graph.partviews import lasting, takes_channels
from buildtool.graph.types import Graph, Op, SliceAttrs
from buildtool.target.catalogue import takes_parts
from buildtool.target.types import KernelVariant

WIDEST_ACCESS = 8  # bytes that a kernel may load at once from an aligned place


def possible_views(graph: Graph, kernels: Sequence[KernelVariant | None]) -> tuple[int, ...]:
    """The positions of all slices that may be views; `kernels`: one an operator, None for aliases."""
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
