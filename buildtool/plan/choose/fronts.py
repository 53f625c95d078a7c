"""The points of a prepared network's Pareto front of memory and work, as placed plans.

The arena of a placed point may be larger than the bytes that are live in it. So another plan may have a
smaller arena than all points. `choose.front` therefore adds the plan that objective `ram` chooses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from buildtool.base import distinct
from buildtool.base.modes import Image, Objective, Strategy
from buildtool.base.work import Work
from buildtool.graph.partviews import tensors_written_in_place
from buildtool.graph.types import Graph
from buildtool.plan.choose import problem
from buildtool.plan.choose.limits import Limits
from buildtool.plan.choose.loads import least_arena, least_loading_cost, with_loads, with_loads_at_once
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.types import Plan
from buildtool.target.choice import loads

if TYPE_CHECKING:
    from buildtool.plan.search.front import Front
    from buildtool.plan.search.front import Point as SearchPoint


@dataclass(frozen=True)
class Point:
    """A placed plan, the graph that it is for, and the bytes that are live in the plan's fullest region."""

    live_bytes: int
    plan: Plan
    graph: Graph


def points(
    prepared: Prepared,
    ram: int | None,
    below: float = math.inf,
    *,
    filled: bool = False,
    smallest: bool = False,
) -> tuple[Point, ...]:
    """Returns the plans within the options' limits and `ram` bytes, least memory first.

    Each does less work than the one before it.

    below: plans that cost at least this may be left out.
    filled: whether the buffers of constants may be as large as `ram` allows.
    smallest: whether the caller needs only the first plan.

    After the work budget ends, plans are placed only until one is within the limits.
    """
    allowed = prepared.limits(ram)
    placing = _Placing(allowed, below, ram if filled else None, smallest)
    placed: list[Point] = []
    for graph in prepared.graphs[len(prepared.unsliced) :]:  # their plans usually beat the others
        placed += _place_one_order(prepared.with_graph(graph), placing)
    earlier = tuple(placed)
    for graph in (*prepared.unsliced, *prepared.viewed):
        placed += _place_one_order(prepared.with_graph(graph), placing, earlier)
    placed += _place_second_passes(prepared, placing, placed)
    allowed_points = [p for p in placed if allowed.allow(p.plan)]
    if not allowed_points and prepared.options.max_cost is not None:
        allowed_points = [
            p for graph in prepared.every_graph for p in _cheapest(prepared.with_graph(graph), allowed)
        ]
    return pareto_front(allowed_points)


def pareto_front(every_point: Iterable[Point]) -> tuple[Point, ...]:
    """Returns the points on the Pareto front of memory and work, least memory first."""
    return tuple(distinct.undominated(every_point, lambda p: (p.plan.arena_bytes, p.plan.macs, p.plan.cost)))


def point_of(plan: Plan, graph: Graph, prepared: Prepared) -> Point:
    """Returns the point of a placed plan."""
    from buildtool.plan.summary.summary import peak

    fullest = peak(plan, graph, session=prepared.session)
    return Point(fullest.bytes if fullest else 0, plan, graph)


@dataclass
class _Placing:
    """The settings and the state of `points` while it places plans.

    allowed: the limits.
    below, smallest: as in `points`.
    room: bytes that buffers of constants may fill; None: as few as possible.
    least: bytes of the smallest arena so far, over the plans within the limits.
    """

    allowed: Limits
    below: float
    room: int | None
    smallest: bool
    least: float = math.inf

    def note(self, plan: Plan) -> None:
        """Updates `least` if the plan is within the limits."""
        if self.allowed.allow(plan):
            self.least = min(self.least, plan.arena_bytes)

    def leaves_out(self, work: Work) -> bool:
        """Returns whether placing stops: the work budget has ended, and one plan is within the limits."""
        return not math.isinf(self.least) and not work.goes_on()

    def place(self, bare: Plan, alone: Prepared, live: int | None = None) -> Iterator[Point]:
        """Yields the point of plan `bare` with its constants.

        Yields nothing if only the smallest plan matters and this one is larger. Uses at most half of the
        remaining work budget. `live`: the live bytes without constants, if known.
        """
        if self.smallest and least_arena(bare, alone) > self.least:
            return
        with alone.session.work.share(0.5):
            plan = with_loads(bare, alone, self.room)
        self.note(plan)
        yield _point_with_constants(plan, bare, alone, live)


def _point_with_constants(plan: Plan, bare: Plan, alone: Prepared, live: int | None) -> Point:
    """Returns the point of `plan`, which is the plan `bare` with its constants.

    `live`: the live bytes without constants, if known.
    """
    if live is not None and plan is bare:
        return Point(live, plan, alone.graph)
    return point_of(plan, alone.graph, alone)


def _place_one_order(alone: Prepared, placing: _Placing, earlier: Sequence[Point] = ()) -> list[Point]:
    """Returns the placed points of one graph: the plan of whole operators, and the points of its front.

    A point is not placed if its calls and loads alone cost at least `placing.below`, or if a plan in
    `earlier` is as good in memory and work. The plan of whole operators is placed last if only the smallest
    plan matters and a point of the front may be smaller.
    """
    streams = alone.options.strategy == Strategy.BEST and not tensors_written_in_place(alone.graph)
    whole: Plan | None = None
    if alone.options.image != Image.STREAM and not placing.leaves_out(alone.session.work):
        whole = layerwise(alone)
    late = False
    if whole is not None and streams and placing.smallest:  # does a point of the search's front need less?
        front = search_front(alone).points
        late = bool(front) and least_arena(whole, alone) > front[0].live_bytes
    first = [] if whole is None or late else list(placing.place(whole, alone))
    streamed = list(_place_streamed(alone, placing, earlier)) if streams else []
    if whole is not None and late:
        first += placing.place(whole, alone)
    return first + streamed


def _place_streamed(alone: Prepared, placing: _Placing, earlier: Sequence[Point]) -> Iterator[Point]:
    """Yields the placed points of a graph's front (see `_place_one_order`)."""
    from buildtool.plan.search.paths import Search

    session, front = alone.session, search_front(alone)
    session.tell("searching for plans")
    indices: Iterable[int] = range(len(front.points))
    if not math.isinf(placing.below):
        constants = least_loading_cost(alone.graph, alone.target)
        search, last = Search(front.space.cost_tables), len(front.points) - 1
        ways = front.cheaper(front.fitting(math.inf), search, lambda: placing.below - constants)
        indices = (last - place for place, _ in enumerate(ways))
    is_quick = placing.smallest and loads(alone.target.board)
    quick = _place_quickly(front, alone, placing, earlier) if is_quick else []
    for index in indices:
        if _is_beaten(front.points[index], earlier):
            continue
        if placing.leaves_out(session.work):
            yield from quick
            return
        session.tell(f"placing plan {index + 1} of {len(front.points)}")
        batch = list(placing.place(front.plan(index), alone, front.points[index].live_bytes))
        yield from batch
        if any(load.by_turns for one in batch for load in one.plan.loads) and session.work.goes_on():
            # Constants on dead rows need less than the search counts: the leanest forms may pay.
            yield from placing.place(front.lean(front.points[index].way), alone)
    if alone.options.max_cost is not None:
        # Plans with little memory that cost less than the points although they repeat more work.
        from buildtool.plan.choose.selection import smallest

        for plan in smallest(front, replace(alone.limits(None), objective=Objective.RAM)):
            yield from placing.place(plan, alone)


def _place_quickly(front: Front, alone: Prepared, placing: _Placing, earlier: Sequence[Point]) -> list[Point]:
    """Returns points whose constants are placed in one quick attempt each.

    All attempts together use most of the remaining work budget. They show which points may be the smallest.
    If the budget ends before these points are placed with more effort, the points here are the result.
    """
    work, results = alone.session.work, list[Point]()
    with work.share(0.75, first=True):
        for index, point in enumerate(front.points):
            if work.left <= 0:
                break
            if _is_beaten(point, earlier):
                continue
            bare = front.plan(index)
            if least_arena(bare, alone) <= placing.least:
                plan = with_loads_at_once(bare, alone)
                placing.note(plan)
                results.append(point_of(plan, alone.graph, alone))
    return results


def _is_beaten(point: SearchPoint, earlier: Iterable[Point]) -> bool:
    """Returns whether an earlier plan needs no more memory and does no more work than a point."""
    return any(one.plan.arena_bytes <= point.live_bytes and one.plan.macs <= point.work for one in earlier)


def _place_second_passes(prepared: Prepared, placing: _Placing, earlier: Sequence[Point]) -> Iterator[Point]:
    """Yields the placed points of networks with second passes (recomputation), least memory first.

    Points that a point in `earlier` beats in memory and work are left out.
    """
    fronts = [search_front(prepared.with_graph(graph)) for graph in prepared.with_second_passes]
    order = sorted(
        (point.live_bytes, point.work, number, index)
        for number, front in enumerate(fronts)
        for index, point in enumerate(front.points)
    )
    placed = list(earlier)
    for live, _, number, index in order:
        front = fronts[number]
        if _is_beaten(front.points[index], placed) or not prepared.session.work.goes_on():
            continue
        alone, bare = prepared.with_graph(front.graph), front.plan(index)
        plan = with_loads(bare, alone, placing.room)
        if plan.cost < placing.below:
            placed.append(_point_with_constants(plan, bare, alone, live))
            yield placed[-1]


def _cheapest(alone: Prepared, allowed: Limits) -> Iterator[Point]:
    """Yields the plan with the least cost for one graph, if it is within the limits."""
    from buildtool.plan.choose.selection import plan_within

    if alone.options.strategy != Strategy.BEST or tensors_written_in_place(alone.graph):
        return
    bare = plan_within(search_front(alone), replace(allowed, objective=Objective.COST))
    if bare is not None:
        plan = with_loads(bare, alone, allowed.ram)
        if allowed.allow(plan):
            yield point_of(plan, alone.graph, alone)


def least_cost(alone: Prepared) -> float:
    """Returns a lower bound of the cost of all plans for one graph; 0 if finding a bound needs a search."""
    from buildtool.target.costs import COST_UNITS

    tables = search_front(alone).space.cost_tables
    if not tables.nothing_saves:
        return 0.0
    return tables.before[-1] / COST_UNITS + least_loading_cost(alone.graph, alone.target)


def layerwise(alone: Prepared) -> Plan:
    """Returns the plan of whole operators, without the buffers of constants.

    Tensors move between operators if the objective or the memory limit requires it.
    """
    from buildtool.plan.assemble.layerwise import plan

    options = alone.options
    free = math.inf if alone.ram is None else alone.ram
    return plan(
        alone.graph,
        alone.target,
        in_place=options.in_place,
        image=options.image,
        enough=0 if options.objective == Objective.RAM else free,
        session=alone.session,
    )


def search_front(alone: Prepared) -> Front:
    """Returns the front of live bytes and work that the search finds for the problem of one graph."""
    from buildtool.plan.search.front import front

    result = front(alone.graph, alone.target, problem.settings(alone), alone.session)
    return replace(result, gaps=alone.gaps)


def front_factor(prepared: Prepared) -> float:
    """Returns the optimality gap of the fronts of all graphs, as a factor; 1 if no budget ended a search."""
    if prepared.options.strategy != Strategy.BEST:
        return 1.0
    graphs = (graph for graph in prepared.every_graph if not tensors_written_in_place(graph))
    return max(search_front(prepared.with_graph(graph)).factor for graph in graphs)
