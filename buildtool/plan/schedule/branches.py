"""Operators that advance together over rows: a group whose branches fork from one tensor and join again.

A group may end in several tensors, of which the last operator makes one: see `exits`.

Every operator keeps the rows of its output that others of the group still read. To make rows of the
last operator the group asks for its input a few rows at a time (as many as one step of the last one
goes down it); whenever it has got them, every operator, in the graph's order, makes what it can of
what the last one's rows need, and nothing more. So a short branch lags behind the longest one, and
nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buildtool.base.errors import PlanError
from buildtool.graph.types import Graph
from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.receptive import axes, row_inputs, rows
from buildtool.plan.types import Group

INPUT = -1  # Read.lane: the group's input


@dataclass(frozen=True)
class Read:
    """What a lane reads row by row: what `lane` makes (INPUT: the group's input), `height` rows of it."""

    lane: int
    tensor: int
    axis: Axis
    height: int


@dataclass(frozen=True)
class Lane:
    """One operator (its position in Graph.ops), the rows of its output, and what it reads."""

    position: int
    height: int
    reads: tuple[Read, ...]


@dataclass(frozen=True)
class Branches:
    """A group of Scheme.BRANCHES: one lane per operator, in the graph's order.

    `pace`: rows of its input (`height` in all) that it asks for at a time; `step`: rows of its output
    that it makes in one go. `exits`: the lanes before the last one that no lane reads; they make as many
    rows as the last one does.
    """

    lanes: tuple[Lane, ...]
    height: int
    pace: int
    step: int
    exits: frozenset[int] = frozenset()

    def wanted(self, rows_out: int) -> list[int]:
        """Per lane, the rows needed for the first `rows_out` rows of the last one; then of the input."""
        need = [rows_out if lane in self.exits else 0 for lane in range(len(self.lanes) + 1)]
        need[-2] = rows_out
        for index in range(len(self.lanes) - 1, -1, -1):
            for read in self.lanes[index].reads:
                more = min(read.height, max(0, read.axis.high(need[index])))
                need[read.lane] = max(need[read.lane], more)
        return need


class Progress:
    """How far the lanes of a group have come: `made` rows each, of the input `goal` rows asked for."""

    def __init__(self, branches: Branches) -> None:
        self.branches = branches
        self.made = [0] * len(branches.lanes)
        self.goal = 0
        self._target = 0
        self._wanted: list[int] = []

    def lowest(self, lane: int, otherwise: int) -> int:
        """The lowest row that is still to be read of what a lane makes (INPUT: of the input)."""
        low = [
            max(0, read.axis.low(made))
            for reader, made in zip(self.branches.lanes, self.made, strict=True)
            for read in reader.reads
            if read.lane == lane and made < reader.height
        ]
        return min(low, default=otherwise)

    def ask(self) -> int:
        """Rows of the input that have to be there before the group can go on."""
        target = min(self.branches.lanes[-1].height, self.made[-1] + self.branches.step)
        if target != self._target or not self._wanted:
            self._target, self._wanted = target, self.branches.wanted(target)
        self.goal = max(self.goal, min(self._wanted[-1], self.goal + self.branches.pace))
        return self.goal

    def advance(self) -> Iterator[tuple[int, int, int]]:
        """(lane, rows from, rows to) that are made now, in order; after `ask`."""
        for index, lane in enumerate(self.branches.lanes):
            end = self._wanted[index]
            for read in lane.reads:
                there = self.goal if read.lane == INPUT else self.made[read.lane]
                end = min(end, read.axis.ready(there) if there < read.height else lane.height)
            if end > self.made[index]:
                start, self.made[index] = self.made[index], end
                yield index, start, end


def exits(graph: Graph, ops: Sequence[int]) -> tuple[int, ...]:
    """The operators of a group, apart from the last one, that feed no other one and may do so.

    They have as many rows as the last one, and something outside of the group reads them.
    """
    *before, last = ops
    height, readers = rows(graph, graph.ops[last]), graph.consumers()
    ends = []
    for position in before:
        outside = readers.get(graph.ops[position].outputs[0], ())
        if outside and set(ops).isdisjoint(outside) and rows(graph, graph.ops[position]) == height:
            ends.append(position)
    return tuple(ends)


def branches(graph: Graph, group: Group, tensor: int) -> Branches:
    """The lanes of a group that is fed through `tensor`.

    Raises PlanError where an operator feeds none of the others and is no exit, and where paths from one
    tensor to the group's outputs differ in their strides.
    """
    made = {graph.ops[p].outputs[0]: i for i, p in enumerate(group.ops)}
    lanes = []
    for position in group.ops:
        op = graph.ops[position]
        axis = axes(graph, op)[0]
        reads = (
            Read(made.get(t, INPUT), t, axis, graph.tensors[t].nhwc[1])
            for t in row_inputs(graph, op)
            if t in made or t == tensor
        )
        lanes.append(Lane(position, rows(graph, op), tuple(reads)))
    height = graph.tensors[tensor].nhwc[1]
    ending = frozenset(group.ops.index(position) for position in exits(graph, group.ops))
    if any(isinstance(read.axis, AxisTable) for lane in lanes for read in lane.reads):
        # where rows follow a table, paths are alike if they have as many rows; this is then the mean
        stride = max(1, -(-height // lanes[-1].height))
    else:
        stride = _stride(graph, lanes, ending)
    return Branches(tuple(lanes), height, stride * group.rows_per_step, group.rows_per_step, ending)


def _stride(graph: Graph, lanes: list[Lane], ending: frozenset[int]) -> int:
    """Rows of the input that one row of the output goes down, the same along every path."""
    strides: dict[int, int] = dict.fromkeys((*ending, len(lanes) - 1), 1)
    for index in range(len(lanes) - 1, -1, -1):
        place = graph.ops[lanes[index].position].place
        if index not in strides:
            raise PlanError("makes nothing that its group needs", operator=place)
        for read in lanes[index].reads:
            stride = strides[index] * read.axis.stride
            if strides.setdefault(read.lane, stride) != stride:
                raise PlanError("two paths from one tensor to it have different strides", operator=place)
    return strides.get(INPUT, 1)
