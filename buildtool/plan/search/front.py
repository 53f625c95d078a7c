"""The front as the rest of the product sees it: points that can be assembled into plans.

It is exact within a budget of labels: no plan in the space beats a point of the front in both memory
and work. Beyond it the points are still real ways, and `Front.factor` is their optimality gap.
To check this, tests/oracles/front_twin.py assembles and measures every plan of the space for small networks.

Live bytes are aligned: of a region, all that it holds at any time (whole tensors, rings, accumulators,
the largest workspace of its groups) counts for all of it, less the bytes of its output that may lie on
the tensor that feeds it; of a way, the largest region's. A placement can need more, where the outputs
and inputs of several regions in a row do not fit onto each other, but not less, unless an output may lie
on a tensor that does not feed its region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from buildtool.base.session import Session
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.assemble.workspace import Regions, known_costs
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.search.paths import Search, Way
from buildtool.plan.search.regions import Candidate
from buildtool.plan.search.space import Settings, Space, Ways, space_of
from buildtool.plan.types import Plan, Region
from buildtool.target.costs import COST_UNITS
from buildtool.target.digest import planning_digest
from buildtool.target.types import Target

STRATEGY = "best"
MOST_ASSEMBLED = 256  # plans that a session keeps by their regions
MOST_POINTS = 4096  # of all fronts, whose plans a session keeps


@dataclass(frozen=True)
class Point:
    """One way to run the network: `live_bytes` of the largest region, aligned; `work` in
    multiply-accumulates; `f`: the same over those of the network run layer by layer.
    """

    live_bytes: int
    work: int
    f: float
    way: Way


@dataclass(frozen=True)
class Front:
    """All ways that no other beats in memory and in work, least memory first.

    `missed`: limit in bytes -> the proven optimality gap of the search for the least cost within it, as a
    factor.
    """

    graph: Graph
    target: Target
    settings: Settings
    space: Space
    session: Session  # caches timelines and placements
    missed: dict[int, float] = field(default_factory=dict)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The points; each needs more memory and does less work than the one before it."""
        once = self.space.once
        return tuple(
            Point(way.bytes, way.weight, way.weight / once if once else 1.0, way) for way in self._ways.ways
        )

    @property
    def factor(self) -> float:
        """The optimality gap of the points (see Ways); 1 where they are the exact front."""
        return self._ways.factor

    @property
    def _ways(self) -> Ways:
        return self.space.ways(self.settings.max_f, self.settings.most_labels)

    def may_fit(self, index: int, most_bytes: float) -> bool:
        """Whether the arena that `within` finds for a point may have at most `most_bytes` bytes."""
        if self._floors[index] <= most_bytes:
            return True
        way = self.points[index].way
        tied = self.space.cheapest(way)
        return tied is not None and self._floor(tied) <= most_bytes

    @cached_property
    def _floors(self) -> tuple[int, ...]:
        """Of each point: a lower bound of the arena of its way, whichever forms `_cheap` takes.

        They are its live bytes, but for outputs that may lie on dying tensors which do not feed their region.
        Other forms do not make all of the largest regions smaller, as that would be a point of less
        memory; where the budget ended the search, it may be one that was not found.
        """
        if self.factor > 1:
            return tuple(self._floor(point.way, self._by_forms) for point in self.points)
        return tuple(
            way.bytes - max((self._beside(r) for r in way.regions if r.bytes == way.bytes), default=0)
            for way in (point.way for point in self.points)
        )

    def _floor(self, way: Way, saved: Callable[[Candidate], int] = lambda _: 0) -> int:
        """A lower bound of a way's arena; `saved`: by how much a region's live bytes may fall."""
        floor = 0
        for region in sorted(way.regions, key=lambda region: -region.bytes):
            if region.bytes <= floor:
                break
            floor = max(floor, region.bytes - self._beside(region) - saved(region))
        return floor

    def _by_forms(self, region: Candidate) -> int:
        """Most bytes that a region may save if its blocks have other forms than were found."""
        if not region.block_forms:
            return 0
        source = self.space.boundaries.sources[region.first]
        dies = source.last < region.end and not source.streamed
        over = min(source.size, self.space.boundaries.sizes[region.end - 1]) if dies else 0
        return over + max(form.window for form in region.block_forms)

    def _beside(self, region: Candidate) -> int:
        """Most bytes that a region's output may share with what dies in it and does not feed it."""
        e, boundaries = self.space.elements, self.space.boundaries
        if not region.block_forms:
            return 0  # of a single operator all that it reads is counted
        inside = range(region.first, region.end)
        read = {e.roots[t] for k in inside for t in e.ops[k].inputs if t in e.roots}
        read -= {boundaries.sources[region.first].tensor, *(e.makes[k] for k in inside)}
        dying = sum(e.sizes[t] for t in read if e.last_read[t] < region.end)
        return min(dying, boundaries.sizes[region.end - 1])

    def plan(self, index: int) -> Plan:
        """The placed plan of a point, in the least arena that is found and as cheap as that allows.

        It is kept in the session for every front of the same problem.
        """
        key = (*self._problem, self.settings, index)
        return self.session.remember("placed points", key, lambda: self.within(index), MOST_POINTS)

    def within(self, index: int, enough: float = 0) -> Plan:
        """A placed plan of a point; `enough`: bytes of an arena that is low enough.

        Of all ways of its work within its bytes the cheapest is placed, in networks that are not too large to
        look for it, unless the way that was found first does better with what has to be copied.
        """
        way = self.points[index].way
        cheapest = self.space.cheapest(way)
        if cheapest is None:
            return self.cheap(way, enough)
        made = self.lean(cheapest, enough)
        fits = made.arena_bytes <= max(way.bytes, enough)
        if fits and (not made.moves or made.cost <= self.calls_cost(way)):
            return made
        other = self.cheap(way, enough)
        return min(made, other, key=lambda plan: (max(plan.arena_bytes, enough), plan.cost))

    def assemble(self, regions: tuple[Region, ...], enough: float = 0) -> Plan:
        """The placed plan of some regions; tensors move only where the arena would have more bytes.

        A plan without moves is as low as whole tensors were placed, whatever was enough: it is that of every
        other number of bytes that it has room in.
        """

        def made() -> Plan:
            settings, kernels = self.settings, self.space.elements.kernels
            return assemble(
                self._timeline(regions),
                self.target,
                kernels,
                strategy=STRATEGY,
                in_place=settings.in_place,
                enough=enough,
                session=self.session,
            )

        return self.session.remember(
            "assembled",
            (*self._problem, regions),
            made,
            MOST_ASSEMBLED,
            lambda plan: not plan.moves and plan.arena_bytes <= enough,
        )

    @cached_property
    def _problem(self) -> tuple[object, ...]:
        """What a placed plan depends on beside its regions."""
        names = tuple(kernel.name if kernel else "" for kernel in self.space.elements.kernels)
        settings = (self.settings.image, self.settings.in_place)
        return (topology_digest(self.graph), planning_digest(self.target), names, settings)

    def _timeline(self, regions: tuple[Region, ...]) -> Timeline:
        return Timeline.of(self.graph, regions, self.settings.image, self.session)

    def lean(self, way: Way, enough: float = 0) -> Plan:
        """The placed plan of a way, its blocks in the forms that were found."""
        return self.assemble(self._lean(way), enough)

    def cheap(self, way: Way, enough: float = 0) -> Plan:
        """The same, blocks in the cheapest forms that keep the way's bytes, if the arena stays as low.

        `enough`: bytes of an arena that is low enough.
        """
        polished = self.assemble(self._cheap(way), enough)
        if polished.arena_bytes <= max(way.bytes, enough):
            return polished  # the forms that were found need no less
        lean = self.lean(way, enough)
        return polished if polished.arena_bytes <= lean.arena_bytes else lean

    def calls_cost(self, way: Way) -> float:
        """The least that a way's plan costs without its copies, in whichever forms `cheap` takes."""
        e, settings = self.space.elements, self.settings
        costs = Regions.of(
            self.graph, e.kernels, self.target, settings.image, settings.in_place, self.session
        )
        timelines = (self._timeline(regions) for regions in (self._cheap(way), self._lean(way)))
        return min(sum(costs.facts(run).cost for run in timeline.runs) for timeline in timelines)

    def cheaper(self, most_bytes: float, search: Search, below: Callable[[], float]) -> Iterator[int]:
        """The points whose arena may be within some bytes, most live bytes first, as long as one may cost
        less than `below()`.

        No plan of a point costs less than the cheapest way within its bytes, which costs the more the fewer
        bytes there are. `search`: one for the least cost that was not asked for fewer bytes yet.
        """
        for index in reversed(range(len(self.points))):
            if not self.may_fit(index, most_bytes):
                continue
            way = search.least(self.points[index].live_bytes)
            if way is not None and search.exact and way.weight >= below() * COST_UNITS:
                return
            yield index

    def _lean(self, way: Way) -> tuple[Region, ...]:
        return tuple(region.region(self.space.elements) for region in self._whole_regions(way))

    def _cheap(self, way: Way) -> tuple[Region, ...]:
        return tuple(self._polish(region, way.bytes) for region in self._whole_regions(way))

    def _whole_regions(self, way: Way) -> Iterator[Candidate]:
        """A way's regions; of those that are elements of a fusion by slices, which run as one, the first."""
        return (region for region in way.regions if self.space.elements.begins(region.first))

    def _polish(self, region: Candidate, most_bytes: int) -> Region:
        """A region whose blocks run in the cheapest forms within `most_bytes`."""
        blocks = [form.block for form in region.block_forms]
        lean = region.region(self.space.elements)
        if not blocks:
            return lean
        room = most_bytes - region.bytes + max(form.window for form in region.block_forms)
        groups = []
        for block, group in zip(blocks, lean.groups, strict=True):
            free = room - self.space.elements.constants(block.first, block.last)
            cheapest = self.space.blocks.cheapest(block, free)
            groups.append(group if cheapest is None else cheapest.group)
        return replace(lean, groups=tuple(groups))


def front(graph: Graph, target: Target, settings: Settings, session: Session | None = None) -> Front:
    """The front of `graph` on `target`; UsageError where its image cannot be streamed.

    What is found is kept in `session` for every network of the same topology.
    """
    session = session or Session()
    space = space_of(graph, target, settings, session)
    elements = space.elements
    known_costs(session, graph, elements.kernels, target, elements.model)  # so that plans look them up
    return Front(graph, target, settings, space, session)
