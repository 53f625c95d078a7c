"""Calls of the kernels that copy lines, as SLICE and CONCATENATION make them, given nothing but the lines.

Between the lines that a call reads, and between those that it writes, lies noise that it may not touch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from kernelboard import Address, Call, Memory
from kernelcases import activation_tensor, case
from wholecalls import WholeCall

from buildtool.graph.strided import MAX_RANK, Copy, copies
from buildtool.graph.types import AxisAttrs, Graph, OpKind, SliceAttrs
from buildtool.target.catalogue import select
from buildtool.target.types import KernelVariant, Target

Shape = tuple[int, ...]
# Of channels: one vector, two, words behind fours, words alone, odd ones; a row; a box within; every other.
SLICES: tuple[tuple[Shape, Shape, Shape, Shape], ...] = (
    ((1, 2, 3, 48), (0, 0, 0, 16), (1, 2, 3, 16), (1, 1, 1, 1)),
    ((1, 2, 3, 48), (0, 0, 0, 4), (1, 2, 3, 32), (1, 1, 1, 1)),
    ((1, 2, 3, 40), (0, 0, 0, 8), (1, 2, 3, 28), (1, 1, 1, 1)),
    ((1, 2, 3, 16), (0, 0, 0, 4), (1, 2, 3, 12), (1, 1, 1, 1)),
    ((1, 2, 3, 23), (0, 0, 0, 3), (1, 2, 3, 19), (1, 1, 1, 1)),
    ((1, 4, 3, 12), (0, 1, 0, 0), (1, 2, 3, 12), (1, 1, 1, 1)),
    ((1, 4, 5, 12), (0, 1, 1, 4), (1, 2, 3, 8), (1, 1, 1, 1)),
    ((1, 1, 3, 10), (0, 0, 0, 1), (1, 1, 3, 4), (1, 1, 1, 2)),
)
JOINED = ((16, 32), (48, 20, 4), (7, 13))  # channels


def line_calls(target: Target) -> Iterator[WholeCall]:
    """One call a copy, of tensors that begin at words and of some that do not."""
    for shift, graph in [(shift, graph) for shift in (0, 1) for graph in _graphs()]:
        op = graph.ops[0]
        for copy in copies(graph, op):
            yield _call(select(target, graph, op), copy, shift)


def _graphs() -> Iterator[Graph]:
    for shape, begin, extent, step in SLICES:
        kind = OpKind.SLICE if step[-1] == 1 else OpKind.STRIDED_SLICE
        yield _graph(kind, SliceAttrs(begin, step, extent), [shape], extent)
    for channels in JOINED:
        shapes = [(1, 2, 3, count) for count in channels]
        yield _graph(OpKind.CONCATENATION, AxisAttrs(3), shapes, (1, 2, 3, sum(channels)))


def _graph(kind: OpKind, attrs: object, shapes: list[Shape], out: Shape) -> Graph:
    tensors = [activation_tensor(f"x{i}", shape, 0.5, 3) for i, shape in enumerate(shapes)]
    made = case(kind, attrs, tensors, [], activation_tensor("y", out, 0.5, 3), [])  # type: ignore[arg-type]
    return made.graph


def _call(kernel: KernelVariant, copy: Copy, shift: int) -> WholeCall:
    memory, rank = Memory(copy.size[-1]), len(copy.size)
    rows = (copy.size, copy.in_stride, copy.out_stride)
    geometry = memory.words(rank, *(n for row in rows for n in (*row, *[0] * (MAX_RANK - rank))))
    lines = copy.in_stride[-1] == copy.out_stride[-1] == 1
    data = np.random.default_rng(rank).integers(0, 256, int(np.prod(copy.size)), np.uint8).tobytes()
    read = _put(memory, data, shift, _starts(copy.size, copy.in_stride, copy.in_offset, lines))
    noise = bytes(byte ^ 255 for byte in data)  # each byte differs from what is to come
    written = _put(memory, noise, shift, _starts(copy.size, copy.out_stride, copy.out_offset, lines))
    count = len(data) // len(written)
    call = Call(kernel.symbol, (geometry, Address(read[0][0]), Address(written[0][0])), memory)
    wanted = tuple(data[i : i + count] for i in range(0, len(data), count))
    return WholeCall(kernel, call, written, (0, 0), wanted)


def _starts(size: Shape, strides: Shape, offset: int, lines: bool) -> list[int]:
    """Where in its tensor each line begins, ascending; without `lines` each element is one."""
    outer = len(size) - lines
    return [
        offset + sum(i * s for i, s in zip(index, strides, strict=False))
        for index in np.ndindex(size[:outer])
    ]


def _put(memory: Memory, data: bytes, shift: int, starts: list[int]) -> tuple[tuple[int, int], ...]:
    """Lays out lines of a tensor that begins `shift` bytes behind a multiple of 16; [first, end) of each."""
    count, end, places = len(data) // len(starts), -shift, []
    memory.put(b"")
    for i, start in enumerate(starts):
        place = memory.put(data[i * count : (i + 1) * count], align=1, guard=start - end).offset
        end = start + count
        places.append((place, place + count))
    return tuple(places)
