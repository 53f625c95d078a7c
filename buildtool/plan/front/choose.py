"""The choice of one plan: the least of something under limits on the rest."""

from __future__ import annotations

from dataclasses import dataclass

from buildtool.errors import PlanError
from buildtool.graph.types import Graph
from buildtool.plan.binding import binding
from buildtool.plan.front.front import Front, Settings, front
from buildtool.plan.layerwise import plan as plan_layerwise
from buildtool.plan.types import Plan
from buildtool.target.types import Target


@dataclass(frozen=True)
class Limits:
    """`ram`: bytes the arena may have; `f`, `cost`: most of each; `objective`: "cost" or "ram"."""

    ram: int
    f: float | None = None
    cost: float | None = None
    objective: str = "cost"

    def allow(self, plan: Plan) -> bool:
        """Whether a plan is within all limits."""
        return (
            plan.arena_bytes <= self.ram
            and (self.f is None or plan.f <= self.f + 1e-9)
            and (self.cost is None or plan.cost <= self.cost)
        )


def best_plan(graph: Graph, target: Target, settings: Settings, limits: Limits) -> Plan:
    """The plan with the least cost (or memory) within the limits; never worse than layer by layer.

    PlanError where there is none, with what the nearest plans need.
    """
    candidates = []
    if settings.image != "stream":
        whole = plan_layerwise(graph, target, in_place=settings.in_place, image=settings.image)
        if limits.objective == "cost" and limits.allow(whole):
            return whole  # nothing is cheaper than one call an operator
        candidates.append(whole)
    found = front(graph, target, settings)
    if limits.objective == "ram":
        candidates += [found.plan(i) for i in _least_memory(found, limits)]
        allowed = [plan for plan in candidates if limits.allow(plan)]
        if allowed:
            return min(allowed, key=lambda plan: (plan.arena_bytes, plan.cost))
    else:
        for i in range(len(found.points) - 1, -1, -1):
            candidates.append(found.plan(i))
            if limits.allow(candidates[-1]):
                return candidates[-1]
    raise _refusal(graph, target, candidates or [found.plan(0)], limits)


def _least_memory(found: Front, limits: Limits) -> list[int]:
    """The points worth placing: from the least live bytes on, until no later one can be smaller."""
    worth: list[int] = []
    best: int | None = None
    for i, point in enumerate(found.points):
        if limits.f is not None and point.f > limits.f + 1e-9:
            continue
        if best is not None and point.live_bytes >= best:
            break
        worth.append(i)
        placed = found.plan(i)
        if limits.allow(placed):
            best = placed.arena_bytes if best is None else min(best, placed.arena_bytes)
    return worth


def _refusal(graph: Graph, target: Target, tried: list[Plan], limits: Limits) -> PlanError:
    """Required, available, excess, what binds, and the nearest settings that would do."""
    within = [p for p in tried if limits.f is None or p.f <= limits.f + 1e-9] or tried
    nearest = min(within, key=lambda plan: (plan.arena_bytes, plan.f))
    least = min(tried, key=lambda plan: (plan.arena_bytes, plan.f))
    at = binding(nearest, graph)
    excess = nearest.arena_bytes - limits.ram
    if excess <= 0:
        asked = f"a cost of at most {limits.cost}" if limits.f is None else f"F of at most {limits.f}"
        text = f"no plan of at most {limits.ram} bytes has {asked}"
        hint = f"the nearest has an arena of {nearest.arena_bytes} bytes, F {nearest.f:.3f}, "
        return PlanError(text, operator=at.place, hint=hint + f"cost {nearest.cost:,.0f}")
    hints = [f"ram {nearest.arena_bytes} with F {nearest.f:.3f}"]
    if least is not nearest:
        hints.append(f"max-f {least.f:.3f} needs {least.arena_bytes} bytes")
    if nearest.image != "stream":
        hints.append("image stream keeps no whole image in memory")
    return PlanError(
        f"the arena requires {nearest.arena_bytes} bytes, {limits.ram} are available on "
        f"'{target.board.name}': {excess} too many",
        operator=at.place,
        hint="nearest: " + "; ".join(hints),
    )
