"""Chooses the gates that recompute their tensor in a second pass, for every amount of memory, exactly.

The network without second passes, and the one with a pass at every gate, are searched side by side (see
`paths`). They have the same cuts but for those inside of gates; at a cut that both have, the best way to it
is the better of the two, and either goes on from there. So every gate has its own choice. Where a gate's
pass may begin with several tensors, there is a network for each.
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
    """The second passes of a way: its largest region's bytes, its weight (see Tables)."""

    bytes: int
    weight: int
    passes: Passes


@dataclass(frozen=True, eq=False)
class Lane:
    """A network with some second passes as the search sees it.

    `at`: cut of the network without passes -> the same cut here, None where a pass is under way in one of
    them; `inside`: cut here -> the pass that is under way.
    """

    space: Space
    at: tuple[int | None, ...]
    inside: dict[int, SecondPass]


class _LaneSearch(Search):
    """A search whose cuts' weights others may lower: `_own` are those of ways that this lane found."""

    def __init__(self, lane: Lane, by_cost: bool, most_extra: int | None, most_labels: int) -> None:
        tables = lane.space.cost_tables if by_cost else lane.space.tables
        super().__init__(tables, most_extra, most_labels)
        self.at, self.inside, self._reached = lane.at, lane.inside, 0
        self._own = [0] + [-INFINITE] * self.t.e.count

    def begin(self, most_bytes: int) -> None:
        """As in Search."""
        super().begin(most_bytes)
        self._reached = 0

    def advance(self, cut: int) -> int:
        """Goes on to a cut; the weight of this lane's best way there, INFINITE where it has no way."""
        for end in range(self._reached + 1, cut + 1):
            self._own[end] = self._to(end, self._own[end])
            self._set(end, self._own[end])
        self._reached = cut
        return self.weight(cut)

    def weight(self, cut: int) -> int:
        """Weight of the best way of this lane to a cut."""
        return INFINITE if self._own[cut] >= INFINITE else self.t.before[cut] + self._own[cut]

    def share(self, cut: int, weight: int) -> None:
        """The weight of the best way to a cut, whichever lane it is of."""
        self._set(cut, INFINITE if weight >= INFINITE else weight - self.t.before[cut])

    def last(self, cut: int) -> tuple[int, int]:
        """First cut and bytes of the last region of the way to a cut."""
        region = self._last[cut]
        assert region is not None
        return region.first, region.bytes


class PassSearch:
    """Ways of least weight for limits of bytes that never rise, over all choices of second passes.

    `by_cost`: weights are the target's cost, else work.
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
        """Whether no search has spent its budget."""
        return all(lane.exact for lane in self._lanes)

    @property
    def tables(self) -> Tables:
        """Of the network without second passes."""
        return self._lanes[0].t

    def least(self, most_bytes: int) -> Choice | None:
        """Returns the way of least weight within `most_bytes` bytes; None if no way fits."""
        if most_bytes < 0:
            return None
        for lane in self._lanes:
            lane.begin(most_bytes)
        weight = 0
        for cut in range(1, self.tables.e.count + 1):
            sharing = [(lane, at) for lane in self._lanes if (at := lane.at[cut]) is not None]
            weight = min(lane.advance(at) for lane, at in sharing)
            for lane, at in sharing:
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
                under_way = lane.inside.get(here)
                if under_way is None:
                    break
                passes.add(under_way)
            cut = lane.at.index(here)
        return Choice(most, weight, tuple(sorted(passes, key=lambda one: one.reader)))

    def falling(self) -> Iterator[Choice]:
        """The ways within limits of bytes that fall, least weight first."""
        most_bytes = INFINITE
        while (choice := self.least(most_bytes)) is not None:
            yield choice
            most_bytes = next_limit(choice.bytes, self.exact)


def lanes_of(graph: Graph, space_for: Callable[[Graph], Space]) -> tuple[Lane, ...]:
    """The networks to be searched side by side, the first one without second passes; none without gates.

    `space_for`: what a network is searched in, whose operators may be there twice.
    """
    plain = space_for(graph)
    streamed = graph.inputs[:1] if plain.elements.image == Image.STREAM else ()
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
    """A network with a pass at each of some gates."""
    again, once = repeated_ops(changed), once_positions(changed)
    at: list[int | None] = [0]
    inside: dict[int, SecondPass] = {}
    for element, position in enumerate(space.elements.positions):
        # An operator's position without passes; what runs again is as far as what is before its reader.
        before = once[again.get(position, position)]
        under_way = next((one for one in changed.second_passes if one.first <= before < one.reader), None)
        if under_way is not None:
            inside[element + 1] = under_way
        if position not in again:
            at.append(None if under_way is not None else element + 1)
    return Lane(space, tuple(at), inside)


def worthwhile(lanes: Sequence[Lane], settings: Settings, *, by_cost: bool = False) -> tuple[Passes, ...]:
    """The choices of at least one second pass that no other beats in bytes and weight.

    By bytes, descending. `by_cost`: see PassSearch; `settings`: those of the network without passes.
    """
    if not lanes:
        return ()
    extra = None if by_cost else lanes[0].space.most_extra(settings.max_f)
    search = PassSearch(lanes, by_cost, extra, settings.most_labels)
    return tuple(dict.fromkeys(way.passes for way in search.falling() if way.passes))


def least_cost(lanes: Sequence[Lane], most_labels: int, most_bytes: int) -> float:
    """A lower bound of the cost of ways within `most_bytes` bytes, for any second passes; 0 if unknown."""
    if not lanes:
        return 0.0
    search = PassSearch(lanes, by_cost=True, most_labels=most_labels)
    way = search.least(most_bytes)
    return way.weight / COST_UNITS if way is not None and search.exact else 0.0
