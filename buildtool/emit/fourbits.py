"""Packs constants whose weights the weight image stores in four bits.

The firmware expands such constants to bytes in scratch memory before the kernel reads them: all at once, or
for some output channels at a time (a slice). So every kernel reads the same bytes as without this. To make
the stored form, each slice is packed for its kernel as if the operator had only these output channels. Then
the packed block is encoded in pieces of 32 bytes. A piece is stored in 16 bytes if all its values are from -8
to 7, and unchanged otherwise (see nn_expand_s4 in nn.h).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import Hint, PlanError
from buildtool.emit.blocks import BIAS, FILTER, align
from buildtool.emit.packing import pack
from buildtool.graph.types import Graph, Op, OpKind, WeightedAttrs
from buildtool.target.catalogue import expanded_bytes, features, slices_of
from buildtool.target.types import KernelVariant

PIECE = 32  # bytes
LEAST, MOST = -8, 7  # the values of four bits
_MAP_BYTES = 8  # the map of the pieces has a multiple of this many bytes
# What is added to the weights at even and at odd addresses: some kernels read unsigned bytes, or pairs.
_OFFSETS = ((0, 0), (128, 0), (128, 128))
_Offset = tuple[int, int]
_WEIGHT, _BIAS = 5, 0x21212121  # values that show which pieces have weights alone
AGAIN = Hint(
    "make a plan for these weights: buildtool plan MODEL --board BOARD --out FILE; "
    "with --simplify structure only weights of int4 in the file are stored in four bits"
)


def encode(block: bytes) -> bytes:
    """Returns a packed block in the form that nn_expand_s4 reads; `block` has a multiple of 16 bytes."""
    return min((_encode(block, offset) for offset in _OFFSETS), key=len)


def _encode(block: bytes, offset: _Offset) -> bytes:
    pieces = _pieces(block, offset)
    narrow = np.all((pieces >= LEAST) & (pieces <= MOST), axis=1)
    values = (pieces - LEAST).astype(np.uint8)
    halves = values[:, : PIECE // 2] | values[:, PIECE // 2 :] << 4
    wide = _pieces(block, (0, 0))
    parts = [half.tobytes() if is_narrow else piece.tobytes()
             for half, piece, is_narrow in zip(halves, wide, narrow, strict=True)]  # fmt: skip
    return _head(~narrow, offset) + b"".join(parts) + block[pieces.size :]


def _pieces(block: bytes, offset: _Offset) -> npt.NDArray[np.int8]:
    """Returns a block as an array of pieces of 32 bytes. Bytes after the last whole piece are left out.

    `offset`: what is subtracted from the bytes at even addresses, and from those at odd addresses.
    """
    whole = len(block) // PIECE * PIECE
    pieces = np.frombuffer(block[:whole], np.uint8).reshape(-1, PIECE).copy()
    pieces[:, ::2] -= np.uint8(offset[0])
    pieces[:, 1::2] -= np.uint8(offset[1])
    return pieces.view(np.int8)


def _head(is_wide: npt.NDArray[np.bool_], offset: _Offset = (0, 0)) -> bytes:
    """Returns the head of an encoded block: the bytes that restore the weights, and the map of the pieces.

    Some kernels read weights plus 128, so the head says for which bytes the expansion flips the highest bit.
    `is_wide`: for each piece, whether it is stored unchanged. `offset`: as in `_pieces`.
    """
    flipped = bytes(128 - one for one in offset) * 2
    bitmap = np.packbits(is_wide, bitorder="little").tobytes()
    return flipped.ljust(_MAP_BYTES, b"\0") + bitmap + bytes(-len(bitmap) % _MAP_BYTES)


def pack_stored(graph: Graph, op: Op, kernel: KernelVariant) -> bytes:
    """Returns an operator's constants for the weight image: its encoded slices, one after the other.

    Raises PlanError if they need more bytes than the plan, in the operator's attributes, allows.
    """
    assert isinstance(op.attrs, WeightedAttrs)
    blocks = b"".join(map(encode, _blocks(graph, op, kernel, op.attrs.expanded)))
    if len(blocks) > op.attrs.stored:
        text = f"the plan stores these weights in four bits, in {op.attrs.stored:,} bytes"
        raise PlanError(f"{text}; they need {len(blocks):,}", operator=op.place, hint=AGAIN)
    return blocks.ljust(op.attrs.stored, b"\0")


def stored_bytes(graph: Graph, op: Op, kernel: KernelVariant, expanded: int) -> int:
    """Returns the bytes that an operator's constants need in the weight image with weights in four bits.

    `expanded`: how many output channels are expanded at a time. The bytes are enough for the operator's
    present weights. If the packing stores each weight as a byte, they are also enough for any weights from -8
    to 7.
    """
    own = sum(len(encode(block)) for block in _blocks(graph, op, kernel, expanded))
    shown, any_weights = _with_constants(graph, op), 0
    for block in _blocks(shown, op, kernel, expanded):
        any_weights += min(_shown_bytes(_pieces(block, offset)) for offset in _OFFSETS) + len(block) % PIECE
    return len(align(bytes(max(own, any_weights))))


def most_stored(kernel: KernelVariant, graph: Graph, op: Op, expanded: int) -> int:
    """Returns the bytes that an operator's encoded constants need if no piece of them fits in four bits."""
    total = 0
    for size, count in slices_of(features(graph, op)["cout"], expanded):
        block = expanded_bytes(kernel, graph, op, size)
        total += count * (len(_head(np.ones(block // PIECE, bool))) + block)
    return len(align(bytes(total)))


def _shown_bytes(pieces: npt.NDArray[np.int8]) -> int:
    """Returns the bytes that a block needs when encoded, whatever values from -8 to 7 its weights have.

    `pieces`: of the block as it is packed if all weights are `_WEIGHT` and all biases `_BIAS`. So a piece
    with only `_WEIGHT` and zeros has only weights, and 16 bytes are enough for it. All other pieces count 32
    bytes.
    """
    narrow = np.all((pieces == 0) | (pieces == _WEIGHT), axis=1)
    return len(_head(narrow)) + pieces.size - PIECE // 2 * int(narrow.sum())


def _blocks(graph: Graph, op: Op, kernel: KernelVariant, expanded: int) -> list[bytes]:
    """Returns the packed constants of each slice of `expanded` output channels."""
    whole = replace(op.as_seen, attrs=replace(op.attrs, expanded=0, stored=0))  # type: ignore[call-arg]
    channels = features(graph, op)["cout"]
    if expanded >= channels:
        return [pack(graph, whole, kernel)]
    sizes = [size for size, count in slices_of(channels, expanded) for _ in range(count)]
    ends = accumulate(sizes)
    return [
        pack(*slice_of(graph, whole, end - size, end), kernel) for size, end in zip(sizes, ends, strict=True)
    ]


def slice_of(graph: Graph, op: Op, first: int, end: int) -> tuple[Graph, Op]:
    """Returns an operator that computes output channels [first, end) of a convolution or a dense layer, and a
    graph that has only this operator.

    The first axis of its filter counts the output channels.
    """
    assert op.kind in (OpKind.CONV_2D, OpKind.FULLY_CONNECTED)
    tensors = list(graph.tensors)
    for t in (t for t in op.inputs[FILTER : BIAS + 1] if t >= 0):
        tensors[t] = tensors[t].for_channels(first, end)
    out = tensors[op.outputs[0]]
    tensors[op.outputs[0]] = replace(out, shape=(*out.shape[:-1], end - first))
    attrs = replace(op.attrs, expanded=0, stored=0)  # type: ignore[call-arg]
    sliced = replace(op.as_seen, attrs=attrs)
    return Graph("", tuple(tensors), (sliced,), sliced.inputs[:1], sliced.outputs), sliced


def _with_constants(graph: Graph, op: Op) -> Graph:
    """Returns the graph with all of the operator's weights set to `_WEIGHT`, and its biases to `_BIAS`.

    Its packed constants show where weights lie (see `_shown_bytes`).
    """
    tensors = list(graph.tensors)
    for t, value in zip(op.inputs[FILTER : BIAS + 1], (_WEIGHT, _BIAS), strict=False):
        if t >= 0:
            data = tensors[t].data
            assert data is not None
            tensors[t] = replace(tensors[t], data=np.full_like(data, value))
    return replace(graph, tensors=tuple(tensors))
