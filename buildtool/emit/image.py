"""Makes the weight image: header, quantisation of inputs and outputs, packed constants, CRC-32.

The layout (the topology, and each block's place and packing) depends only on the topology and on the kernels'
packings. Its digest is in the header and in the emitted C, and the firmware compares the two.
kernels/include/nn_image.h describes the format.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgpack
import numpy as np

from buildtool.emit.fourbits import pack_stored
from buildtool.emit.packing import pack
from buildtool.graph.partviews import without_views
from buildtool.graph.secondpass import once_positions, repeated_ops, without_second_passes
from buildtool.graph.topology import filling, topology_digest
from buildtool.graph.types import ConvAttrs, Graph, Pad
from buildtool.target.catalogue import constants_bytes, expands, operands
from buildtool.target.types import KernelVariant

MAGIC = b"NTWI"
VERSION = 2
HEADER_BYTES = 64
DIGEST_BYTES = 16
ALIGNMENT = 16
_SEAL_BYTES = 4  # the header ends with a CRC-32 of everything before it
QUANTIZATION_BYTES = 8  # nn_quantization
# Version, header's bytes, payload's bytes, payload's CRC-32, inputs, outputs, sequence number.
_NUMBERS = struct.Struct("<7I")
_TENSOR = "tensor"  # an entry with a constant operand's values
_STATE = "state"  # an entry with a state's initial value, or with the byte that fills it


@dataclass(frozen=True)
class ImageLayout:
    """Where the parts of a weight image lie, as byte offsets. They do not depend on the weights' values.

    size: bytes of the whole image.
    constants: operator's position -> the offset of its block of packed constants.
    sizes: operator's position -> the bytes of this block.
    tensors: constant operand (tensor) -> the offset of its values.
    operands: operator's position -> the inputs that its kernel reads as tensors.
    states: the offset of the initial value of each state of the graph.
    entries: (position, kind, offset, bytes) of each part. The kind is a packing, "tensor" or "state".

    An operator of a second pass (recomputation) reads the parts of its first run, and has no entries.
    """

    size: int
    constants: dict[int, int]
    tensors: dict[int, int]
    sizes: dict[int, int]
    operands: dict[int, tuple[int, ...]]
    entries: tuple[tuple[int, str, int, int], ...]
    states: tuple[int, ...] = ()


@dataclass(frozen=True)
class WeightImage:
    """A weight image's bytes, the digest of its layout, and where its parts are (see ImageLayout)."""

    data: bytes
    layout: bytes
    places: ImageLayout


def _round_up(size: int) -> int:
    return size + -size % ALIGNMENT


def _align(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


def image_layout(graph: Graph, kernels: Sequence[KernelVariant | None]) -> ImageLayout:
    """Returns the layout of a weight image, by the formulas in the catalogue. `kernels` has None for
    aliases.
    """
    place = HEADER_BYTES + _round_up(QUANTIZATION_BYTES * (len(graph.inputs) + len(graph.outputs)))
    constants: dict[int, int] = {}
    tensors: dict[int, int] = {}
    sizes: dict[int, int] = {}
    reads: dict[int, tuple[int, ...]] = {}
    entries: list[tuple[int, str, int, int]] = []
    repeated = {**repeated_ops(graph), **_same_constants(graph, kernels)}
    for position, kernel in enumerate(kernels):
        if kernel is None:
            continue
        op, first = graph.ops[position], repeated.get(position)
        if first in constants:
            constants[position], sizes[position] = constants[first], sizes[first]
        size = 0 if first is not None else constants_bytes(kernel, graph, op)
        if size:
            constants[position], sizes[position] = place, size
            entries.append((position, kernel.packing, place, size))
            place += size
        reads[position] = operands(kernel, graph, op)
        for index in reads[position]:
            if graph.tensors[index].is_constant and index not in tensors:
                size = _round_up(graph.tensors[index].size)
                tensors[index] = place
                entries.append((position, _TENSOR, place, size))
                place += size
    states = []
    for index, state in enumerate(graph.states):
        size = _round_up(1 if filling(state) is not None else state.initial.nbytes)
        states.append(place)
        entries.append((index, _STATE, place, size))
        place += size
    return ImageLayout(place, constants, tensors, sizes, reads, tuple(entries), tuple(states))


def _same_constants(graph: Graph, kernels: Sequence[KernelVariant | None]) -> dict[int, int]:
    """Returns operator -> an earlier operator with the same constants, for a network on a moving window.

    In such a network, several operators may compute different rows of one tensor of the window. They come
    from one operator of the model's file, and have the same operands and the same kernel. Only their padding
    and dilation may differ. Other operators are left out; for other networks the result is empty.
    """
    firsts: dict[tuple[object, ...], int] = {}
    same = {}
    for position, (op, kernel) in enumerate(zip(graph.ops, kernels, strict=True)) if graph.window else ():
        if kernel is None or op.index < 0:
            continue
        attrs = replace(op.attrs, pad=Pad(), dilation=(1, 1)) if isinstance(op.attrs, ConvAttrs) else op.attrs
        constants = tuple(t for t in op.inputs if t < 0 or graph.tensors[t].is_constant)
        key = (op.index, op.kind, constants, attrs, kernel.name, kernel.packing)
        first = firsts.setdefault(key, position)
        if first != position:
            same[position] = first
    return same


def weight_image(graph: Graph, kernels: Sequence[KernelVariant | None]) -> WeightImage:
    """Returns the weight image: every operator's constants, packed for its kernel. `kernels` has None for
    aliases.
    """
    places = image_layout(graph, kernels)
    interface = []  # scale (float32) and zero point (int32) of every input, then of every output
    for index in (*graph.inputs, *graph.outputs):
        quant = graph.tensors[index].quant
        interface.append(struct.pack("<fi", *((quant.scale, quant.zero_point) if quant else (1.0, 0))))
    blocks = [_align(b"".join(interface))]
    values = {place: graph.tensors[index].data for index, place in places.tensors.items()}
    for position, what, place, size in places.entries:
        kernel = kernels[position] if what != _STATE else None
        if what == _STATE:
            fill, initial = filling(graph.states[position]), graph.states[position].initial
            block = _align(np.ascontiguousarray(initial).tobytes() if fill is None else bytes([fill]))
        elif place in values:
            block = _align(np.ascontiguousarray(values[place]).tobytes())
        else:
            assert kernel is not None
            op = graph.ops[position]
            block = (pack_stored if expands(op) else pack)(graph, op, kernel)
        assert len(block) == size
        blocks.append(block)
    payload, digest = b"".join(blocks), layout_digest(graph, places)
    return WeightImage(_header(graph, digest, payload) + payload, digest, places)


def _header(graph: Graph, digest: bytes, payload: bytes) -> bytes:
    """Returns the header of a weight image, including its CRC; the sequence number and reserved bytes
    are 0.
    """
    ends = len(graph.inputs), len(graph.outputs)
    numbers = _NUMBERS.pack(VERSION, HEADER_BYTES, len(payload), zlib.crc32(payload), *ends, 0)
    head = (MAGIC + numbers + digest).ljust(HEADER_BYTES - _SEAL_BYTES, b"\0")
    return head + zlib.crc32(head).to_bytes(_SEAL_BYTES, "little")


def image_of_zeros(graph: Graph, kernels: Sequence[KernelVariant | None]) -> WeightImage:
    """Returns a weight image of zeros with the right layout. It is enough for emitting code, which needs no
    weights.
    """
    places = image_layout(graph, kernels)
    return WeightImage(bytes(places.size), layout_digest(graph, places), places)


def layout_digest(graph: Graph, places: ImageLayout) -> bytes:
    """Returns the digest, of DIGEST_BYTES bytes, of a layout.

    It is computed for the network without views and second passes (recomputation), which add no constants.
    """
    once = once_positions(graph)
    entries = [
        [position if what == _STATE else once[position], what, *others]
        for position, what, *others in places.entries
    ]
    layout = [VERSION, topology_digest(without_views(without_second_passes(graph))), *entries]
    return hashlib.sha256(msgpack.packb(layout)).digest()[:DIGEST_BYTES]


def read_image(data: bytes, graph: Graph, kernels: Sequence[KernelVariant | None]) -> WeightImage:
    """Returns the weight image in `data`. Raises ValueError if its header or size does not match the graph.

    The payload is only checked by its CRC, so weights may have any values.
    """
    places = image_layout(graph, kernels)
    digest = layout_digest(graph, places)
    header, payload = data[:HEADER_BYTES], data[HEADER_BYTES:]
    if len(data) != places.size or header != _header(graph, digest, payload):
        raise ValueError("not this network's weight image")
    return WeightImage(data, digest, places)


def pieces(graph: Graph, places: ImageLayout, position: int) -> list[tuple[int, int, int]]:
    """Returns the parts of the weight image that an operator reads.

    Each is (offset in the image, bytes, offset in a buffer that holds all of the operator's parts).
    """
    parts, place = [], 0
    if position in places.constants:
        parts.append((places.constants[position], places.sizes[position], 0))
        place = places.sizes[position]
    for t in places.operands.get(position, ()):
        if graph.tensors[t].is_constant:
            size = _round_up(graph.tensors[t].size)
            parts.append((places.tensors[t], size, place))
            place += size
    return parts
