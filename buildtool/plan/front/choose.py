"""The choice of one plan: the least of something under limits on the rest.

Limits on memory are kept by placed plans; where placing one needs more than its live bytes, the next
smaller way is tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from buildtool.errors import BuildtoolError, PlanError
from buildtool.graph.types import Graph
from buildtool.plan.binding import binding
from buildtool.plan.front.front import Front, Settings, front
from buildtool.plan.front.search import Search
from buildtool.plan.front.tables import COST_UNITS
from buildtool.plan.layerwise import plan as plan_layerwise
from buildtool.plan.types import Plan
from buildtool.target.types import Target

ATTEMPTS = 12  # at placing ways of ever less live bytes within a limit


@dataclass(frozen=True)
class Limits:
    """`ram`: bytes the arena may have; `f`, `cost`: most of each; `objective`: "cost" or "ram"."""

    ram: int
    f: float | None = None
    cost: float | None = None
    objective: str = "cost"

    def allow(self, plan: Plan) -> bool:
        """Whether a plan is within all limits."""
        return plan.arena_bytes <= self.ram and self.allow_work(plan)

    def allow_work(self, plan: Plan) -> bool:
        """Whether a plan is within the limits on work and cost."""
        return (self.f is None or plan.f <= self.f + 1e-9) and (self.cost is None or plan.cost <= self.cost)


def best_plan(graph: Graph, target: Target, settings: Settings, limits: Limits) -> Plan:
    """The plan with the least cost (or memory) within the limits; never worse than layer by layer.

    PlanError where there is none, with what the nearest plans need.
    """
    chosen, found, candidates = _choose(graph, target, settings, limits)
    if chosen is None:
        raise refusal(found, candidates, limits)
    return chosen


def plan_within(graph: Graph, target: Target, settings: Settings, limits: Limits) -> Plan | None:
    """As `best_plan`; None where there is none."""
    return _choose(graph, target, settings, limits)[0]


def _choose(
    graph: Graph, target: Target, settings: Settings, limits: Limits
) -> tuple[Plan | None, Front, list[Plan]]:
    """The best plan if there is one, the front, and all the plans that were looked at."""
    candidates: list[Plan] = []
    found = front(graph, target, settings)
    if settings.image != "stream":
        whole = plan_layerwise(graph, target, in_place=settings.in_place, image=settings.image)
        if limits.objective == "cost" and limits.allow(whole):
            return whole, found, [whole]  # nothing is cheaper than one call an operator
        candidates.append(whole)
    candidates += smallest(found, limits) if limits.objective == "ram" else cheapest(found, limits)
    allowed = [plan for plan in candidates if limits.allow(plan)]
    if limits.objective == "ram":
        chosen = min(allowed, key=lambda plan: (plan.arena_bytes, plan.cost), default=None)
    else:
        chosen = min(allowed, key=lambda plan: (plan.cost, plan.arena_bytes), default=None)
    return chosen, found, candidates


def cheapest(found: Front, limits: Limits) -> list[Plan]:
    """The plan of least cost within the memory; where it does too much work, also those of least work.

    The least cost is exact over live bytes; with a limit on work that it breaks, the cheapest of the
    front's points is taken.
    """
    extra = None if limits.f is None else int(found.tables.before[-1] * (limits.f - 1.0))
    plans: list[Plan] = []
    for search in (Search(found.cost_tables), Search(found.tables, extra)):
        for plan in _fitting(found, search, limits.ram):
            plans.append(plan)
            if plan.arena_bytes <= limits.ram:
                break
        if any(limits.allow(plan) for plan in plans):
            break
    return plans


def _fitting(found: Front, search: Search, ram: int) -> Iterator[Plan]:
    """Placed plans of the best ways within ever less live bytes, from the limit down."""
    most = ram
    for _ in range(ATTEMPTS):
        way = search.least(most)
        if way is None:
            return
        plan = found.cheap(way)
        yield plan
        most = way.bytes - 1


def smallest(found: Front, limits: Limits) -> list[Plan]:
    """Plans among which the least arena is: by live bytes, ascending, until no later one can be smaller."""
    if limits.cost is not None:
        return _smallest_by_cost(found, limits)
    plans: list[Plan] = []
    best: int | None = None
    for i, point in enumerate(found.points):
        if best is not None and point.live_bytes >= best:
            break
        if limits.f is None or point.f <= limits.f + 1e-9:
            plans.append(found.plan(i))
            best = plans[-1].arena_bytes if best is None else min(best, plans[-1].arena_bytes)
    return plans


def _smallest_by_cost(found: Front, limits: Limits) -> list[Plan]:
    """The least live bytes with which the cost can be kept, by halving; plans near it."""
    assert limits.cost is not None
    tables = found.cost_tables
    extra = int(limits.cost * COST_UNITS) - tables.before[-1]
    low, high = 0, max(tables.wholes, default=0)
    plans: list[Plan] = []
    while low <= high and extra >= 0:
        way = Search(tables, extra).least((low + high) // 2)
        if way is None:
            low = (low + high) // 2 + 1
            continue
        high = way.bytes - 1
        plans.append(found.lean(way))
    return plans


def refusal(found: Front, tried: list[Plan], limits: Limits) -> PlanError:
    """Required, available, excess, what binds, and the nearest settings that would do."""
    within = [plan for plan in tried if limits.allow_work(plan)]
    if not any(plan.arena_bytes > limits.ram for plan in within):
        within += [plan for plan in smallest(found, limits) if limits.allow_work(plan)]
    board = found.target.board.name
    if not within or min(plan.arena_bytes for plan in within) <= limits.ram:
        return _too_much_work(found, limits)
    nearest = min(within, key=lambda plan: (plan.arena_bytes, plan.f))
    least = min([nearest, *smallest(found, replace(limits, ram=1 << 62))], key=lambda plan: plan.arena_bytes)
    at = binding(least, found.graph)
    hints = [f"ram {least.arena_bytes} with F {least.f:.3f}", *_ways_out(found, limits)]
    return PlanError(
        f"the arena requires {least.arena_bytes} bytes, {limits.ram} are available on '{board}': "
        f"{least.arena_bytes - limits.ram} too many",
        operator=at.place,
        hint="nearest: " + "; ".join(hints),
    )


def _too_much_work(found: Front, limits: Limits) -> PlanError:
    """Memory would suffice, but for a limit on work or cost."""
    asked = f"F of at most {limits.f}" if limits.cost is None else f"a cost of at most {limits.cost:,.0f}"
    hints = _ways_out(found, limits)
    return PlanError(
        f"no plan of at most {limits.ram} bytes has {asked}", hint="nearest: " + "; ".join(hints)
    )


def _ways_out(found: Front, limits: Limits) -> list[str]:
    """Settings that would do: more work, or an image that is delivered row by row."""
    ways = []
    for image in dict.fromkeys((found.settings.image, "overwritable", "stream")):
        changed = replace(found.settings, image=image)
        try:
            other = found if image == found.settings.image else front(found.graph, found.target, changed)
        except BuildtoolError:
            continue  # this network's image cannot be streamed
        for plan in _fitting(other, Search(other.tables), limits.ram):
            if plan.arena_bytes <= limits.ram:
                named = "" if image == found.settings.image else f"image {image}, "
                ways.append(f"{named}ram {plan.arena_bytes} with F {plan.f:.3f} and cost {plan.cost:,.0f}")
                break
    return ways or ["a board with more RAM, a smaller image or fewer channels"]
