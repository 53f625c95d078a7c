"""The replay of replay.c in Python: every byte of the arena knows which byte of which tensor it holds."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import PlanError
from buildtool.base.modes import Image
from buildtool.graph.partviews import parts
from buildtool.graph.types import AxisAttrs, Graph, Op
from buildtool.plan.check.loads import refuse_mixed
from buildtool.plan.check.operators import CONSTANTS, Area, Operator, operators
from buildtool.plan.check.reads import Read, Span, alias_groups
from buildtool.plan.check.replay import check_windows, computed
from buildtool.plan.schedule.schedule import Steps
from buildtool.plan.schedule.timeline import Timeline, brought
from buildtool.plan.types import SOURCE, Buffer, Load, Move, Plan, Region, Step, changed
from buildtool.target.types import Contract, KernelVariant


def replay(plan: Plan, timeline: Timeline, kernels: Sequence[KernelVariant | None]) -> dict[int, int]:
    """What check/replay.py does."""
    check_windows(timeline)
    _Replay(plan, timeline, kernels).run()
    return computed(timeline)


class _Replay:
    """One run through all steps."""

    def __init__(self, plan: Plan, timeline: Timeline, kernels: Sequence[KernelVariant | None]) -> None:
        self.plan, self.timeline, self.graph = plan, timeline, timeline.graph
        self.memory = Memory(self.graph, plan)
        self.operators = operators(plan, self.graph, kernels)
        self.coming: dict[int, list[Load]] = {}  # step -> loads that begin with it
        for step, load in brought(timeline, plan.loads, plan.buffers):
            self.coming.setdefault(step, []).append(load)
        self.moving: dict[int, list[Move]] = {}  # step -> moves before it
        for move in plan.moves:
            self.moving.setdefault(plan.buffers[move.target].first, []).append(move)

    def run(self) -> None:
        """See `replay`."""
        memory, graph = self.memory, self.graph
        if self.plan.image != Image.STREAM:
            for t in graph.inputs:
                memory.write(t, *memory.whole(t))
        for state in graph.states:
            memory.write(state.before, *memory.whole(state.before))
        loading = sorted(self.coming)
        for run, first in zip(self.timeline.runs, self.timeline.starts, strict=False):
            self._move(first)
            end, steps = first + run.count, run.steps
            cuts = loading[bisect_right(loading, first) : bisect_left(loading, end)]
            for start, stop in pairwise([first, *cuts, end]):
                self._load(start)
                self._steps(steps[start - first : stop - first], run.region)
        if self.moving:
            raise PlanError(f"a tensor moves at step {min(self.moving)}, but no region begins with that step")
        lasting = [*graph.outputs, *(state.after for state in graph.states)]
        lasting += graph.inputs if self.plan.image == Image.RESIDENT else []
        for t in lasting:
            if t in memory.groups:
                memory.require(t, *memory.whole(t), "the end of the invoke")

    def _move(self, number: int) -> None:
        """The moves before a step."""
        for move in self.moving.pop(number, ()):
            target = self.plan.buffers[move.target]
            self.memory.move(self.plan.buffers[move.source], target)

    def _load(self, number: int) -> None:
        """The loads that begin with a step."""
        for load in self.coming.get(number, ()):
            constants = Area(self.plan.buffers[load.buffer], CONSTANTS + load.op)
            if constants != self.operators[load.op].constants:
                self.operators[load.op] = replace(self.operators[load.op], constants=constants)
            self.memory.own(constants)

    def _steps(self, steps: Steps, region: Region) -> None:
        """Some steps of one region."""
        streamed = region.is_streamed
        for load in self.plan.loads if not streamed else ():
            if load.channels and load.op in region.ops:
                op = self.graph.ops[load.op]
                refuse_mixed(self.graph, op, *map(self.memory.buffer, (op.inputs[0], op.outputs[0])))
        for line in steps.tolist():
            step = Step(*line)
            if step.op == SOURCE:
                self.memory.write(self.graph.inputs[0], (step.y0, step.y1), (step.x0, step.x1))
            else:
                self._step(step, streamed)

    def _step(self, step: Step, streamed: bool) -> None:
        operator = self.operators[step.op]
        self._require_constants(operator)
        if operator.scratch is not None:
            self.memory.own(operator.scratch)
        if streamed and operator.sums_up:
            self._add_up(step, operator)
        elif operator.contract is Contract.PARTS and not streamed:
            _concatenate(self.memory, operator.op)
        else:
            self._compute(step, operator, streamed)
        if operator.scratch is not None and not self.memory.owns(operator.scratch):
            raise PlanError("writes over its scratch", operator=operator.op.place)
        self._require_constants(operator)

    def _compute(self, step: Step, operator: Operator, streamed: bool) -> None:
        """A window of an operator's output: at once, or row by row if its kernel promises that."""
        columns = (step.x0, step.x1)
        once = [(step.y0, step.y1)]
        for rows in [(y, y + 1) for y in range(step.y0, step.y1)] if operator.by_row else once:
            for read in operator.reads:
                window = _window(self.memory, read, rows, columns)
                if window[0][0] < window[0][1] and window[1][0] < window[1][1]:
                    self.memory.require(read.tensor, *window, operator.op.place)
                    _refuse_collision(self.memory, operator, rows, columns, read.tensor, window)
            for t in operator.op.outputs:
                if streamed or operator.by_row:
                    self.memory.write(t, rows, columns)
                else:
                    self.memory.write(t, *self.memory.whole(t))

    def _add_up(self, step: Step, operator: Operator) -> None:
        """Adds a part of the input to the accumulators; the last part makes the output."""
        op, memory = operator.op, self.memory
        if operator.sums is None:
            raise PlanError("a global pooling in a streamed region has no accumulators", operator=op.place)
        memory.require(op.inputs[0], (step.y0, step.y1), (step.x0, step.x1), op.place)
        if (step.y0, step.x0) != (0, 0) and not memory.owns(operator.sums):
            raise PlanError("the accumulators were overwritten", operator=op.place)
        memory.own(operator.sums)
        rows, columns = memory.whole(op.inputs[0])
        if (step.y1, step.x1) == (rows[1], columns[1]):
            memory.write(op.outputs[0], *memory.whole(op.outputs[0]))

    def _require_constants(self, operator: Operator) -> None:
        if operator.constants is not None and not self.memory.owns(operator.constants):
            raise PlanError("its constants are not in the arena when it runs", operator=operator.op.place)


def _window(memory: Memory, read: Read, rows: Span, columns: Span) -> tuple[Span, Span]:
    """What has to be there of an input for a window of the output."""
    if read.rows is None or read.columns is None:
        return memory.whole(read.tensor)
    return read.rows.read(rows), read.columns.read(columns)


def _refuse_collision(
    memory: Memory,
    operator: Operator,
    rows: Span,
    columns: Span,
    source: int,
    window: tuple[Span, Span],
) -> None:
    """Within one step nothing is written over what the step reads, but by element-by-element kernels."""
    below = memory.buffer(source)
    for t in operator.op.outputs:
        buffer = memory.buffer(t)
        if buffer.offset + buffer.size <= below.offset or below.offset + below.size <= buffer.offset:
            continue
        below_it, made = memory.graph.tensors[source], memory.graph.tensors[t]
        by_element = operator.contract is Contract.PIXEL and below_it.nhwc == made.nhwc
        read = list(memory.pieces(source, *window))
        for out in memory.pieces(t, rows, columns):
            for piece in read:
                hit = out.address < piece.address + piece.size and piece.address < out.address + out.size
                sizes = made.dtype.size, below_it.dtype.size
                if hit and not (by_element and _read_first(out, sizes[0], piece, sizes[1])):
                    raise PlanError("writes over what it reads", operator=operator.op.place)


def _read_first(out: Piece, out_element: int, read: Piece, element: int) -> bool:
    """Whether each element is read before it is written, by a kernel that reads element i, then writes it.

    `out_element`, `element`: their bytes. Where the output's are larger, the last element that has one
    behind it is the worst.
    """
    made, source = out.address - out.byte, read.address - read.byte
    if out_element <= element:
        return made <= source
    end = min((out.byte + out.size) // out_element, (read.byte + read.size) // element - 1)
    first = max(end, read.byte // element)
    return end <= out.byte // out_element or made + end * out_element <= source + first * element


def _concatenate(memory: Memory, op: Op) -> None:
    """Copies one part after the other, each line by line, as a kernel with the contract of parts promises.

    The output consists of lines, each with a line of every part, one behind the other.
    """
    graph, result = memory.graph, op.outputs[0]
    assert isinstance(op.attrs, AxisAttrs)
    output = memory.buffer(result)
    lines = math.prod(graph.tensors[result].shape[: op.attrs.axis])
    width, column = graph.tensors[result].size // lines, 0
    for t in op.inputs:
        line, together = graph.tensors[t].size // lines, lines
        if t in memory.groups:
            source = memory.buffer(t)
            if output.offset < source.offset + source.size and source.offset < output.offset + output.size:
                together = 1  # what is written may hit what is still to be read
        for first in range(0, lines, together):
            if t in memory.groups:
                memory.require_bytes(t, first * line, (first + together) * line, op.place)
            for n in range(first, first + together):
                memory.write_bytes(result, n * width + column, n * width + column + line)
        column += line


@dataclass(frozen=True)
class Piece:
    """A run of bytes: of the tensor from `byte` on, in the arena from `address` on."""

    address: int
    byte: int
    size: int


def pieces(graph: Graph, buffer: Buffer, tensor: int, rows: Span, columns: Span) -> Iterator[Piece]:
    """Where a window of a tensor lies in its buffer, in the longest contiguous runs."""
    described = graph.tensors[tensor]
    if tensor in parts(graph):
        yield from _pieces_of_part(graph, buffer, tensor, rows, columns)
        return
    batch, height, width, channels = described.nhwc
    pixel = channels * described.dtype.size
    if not buffer.rows and (batch > 1 or (columns == (0, width) and rows == (0, height))):
        yield Piece(buffer.offset, 0, described.size)
        return
    kept_rows, kept_columns = buffer.rows or height, buffer.columns or width
    whole_rows = columns == (0, width) and kept_columns == width
    y = rows[0]
    while y < rows[1]:
        base = buffer.offset + y % kept_rows * kept_columns * pixel
        if whole_rows:
            count = min(rows[1] - y, kept_rows - y % kept_rows)
            yield Piece(base, y * width * pixel, count * width * pixel)
            y += count
            continue
        x = columns[0]
        while x < columns[1]:
            count = min(columns[1] - x, kept_columns - x % kept_columns)
            yield Piece(base + x % kept_columns * pixel, (y * width + x) * pixel, count * pixel)
            x += count
        y += 1


def _pieces_of_part(graph: Graph, buffer: Buffer, tensor: int, rows: Span, columns: Span) -> Iterator[Piece]:
    """The pixels of a tensor that is some channels of another one, as bytes of that one, which lies whole."""
    within, part = parts(graph)[tensor], graph.tensors[tensor]
    batch, height, width, _ = part.nhwc
    pitch, first = graph.tensors[within.whole].pixel_bytes, within.first * part.dtype.size
    pixels = (
        range(batch * height * width)
        if batch > 1
        else (y * width + x for y in range(*rows) for x in range(*columns))
    )
    for number in pixels:
        byte = number * pitch + first
        yield Piece(buffer.offset + byte, byte, part.pixel_bytes)


class Memory:
    """The arena, and behind it what is state: per byte, which byte of which tensor was written there last."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph = graph
        self.plan = plan
        self.groups = alias_groups(graph)
        self.tags: npt.NDArray[np.int64] = np.full(plan.arena_bytes + plan.state_bytes, -1, np.int64)
        self.holder: dict[int, Buffer] = {}
        targets = {move.target for move in plan.moves}
        for index, buffer in enumerate(plan.buffers):
            if index not in targets:
                self.holder.update((t, buffer) for t in buffer.tensors)
        for buffer in plan.states:
            behind = changed(buffer, offset=plan.arena_bytes + buffer.offset)
            self.holder.update((t, behind) for t in buffer.tensors)
        self._counting = np.arange(max((t.size for t in graph.tensors), default=1), dtype=np.int64)

    def name(self, tensor: int) -> str:
        """A tensor's name."""
        return self.graph.tensors[tensor].name

    def whole(self, tensor: int) -> tuple[Span, Span]:
        """All rows and columns of a tensor."""
        _, height, width, _ = self.graph.tensors[tensor].nhwc
        return (0, height), (0, width)

    def pieces(self, tensor: int, rows: Span, columns: Span) -> Iterator[Piece]:
        """Where a window of a tensor lies."""
        return pieces(self.graph, self.buffer(tensor), tensor, rows, columns)

    def write(self, tensor: int, rows: Span, columns: Span) -> None:
        """Tags a window of a tensor as written."""
        for piece in self.pieces(tensor, rows, columns):
            self._write(tensor, piece)

    def require(self, tensor: int, rows: Span, columns: Span, reader: str) -> None:
        """PlanError unless a window of a tensor is there."""
        for piece in self.pieces(tensor, rows, columns):
            if not self._holds(tensor, piece):
                raise PlanError(
                    f"rows {rows[0]} to {rows[1]} are not in the arena when they are read",
                    operator=reader,
                    tensor=self.name(tensor),
                )

    def write_bytes(self, tensor: int, first: int, end: int) -> None:
        """Tags bytes [first, end) of a tensor that lies whole in its buffer as written."""
        self._write(tensor, Piece(self.buffer(tensor).offset + first, first, end - first))

    def require_bytes(self, tensor: int, first: int, end: int, reader: str) -> None:
        """PlanError unless bytes [first, end) of a tensor that lies whole in its buffer are there."""
        if not self._holds(tensor, Piece(self.buffer(tensor).offset + first, first, end - first)):
            raise PlanError(
                f"bytes {first} to {end} are not in the arena when they are read",
                operator=reader,
                tensor=self.name(tensor),
            )

    def _write(self, tensor: int, piece: Piece) -> None:
        if piece.address < 0 or piece.address + piece.size > self.tags.size:
            raise PlanError("is written outside of the arena", tensor=self.name(tensor))
        self.tags[piece.address : piece.address + piece.size] = self._tag(tensor, piece)

    def _holds(self, tensor: int, piece: Piece) -> bool:
        there = self.tags[piece.address : piece.address + piece.size]
        return there.size == piece.size and bool((there == self._tag(tensor, piece)).all())

    def _tag(self, tensor: int, piece: Piece) -> npt.NDArray[np.int64]:
        return self._counting[piece.byte : piece.byte + piece.size] + self.tag(tensor)

    def tag(self, tensor: int) -> int:
        """The tag of a tensor's first byte."""
        return self.groups[tensor] << 32

    def buffer(self, tensor: int) -> Buffer:
        """The buffer of a tensor."""
        found = self.find(tensor)
        if found is None:
            raise PlanError("has no buffer", tensor=self.name(tensor))
        return found

    def find(self, tensor: int) -> Buffer | None:
        """As `buffer`; None where there is none."""
        return self.holder.get(tensor)

    def move(self, source: Buffer, target: Buffer) -> None:
        """Copies a tensor's bytes to where it lives from now on."""
        for buffer in (source, target):
            self._refuse_outside(buffer)
        same = source.tensors and source.tensors == target.tensors
        if not same or source.size != target.size or source.rows or target.rows:
            raise PlanError(
                f"buffer '{source.name}' cannot move to '{target.name}', which is another tensor's"
            )
        copied = self.tags[source.offset : source.offset + source.size].copy()
        self.tags[target.offset : target.offset + target.size] = copied
        self.holder.update((t, target) for t in target.tensors)

    def own(self, area: Area) -> None:
        """Gives a buffer that is no tensor's its tag."""
        buffer = area.buffer
        self._refuse_outside(buffer)
        self.tags[buffer.offset : buffer.offset + buffer.size] = area.tag

    def owns(self, area: Area) -> bool:
        """Whether all of a buffer still has its tag."""
        buffer = area.buffer
        there = self.tags[buffer.offset : buffer.offset + buffer.size]
        return there.size == buffer.size and bool((there == area.tag).all())

    def _refuse_outside(self, buffer: Buffer) -> None:
        if buffer.offset < 0 or buffer.offset + buffer.size > self.tags.size:
            raise PlanError(f"buffer '{buffer.name}' lies outside of the arena")
