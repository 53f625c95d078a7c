"""What a plan costs: every call that it makes, by the target's formula for the call's own window.

The same function serves the search for plans, the plan, and its summary by region, so that they agree to
the last sixteenth (see `target.costs`): of a group's calls only those are priced that differ in what they
cost, times how often they occur.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from buildtool.base.distinct import distinct
from buildtool.graph.types import Graph
from buildtool.plan.schedule.calls import Calls, Numbers, Ranges, RegionCalls, region_calls
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.types import Load, Region
from buildtool.target.costs import Part, Pricer, Rings, along, geometry, part
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


def sums_cost(pricer: Pricer, of: Geometry, rows: Parts, columns: Parts) -> float:
    """A global pooling that is fed part by part."""
    fed = sum(
        pricer.sums(of, row.size, column.size) * (times * often)
        for row, times in rows
        for column, often in columns
    )
    return fed + pricer.sums_end(of)


@dataclass(frozen=True)
class CostModel:
    """The costs of a graph's plans on a target; `kernels`: one an operator, None for aliases."""

    graph: Graph
    kernels: Sequence[KernelVariant | None]
    costs: Costs

    @cached_property
    def pricer(self) -> Pricer:
        """The prices of calls."""
        return Pricer(self.costs)

    @cached_property
    def calls(self) -> CallCosts:
        """The costs of calls in streamed regions, each of which is made out once."""
        return CallCosts(self)

    @cached_property
    def geometries(self) -> dict[int, Geometry]:
        """Operator -> what its cost depends on."""
        return {p: geometry(self.graph, self.graph.ops[p]) for p, kernel in enumerate(self.kernels) if kernel}

    def operator(self, position: int, calls: Calls, streamed: bool) -> float:
        """An operator's calls in a region that is streamed, or is not."""
        if streamed:
            known = self.calls
            return known.cost(
                position,
                known.parts(position, 0, calls.rows),
                known.parts(position, 1, calls.columns, calls.rings),
            )
        rows = self.parts(position, 0, calls.rows, streamed)
        columns = self.parts(position, 1, calls.columns, streamed, calls.rings)
        return self.priced(position, rows, columns, streamed)

    def parts(
        self,
        position: int,
        axis: int,
        ranges: Ranges,
        streamed: bool,
        rings: Rings = Rings(),  # noqa: B008
    ) -> Parts:
        """What ranges along an axis are to the cost of an operator."""
        if self.kernels[position] is None:
            return ()
        if streamed and position in self.fed_in_parts:
            return lengths(ranges)
        return parts(self.geometries[position], axis, ranges, rings)

    def priced(self, position: int, rows: Parts, columns: Parts, streamed: bool) -> float:
        """The calls of an operator for these rows and columns."""
        kernel = self.kernels[position]
        if kernel is None:
            return 0.0
        if streamed and position in self.fed_in_parts:
            return sums_cost(self.pricer, self.geometries[position], rows, columns)
        return calls_cost(self.pricer, kernel, self.geometries[position], rows, columns)

    @cached_property
    def fed_in_parts(self) -> frozenset[int]:
        """The operators that are global poolings, which add up their input in a streamed region."""
        return frozenset(p for p, op in enumerate(self.graph.ops) if accumulates(self.graph, op))

    def delivery(self, rows: int) -> float:
        """So many rows of the network's first input, which the application delivers."""
        return rows * self.pricer.row(self.graph.tensors[self.graph.inputs[0]].row_bytes) if rows else 0.0

    def region(self, region: Region, image: str) -> float:
        """All that a region does, but for weights and moves that it begins with."""
        calls = region_calls(self.graph, region, image)
        return self.of_calls(region, calls) + self.delivery(calls.delivered)

    def of_calls(self, region: Region, calls: RegionCalls) -> float:
        """The operators of a region with these calls."""
        return sum(self.operator(p, own, region.is_streamed) for p, own in calls.operators.items())

    def regions(self, regions: Iterable[Region], image: str, moved: Iterable[int] = ()) -> float:
        """A plan that loads no weights; `moved`: bytes of each tensor that is copied within the arena."""
        return sum(self.region(region, image) for region in regions) + sum(map(self.pricer.move, moved))

    def loading(self, load: Load) -> float:
        """What it adds to an operator's cost that its weights are brought into the arena once."""
        if not load.channels:
            return self.pricer.load(load.size)
        kernel, of = self.kernels[load.op], self.geometries[load.op]
        assert kernel is not None
        rows, columns = part(of, 0, 0, of.oh), part(of, 1, 0, of.ow)
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


class CallCosts:
    """The costs of a graph's operators in streamed regions, each made out once.

    Most of what is asked was asked before: equal ranges of rows come from other blocks and plans, equal
    operators from other places of the network. Parts are known by a number.
    """

    def __init__(self, model: CostModel) -> None:
        self._model = model
        self._numbers: dict[Parts, int] = {}
        self._parts: list[Parts] = []
        self._of_ranges: dict[tuple[int, int, bytes, bytes, Rings], int] = {}
        self._costs: dict[tuple[int, int, int], float] = {}

    @cached_property
    def _alike(self) -> tuple[int, ...]:
        """Operator -> the first one with the same geometry and kernel, which costs the same."""
        model = self._model
        first: dict[tuple[Geometry | None, str, bool], int] = {}
        return tuple(
            first.setdefault(
                (model.geometries.get(p), kernel.cost if kernel else "", p in model.fed_in_parts), p
            )
            for p, kernel in enumerate(model.kernels)
        )

    def parts(self, position: int, axis: int, ranges: Ranges, rings: Rings = Rings()) -> int:  # noqa: B008
        """The number of what ranges along an axis are to the cost of an operator: see CostModel.parts."""
        alike = self._alike[position]
        key = (alike, axis, ranges.low.tobytes(), ranges.high.tobytes(), rings)
        found = self._of_ranges.get(key)
        if found is None:
            parts = self._model.parts(alike, axis, ranges, True, rings)
            found = self._of_ranges[key] = self._numbers.setdefault(parts, len(self._parts))
            if found == len(self._parts):
                self._parts.append(parts)
        return found

    def cost(self, position: int, rows: int, columns: int) -> float:
        """All calls of an operator for rows and columns by their numbers."""
        key = (self._alike[position], rows, columns)
        found = self._costs.get(key)
        if found is None:
            model = self._model
            found = self._costs[key] = model.priced(key[0], self._parts[rows], self._parts[columns], True)
        return found
