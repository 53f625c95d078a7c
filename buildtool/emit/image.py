"""The weight image: header, quantisation of the interface, packed constants, CRC-32.

The layout (of which topology the blocks are, where each stands and in which packing) depends on the
topology and on the kernels' packings alone; its digest is in the header and in the emitted C, and the
firmware compares them.
The format is described in kernels/include/nn_image.h.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass

import msgpack
import numpy as np

from buildtool.emit.packing import pack
from buildtool.graph.digest import topology_digest
from buildtool.graph.types import Graph
from buildtool.target.types import KernelVariant

MAGIC = b"NTWI"
VERSION = 1
HEADER_BYTES = 64
DIGEST_BYTES = 16
ALIGNMENT = 16


@dataclass(frozen=True)
class WeightImage:
    """The image, and where things are: byte offsets from the image's start.

    `constants` maps an operator's position to its block, `sizes` to that one's bytes, `tensors` a
    constant operand's tensor index to its values.
    """

    data: bytes
    layout: bytes
    constants: dict[int, int]
    tensors: dict[int, int]
    sizes: dict[int, int]

    @property
    def payload_bytes(self) -> int:
        """Bytes after the header."""
        return len(self.data) - HEADER_BYTES


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


def _interface(graph: Graph) -> bytes:
    """Scale (float32) and zero point (int32) of every input, then of every output."""
    parts = []
    for index in (*graph.inputs, *graph.outputs):
        quant = graph.tensors[index].quant
        scale, zero_point = (quant.scale, quant.zero_point) if quant else (1.0, 0)
        parts.append(struct.pack("<fi", scale, zero_point))
    return _aligned(b"".join(parts))


def operands(graph: Graph, position: int) -> tuple[int, ...]:
    """The inputs of an operator that a kernel reads as tensors, not as packed constants."""
    op = graph.ops[position]
    count = 1 if str(op.kind) in _PACKED_WEIGHTS else len(op.inputs)
    return tuple(t for t in op.inputs[:count] if t >= 0)


_PACKED_WEIGHTS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED"})


def weight_image(graph: Graph, kernels: tuple[KernelVariant | None, ...]) -> WeightImage:
    """Packs every operator's constants for the kernel that runs it (None: an alias, no code)."""
    blocks = [_interface(graph)]
    layout: list[object] = [VERSION, topology_digest(graph)]
    place = HEADER_BYTES + len(blocks[0])
    constants: dict[int, int] = {}
    tensors: dict[int, int] = {}
    sizes: dict[int, int] = {}

    def append(block: bytes, what: list[object]) -> int:
        nonlocal place
        block = _aligned(block)
        blocks.append(block)
        layout.append([*what, place, len(block)])
        place += len(block)
        return place - len(block)

    for position, kernel in enumerate(kernels):
        if kernel is None:
            continue
        block = pack(graph, graph.ops[position], kernel.packing)
        if block:
            sizes[position] = len(_aligned(block))
            constants[position] = append(block, [position, kernel.packing])
        for index in operands(graph, position):
            data = graph.tensors[index].data
            if data is not None and index not in tensors:
                values = np.ascontiguousarray(data).tobytes()
                tensors[index] = append(values, [position, "tensor"])
    payload = b"".join(blocks)
    digest = hashlib.sha256(msgpack.packb(layout)).digest()[:DIGEST_BYTES]
    header = MAGIC + struct.pack(
        "<7I",
        VERSION,
        HEADER_BYTES,
        len(payload),
        zlib.crc32(payload),
        len(graph.inputs),
        len(graph.outputs),
        0,
    )
    head = (header + digest).ljust(HEADER_BYTES, b"\0")
    return WeightImage(head + payload, digest, constants, tensors, sizes)


def pieces(graph: Graph, image: WeightImage, position: int) -> list[tuple[int, int, int]]:
    """(byte of the image, bytes, byte of a buffer for them) of all that an operator reads of the image."""
    found, place = [], 0
    if position in image.constants:
        found.append((image.constants[position], image.sizes[position], 0))
        place = image.sizes[position]
    for t in operands(graph, position):
        if graph.tensors[t].is_constant:
            size = graph.tensors[t].size + -graph.tensors[t].size % ALIGNMENT
            found.append((image.tensors[t], size, place))
            place += size
    return found
