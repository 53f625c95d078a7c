"""Operators that advance together over rows: a group whose branches fork from one tensor and join again.

The code calls each operator of such a group a lane. A group may end in several tensors; its last operator
makes one of them (see `exits`).

Every operator keeps the rows of its output that other operators of the group still read. The group asks for
its input a few rows at a time: as many rows as a step of the last operator moves down the input. After that
every operator, in the graph's order, makes the rows that it can make and that the last one needs. So a short
branch waits for the longest one, and no row is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from buildtool.base.errors import PlanError
from buildtool.graph.types import Graph
from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.receptive import axes, row_inputs, rows
from buildtool.plan.types import Group

INPUT = -1  # Read.lane: the group's input


@dataclass(frozen=True)
class Read:
    """A tensor of `height` rows that a lane (an operator) reads row by row, along the row axis `axis`.

    It is the output of lane number `lane`, or the group's input if `lane` is INPUT.
    """

    lane: int
    tensor: int
    axis: Axis
    height: int


@dataclass(frozen=True)
class Lane:
    """One operator of the group: its position in Graph.ops, the rows of its output, and what it reads."""

    position: int
    height: int
    reads: tuple[Read, ...]


@dataclass(frozen=True)
class Branches:
    """A group of Scheme.BRANCHES.

    lanes: one per operator, in the graph's order.
    height: rows of the group's input.
    pace: rows of its input that the group asks for at a time.
    step: rows of its output that the group makes at a time.
    exits: the lanes before the last one that no other lane reads. They make the same number of rows as the
        last one.
    """

    lanes: tuple[Lane, ...]
    height: int
    pace: int
    step: int
    exits: frozenset[int] = frozenset()

    def wanted(self, rows_out: int) -> list[int]:
        """Returns how many rows of each lane the first `rows_out` rows of the group's output need.

        The last item is the number of rows of the group's input.
        """
        need = [rows_out if lane in self.exits else 0 for lane in range(len(self.lanes) + 1)]
        need[-2] = rows_out
        for index in range(len(self.lanes) - 1, -1, -1):
            for read in self.lanes[index].reads:
                more = min(read.height, max(0, read.axis.high(need[index])))
                need[read.lane] = max(need[read.lane], more)
        return need

    @cached_property
    def rates(self) -> tuple[int, ...]:
        """Returns how many rows each lane makes for each row of the group's output.

        The last item is the number of rows of the group's input. The result is empty if these are not whole
        numbers.
        """
        if any(isinstance(read.axis, AxisTable) for lane in self.lanes for read in lane.reads):
            return ()
        rates = [int(lane in self.exits) for lane in range(len(self.lanes) + 1)]
        rates[-2] = 1
        for index in range(len(self.lanes) - 1, -1, -1):
            for read in self.lanes[index].reads:
                rates[read.lane] = rates[index] * read.axis.stride
        return tuple(rates) if all(rates) else ()

    def room(self, rows_out: int) -> int:
        """Returns how many more rows of output the group can make before any lane reaches its end.

        `rows_out`: one past the last row of output that the group makes next.
        """
        need = [rows_out if lane in self.exits else 0 for lane in range(len(self.lanes) + 1)]
        need[-2] = rows_out
        for index in range(len(self.lanes) - 1, -1, -1):
            for read in self.lanes[index].reads:
                need[read.lane] = max(need[read.lane], read.axis.high(need[index]))
        heights = [*(lane.height for lane in self.lanes), self.height]
        return min(
            (height - 1 - rows) // rate for height, rows, rate in zip(heights, need, self.rates, strict=True)
        )


class Progress:
    """How far each lane of a group has come.

    `made`: how many rows each lane has made. `goal`: how many rows of its input the group needs now.
    """

    def __init__(self, branches: Branches) -> None:
        self.branches = branches
        self.made = [0] * len(branches.lanes)
        self.goal = 0
        self._target = 0
        self._wanted: list[int] = []

    def ask(self) -> int:
        """Returns how many rows of its input the group needs before it can make more rows."""
        target = min(self.branches.lanes[-1].height, self.made[-1] + self.branches.step)
        if target != self._target or not self._wanted:
            self._target, self._wanted = target, self.branches.wanted(target)
        self.goal = max(self.goal, min(self._wanted[-1], self.goal + self.branches.pace))
        return self.goal

    def room(self) -> int:
        """Returns how many more rows of output can be made before any lane ends (see `Branches.room`)."""
        return self.branches.room(self._target)

    def ahead(self, rows_out: int) -> tuple[int, ...]:
        """Returns how many rows each lane has made beyond those that `rows_out` rows of output stand for.

        With r rows of a lane for each row of output (see `Branches.rates`), this is its rows less r *
        rows_out. Two more items are computed in the same way: one for the rows of the group's input that it
        needs now, and one for the rows of output that it makes next. Two states with equal results are
        followed by the same advances.
        """
        rates = self.branches.rates
        at = zip((*self.made, self.goal, self._target), (*rates, 1), strict=True)
        return tuple(rows - rate * rows_out for rows, rate in at)

    def skip(self, rows_out: int) -> None:
        """Moves all lanes on as if `rows_out` more rows of output had been made; at most `room` rows."""
        *rates, goal = (rate * rows_out for rate in self.branches.rates)
        self.made = [made + more for made, more in zip(self.made, rates, strict=True)]
        self.goal += goal
        self._target += rows_out
        self._wanted = self.branches.wanted(self._target)

    def advance(self) -> Iterator[tuple[int, int, int]]:
        """Yields (lane, first row, end row) for the rows that lanes make now. Call `ask` before it."""
        for index, lane in enumerate(self.branches.lanes):
            end = self._wanted[index]
            for read in lane.reads:
                available = self.goal if read.lane == INPUT else self.made[read.lane]
                end = min(end, read.axis.ready(available) if available < read.height else lane.height)
            if end > self.made[index]:
                start, self.made[index] = self.made[index], end
                yield index, start, end


def exits(graph: Graph, ops: Sequence[int]) -> tuple[int, ...]:
    """Returns the operators of a group, except the last one, whose output is read only outside of the group.

    Their outputs have the same number of rows as the last operator's.
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
    """Returns the lanes (operators) of a group of branches whose input is `tensor`.

    Raises PlanError if an operator feeds no other operator and is not an exit, or if two paths from one
    tensor to the group's outputs have different strides.
    """
    makers = {graph.ops[p].outputs[0]: i for i, p in enumerate(group.ops)}
    lanes = []
    for position in group.ops:
        op = graph.ops[position]
        axis = axes(graph, op)[0]
        reads = (
            Read(makers.get(t, INPUT), t, axis, graph.tensors[t].nhwc[1])
            for t in row_inputs(graph, op)
            if t in makers or t == tensor
        )
        lanes.append(Lane(position, rows(graph, op), tuple(reads)))
    height = graph.tensors[tensor].nhwc[1]
    exit_lanes = frozenset(group.ops.index(position) for position in exits(graph, group.ops))
    if any(isinstance(read.axis, AxisTable) for lane in lanes for read in lane.reads):
        # with tables, paths only need the same number of rows; the stride is then the mean one
        stride = max(1, -(-height // lanes[-1].height))
    else:
        stride = _find_stride(graph, lanes, exit_lanes)
    return Branches(tuple(lanes), height, stride * group.rows_per_step, group.rows_per_step, exit_lanes)


def _find_stride(graph: Graph, lanes: list[Lane], exit_lanes: frozenset[int]) -> int:
    """Returns by how many input rows the window moves for each output row of the group.

    `exit_lanes`: the lanes of `Branches.exits`. Raises PlanError if an operator feeds no other operator, or
    if two paths from one tensor have different strides.
    """
    strides: dict[int, int] = dict.fromkeys((*exit_lanes, len(lanes) - 1), 1)
    for index in range(len(lanes) - 1, -1, -1):
        place = graph.ops[lanes[index].position].place
        if index not in strides:
            raise PlanError("no other operator of its group reads its output", operator=place)
        for read in lanes[index].reads:
            stride = strides[index] * read.axis.stride
            if strides.setdefault(read.lane, stride) != stride:
                raise PlanError("two paths from one tensor to it have different strides", operator=place)
    return strides.get(INPUT, 1)
