"""The Pareto front of memory and work for the other parts of the planner: its points can become plans.

A way is a path through the search space: a sequence of regions, not yet placed. The front is exact within a
budget of labels (partial regions that a search makes): no plan in the space beats a point of the front in
both memory and work. Beyond the budget, the points are still ways that run, and `Front.factor` is their
optimality gap. To check this, tests/oracles/front_twin.py assembles and measures every plan of the space for
small networks.

Live bytes are aligned. A region's live bytes are the sum of all that it ever holds (whole tensors, rings,
accumulators, the largest workspace of its groups), less the bytes of its output that may lie over the tensor
that feeds it. A way's live bytes are those of its largest region. A placement can need more, if the outputs
and inputs of consecutive regions do not fit over each other. It can need less only if an output lies over a
tensor that does not feed its region.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from buildtool.base.session import Session
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.assemble.workspace import Regions, known_costs
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.search.blocks import Block, Form
from buildtool.plan.search.paths import Search, Way
from buildtool.plan.search.regions import INFINITE, Candidate
from buildtool.plan.search.space import Settings, Space, Ways, space_of
from buildtool.plan.types import Plan, Region
from buildtool.target.costs import COST_UNITS
from buildtool.target.digest import planning_digest
from buildtool.target.types import Target

STRATEGY = "best"
MOST_ASSEMBLED = 256  # plans that a session caches by their regions
MOST_POINTS = 4096  # points of all fronts whose plans a session caches


@dataclass(frozen=True)
class Point:
    """A point of the front: one way to run the network.

    live_bytes: aligned bytes of the largest region.
    work: multiply-accumulates.
    f: the work, as a multiple of the network's work layer by layer.
    way: its regions.
    """

    live_bytes: int
    work: int
    f: float
    way: Way


@dataclass(frozen=True)
class Front:
    """The Pareto front of memory and work, least memory first.

    `gaps`: limit in bytes -> the proven optimality gap, as a factor, of the search for the least cost within
    this limit.
    """

    graph: Graph
    target: Target
    settings: Settings
    space: Space
    session: Session  # caches timelines and placements
    gaps: dict[int, float] = field(default_factory=dict)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Returns the points; each needs more memory and does less work than the one before it."""
        once = self.space.once
        return tuple(
            Point(way.bytes, way.weight, way.weight / once if once else 1.0, way) for way in self._ways.ways
        )

    @property
    def factor(self) -> float:
        """Returns the optimality gap of the points (see Ways); 1 if they are the exact front."""
        return self._ways.factor

    @property
    def _ways(self) -> Ways:
        return self.space.ways(self.settings.max_f, self.settings.most_labels)

    def may_fit(self, index: int, most_bytes: float) -> bool:
        """Returns whether the arena of a point's plan may have at most `most_bytes` bytes.

        The plan is the one that `within` finds. False means that it certainly has more.
        """
        return self._floors[index] <= most_bytes or self._tied_fits(self.points[index].way, most_bytes)

    def _tied_fits(self, way: Way, most_bytes: float) -> bool:
        """Returns whether the cheapest way with a way's work may fit into `most_bytes` bytes.

        This is the way that `Space.cheapest` finds within the same live bytes.
        """
        tied = self.space.cheapest(way)
        return tied is not None and self._floor(tied) <= most_bytes

    def fitting(self, most_bytes: float) -> Iterator[Way]:
        """Yields the ways of points whose arena may fit into `most_bytes` bytes, most live bytes first.

        They come from a new search. It begins with the largest number of live bytes that such a point may
        have, and goes on only as far as ways are asked for. If its budget ends, the remaining ways come from
        `points`.
        """
        above = INFINITE
        if not math.isinf(most_bytes):
            space, settings = self.space, self.settings
            search = Search(space.tables, space.most_extra(settings.max_f), settings.most_labels)
            for way in space.plainly(search, int(most_bytes) + self._most_shared):
                if not search.exact:
                    break
                if self._exact_floor(way) <= most_bytes or self._tied_fits(way, most_bytes):
                    yield way
                above = way.bytes
            if search.exact:
                return
        for index in reversed(range(len(self.points))):
            if self.points[index].live_bytes < above and self.may_fit(index, most_bytes):
                yield self.points[index].way

    @cached_property
    def _floors(self) -> tuple[int, ...]:
        """Returns for each point a lower bound in bytes of its plan's arena, for all forms of its blocks.

        Live bytes count the output of a region as lying only over the tensor that feeds the region. In a plan
        it may also lie over other tensors that die in the region, so their bytes are subtracted.

        Other forms of the blocks cannot make all of a point's largest regions smaller, since that would be
        another point, with less memory. Only if the budget ended the search, such a point may exist. Then the
        bytes that other forms may save are subtracted, too.
        """
        if self.factor > 1:
            return tuple(self._floor(point.way, self._by_forms) for point in self.points)
        return tuple(self._exact_floor(point.way) for point in self.points)

    def _exact_floor(self, way: Way) -> int:
        """Returns the bound of `_floors` for a way of an exact front."""
        return way.bytes - max(
            (self._shared_bytes(r) for r in way.regions if r.bytes == way.bytes), default=0
        )

    def _floor(self, way: Way, saved: Callable[[Candidate], int] = lambda _: 0) -> int:
        """Returns a lower bound in bytes of the arena of a way's plan.

        `saved`: returns how many bytes smaller than in this way a region may be, in other forms.
        """
        floor = 0
        for region in sorted(way.regions, key=lambda region: -region.bytes):
            if region.bytes <= floor:
                break
            floor = max(floor, region.bytes - self._shared_bytes(region) - saved(region))
        return floor

    def _by_forms(self, region: Candidate) -> int:
        """Returns the most bytes that a region may save if its blocks run in other forms."""
        if not region.block_forms:
            return 0
        source = self.space.boundaries.sources[region.first]
        dies = source.last < region.end
        over = min(source.size, self.space.boundaries.sizes[region.end - 1]) if dies else 0
        return over + max(form.window for form in region.block_forms)

    def _shared_bytes(self, region: Candidate) -> int:
        """Returns the most bytes that a region's output may share with inputs that do not feed the region.

        These are tensors that die in the region. What the output shares with the tensor that feeds the region
        (see `Source`) is already left out of the region's bytes.
        """
        e, boundaries = self.space.elements, self.space.boundaries
        if not region.block_forms:
            return 0  # a single operator's bytes already count everything that it reads
        inside = range(region.first, region.end)
        read = {e.roots[t] for k in inside for t in e.ops[k].inputs if t in e.roots}
        read -= {boundaries.sources[region.first].tensor, *(e.makes[k] for k in inside)}
        dying = sum(e.sizes[t] for t in read if e.last_read[t] < region.end)
        return min(dying, boundaries.sizes[region.end - 1])

    @cached_property
    def _most_shared(self) -> int:
        """Returns an upper bound of `_shared_bytes` for all regions."""
        e, sizes = self.space.elements, self.space.boundaries.sizes
        inputs = zip(e.ops, (-1, *e.makes), e.beside, strict=False)
        skipped = {
            e.roots[t]
            for op, before, beside in inputs
            for t in (*(t for t in op.inputs if t != before), *beside)
            if t in e.roots
        }
        dying = sum(e.sizes[t] for t in skipped if e.last_read[t] < e.count)
        first = min((e.last_read[t] for t in skipped), default=e.count)
        return min(dying, max(sizes[first:], default=0))

    def plan(self, index: int) -> Plan:
        """Returns the placed plan of a point: the cheapest one found in the smallest arena found."""
        return self.smallest(self.points[index].way)

    def smallest(self, way: Way) -> Plan:
        """Returns the placed plan of a point's way, in the smallest arena that is found.

        The session caches it for every front of the same problem.
        """
        key = (*self._problem, self.settings, way)
        return self.session.remember("placed points", key, lambda: self.within(way), MOST_POINTS)

    def within(self, way: Way, enough: float = 0) -> Plan:
        """Returns a placed plan of a point's way.

        If the network is small enough for a search, the cheapest way with the point's work and within its
        bytes is placed. The point's own way is placed instead if its plan is better, copies of tensors
        included. `enough`: up to this many bytes of arena, a cheaper plan is better than a smaller one.
        """
        cheapest = self.space.cheapest(way)
        if cheapest is None:
            return self.cheap(way, enough)
        plan = self.lean(cheapest, enough)
        fits = plan.arena_bytes <= max(way.bytes, enough)
        if fits and (not plan.moves or plan.cost <= self.calls_cost(way)):
            return plan
        other = self.cheap(way, enough)
        return min(plan, other, key=lambda plan: (max(plan.arena_bytes, enough), plan.cost))

    def assemble(self, regions: tuple[Region, ...], enough: float = 0) -> Plan:
        """Returns the placed plan of these regions.

        Tensors move only if the arena would exceed `enough` bytes. A plan without moves does not depend on
        `enough`. So a cached plan without moves is returned for every `enough` that is not below its arena.
        """

        def make() -> Plan:
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
            make,
            MOST_ASSEMBLED,
            lambda plan: not plan.moves and plan.arena_bytes <= enough,
        )

    @cached_property
    def _problem(self) -> tuple[object, ...]:
        """Returns all that a placed plan depends on, except its regions."""
        names = tuple(kernel.name if kernel else "" for kernel in self.space.elements.kernels)
        settings = (self.settings.image, self.settings.in_place)
        return (topology_digest(self.graph), planning_digest(self.target), names, settings)

    def _timeline(self, regions: tuple[Region, ...]) -> Timeline:
        return Timeline.of(self.graph, regions, self.settings.image, self.session)

    def lean(self, way: Way, enough: float = 0) -> Plan:
        """Returns the placed plan of a way, with its blocks in the forms that the search gave them.

        `enough`: tensors move only if the arena would have more bytes than this.
        """
        return self.assemble(self._lean(way), enough)

    def cheap(self, way: Way, enough: float = 0) -> Plan:
        """Returns the placed plan of a way, with its blocks in the cheapest forms within the way's bytes.

        If these forms make the arena larger, the plan is that of `lean`. `enough`: an arena of up to this
        many bytes is not too large.
        """
        polished = self.assemble(self._cheap(way), enough)
        if polished.arena_bytes <= max(way.bytes, enough):
            return polished  # the forms of the search need no less
        lean = self.lean(way, enough)
        return polished if polished.arena_bytes <= lean.arena_bytes else lean

    def calls_cost(self, way: Way) -> float:
        """Returns a lower bound of the cost of a way's kernel calls, without copies of tensors.

        It holds for whichever forms `cheap` chooses.
        """
        e, settings = self.space.elements, self.settings
        costs = Regions.of(
            self.graph, e.kernels, self.target, settings.image, settings.in_place, self.session
        )
        timelines = (self._timeline(regions) for regions in (self._cheap(way), self._lean(way)))
        return min(sum(costs.facts(run).cost for run in timeline.runs) for timeline in timelines)

    @staticmethod
    def cheaper(ways: Iterable[Way], search: Search, below: Callable[[], float]) -> Iterator[Way]:
        """Yields the ways in `ways` until no later one can have a plan that costs less than `below()`.

        A plan of a way costs at least as much as the cheapest way within the same bytes, and this cost only
        rises from way to way.

        ways: in descending order of bytes, as `fitting` yields them.
        search: a search for the least cost. None of its limits so far may be lower than the bytes of the
            first way.
        """
        for way in ways:
            cheapest = search.least(way.bytes)
            if cheapest is not None and search.exact and cheapest.weight >= below() * COST_UNITS:
                return
            yield way

    def _lean(self, way: Way) -> tuple[Region, ...]:
        return tuple(region.region(self.space.elements) for region in self._whole_regions(way))

    def _cheap(self, way: Way) -> tuple[Region, ...]:
        return tuple(self._polish(region, way.bytes) for region in self._whole_regions(way))

    def _whole_regions(self, way: Way) -> Iterator[Candidate]:
        """Yields the regions of a way. All elements of a fusion in slices are one region."""
        return (region for region in way.regions if self.space.elements.begins(region.first))

    def _polish(self, region: Candidate, most_bytes: int) -> Region:
        """Returns a region with its blocks in the cheapest forms within `most_bytes` bytes."""
        lean = region.region(self.space.elements)
        if not region.block_forms:
            return lean
        window = max(form.window for form in region.block_forms)
        room = most_bytes - region.bytes + window
        groups = []
        for form, group in zip(region.block_forms, lean.groups, strict=True):
            more, cheapest = self._cheapest(form.block, room, window)
            groups.append(group if cheapest is None else cheapest.group)
            room -= more
            window = window if cheapest is None else max(window, cheapest.window)
        return replace(lean, groups=tuple(groups))

    def _cheapest(self, block: Block, room: int, window: int) -> tuple[int, Form | None]:
        """Returns (bytes, form): the cheapest form for a block, and the bytes that it keeps in addition.

        The form may be of another block that can take this block's place (see `Blocks.alternatives`). The
        bytes are the other block's `sums` less this block's. The form is None if no form fits.

        room: bytes for windows, if the block stays as it is.
        window: bytes of the largest window of the region.
        """
        blocks, constants = self.space.blocks, self.space.elements.constants(block.first, block.last)
        found = list[tuple[int, Form]]()
        for other in blocks.alternatives(block):
            more = other.sums - block.sums
            form = self.space.cost_tables.cheapest(other, room - more - constants)
            if form is not None and more <= room - window:
                found.append((more, form))
        if len(found) < 2:
            return found[0] if found else (0, None)
        return min(found, key=lambda one: blocks.block_cost(one[1].block, one[1].group))


def front(graph: Graph, target: Target, settings: Settings, session: Session | None = None) -> Front:
    """Returns the front of `graph` on `target`. `session` caches results for networks of equal topology.

    Raises UsageError if the settings stream the input image, but this network's image cannot be streamed.
    """
    session = session or Session()
    space = space_of(graph, target, settings, session)
    elements = space.elements
    known_costs(session, graph, elements.kernels, target, elements.model)  # plans look costs up there
    return Front(graph, target, settings, space, session)
