"""Chooses the gates whose tensor is recomputed in a second pass, for every amount of memory.

At a gate, a pooling reads a tensor before another operator reads it (see `schedule.gates`). A second pass
runs the operators that make this tensor again, instead of keeping the tensor. The network without second
passes, and the network with a pass at every gate, are searched in parallel. Both have the same cuts, except
inside gates. At a common cut, both searches continue from the better of the two best ways. So the choice is
exact, and independent for every gate. If a gate's pass may begin with several tensors, there is a network for
each.
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
class PassNetwork:
    """A network with second passes at some gates, which is searched in parallel with others.

    at: cut of the network without passes -> the same cut in this network, or None inside a pass.
    inside: cut of this network -> the pass in which it lies, for cuts inside a pass.
    """

    space: Space
    at: tuple[int | None, ...]
    inside: dict[int, SecondPass]


class _PassSearch(Search):
    """The search of one network with some second passes.

    All networks share the best weight at each cut. `_own` has the extra weights of this network's own ways.
    """

    def __init__(self, network: PassNetwork, by_cost: bool, most_extra: int | None, most_labels: int) -> None:
        tables = network.space.cost_tables if by_cost else network.space.tables
        super().__init__(tables, most_extra, most_labels)
        self.at, self.inside, self._reached = network.at, network.inside, 0
        self._own = [0] + [-INFINITE] * self.t.e.count

    def begin(self, most_bytes: int) -> None:
        """Starts again at the first cut, with a lower limit in bytes."""
        super().begin(most_bytes)
        self._reached = 0

    def advance(self, cut: int) -> int:
        """Searches up to a cut. Returns the weight of this network's best way to it, or INFINITE."""
        for end in range(self._reached + 1, cut + 1):
            self._own[end] = self._to(end, self._own[end])
            self._set(end, self._own[end])
        self._reached = cut
        return self.weight(cut)

    def weight(self, cut: int) -> int:
        """Returns the weight of this network's best way to a cut; INFINITE if there is no way."""
        return INFINITE if self._own[cut] >= INFINITE else self.t.before[cut] + self._own[cut]

    def share(self, cut: int, weight: int) -> None:
        """Sets the weight of the best way to a cut to `weight`, the least weight of all networks."""
        self._set(cut, INFINITE if weight >= INFINITE else weight - self.t.before[cut])

    def last(self, cut: int) -> tuple[int, int]:
        """Returns where the last region of the best way to a cut begins, and its bytes."""
        region = self._last[cut]
        assert region is not None
        return region.first, region.bytes


class PassSearch:
    """Finds ways of least weight over all choices of second passes. Successive limits must not rise.

    `networks`: networks with some of the passes (see `networks_with_passes`). With `by_cost`, weights are the
    target's costs. Without it, they are multiply-accumulates.
    """

    def __init__(
        self,
        networks: Sequence[PassNetwork],
        by_cost: bool = False,
        most_extra: int | None = None,
        most_labels: int = MOST_LABELS,
    ) -> None:
        self._networks = [_PassSearch(network, by_cost, most_extra, most_labels) for network in networks]
        self._most_extra = most_extra

    @property
    def exact(self) -> bool:
        """Returns whether all results so far are exact: no search has spent its budget."""
        return all(network.exact for network in self._networks)

    @property
    def tables(self) -> Tables:
        """Returns the tables of the network without second passes."""
        return self._networks[0].t

    def least(self, most_bytes: int) -> Choice | None:
        """Returns the choice of least weight within `most_bytes` bytes; None if no way fits."""
        if most_bytes < 0:
            return None
        for network in self._networks:
            network.begin(most_bytes)
        weight = 0
        for cut in range(1, self.tables.e.count + 1):
            common = [(network, at) for network in self._networks if (at := network.at[cut]) is not None]
            weight = min(network.advance(at) for network, at in common)
            for network, at in common:
                network.share(at, weight)
        most = INFINITE if self._most_extra is None else self.tables.before[-1] + self._most_extra
        return self._choice(weight) if weight < INFINITE and weight <= most else None

    def _choice(self, weight: int) -> Choice:
        cut, most, passes = self.tables.e.count, 0, set[SecondPass]()
        while cut:
            network = min(
                (network for network in self._networks if network.at[cut] is not None),
                key=lambda network: network.weight(network.at[cut] or 0),
            )
            here = network.at[cut]
            assert here is not None
            while True:
                here, size = network.last(here)
                most = max(most, size)
                current = network.inside.get(here)
                if current is None:
                    break
                passes.add(current)
            cut = network.at.index(here)
        return Choice(most, weight, tuple(sorted(passes, key=lambda one: one.reader)))

    def falling(self) -> Iterator[Choice]:
        """Yields the best choices of passes within fewer and fewer bytes, the one of least weight first."""
        most_bytes = INFINITE
        while (choice := self.least(most_bytes)) is not None:
            yield choice
            most_bytes = next_limit(choice.bytes, self.exact)


def networks_with_passes(graph: Graph, space_for: Callable[[Graph], Space]) -> tuple[PassNetwork, ...]:
    """Returns the networks to search in parallel, the one without second passes first.

    Empty if there are no gates. `space_for`: returns the search space of a network whose operators may occur
    twice.
    """
    plain = space_for(graph)
    streamed = (plain.elements.delivered.input,) if plain.elements.image == Image.STREAM else ()
    starts = gates(graph, plain.elements.kernels, streamed)
    if not starts:
        return ()
    networks = [PassNetwork(plain, tuple(range(plain.elements.count + 1)), {})]
    for number in range(max(map(len, starts))):
        passes = tuple(among[number] for among in starts if number < len(among))
        changed = with_second_passes(graph, passes)
        networks.append(_pass_network(changed, space_for(changed)))
    return tuple(networks)


def _pass_network(changed: Graph, space: Space) -> PassNetwork:
    """Returns the search's form of a graph with second passes at some gates."""
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
    return PassNetwork(space, tuple(at), inside)


def worthwhile(
    networks: Sequence[PassNetwork], settings: Settings, *, by_cost: bool = False
) -> tuple[Passes, ...]:
    """Returns choices of second passes on the Pareto front of bytes and weight, most bytes first.

    Each has at least one pass. `by_cost`: as in PassSearch. `settings`: those for the network without passes.
    """
    if not networks:
        return ()
    extra = None if by_cost else networks[0].space.most_extra(settings.max_f)
    search = PassSearch(networks, by_cost, extra, settings.most_labels)
    return tuple(dict.fromkeys(way.passes for way in search.falling() if way.passes))


def least_cost(networks: Sequence[PassNetwork], most_labels: int, most_bytes: int) -> float:
    """Returns the least cost within `most_bytes` bytes over all choices of second passes.

    The result is 0 if the search, with a budget of `most_labels` labels, does not prove it.
    """
    if not networks:
        return 0.0
    search = PassSearch(networks, by_cost=True, most_labels=most_labels)
    way = search.least(most_bytes)
    return way.weight / COST_UNITS if way is not None and search.exact else 0.0
