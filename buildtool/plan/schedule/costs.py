"""What a plan costs: every call that it makes, by the target's formula for the call's own window.

The same function serves the search for plans, the plan, and its summary by region, so that they agree to
the last sixteenth (see `target.costs`): of a group's calls only those are priced that differ in what they
cost, times how often they occur.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from buildtool.base.distinct import distinct
from buildtool.graph.types import Graph
from buildtool.plan.schedule.calls import Calls, Numbers, Ranges, region_calls
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.types import Load, Region
from buildtool.target.costs import Part, Pricer, Rings, along, geometry, part, whole
from buildtool.target.types import Costs, KernelVariant
from buildtool.target.variables import Geometry

FEW = 256  # ranges that are faster counted one by one
Parts = tuple[tuple[Part, int], ...]  # each with how often it occurs


def parts(of: Geometry, axis: int, ranges: Ranges, rings: Rings = Rings()) -> Parts:  # noqa: B008
    """What the ranges along an axis (0: rows, 1: columns) are to an operator's cost; few of them differ.

    `rings`: for columns, as in `target.costs.part`, of which this is the sum over all ranges.
    """
    low, high = ranges
    if len(low) == 1:
        return ((part(of, axis, int(low[0]), int(high[0]), rings), 1),)
    inputs, kernel, stride, dilation, pad = along(of, axis)
    extent = (kernel - 1) * dilation + 1
    inside = (low * stride >= pad) & ((high - 1) * stride - pad + extent <= inputs)
    found: dict[Part, int] = {}
    for begin, end, times in _in_memory(low[inside], high[inside], rings):
        some = part(of, axis, begin, end, rings)
        found[some] = found.get(some, 0) + times
    for a, b in zip(low[~inside].tolist(), high[~inside].tolist(), strict=True):
        at_border = part(of, axis, a, b, rings)
        found[at_border] = found.get(at_border, 0) + 1
    return tuple(found.items())


def _in_memory(low: Numbers, high: Numbers, rings: Rings) -> Iterator[tuple[int, int, int]]:
    """Of ranges whose windows lie in the input one of each kind, and how often the kind occurs.

    Ranges are of one kind if they are equally long and begin at the same place of the rings.
    """
    if not len(low):
        return
    again = math.lcm(*(ring for ring in rings if ring)) if any(rings) else 1
    kinds = (high - low) * again + low % again
    if len(low) <= FEW:
        counted: dict[int, tuple[int, int]] = {}  # kind -> one of it, and how many there are
        for which, kind in enumerate(kinds.tolist()):
            counted[kind] = which, counted[kind][1] + 1 if kind in counted else 1
        found = list(counted.values())
    else:
        _, first, many = distinct(kinds)
        found = list(zip(first.tolist(), many.tolist(), strict=True))
    yield from ((int(low[which]), int(high[which]), times) for which, times in found)


def calls_cost(pricer: Pricer, kernel: KernelVariant, of: Geometry, rows: Parts, columns: Parts) -> float:
    """All calls of one operator."""
    cost = pricer.cost
    return sum(
        cost(kernel, of, row, column) * (times * often) for row, times in rows for column, often in columns
    )


def lengths(ranges: Ranges) -> Parts:
    """The same for a pooling that is fed part by part, where only the ranges' lengths count."""
    found = np.bincount(ranges.high - ranges.low)
    return tuple((Part(n, n, n, 0), int(found[n])) for n in np.flatnonzero(found).tolist())


class CostModel:
    """The costs of a graph's plans on a target; `kernels`: one an operator, None for aliases.

    Most of what is asked was asked before: equal ranges of rows come from other blocks and plans, equal
    operators from other places of the network. So each cost is made out once, and what ranges are to it is
    known by a number. `streamed`: in a region that is streamed.
    """

    def __init__(self, graph: Graph, kernels: Sequence[KernelVariant | None], costs: Costs) -> None:
        self.graph, self.kernels, self.pricer = graph, kernels, Pricer(costs)
        self._numbers: dict[Parts, int] = {}
        self._parts: list[Parts] = []
        self._of_ranges: dict[tuple[int, bool, int, bytes, bytes, Rings], int] = {}
        self._costs: dict[tuple[int, bool, int, int], float] = {}

    @cached_property
    def geometries(self) -> dict[int, Geometry]:
        """Operator -> what its cost depends on."""
        return {p: geometry(self.graph, self.graph.ops[p]) for p, kernel in enumerate(self.kernels) if kernel}

    @cached_property
    def fed_in_parts(self) -> frozenset[int]:
        """The operators that are global poolings, which add up their input in a streamed region."""
        return frozenset(p for p, op in enumerate(self.graph.ops) if accumulates(self.graph, op))

    @cached_property
    def _alike(self) -> tuple[int, ...]:
        """Operator -> the first one with the same geometry and kernel, which costs the same."""
        first: dict[tuple[Geometry | None, str, bool], int] = {}
        return tuple(
            first.setdefault(
                (self.geometries.get(p), kernel.cost if kernel else "", p in self.fed_in_parts), p
            )
            for p, kernel in enumerate(self.kernels)
        )

    def parts(
        self,
        position: int,
        axis: int,
        ranges: Ranges,
        rings: Rings = Rings(),  # noqa: B008
        streamed: bool = True,
    ) -> int:
        """The number of what ranges along an axis are to the cost of an operator."""
        alike = self._alike[position]
        summed = streamed and alike in self.fed_in_parts
        key = (alike, summed, axis, ranges.low.tobytes(), ranges.high.tobytes(), rings)
        found = self._of_ranges.get(key)
        if found is None:
            made: Parts = ()
            if self.kernels[alike] is not None:
                made = lengths(ranges) if summed else parts(self.geometries[alike], axis, ranges, rings)
            found = self._of_ranges[key] = self._numbers.setdefault(made, len(self._parts))
            if found == len(self._parts):
                self._parts.append(made)
        return found

    def cost(self, position: int, rows: int, columns: int, streamed: bool = True) -> float:
        """All calls of an operator for rows and columns by their numbers."""
        alike = self._alike[position]
        key = (alike, streamed and alike in self.fed_in_parts, rows, columns)
        found = self._costs.get(key)
        if found is None:
            found = self._costs[key] = self._priced(alike, key[1], self._parts[rows], self._parts[columns])
        return found

    def _priced(self, position: int, summed: bool, rows: Parts, columns: Parts) -> float:
        kernel, pricer = self.kernels[position], self.pricer
        if kernel is None:
            return 0.0
        of = self.geometries[position]
        each = ((row, column, times * often) for row, times in rows for column, often in columns)
        if summed:
            return sum(pricer.sums(of, y.size, x.size) * times for y, x, times in each) + pricer.sums_end(of)
        return sum(pricer.cost(kernel, of, y, x) * times for y, x, times in each)

    def operator(self, position: int, calls: Calls, streamed: bool) -> float:
        """An operator's calls."""
        rows = self.parts(position, 0, calls.rows, streamed=streamed)
        columns = self.parts(position, 1, calls.columns, calls.rings, streamed)
        return self.cost(position, rows, columns, streamed)

    def delivery(self, rows: int) -> float:
        """So many rows of the network's first input, which the application delivers."""
        return rows * self.pricer.row(self.graph.tensors[self.graph.inputs[0]].row_bytes) if rows else 0.0

    def region(self, region: Region, image: str) -> float:
        """All that a region does, but for weights and moves that it begins with."""
        calls = region_calls(self.graph, region, image)
        operators = sum(self.operator(p, own, region.is_streamed) for p, own in calls.operators.items())
        return operators + self.delivery(calls.delivered)

    def loading(self, load: Load) -> float:
        """What it adds to an operator's cost that its weights are brought into the arena once."""
        if not load.channels:
            return self.pricer.load(load.size)
        kernel, of = self.kernels[load.op], self.geometries[load.op]
        assert kernel is not None
        rows, columns = whole(of)
        total = -self.pricer.cost(kernel, of, rows, columns)
        slices, rest = divmod(of.cout, load.channels)
        for count, times in ((load.channels, slices), (rest, 1 if rest else 0)):
            share = of._replace(
                cout=count, outputs=of.outputs * count // of.cout, macs=of.macs * count // of.cout
            )
            if times:
                total += times * self.pricer.cost(kernel, share, rows, columns)
                total += times * self.pricer.load(load.size * count // of.cout)
        return total
