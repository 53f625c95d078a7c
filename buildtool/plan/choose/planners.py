"""Plans one network's operators in one order, by one strategy, within the limits.

If constants are loaded, they are planned together with the operators. If the arena lies in two memories, the
plan is divided between them (see memories.py).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from buildtool.base.errors import Hint, PlanError, UsageError, suggest
from buildtool.base.modes import Image, Objective, Strategy
from buildtool.base.work import PLANNING
from buildtool.graph.partviews import tensors_written_in_place
from buildtool.graph.topology import topology_digest
from buildtool.plan.choose import cache
from buildtool.plan.choose.fronts import Point, layerwise, least_cost, points, search_front
from buildtool.plan.choose.limits import Limits, format_cost, format_price, merit
from buildtool.plan.choose.loads import with_loads
from buildtool.plan.choose.memories import spread
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.summary.fit import holds
from buildtool.plan.summary.summary import binding
from buildtool.plan.types import Plan
from buildtool.target.choice import loads, suggest_larger_memories
from buildtool.target.digest import planning_digest

REFUSING = PLANNING // 4  # units of work to find the memory that a refusal suggests
STRIPS_F = 1.2  # limit on F for strips that are searched without a limit on memory or F
ATTEMPTS = 8  # attempts to keep a limit together with the constants, each with a lower limit without them


def plan_of(alone: Prepared) -> Plan:
    """Returns the plan for the problem of one graph. It is checked if the board has room for it.

    Raises PlanError if no plan is within the limits.
    """
    # Where parts are written in place, a tensor has several producers; regions do not support that.
    strategy = Strategy.LAYERWISE if tensors_written_in_place(alone.graph) else alone.options.strategy
    planner = _PLANNERS[strategy]
    if alone.target.board.second:
        plan = spread(alone, planner)
    elif not loads(alone.target.board):
        plan = planner(alone)
    elif strategy == Strategy.BEST:
        plan = _best_with_loads(alone)
    else:
        plan = _with_constants(planner(alone), alone)
    if strategy != Strategy.BEST:
        _keep_limits(plan, alone)
    if holds(alone.target.board, plan):
        cache.check_plan(plan, alone.graph, alone)
    return plan


def factor_of(alone: Prepared) -> float:
    """Returns the optimality gap, in cost or memory, of the plan that `plan_of` made last for this problem.

    See `selection.search_factor`.
    """
    if alone.options.strategy != Strategy.BEST or tensors_written_in_place(alone.graph):
        return 1.0
    from buildtool.plan.choose.selection import search_factor

    return search_factor(search_front(alone), alone.limits(alone.ram))


# ---- the strategies ------------------------------------------------------------------------------------


def _best(alone: Prepared) -> Plan:
    from buildtool.plan.choose.selection import best_plan

    return best_plan(search_front(alone), alone.limits(alone.ram))


def _msf_cnn(alone: Prepared) -> Plan:
    """Returns the plan of msf-CNN's strategy within the limits. Raises PlanError if there is none.

    If the options limit memory, it is the plan with the least work (msf-CNN's second problem), otherwise the
    plan with the smallest arena (its first problem).
    """
    from buildtool.plan.baselines.msf import plans

    options, limits = alone.options, replace(alone.limits(alone.options.ram), cost=None)
    outcomes = _every_plan(alone, plans)
    plan = _first_kept(outcomes, limits)
    if plan is not None:
        return plan
    nearest = min(
        [p for p in outcomes if limits.allow_f(p.f)] or outcomes, key=lambda p: (p.arena_bytes, p.macs)
    )
    if nearest.arena_bytes > limits.ram:
        raise PlanError(
            f"msf-cnn needs an arena of {nearest.arena_bytes:,} bytes, the limit is {options.ram:,}: "
            f"{nearest.arena_bytes - limits.ram:,} too many",
            hint=[suggest(ram=nearest.arena_bytes), suggest(strategy="best")],
        )
    least = min(outcomes, key=lambda p: (p.f, p.arena_bytes))
    raise PlanError(
        f"msf-cnn multiplies the work by at least {least.f:.3f}, the limit is {options.max_f}",
        hint=[suggest(max_f=math.ceil(least.f * 1000) / 1000), suggest(strategy="best")],
    )


def _xcore_strips(alone: Prepared) -> Plan:
    """Returns the plan that runs the given segments of operators in strips, or the best segments found.

    Raises PlanError if no segments keep the limits.
    """
    from buildtool.plan.baselines.strips import parse_segments, plan_strips, plans

    options = alone.options
    if options.segments:
        return plan_strips(
            alone.graph,
            alone.target,
            parse_segments(options.segments),
            in_place=options.in_place,
            image=options.image,
            session=alone.session,
        )
    outcomes = _every_plan(alone, plans)
    limits = replace(alone.limits(options.ram), cost=None)
    if options.ram is None and options.max_f is None:
        limits = replace(limits, f=STRIPS_F)
    plan = _first_kept(outcomes, limits)
    if plan is not None:
        return plan
    least = min(outcomes, key=lambda p: (p.arena_bytes, p.macs))
    limit = f"F {limits.f}" if options.ram is None else f"an arena of {options.ram:,} bytes"
    raise PlanError(
        f"no segments keep {limit}; the smallest arena is {least.arena_bytes:,} bytes at F {least.f:.3f}",
        hint=[suggest(ram=least.arena_bytes), Hint("give other segments"), suggest(strategy="best")],
    )


def _every_plan(alone: Prepared, plans: Callable[..., tuple[Plan, ...]]) -> tuple[Plan, ...]:
    """Returns all plans that `plans` makes. The session caches them for requests with other limits."""
    graph, target, options, session = alone.graph, alone.target, alone.options, alone.session
    modes = options.in_place, options.image
    key = (topology_digest(graph), planning_digest(target), *modes)
    return session.remember(options.strategy, key, lambda: plans(graph, target, *modes, session))


def _first_kept(plans: Sequence[Plan], limits: Limits) -> Plan | None:
    """Returns the plan with the least work within the limits; None if no plan is within them.

    Without a limit on memory, it is the plan with the smallest arena instead.
    """
    least_work = not math.isinf(limits.ram)
    return min(
        filter(limits.allow, plans),
        key=lambda p: (p.macs, p.arena_bytes) if least_work else (p.arena_bytes, p.macs),
        default=None,
    )


_PLANNERS: dict[Strategy, Callable[[Prepared], Plan]] = {
    Strategy.LAYERWISE: layerwise,
    Strategy.BEST: _best,
    Strategy.MSF_CNN: _msf_cnn,
    Strategy.XCORE_STRIPS: _xcore_strips,
}


def _keep_limits(plan: Plan, alone: Prepared) -> None:
    """Raises PlanError if a plan exceeds a limit of the options, and its strategy makes no other plan."""
    options = alone.options
    limits = alone.limits(options.ram)
    missed = limits.first_missed(plan)
    if not missed:
        return
    text, place = f"with strategy {options.strategy} ", ""
    if missed == "ram":
        over = plan.arena_bytes - (options.ram or 0)
        text += (
            f"the arena requires {plan.arena_bytes:,} bytes, the limit is {options.ram:,}: {over:,} too many"
        )
        place = binding(plan, alone.graph, alone.session).operator
        hints = [suggest(ram=plan.arena_bytes)]
    elif missed == "max_f":
        text += f"F is {plan.f:.3f}, the limit is {options.max_f}"
        hints = [suggest(max_f=round(plan.f + 0.0005, 3))]
    else:
        cost, limit = (format_cost(cost, alone.target) for cost in (plan.cost, options.max_cost or 0.0))
        text += f"the cost is {cost}, the limit is {limit}"
        hints = [suggest(**limits.cost_setting(plan.cost))]
    hints += [suggest("the planner searches for them", segments=None)] if options.segments else []
    hints += [suggest(strategy="best")] if options.strategy != Strategy.BEST else []
    raise PlanError(text, operator=place, hint=hints)


# ---- the best plan together with loaded constants --------------------------------------------------------


def _with_constants(bare: Plan, alone: Prepared) -> Plan:
    """Returns the plan `bare` with its constants in the arena.

    With objective "ram" the arena is the smallest one that is found. Otherwise the buffers are as large as
    the memory limit allows.
    """
    return with_loads(bare, alone, None if alone.options.objective == Objective.RAM else alone.ram)


def _best_with_loads(alone: Prepared) -> Plan:
    """Returns the best plan within the limits whose constants are loaded into the arena.

    The plan with the least memory is a point of the front. The plan with the least cost is searched without
    the constants, within less and less memory until the constants fit as well. A cheaper point of the front
    replaces it. Raises PlanError if no plan is within the limits.
    """
    if alone.options.objective == Objective.RAM:
        return _least_with_loads(alone)
    cheap = _cheap_with_loads(alone)
    if cheap is not None and cheap.cost <= least_cost(alone):
        return cheap
    below = math.inf if cheap is None else cheap.cost
    plans = [point.plan for point in points(alone, alone.ram, below, filled=True)]
    plans += [] if cheap is None else [cheap]
    if plans:
        return min(plans, key=lambda plan: merit(plan, Objective.COST))
    with alone.session.budget(REFUSING):
        raise _too_large(alone, points(replace(alone, bounded=False), None, smallest=True))


def _least_with_loads(alone: Prepared) -> Plan:
    """Returns the plan with the least memory within the limits, with its constants in the arena.

    Raises PlanError if no plan is within the limits.
    """
    nearest = points(replace(alone, bounded=False), None, smallest=True)
    most = alone.limits(alone.ram)
    plans = [point.plan for point in nearest if most.allow(point.plan)]
    plans += _smaller_with_loads(alone, plans)
    if not plans:
        raise _too_large(alone, nearest)
    return min(plans, key=lambda plan: merit(plan, Objective.RAM))


def _smaller_with_loads(alone: Prepared, plans: Sequence[Plan]) -> list[Plan]:
    """Returns plans with smaller arenas than those in `plans`, the smallest one last.

    They are searched only if the options limit the cost. Then the front may have no smaller point within that
    limit.
    """
    smaller: list[Plan] = []
    while alone.options.max_cost is not None and (every := [*plans, *smaller]):
        if not alone.session.work.goes_on():
            break
        below = min(plan.arena_bytes for plan in every) - 1
        options = replace(alone.options, ram=below, objective=Objective.COST)
        plan = _cheap_with_loads(replace(alone, options=options, bounded=False))
        if plan is None:
            break
        smaller.append(plan)
    return smaller


def _cheap_with_loads(alone: Prepared) -> Plan | None:
    """Returns a plan with little cost within the limits; None if the attempts find none."""
    limit = alone.ram
    for _ in range(ATTEMPTS):
        try:
            options = replace(alone.options, ram=limit)
            plan = _with_constants(_best(replace(alone, options=options)), alone)
        except PlanError:
            return None
        if alone.limits(alone.ram).allow(plan):
            return plan
        if limit is None or alone.ram is None or not alone.session.work.goes_on():
            return None
        limit -= max(alone.target.board.alignment, plan.arena_bytes - alone.ram)
        if limit <= 0:
            return None
    return None


def _too_large(alone: Prepared, free: Sequence[Point]) -> PlanError:
    """Returns the error that names the memory of the smallest plan.

    `free`: the points that exist without a limit on memory, the smallest one first.
    """
    if not free:
        return _too_much_work(alone)
    least_plan = [free[0].plan, *_smaller_with_loads(alone, [free[0].plan])][-1]
    size, most = least_plan.arena_bytes, alone.ram or 0
    board = alone.target.board
    beside = board.describe_other_contents(board.arena) if most == alone.available else ""
    # A larger limit helps only within what the board has.
    allowed = (
        [suggest(f"the smallest arena: {format_price(least_plan, alone.target)}", ram=size)]
        if size <= alone.available
        else []
    )
    return PlanError(
        f"with the constants that are loaded into it the arena requires {size:,} bytes, {most:,} are "
        f"available{beside}: {size - most:,} too many",
        operator=binding(least_plan, free[0].graph, alone.session).operator,
        hint=[
            *(allowed or suggest_larger_memories(board, size, least_plan.state_bytes)),
            *_other_images(alone),
        ],
    )


def _other_images(alone: Prepared) -> Iterator[Hint]:
    """Yields hints for other ways to deliver the input image, if a plan fits with them."""
    for image in (Image.OVERWRITABLE, Image.STREAM):
        if image != alone.options.image:
            other = replace(alone, options=replace(alone.options, image=image))
            # The image may be one that cannot be streamed.
            with contextlib.suppress(UsageError, PlanError), alone.session.budget(REFUSING):
                for point in points(other, alone.ram)[:1]:
                    yield alone.limits(alone.ram).wider(point.plan, image=str(image))


def _too_much_work(alone: Prepared) -> PlanError:
    """Returns the error that suggests higher limits on work and cost, if possible for a plan that fits."""
    free = replace(alone, options=replace(alone.options, max_f=None, max_cost=None))
    plans = [p.plan for p in points(free, alone.ram) or points(replace(free, bounded=False), None)]
    by_cost = alone.options.max_cost is not None
    if by_cost and (cheap := _cheap_with_loads(free)) is not None:
        plans.append(cheap)
    plans.sort(key=lambda plan: plan.cost if by_cost else plan.macs)
    return PlanError(
        "no plan keeps the limits on work and cost together with the constants that are loaded",
        hint=[alone.limits(alone.ram).wider(plan) for plan in plans[:1]],
    )
