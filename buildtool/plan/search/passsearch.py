"""Chooses the gates whose tensor is recomputed in a second pass, for every amount of memory.

At a gate, a pooling reads a tensor before another operator reads it (see `schedule.gates`). A second pass
runs the operators that make this tensor again, instead of keeping the tensor. The network without second
passes, and the network with a pass at every gate, are searched in parallel. The code calls each such network
a lane. All have the same cuts, except inside gates. At a common cut, both searches continue from the better
of the two best ways. So the choice is exact, and independent for every gate. If a gate's pass may begin with
several tensors, there is a network for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from buildtool.base.modes import Image
from buildtool.graph.secondpass import once_positions, repeated_ops, with_second_passes
from buildtool.graph.types import Graph, SecondPass
from buildtool.plan.schedule.gates import gates
from buildtool.plan.search.paths import MOST_LABELS, Search, next_limit
from buildtool.plan.search.regions import INFINITE
from buildtool.plan.search.space import Settings, Space
from buildtool.plan.search.tables import Tables
from buildtool.target.costs import COST_UNITS

Passes = tuple[SecondPass, ...]


@dataclass(frozen=True)
class Choice:
    """The second passes of a way through the network, the bytes of its largest region, and its weight."""

    bytes: int
    weight: int
    passes: Passes


@dataclass(frozen=True, eq=False)
class Lane:
    """A network with second passes at some gates, which is searched in parallel with others.

    at: cut of the network without passes -> the same cut in this network, or None inside a pass.
    inside: cut of this network -> the pass in which it lies, for cuts inside a pass.
    """

    space: Space
    at: tuple[int | None, ...]
    inside: dict[int, SecondPass]


class _LaneSearch(Search):
    """The search of one lane (a network with some second passes).

    All lanes share the best weight at each cut. `_own` has the extra weights of this lane's own ways.
    """

    def __init__(self, lane: Lane, by_cost: bool, most_extra: int | None, most_labels: int) -> None:
        tables = lane.space.cost_tables if by_cost else lane.space.tables
        super().__init__(tables, most_extra, most_labels)
        self.at, self.inside, self._reached = lane.at, lane.inside, 0
        self._own = [0] + [-INFINITE] * self.t.e.count

    def begin(self, most_bytes: int) -> None:
        """Starts again at the first cut, with a lower limit in bytes."""
        super().begin(most_bytes)
        self._reached = 0

    def advance(self, cut: int) -> int:
        """Searches up to a cut. Returns the weight of this lane's best way to it, or INFINITE."""
        for end in range(self._reached + 1, cut + 1):
            self._own[end] = self._to(end, self._own[end])
            self._set(end, self._own[end])
        self._reached = cut
        return self.weight(cut)

    def weight(self, cut: int) -> int:
        """Returns the weight of this lane's best way to a cut; INFINITE if there is no way."""
        return INFINITE if self._own[cut] >= INFINITE else self.t.before[cut] + self._own[cut]

    def share(self, cut: int, weight: int) -> None:
        """Sets the weight of the best way to a cut to `weight`, the least weight of all lanes."""
        self._set(cut, INFINITE if weight >= INFINITE else weight - self.t.before[cut])

    def last(self, cut: int) -> tuple[int, int]:
        """Returns where the last region of the best way to a cut begins, and its bytes."""
        region = self._last[cut]
        assert region is not None
        return region.first, region.bytes


class PassSearch:
    """Finds ways of least weight over all choices of second passes. Successive limits must not rise.

    `lanes`: networks with some of the passes (see `lanes_of`). With `by_cost`, weights are the target's
    costs. Without it, they are multiply-accumulates.
    """

    def __init__(
        self,
        lanes: Sequence[Lane],
        by_cost: bool = False,
        most_extra: int | None = None,
        most_labels: int = MOST_LABELS,
    ) -> None:
        self._lanes = [_LaneSearch(lane, by_cost, most_extra, most_labels) for lane in lanes]
        self._most_extra = most_extra

    @property
    def exact(self) -> bool:
        """Returns whether all results so far are exact: no search has spent its budget."""
        return all(lane.exact for lane in self._lanes)

    @property
    def tables(self) -> Tables:
        """Returns the tables of the network without second passes."""
        return self._lanes[0].t

    def least(self, most_bytes: int) -> Choice | None:
        """Returns the choice of least weight within `most_bytes` bytes; None if no way fits."""
        if most_bytes < 0:
            return None
        for lane in self._lanes:
            lane.begin(most_bytes)
        weight = 0
        for cut in range(1, self.tables.e.count + 1):
            common = [(lane, at) for lane in self._lanes if (at := lane.at[cut]) is not None]
            weight = min(lane.advance(at) for lane, at in common)
            for lane, at in common:
                lane.share(at, weight)
        most = INFINITE if self._most_extra is None else self.tables.before[-1] + self._most_extra
        return self._choice(weight) if weight < INFINITE and weight <= most else None

    def _choice(self, weight: int) -> Choice:
        cut, most, passes = self.tables.e.count, 0, set[SecondPass]()
        while cut:
            lane = min(
                (lane for lane in self._lanes if lane.at[cut] is not None),
                key=lambda lane: lane.weight(lane.at[cut] or 0),
            )
            here = lane.at[cut]
            assert here is not None
            while True:
                here, size = lane.last(here)
                most = max(most, size)
                current = lane.inside.get(here)
                if current is None:
                    break
                passes.add(current)
            cut = lane.at.index(here)
        return Choice(most, weight, tuple(sorted(passes, key=lambda one: one.reader)))

    def falling(self) -> Iterator[Choice]:
        """Yields the best choices of passes within fewer and fewer bytes, the one of least weight first."""
        most_bytes = INFINITE
        while (choice := self.least(most_bytes)) is not None:
            yield choice
            most_bytes = next_limit(choice.bytes, self.exact)


def lanes_of(graph: Graph, space_for: Callable[[Graph], Space]) -> tuple[Lane, ...]:
    """Returns the networks to search in parallel, the one without second passes first.

    Empty if there are no gates. `space_for`: returns the search space of a network whose operators may occur
    twice.
    """
    plain = space_for(graph)
    streamed = (plain.elements.delivered.input,) if plain.elements.image == Image.STREAM else ()
    starts = gates(graph, plain.elements.kernels, streamed)
    if not starts:
        return ()
    lanes = [Lane(plain, tuple(range(plain.elements.count + 1)), {})]
    for number in range(max(map(len, starts))):
        passes = tuple(among[number] for among in starts if number < len(among))
        changed = with_second_passes(graph, passes)
        lanes.append(_lane(changed, space_for(changed)))
    return tuple(lanes)


def _lane(changed: Graph, space: Space) -> Lane:
    """Returns the lane of a network with second passes at some gates."""
    again, once = repeated_ops(changed), once_positions(changed)
    at: list[int | None] = [0]
    inside: dict[int, SecondPass] = {}
    for element, position in enumerate(space.elements.positions):
        # The operator's position without passes; for a repeated operator, that of its first run.
        before = once[again.get(position, position)]
        current = next((one for one in changed.second_passes if one.first <= before < one.reader), None)
        if current is not None:
            inside[element + 1] = current
        if position not in again:
            at.append(None if current is not None else element + 1)
    return Lane(space, tuple(at), inside)


def worthwhile(lanes: Sequence[Lane], settings: Settings, *, by_cost: bool = False) -> tuple[Passes, ...]:
    """Returns choices of second passes on the Pareto front of bytes and weight, most bytes first.

    Each has at least one pass. `by_cost`: as in PassSearch. `settings`: those for the network without passes.
    """
    if not lanes:
        return ()
    extra = None if by_cost else lanes[0].space.most_extra(settings.max_f)
    search = PassSearch(lanes, by_cost, extra, settings.most_labels)
    return tuple(dict.fromkeys(way.passes for way in search.falling() if way.passes))


def least_cost(lanes: Sequence[Lane], most_labels: int, most_bytes: int) -> float:
    """Returns the least cost within `most_bytes` bytes over all choices of second passes.

    The result is 0 if the search, with a budget of `most_labels` labels, does not prove it.
    """
    if not lanes:
        return 0.0
    search = PassSearch(lanes, by_cost=True, most_labels=most_labels)
    way = search.least(most_bytes)
    return way.weight / COST_UNITS if way is not None and search.exact else 0.0
