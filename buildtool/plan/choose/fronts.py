"""The points of a prepared network's front: placed plans that no other beats in memory and work.

`choose.front` has them together with the plan of the least memory, which may lie between what is live in the
first point and its arena.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from buildtool.base.modes import Image, Objective, Strategy
from buildtool.base.work import Work
from buildtool.graph.partviews import written_in_place
from buildtool.graph.types import Graph
from buildtool.plan.choose import passes
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.choose.slow_weights import (
    least_arena,
    least_loading_cost,
    loads_weights,
    with_least_loads,
    with_loads,
    with_loads_at_once,
)
from buildtool.plan.types import Plan

if TYPE_CHECKING:
    from buildtool.plan.search.choose import Limits
    from buildtool.plan.search.front import Front, Settings
    from buildtool.plan.search.front import Point as SearchPoint


@dataclass(frozen=True)
class Point:
    """A placed plan, the graph that it is for, and the bytes that are live in its fullest region."""

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
    """The plans within the options' limits and `ram` bytes, least memory first.

    Each does less work than the one before it. `below`: plans that cannot cost less may be left out.
    `filled`: the buffers of constants may be as large as `ram` allows. `smallest`: only the first of them
    matters. Where the budget of work ends, no more are placed once one is within the limits.
    """
    allowed = limits(prepared, ram)
    room = ram if filled else None
    seen = _Seen(allowed, smallest)
    made: list[Point] = []
    for graph in prepared.graphs[len(prepared.unsliced) :]:  # it mostly has what the others need not be asked
        made += _of_one_order(graph, prepared, seen, below, room)
    known = tuple(made)
    for graph in (*prepared.unsliced, *prepared.viewed):
        made += _of_one_order(graph, prepared, seen, below, room, known)
    made += _with_second_passes(prepared, below, room, made)
    found = [p for p in made if allowed.allow(p.plan)]
    if not found and prepared.options.max_cost is not None:
        found = [p for graph in prepared.every_graph for p in _cheapest(graph, prepared, allowed)]
    return undominated(found)


def undominated(found: Iterable[Point]) -> tuple[Point, ...]:
    """The points that no other beats in memory and work, least memory first."""
    kept: list[Point] = []
    for point in sorted(found, key=lambda p: (p.plan.arena_bytes, p.plan.macs, p.plan.cost)):
        if not kept or point.plan.macs < kept[-1].plan.macs:
            kept.append(point)
    return tuple(kept)


def point_of(plan: Plan, graph: Graph, prepared: Prepared) -> Point:
    """A plan as a point."""
    return Point(_live(plan, graph, prepared), plan, graph)


@dataclass
class _Seen:
    """The least arena of the points so far that are `allowed`, in bytes.

    `smallest`: no plan with a larger arena matters.
    """

    allowed: Limits
    smallest: bool
    least: float = math.inf

    def note(self, plan: Plan) -> None:
        """Sees one more."""
        if self.allowed.allow(plan):
            self.least = min(self.least, plan.arena_bytes)

    def leaves_out(self, work: Work) -> bool:
        """Whether no further point is placed: one will do where the budget of work has ended."""
        return not math.isinf(self.least) and not work.goes_on()


def _of_one_order(
    graph: Graph,
    prepared: Prepared,
    seen: _Seen,
    below: float,
    room: int | None,
    known: Sequence[Point] = (),
) -> list[Point]:
    """All that is looked at: the plan of whole operators, and the search's front.

    A point whose calls and loads alone cost as much as `below` is not placed, nor one that a `known` plan
    beats. `room`: bytes that buffers of constants may fill (None: as few as can be). Each may take half of
    the work that is left. Whole operators come last where only the smallest plan matters and a point may be
    smaller.
    """
    options, target, session = prepared.options, prepared.target, prepared.session

    def placed(bare: Plan, live: int | None = None) -> Iterator[Point]:
        if seen.smallest and least_arena(bare, graph, target, options, session) > seen.least:
            return
        with session.work.share(0.5):
            if room is None:
                plan = with_least_loads(bare, graph, target, options, session)
            else:
                plan = with_loads(bare, graph, target, options, room, session)
        seen.note(plan)
        yield Point(_live(plan, graph, prepared) if live is None or plan is not bare else live, plan, graph)

    streams = options.strategy == Strategy.BEST and not written_in_place(graph)
    whole: Plan | None = None
    if options.image != Image.STREAM and not seen.leaves_out(session.work):
        whole = layerwise(graph, prepared)
    late = whole is not None and streams and seen.smallest and not _is_least(whole, graph, prepared)
    first = [] if whole is None or late else list(placed(whole))
    streamed = list(_streamed(graph, prepared, seen, below, known, placed)) if streams else []
    if whole is not None and late:
        first += placed(whole)
    return first + streamed


def _is_least(whole: Plan, graph: Graph, prepared: Prepared) -> bool:
    """Whether the plan of whole operators may need less than any point of the search's front."""
    target, options, session = prepared.target, prepared.options, prepared.session
    found = searched(graph, prepared).points
    return not found or least_arena(whole, graph, target, options, session) <= found[0].live_bytes


def _streamed(
    graph: Graph,
    prepared: Prepared,
    seen: _Seen,
    below: float,
    known: Sequence[Point],
    placed: Callable[..., Iterator[Point]],
) -> Iterator[Point]:
    """The points of the search's front: see `_of_one_order`."""
    from buildtool.plan.search.paths import Search

    options, session = prepared.options, prepared.session
    found = searched(graph, prepared)
    session.tell("searching for plans")
    indices: Iterable[int] = range(len(found.points))
    if not math.isinf(below):
        loads = least_loading_cost(graph, prepared.target)
        indices = found.cheaper(math.inf, Search(found.cost_cuts), lambda: below - loads)
    quick = (
        _at_once(found, prepared, seen, known)
        if seen.smallest and loads_weights(prepared.target.board)
        else []
    )
    for index in indices:
        if _is_beaten(found.points[index], known):
            continue
        if seen.leaves_out(session.work):
            yield from quick
            return
        session.tell(f"placing plan {index + 1} of {len(found.points)}")
        made = list(placed(found.plan(index), found.points[index].live_bytes))
        yield from made
        if any(load.by_turns for one in made for load in one.plan.loads) and session.work.goes_on():
            # Constants on dead rows need less than the search counts: the leanest forms may pay.
            yield from placed(found.lean(found.points[index].way))
    if options.max_cost is not None:
        # Plans of little memory that cost less than the points do: they repeat more work.
        from buildtool.plan.search.choose import smallest

        for plan in smallest(found, limits(prepared, math.inf, Objective.RAM)):
            yield from placed(plan)


def _at_once(found: Front, prepared: Prepared, seen: _Seen, known: Sequence[Point]) -> list[Point]:
    """Points with their constants where a first attempt has them, within most of the work that is left.

    They tell which ones may be the smallest, and are what there is where the budget ends before those are
    placed.
    """
    graph, target, options = found.graph, prepared.target, prepared.options
    session, made = prepared.session, list[Point]()
    with session.work.share(0.75, first=True):
        for index, point in enumerate(found.points):
            if session.work.left <= 0:
                break
            if _is_beaten(point, known):
                continue
            bare = found.plan(index)
            if least_arena(bare, graph, target, options, session) <= seen.least:
                plan = with_loads_at_once(bare, graph, target, options, session)
                seen.note(plan)
                made.append(Point(_live(plan, graph, prepared), plan, graph))
    return made


def _is_beaten(point: SearchPoint, known: Iterable[Point]) -> bool:
    """Whether a plan that is known needs no more memory than a point at the least, and does no more work."""
    return any(one.plan.arena_bytes <= point.live_bytes and one.plan.macs <= point.work for one in known)


def _with_second_passes(
    prepared: Prepared, below: float, room: int | None, known: Sequence[Point]
) -> Iterator[Point]:
    """The points of the networks with second passes, by memory; those are not placed that one known beats."""
    options, target, session = prepared.options, prepared.target, prepared.session
    fronts = [searched(graph, prepared) for graph in prepared.twice]
    listed = sorted(
        (point.live_bytes, point.work, number, index)
        for number, found in enumerate(fronts)
        for index, point in enumerate(found.points)
    )
    placed = list(known)
    for live, _, number, index in listed:
        if _is_beaten(fronts[number].points[index], placed) or not session.work.goes_on():
            continue
        graph, bare = fronts[number].graph, fronts[number].plan(index)
        if room is None:
            plan = with_least_loads(bare, graph, target, options, session)
        else:
            plan = with_loads(bare, graph, target, options, room, session)
        if plan.cost >= below:
            continue
        placed.append(Point(live if plan is bare else _live(plan, graph, prepared), plan, graph))
        yield placed[-1]


def _cheapest(graph: Graph, prepared: Prepared, allowed: Limits) -> Iterator[Point]:
    """The plan of least cost of one order, if it keeps the limits: all others may miss that on cost."""
    from buildtool.plan.search.choose import plan_within

    by_cost = replace(allowed, objective=Objective.COST)
    options, target = prepared.options, prepared.target
    if options.strategy != Strategy.BEST or written_in_place(graph):
        return
    bare = plan_within(graph, target, settings(graph, prepared), by_cost, prepared.session)
    if bare is not None:
        plan = with_loads(bare, graph, target, options, by_cost.ram, prepared.session)
        if allowed.allow(plan):
            yield point_of(plan, graph, prepared)


def least_cost(prepared: Prepared) -> float:
    """A cost that no plan of the network's one order is below; 0 where that is not known without a search."""
    from buildtool.target.costs import COST_UNITS

    (graph,) = prepared.graphs
    tables = searched(graph, prepared).cost_tables
    if not tables.nothing_saves:
        return 0.0
    return tables.before[-1] / COST_UNITS + least_loading_cost(graph, prepared.target)


def _live(plan: Plan, graph: Graph, prepared: Prepared) -> int:
    from buildtool.plan.summary.summary import peak

    fullest = peak(plan, graph, session=prepared.session)
    return fullest.bytes if fullest else 0


def layerwise(graph: Graph, prepared: Prepared) -> Plan:
    """The plan of whole operators, before constants are brought into its arena.

    Tensors move between operators where the least memory is asked for, or the limit on it asks for that.
    """
    from buildtool.plan.assemble.layerwise import plan

    options = prepared.options
    free = math.inf if prepared.ram is None else prepared.ram
    return plan(
        graph,
        prepared.target,
        in_place=options.in_place,
        image=options.image,
        enough=0 if options.objective == Objective.RAM else free,
        session=prepared.session,
    )


def searched(graph: Graph, prepared: Prepared) -> Front:
    """The search's own front, by live bytes and work."""
    from buildtool.plan.search.front import front

    return front(graph, prepared.target, settings(graph, prepared), prepared.session)


def front_factor(prepared: Prepared) -> float:
    """By how much the points may miss the exact front where a budget ended its search; else 1."""
    if prepared.options.strategy != Strategy.BEST:
        return 1.0
    graphs = (graph for graph in prepared.every_graph if not written_in_place(graph))
    return max(searched(graph, prepared).factor for graph in graphs)


def start_factor(prepared: Prepared) -> None:
    """Forgets what earlier plans have proven: `plan_factor` is then that of the plan made next."""
    if prepared.options.strategy == Strategy.BEST:
        for graph in prepared.graphs:
            if not written_in_place(graph):
                searched(graph, prepared).space.cost_factors.clear()


def plan_factor(prepared: Prepared) -> float:
    """How many times the least there is what a plan makes least may be: see `search_factor`."""
    if prepared.options.strategy != Strategy.BEST:
        return 1.0
    from buildtool.plan.search.choose import search_factor

    most = limits(prepared, prepared.ram)
    graphs = (graph for graph in prepared.graphs if not written_in_place(graph))
    return max((search_factor(searched(graph, prepared), most) for graph in graphs), default=1.0)


def settings(graph: Graph, prepared: Prepared) -> Settings:
    """What a front depends on, of the options and the board."""
    return passes.settings(graph, prepared.target, prepared.options)


def limits(prepared: Prepared, ram: float | None, objective: Objective | None = None) -> Limits:
    """What a plan has to keep to: `ram` bytes, and the options' limits on work and cost."""
    from buildtool.plan.search.choose import Limits

    options = prepared.options
    most = math.inf if ram is None else ram
    in_ms = None if options.max_ms is None else prepared.target.cost_ms
    return Limits(most, options.max_f, options.max_cost, objective or options.objective, in_ms)
