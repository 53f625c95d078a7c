"""Replays a plan on a model of its memory.

Each step checks that what it reads is what it should read, then overwrites what it writes. Nothing
the planner says about lifetimes or overlaps is believed: a ring that is too short, a tensor written
over too early or a lifetime cut short all end in a read of the wrong byte.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.errors import PlanError
from buildtool.graph.types import ALIAS_KINDS, AxisAttrs, Graph, Op, OpKind
from buildtool.modes import Image
from buildtool.plan.check.memory import Memory
from buildtool.plan.check.reads import Read, Span, reads, sums_up
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import SOURCE, Buffer, BufferKind, Load, Move, Plan, Step
from buildtool.target.types import Contract, KernelVariant

# Tags of bytes that are no tensor's; a tensor's bytes have its number and their own, 32 bits each.
_SCRATCH = -3  # less the operator's position
_CONSTANTS = 1 << 61  # plus the operator's position
_SUMS = 1 << 62  # plus the position of the accumulating operator


@dataclass(frozen=True)
class _Operator:
    """What the replay of a step needs to know of its operator, found out once."""

    op: Op
    reads: tuple[Read, ...]
    contract: Contract  # by which its output may lie on its input, as far as the replay goes along
    by_row: bool  # whether its kernel promises to go row by row
    sums_up: bool
    scratch: Buffer | None
    sums: Buffer | None
    load: Load | None


def replay(plan: Plan, timeline: Timeline, kernels: Sequence[KernelVariant | None]) -> dict[int, int]:
    """Runs the whole plan; operator position -> pixels computed (repetitions included).

    `timeline`: the checker's own, of the plan's regions. Raises PlanError at the first step that reads
    something that is not there.
    """
    return _Replay(plan, timeline, kernels).run()


class _Replay:
    def __init__(self, plan: Plan, timeline: Timeline, kernels: Sequence[KernelVariant | None]) -> None:
        self.plan, self.timeline, self.graph = plan, timeline, timeline.graph
        self.memory = Memory(self.graph, plan)
        served = {(b.op, b.kind): b for b in plan.buffers if b.op >= 0}
        loads = {load.op: load for load in plan.loads}
        self.operators = {
            position: _operator(self.graph, position, kernels[position], served, loads.get(position))
            for position, op in enumerate(self.graph.ops)
            if op.kind not in ALIAS_KINDS
        }
        self.coming: dict[int, list[Load]] = {}  # step -> loads that begin with it
        for load in plan.loads:
            self.coming.setdefault(plan.buffers[load.buffer].first, []).append(load)
        self.moving: dict[int, list[Move]] = {}  # step -> moves before it
        for move in plan.moves:
            self.moving.setdefault(plan.buffers[move.target].first, []).append(move)

    def run(self) -> dict[int, int]:
        """See `replay`."""
        memory, graph = self.memory, self.graph
        if self.plan.image != Image.STREAM:
            for t in graph.inputs:
                memory.write(t, *memory.whole(t))
        computed: dict[int, int] = {}
        for run, first in zip(self.timeline.runs, self.timeline.starts, strict=False):
            for move in self.moving.pop(first, ()):
                memory.move(self.plan.buffers[move.source], self.plan.buffers[move.target])
            for number, line in enumerate(run.steps.tolist(), first):
                step = Step(*line)
                for load in self.coming.get(number, ()):
                    memory.own(self.plan.buffers[load.buffer], _CONSTANTS + load.op)
                if step.op == SOURCE:
                    memory.write(graph.inputs[0], (step.y0, step.y1), (step.x0, step.x1))
                    continue
                self._step(step, run.region.is_streamed)
                pixels = (step.y1 - step.y0) * (step.x1 - step.x0)
                computed[step.op] = computed.get(step.op, 0) + pixels
        if self.moving:
            raise PlanError(f"a tensor moves at step {min(self.moving)}, but no region begins with that step")
        lasting = list(graph.outputs) + (list(graph.inputs) if self.plan.image == Image.RESIDENT else [])
        for t in lasting:
            if t in memory.groups:
                memory.require(t, *memory.whole(t), "the end of the invoke")
        return computed

    def _step(self, step: Step, streamed: bool) -> None:
        operator = self.operators[step.op]
        self._require_constants(operator)
        if operator.scratch is not None:
            self.memory.own(operator.scratch, _SCRATCH - step.op)
        if streamed and operator.sums_up:
            self._add_up(step, operator)
        elif operator.contract is Contract.PARTS and not streamed:
            _concatenate(self.memory, operator.op)
        else:
            self._compute(step, operator, streamed)
        if operator.scratch is not None and not self.memory.owns(operator.scratch, _SCRATCH - step.op):
            raise PlanError("writes over its scratch", operator=operator.op.place)
        self._require_constants(operator)

    def _compute(self, step: Step, operator: _Operator, streamed: bool) -> None:
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

    def _add_up(self, step: Step, operator: _Operator) -> None:
        """Adds a part of the input to the accumulators; the last part makes the output."""
        op, memory = operator.op, self.memory
        if operator.sums is None:
            raise PlanError("a global pooling in a streamed region has no accumulators", operator=op.place)
        memory.require(op.inputs[0], (step.y0, step.y1), (step.x0, step.x1), op.place)
        if (step.y0, step.x0) != (0, 0) and not memory.owns(operator.sums, _SUMS + step.op):
            raise PlanError("the accumulators were overwritten", operator=op.place)
        memory.own(operator.sums, _SUMS + step.op)
        rows, columns = memory.whole(op.inputs[0])
        if (step.y1, step.x1) == (rows[1], columns[1]):
            memory.write(op.outputs[0], *memory.whole(op.outputs[0]))

    def _require_constants(self, operator: _Operator) -> None:
        load = operator.load
        if load is not None and not self.memory.owns(self.plan.buffers[load.buffer], _CONSTANTS + load.op):
            raise PlanError("its constants are not in the arena when it runs", operator=operator.op.place)


def _operator(
    graph: Graph,
    position: int,
    kernel: KernelVariant | None,
    served: dict[tuple[int, BufferKind], Buffer],
    load: Load | None,
) -> _Operator:
    op = graph.ops[position]
    found = reads(graph, op)
    # of an operator in slices of its channels, all input is read again for the last slice
    contract = kernel.overlap if kernel and not (load and load.channels) else Contract.NONE
    if contract is Contract.PARTS and op.kind is not OpKind.CONCATENATION:
        contract = Contract.NONE
    rows = contract in (Contract.ROW, Contract.PIXEL) and any(read.rows for read in found)
    return _Operator(
        op,
        found,
        contract,
        rows,
        sums_up(graph, op),
        served.get((position, BufferKind.SCRATCH)),
        served.get((position, BufferKind.ACCUMULATOR)),
        load,
    )


def _window(memory: Memory, read: Read, rows: Span, columns: Span) -> tuple[Span, Span]:
    """What has to be there of an input for a window of the output."""
    if read.rows is None or read.columns is None:
        return memory.whole(read.tensor)
    return read.rows.read(rows), read.columns.read(columns)


def _refuse_collision(
    memory: Memory,
    operator: _Operator,
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
        # element i is read before it is written if the output lies no higher
        alike = memory.graph.tensors[source].nhwc == memory.graph.tensors[t].nhwc
        read = list(memory.pieces(source, *window))
        for out in memory.pieces(t, rows, columns):
            for piece in read:
                if out.address < piece.address + piece.size and piece.address < out.address + out.size:
                    lower = out.address - out.byte <= piece.address - piece.byte
                    if operator.contract is not Contract.PIXEL or not alike or not lower:
                        raise PlanError("writes over what it reads", operator=operator.op.place)


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
