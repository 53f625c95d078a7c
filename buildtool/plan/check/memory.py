"""Replays a plan on a model of its memory: every byte knows which byte of which tensor it holds.

Each step checks that what it reads is what it should read, then overwrites what it writes. Nothing
the planner says about lifetimes or overlaps is believed: a ring that is too short, a tensor written
over too early or a lifetime cut short all end in a read of the wrong byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.errors import PlanError
from buildtool.graph.liveness import alias_roots
from buildtool.graph.types import AxisAttrs, Graph, Op, OpKind
from buildtool.plan.schedule.receptive import accumulates, axes, row_inputs, streams
from buildtool.plan.schedule.schedule import schedule
from buildtool.plan.types import SOURCE, Buffer, BufferKind, Load, Move, Plan, Step
from buildtool.target.types import Contract, KernelVariant

Span = tuple[int, int]  # [start, end) in the arena


@dataclass(frozen=True)
class Piece:
    """A run of bytes: of the tensor from `byte` on, in the arena from `address` on."""

    address: int
    byte: int
    size: int


def pieces(graph: Graph, buffer: Buffer, tensor: int, rows: Span, columns: Span) -> Iterator[Piece]:
    """Where a window of a tensor lies in its buffer."""
    batch, height, width, channels = graph.tensors[tensor].nhwc
    if not buffer.rows and (batch > 1 or (columns == (0, width) and rows == (0, height))):
        yield Piece(buffer.offset, 0, graph.tensors[tensor].size)
        return
    held_rows, held_columns = buffer.rows or height, buffer.columns or width
    for y in range(*rows):
        base = buffer.offset + (y % held_rows) * held_columns * channels
        x = columns[0]
        while x < columns[1]:
            run = min(columns[1] - x, held_columns - x % held_columns)
            yield Piece(base + x % held_columns * channels, (y * width + x) * channels, run * channels)
            x += run


class Memory:
    """The arena: per byte, tensor and byte of the tensor that was written there last."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph = graph
        self.plan = plan
        self.roots = alias_roots(graph)
        self.tags: npt.NDArray[np.int64] = np.full(plan.arena_bytes, -1, np.int64)
        self.holder: dict[int, Buffer] = {}
        targets = {move.target for move in plan.moves}
        for index, buffer in enumerate(plan.buffers):
            if index not in targets:
                self.holder.update((t, buffer) for t in buffer.tensors)
        self.counting = np.arange(max((t.size for t in graph.tensors), default=1), dtype=np.int64)

    def _tag(self, tensor: int, piece: Piece) -> npt.NDArray[np.int64]:
        return self.counting[piece.byte : piece.byte + piece.size] + (self.roots[tensor] << 32)

    def write(self, tensor: int, rows: Span, columns: Span) -> None:
        """Marks a window of a tensor as written."""
        for piece in pieces(self.graph, self.buffer(tensor), tensor, rows, columns):
            if piece.address < 0 or piece.address + piece.size > self.tags.size:
                raise PlanError("is written outside of the arena", tensor=self.graph.tensors[tensor].name)
            self.tags[piece.address : piece.address + piece.size] = self._tag(tensor, piece)

    def require(self, tensor: int, rows: Span, columns: Span, reader: str) -> None:
        """PlanError unless a window of a tensor is there."""
        for piece in pieces(self.graph, self.buffer(tensor), tensor, rows, columns):
            held = self.tags[piece.address : piece.address + piece.size]
            if held.size != piece.size or (held != self._tag(tensor, piece)).any():
                raise PlanError(
                    f"rows {rows[0]} to {rows[1]} are not in the arena when they are read",
                    operator=reader,
                    tensor=self.graph.tensors[tensor].name,
                )

    def require_bytes(self, tensor: int, first: int, end: int, reader: str) -> None:
        """PlanError unless bytes [first, end) of a tensor that lies whole in its buffer are there."""
        piece = Piece(self.buffer(tensor).offset + first, first, end - first)
        held = self.tags[piece.address : piece.address + piece.size]
        if held.size != piece.size or (held != self._tag(tensor, piece)).any():
            name = self.graph.tensors[tensor].name
            raise PlanError(
                f"bytes {first} to {end} are not in the arena when they are read",
                operator=reader,
                tensor=name,
            )

    def write_bytes(self, tensor: int, first: int, end: int) -> None:
        """Marks bytes [first, end) of a tensor that lies whole in its buffer as written."""
        piece = Piece(self.buffer(tensor).offset + first, first, end - first)
        if piece.address < 0 or piece.address + piece.size > self.tags.size:
            raise PlanError("is written outside of the arena", tensor=self.graph.tensors[tensor].name)
        self.tags[piece.address : piece.address + piece.size] = self._tag(tensor, piece)

    def buffer(self, tensor: int) -> Buffer:
        """The buffer of a tensor, or of the tensor whose bytes it is."""
        found = self.holder.get(tensor) or self.holder.get(self.roots[tensor])
        if found is None:
            raise PlanError("has no buffer", tensor=self.graph.tensors[tensor].name)
        return found

    def move(self, source: Buffer, target: Buffer) -> None:
        """Copies a tensor's bytes to where it lives from now on."""
        for buffer in (source, target):
            if buffer.offset < 0 or buffer.offset + buffer.size > self.tags.size:
                raise PlanError(f"buffer '{buffer.name}' lies outside of the arena")
        if source.tensors != target.tensors or source.size != target.size or source.rows or target.rows:
            raise PlanError(f"buffer '{target.name}' cannot be what '{source.name}' becomes")
        held = self.tags[source.offset : source.offset + source.size].copy()
        self.tags[target.offset : target.offset + target.size] = held
        self.holder.update((t, target) for t in target.tensors)

    def own(self, buffer: Buffer, tag: int) -> None:
        """Marks a buffer that is no tensor's."""
        if buffer.offset < 0 or buffer.offset + buffer.size > self.tags.size:
            raise PlanError(f"buffer '{buffer.name}' lies outside of the arena")
        self.tags[buffer.offset : buffer.offset + buffer.size] = tag


def replay(plan: Plan, graph: Graph, kernels: Sequence[KernelVariant | None]) -> dict[int, int]:
    """Runs the whole plan; operator position -> pixels computed (repetitions included).

    Raises PlanError at the first step that reads something that is not there.
    """
    memory = Memory(graph, plan)
    if plan.image != "stream":
        for t in graph.inputs:
            memory.write(t, *_whole(graph, t))
    served: dict[tuple[int, BufferKind], Buffer] = {}
    for buffer in plan.buffers:
        if buffer.op >= 0:
            served[buffer.op, buffer.kind] = buffer
    computed: dict[int, int] = {}
    loads = {load.op: load for load in plan.loads}
    coming: dict[int, list[int]] = {}  # step -> operators whose constants begin to come
    for load in plan.loads:
        coming.setdefault(plan.buffers[load.buffer].first, []).append(load.op)
    moving: dict[int, list[Move]] = {}  # step -> moves before it
    for move in plan.moves:
        moving.setdefault(plan.buffers[move.target].first, []).append(move)
    number = -1
    for region in plan.regions:
        for move in moving.pop(number + 1, ()):
            memory.move(plan.buffers[move.source], plan.buffers[move.target])
        for step in schedule(region, graph, plan.image):
            number += 1
            for op in coming.get(number, ()):
                memory.own(plan.buffers[loads[op].buffer], _constants_tag(op))
            if step.op == SOURCE:
                memory.write(graph.inputs[0], (step.y0, step.y1), (step.x0, step.x1))
                continue
            brought = loads.get(step.op)
            if brought is not None:
                _require_constants(memory, graph.ops[step.op], brought)
            whole = brought is not None and brought.channels > 0
            _step(memory, step, region.is_streamed, kernels[step.op], served, whole)
            if brought is not None:
                _require_constants(memory, graph.ops[step.op], brought)
            done = computed.get(step.op, 0) + (step.y1 - step.y0) * (step.x1 - step.x0)
            computed[step.op] = done
    if moving:
        raise PlanError(f"a tensor moves at step {min(moving)}, which is no region's first")
    last = list(graph.outputs) + (list(graph.inputs) if plan.image == "resident" else [])
    for t in last:
        if t in memory.roots:
            memory.require(t, *_whole(graph, t), "the end of the invoke")
    return computed


def _constants_tag(op: int) -> int:
    return (1 << 61) + op


def _require_constants(memory: Memory, op: Op, load: Load) -> None:
    buffer = memory.plan.buffers[load.buffer]
    held = memory.tags[buffer.offset : buffer.offset + buffer.size]
    if held.size != buffer.size or (held != _constants_tag(load.op)).any():
        raise PlanError("its constants are not in the arena when it runs", operator=op.place)


def _whole(graph: Graph, tensor: int) -> tuple[Span, Span]:
    _, height, width, _ = graph.tensors[tensor].nhwc
    return (0, height), (0, width)


def _step(
    memory: Memory,
    step: Step,
    streamed: bool,
    kernel: KernelVariant | None,
    served: Mapping[tuple[int, BufferKind], Buffer],
    in_slices: bool,
) -> None:
    graph, op = memory.graph, memory.graph.ops[step.op]
    scratch = served.get((step.op, BufferKind.SCRATCH))
    if scratch is not None:
        memory.own(scratch, -3 - step.op)
    if streamed and accumulates(graph, op):
        _accumulate(memory, step, op, served.get((step.op, BufferKind.ACCUMULATOR)))
        return
    # of an operator in slices, all input is read again for the last one
    contract = kernel.overlap if kernel and not in_slices else Contract.NONE
    if contract is Contract.PARTS:
        contract = Contract.NONE
        if not streamed and op.kind is OpKind.CONCATENATION:
            _concatenate(memory, op)
            return
    by_row = contract is not Contract.NONE and streams(graph, op) and not accumulates(graph, op)
    for y0, y1 in [(y, y + 1) for y in range(step.y0, step.y1)] if by_row else [(step.y0, step.y1)]:
        spans = list(_read(memory, op, (y0, y1), (step.x0, step.x1)))
        _refuse_collision(memory, op, (y0, y1), (step.x0, step.x1), spans, contract)
        for t in op.outputs:
            if streamed or by_row:
                memory.write(t, (y0, y1), (step.x0, step.x1))
            else:
                memory.write(t, *_whole(graph, t))
    if scratch is not None and (memory.tags[scratch.offset : scratch.offset + scratch.size] >= 0).any():
        raise PlanError("writes over its scratch", operator=op.place)


def _concatenate(memory: Memory, op: Op) -> None:
    """Copies one part after the other, each line by line, as a kernel of this contract promises.

    A line is what lies one behind the other in the output before the next part follows.
    """
    graph, result = memory.graph, op.outputs[0]
    assert isinstance(op.attrs, AxisAttrs)
    output = memory.buffer(result)
    lines = math.prod(graph.tensors[result].shape[: op.attrs.axis])
    width, column = graph.tensors[result].size // lines, 0
    for t in op.inputs:
        line = graph.tensors[t].size // lines
        if t not in memory.roots:  # a constant
            copied = [(0, lines)]
        else:
            source = memory.buffer(t)
            apart = (
                source.offset + source.size <= output.offset or output.offset + output.size <= source.offset
            )
            copied = [(0, lines)] if apart else [(n, n + 1) for n in range(lines)]
        for first, end in copied:
            if t in memory.roots:
                memory.require_bytes(t, first * line, end * line, op.place)
            for n in range(first, end):
                memory.write_bytes(result, n * width + column, n * width + column + line)
        column += line


def _read(memory: Memory, op: Op, rows: Span, columns: Span) -> Iterator[tuple[int, Piece]]:
    """Checks what an operator reads for a window of its output; yields the tensors and where that lies."""
    graph = memory.graph
    by_row = row_inputs(graph, op) if streams(graph, op) and not accumulates(graph, op) else ()
    for t in dict.fromkeys(op.inputs):
        if t not in memory.roots:
            continue
        if t in by_row:
            _, height, width, _ = graph.tensors[t].nhwc
            row_axis, column_axis = axes(graph, op)
            window = (
                (max(0, row_axis.low(rows[0])), min(height, row_axis.high(rows[1]))),
                (max(0, column_axis.low(columns[0])), min(width, column_axis.high(columns[1]))),
            )
        else:
            window = _whole(graph, t)
        if window[0][0] < window[0][1] and window[1][0] < window[1][1]:
            memory.require(t, *window, op.place)
            yield from ((t, piece) for piece in pieces(graph, memory.buffer(t), t, *window))


def _refuse_collision(
    memory: Memory,
    op: Op,
    rows: Span,
    columns: Span,
    read: Sequence[tuple[int, Piece]],
    contract: Contract,
) -> None:
    """Within one step nothing is written over what the step reads, but by element-by-element kernels."""
    for t in op.outputs:
        for out in pieces(memory.graph, memory.buffer(t), t, rows, columns):
            for source, piece in read:
                if out.address < piece.address + piece.size and piece.address < out.address + out.size:
                    # element i is read before it is written if the output lies no higher
                    alike = memory.graph.tensors[source].nhwc == memory.graph.tensors[t].nhwc
                    lower = out.address - out.byte <= piece.address - piece.byte
                    if contract is Contract.PIXEL and alike and lower:
                        continue
                    raise PlanError("writes over what it reads", operator=op.place)


def _accumulate(memory: Memory, step: Step, op: Op, sums: Buffer | None) -> None:
    """Adds a part of the input to the accumulators; the last part makes the output."""
    graph = memory.graph
    if sums is None:
        raise PlanError("a global pooling in a streamed region has no accumulators", operator=op.place)
    memory.require(op.inputs[0], (step.y0, step.y1), (step.x0, step.x1), op.place)
    tag = (1 << 62) + step.op
    span = memory.tags[sums.offset : sums.offset + sums.size]
    if (step.y0, step.x0) != (0, 0) and (span != tag).any():
        raise PlanError("the accumulators were overwritten", operator=op.place)
    memory.own(sums, tag)
    _, height, width, _ = graph.tensors[op.inputs[0]].nhwc
    if (step.y1, step.x1) == (height, width):
        memory.write(op.outputs[0], *_whole(graph, op.outputs[0]))
