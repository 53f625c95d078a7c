"""Replays a plan on a model of its memory.

Each step checks that what it reads is what it should read, then overwrites what it writes. Nothing
the planner says about lifetimes or overlaps is believed: a ring that is too short, a tensor written
over too early or a lifetime cut short all end in a read of the wrong byte.
"""

from __future__ import annotations

import ctypes
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from buildtool.base.distinct import distinct
from buildtool.base.errors import PlanError
from buildtool.base.modes import Image
from buildtool.graph.liveness import state_of
from buildtool.graph.partviews import written_in_place
from buildtool.graph.types import AxisAttrs, Op
from buildtool.plan.check import native
from buildtool.plan.check.loads import refuse_mixed
from buildtool.plan.check.memory import Memory, Piece
from buildtool.plan.check.operators import CONSTANTS, Area, Operator, operators
from buildtool.plan.check.reads import Read, Span, sums_up
from buildtool.plan.schedule.schedule import Steps
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.schedule.turns import brought
from buildtool.plan.types import SOURCE, Load, Move, Plan, Region, Step
from buildtool.target.types import Contract, KernelVariant


class _Refused(Exception):
    """The replay in C found a step that is wrong; its twin says what is wrong with it."""


def replay(plan: Plan, timeline: Timeline, kernels: Sequence[KernelVariant | None]) -> dict[int, int]:
    """Runs the whole plan; operator position -> pixels computed (repetitions included).

    `timeline`: the checker's own, of the plan's regions. Raises PlanError at the first step that reads
    something that is not there.
    """
    _check_windows(timeline)
    # what is written pixel by pixel into a wider tensor only the twin in Python goes along with
    lib = None if written_in_place(timeline.graph) else native.library()
    if lib is not None:
        try:
            _Replay(plan, timeline, kernels, lib).run()
            return _computed(timeline)
        except _Refused:
            pass
    _Replay(plan, timeline, kernels).run()
    if lib is not None:
        raise PlanError("a step reads or writes what it may not")  # the twins would differ: never trust it
    return _computed(timeline)


def _check_windows(timeline: Timeline) -> None:
    """Each step's window is one of the operator's output; where it adds up its input, of that."""
    graph, steps = timeline.graph, timeline.steps
    streamed = {op for region in timeline.regions if region.is_streamed for op in region.ops}
    limits = np.zeros((len(graph.ops) + 1, 2), np.int64)  # rows and columns; those of deliveries come last
    states = state_of(graph)  # written whole, whatever window of its output a step makes
    for position in timeline.lives:
        if position == SOURCE:
            bounds = [graph.inputs[0]]
        elif position in streamed and sums_up(graph, graph.ops[position]):
            bounds = [graph.ops[position].inputs[0]]
        else:
            outputs = graph.ops[position].outputs
            bounds = [t for t in outputs if t not in states] or list(outputs)
        limits[position] = np.min([graph.tensors[t].nhwc[1:3] for t in bounds], axis=0)
    outside = (steps[:, 1::2] < 0) | (steps[:, 2::2] > limits[steps[:, 0]])
    if outside.any():
        step = timeline.step(int(outside.any(axis=1).argmax()))
        window = f"rows {step.y0} to {step.y1}, columns {step.x0} to {step.x1}"
        rows, columns = limits[step.op].tolist()
        raise PlanError(
            f"a step computes {window} of {rows} x {columns}",
            operator=graph.ops[step.op].place if step.op != SOURCE else "the rows that are delivered",
        )


def _computed(timeline: Timeline) -> dict[int, int]:
    """Operator position -> pixels that its steps make."""
    steps = timeline.steps[timeline.steps[:, 0] != SOURCE].astype(np.int64)
    sums = np.zeros(len(timeline.graph.ops), np.int64)
    np.add.at(sums, steps[:, 0], (steps[:, 2] - steps[:, 1]) * (steps[:, 4] - steps[:, 3]))
    return {position: int(sums[position]) for position in distinct(steps[:, 0]).values.tolist()}


class _Replay:
    """One run through all steps; in C (`lib`) as far as that can be."""

    def __init__(
        self,
        plan: Plan,
        timeline: Timeline,
        kernels: Sequence[KernelVariant | None],
        lib: ctypes.CDLL | None = None,
    ) -> None:
        self.plan, self.timeline, self.graph = plan, timeline, timeline.graph
        self.memory = Memory(self.graph, plan)
        self.operators = operators(plan, self.graph, kernels)
        self.native = native.NativeReplay(lib, self.memory, self.operators) if lib else None
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
            if self.native:
                self.native.place(target.tensors)

    def _load(self, number: int) -> None:
        """The loads that begin with a step."""
        for load in self.coming.get(number, ()):
            constants = Area(self.plan.buffers[load.buffer], CONSTANTS + load.op)
            if constants != self.operators[load.op].constants:
                self.operators[load.op] = replace(self.operators[load.op], constants=constants)
                if self.native:
                    self.native.load(load.op, constants)
            self.memory.own(constants)

    def _steps(self, steps: Steps, region: Region) -> None:
        """Some steps of one region."""
        streamed = region.is_streamed
        for load in self.plan.loads if not streamed else ():
            if load.channels and load.op in region.ops:
                op = self.graph.ops[load.op]
                refuse_mixed(self.graph, op, *map(self.memory.buffer, (op.inputs[0], op.outputs[0])))
        parts = not streamed and self.operators[region.ops[0]].contract is Contract.PARTS
        if self.native and not parts:
            if self.native.run(steps, streamed) < len(steps):
                raise _Refused
            return
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
