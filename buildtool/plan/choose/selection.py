"""Chooses the plan of one graph's front with the least cost or memory, under limits on the other numbers.

A limit on memory is checked on placed plans. If a placed plan needs more than its live bytes, the next
smaller plan is tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from buildtool.base.errors import BuildtoolError, Hint, PlanError, suggest
from buildtool.base.modes import Image, Objective
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.choose.limits import F_SLACK, NO_SETTING, Limits, format_ms, format_price
from buildtool.plan.search.front import Front
from buildtool.plan.search.front import front as front_of
from buildtool.plan.search.paths import Search, over_bound
from buildtool.plan.search.regions import INFINITE
from buildtool.plan.search.tables import Tables
from buildtool.plan.summary.fit import available_bytes, check_state_fits
from buildtool.plan.summary.summary import binding
from buildtool.plan.types import Group, Plan, Region
from buildtool.target.choice import suggest_larger_memories
from buildtool.target.costs import COST_UNITS

MOST_PRICES = 12  # prices of work to try, each between two plans of the hull; rarely more than six are needed
SCALE = 1024  # prices of work are in 1 / SCALE of a weight of cost
LAST_WAYS = 3  # smallest plans within a cost that are placed: moves may make the very last one too expensive


def best_plan(front: Front, limits: Limits) -> Plan:
    """Returns the plan with the least cost (or memory) within the limits; never worse than layer by layer.

    Raises PlanError if there is none; the error says what the nearest plans need.
    """
    plans = _plans(front, limits)
    best = limits.best(plans)
    if best is None:
        raise refusal(front, plans, limits)
    return best


def plan_within(front: Front, limits: Limits) -> Plan | None:
    """Returns the plan that `best_plan` returns; None if no plan is within the limits."""
    return limits.best(_plans(front, limits))


def _plans(front: Front, limits: Limits) -> list[Plan]:
    """Returns placed plans. If any plan is within the limits, the best one is among them."""
    return (_small_plans if limits.objective == Objective.RAM else _cheap_plans)(front, limits)


def _small_plans(front: Front, limits: Limits) -> list[Plan]:
    plans = [] if front.settings.image == Image.STREAM else [_operator_by_operator(front, limits)]
    plans += smallest(front, limits)
    if limits.cost is not None and not any(map(limits.allow, plans)):
        # The plans with the least memory cost more than others: the cheapest ones may keep the limits.
        plans += cheapest(front, limits)
    return plans


def _cheap_plans(front: Front, limits: Limits) -> list[Plan]:
    # If a single operator needs too much memory when it runs alone, then the plan of whole operators does not
    # fit, wherever its tensors lie and move to. (That plan does not contain loaded constants.)
    too_large = not front.settings.loaded and max(front.space.boundaries.wholes, default=0) > limits.ram
    plans: list[Plan] = []
    if not too_large:
        plans.append(_operator_by_operator(front, limits))
        if limits.allow(plans[0]) and not plans[0].moves and front.space.cost_tables.nothing_saves:
            return plans  # no block costs less than its operators cost one by one
    search = least_cost(front)
    plans += cheapest(front, limits, search)
    plans += cheaper_points(front, limits, plans, search)
    if limits.best(plans) is None and not math.isinf(limits.ram):
        plans += smallest(front, replace(limits, ram=math.inf))
    if limits.best(plans) is None and too_large:
        plans.insert(0, _operator_by_operator(front, limits))
    return plans


def least_cost(front: Front) -> Search:
    """Returns a new search for the least cost."""
    return Search(front.space.cost_tables, most_labels=front.settings.most_labels)


def search_factor(front: Front, limits: Limits) -> float:
    """Returns the optimality gap of the search in `best_plan`, as a factor in cost or memory.

    The gap does not include what placing adds. It is 1 unless the work budget ended a search. For objective
    "ram" it is the factor of `space.Ways`.
    """
    if limits.objective == Objective.RAM:
        return front.factor
    # the gap at other limits, if weights needed room in the arena as well
    return front.gaps.get(_most(limits.ram), max(front.gaps.values(), default=1.0))


def _most(ram: float) -> int:
    return int(min(ram, INFINITE))


def _operator_by_operator(front: Front, limits: Limits) -> Plan:
    """Returns the plan of whole operators.

    Tensors move if the arena must be smaller and the limits allow the moves.
    """
    settings = front.settings

    def plan_whole(enough: float) -> Plan:
        if settings.image == Image.STREAM:  # the whole input image is delivered before the first operator
            return front.assemble(
                tuple(Region((Group((p,)),)) for p in front.space.elements.positions), enough
            )
        return plan_layerwise(
            front.graph,
            front.target,
            in_place=settings.in_place,
            image=settings.image,
            enough=enough,
            session=front.session,
        )

    plan = plan_whole(limits.ram if limits.objective == Objective.COST else 0)
    return plan_whole(math.inf) if plan.moves and not limits.allow_work(plan) else plan


def cheapest(front: Front, limits: Limits, search: Search | None = None) -> list[Plan]:
    """Returns the plan with the least cost within the memory, and cheap plans with less work.

    The others are searched only if the first plan does too much work. `search`: a search for the least cost
    that has not been used yet; None: a new one.

    The least cost is exact if memory is counted as live bytes. If that plan exceeds a limit on work, the
    result is exact on the lower convex hull of cost over work, and never costs more than the plan with the
    least work.
    """
    plans = _place_ways(front, search := search or least_cost(front), limits.ram)
    most = _most(limits.ram)
    if search.first is not None and most not in front.gaps:  # the gap that is proven for the first limit
        weight = search.first.weight
        front.gaps[most] = 1.0 if search.first_exact else over_bound(front.space.cost_tables, weight, most)
    if not plans or limits.f is None or limits.allow(plans[-1]) or plans[-1].arena_bytes > limits.ram:
        return plans
    laborious = plans[-1]  # cheap, but with too much work
    extra = front.space.most_extra(limits.f + F_SLACK)
    least = _place_ways(front, Search(front.space.tables, extra, front.settings.most_labels), limits.ram)
    plans += least
    if least and least[-1].arena_bytes <= limits.ram:
        plans += _plans_between(front, limits, laborious, least[-1])
    return plans


def cheaper_points(front: Front, limits: Limits, earlier: Sequence[Plan], search: Search) -> list[Plan]:
    """Returns plans of the front's points within the limits that may cost less than the plans in `earlier`.

    With these plans, the chosen plan never costs more than a point that needs as much memory. The list is
    empty if no point can cost less. That is so if the live bytes of all points that may fit are within the
    memory limit, and the best plan costs no more than the first result of `search`, the least cost within
    that limit.
    """
    best = limits.best(earlier)
    ways = front.fitting(limits.ram)
    first = next(ways, None)
    is_least = search.first is None or (
        search.exact and best is not None and best.cost * COST_UNITS <= search.first.weight
    )
    if first is None or (is_least and first.bytes <= limits.ram):
        return []
    plans: list[Plan] = []

    dearest = math.inf if limits.cost is None else math.nextafter(limits.cost, math.inf)

    def cost_limit() -> float:
        return dearest if best is None else min(best.cost, dearest)

    if search.most_bytes < first.bytes:  # the limits of one search can only fall
        search = least_cost(front)
    for way in front.cheaper(chain([first], ways), search, cost_limit):
        if best is not None and not front.session.work.goes_on():
            break
        plans.append(front.within(way, limits.ram))
        if not limits.allow(plans[-1]):
            plans.append(front.smallest(way))  # the front's own plan, in the smallest arena that was found
        best = limits.best([*plans, *earlier])
    return plans


def _plans_between(front: Front, limits: Limits, over: Plan, under: Plan) -> list[Plan]:
    """Returns plans that cost less than `under` and do less work than `over`.

    The work of `over` exceeds the limit, that of `under` keeps it.
    """
    plans: list[Plan] = []
    for _ in range(MOST_PRICES):
        if not front.session.work.goes_on():
            break
        dearer, more = (under.cost - over.cost) * COST_UNITS, over.macs - under.macs
        if dearer <= 0 or more <= 0:
            break
        tables = Tables(front.space.boundaries, SCALE, math.ceil(SCALE * dearer / more))
        search = Search(tables, most_labels=front.settings.most_labels)
        plans += (between := _place_ways(front, search, limits.ram))
        if not between or between[-1].arena_bytes > limits.ram:
            break
        if limits.allow_work(between[-1]) and between[-1].cost < under.cost:
            under = between[-1]
        elif not limits.allow_work(between[-1]) and between[-1].macs < over.macs:
            over = between[-1]
        else:
            break
    return plans


def _place_ways(front: Front, search: Search, ram: float) -> list[Plan]:
    """Places the best ways within fewer and fewer live bytes, until an arena has at most `ram` bytes.

    Returns all these plans, the last one placed at the end.
    """
    plans: list[Plan] = []
    most = _most(ram)
    while (way := search.least(most)) is not None:
        plans.append(front.cheap(way, enough=ram))
        if plans[-1].arena_bytes <= ram or not front.session.work.goes_on():
            break
        most = way.bytes - 1
    return plans


def smallest(front: Front, limits: Limits) -> list[Plan]:
    """Returns placed plans, by ascending live bytes, up to the last one that may have the smallest arena."""
    if limits.cost is not None:
        return _smallest_by_cost(front, limits)
    plans: list[Plan] = []
    least = math.inf
    for i, point in enumerate(front.points):
        if front.may_fit(i, least - 1) and limits.allow_f(point.f):
            if plans and not front.session.work.goes_on():
                return plans
            plans.append(front.plan(i))
            least = min(least, plans[-1].arena_bytes)
    if not plans:
        return plans
    # If the placed plans need more than the least live bytes, limits just below them may give smaller plans.
    # Then a refusal names the least memory that is enough.
    bytes_ = min(p.live_bytes for p in front.points if limits.allow_f(p.f))
    while least > bytes_ and front.session.work.goes_on():
        lower = replace(limits, ram=least - 1, objective=Objective.COST)
        plan = lower.best(cheapest(front, lower))
        if plan is None:
            break
        plans.append(plan)
        least = plan.arena_bytes
    return plans


def _smallest_by_cost(front: Front, limits: Limits) -> list[Plan]:
    """Returns plans with nearly the least live bytes that the limits on cost and work allow.

    With a limit on work they are found by bisection, and are as exact as the results of `cheapest`.
    """
    assert limits.cost is not None
    rounded = front.space.elements.count  # weights of blocks are rounded to units
    extra = int(limits.cost * COST_UNITS) + rounded - front.space.cost_tables.before[-1]
    ways = list(Search(front.space.cost_tables, extra, front.settings.most_labels).falling())
    if limits.f is None:  # the smallest plans, and the points that may be smaller and keep the cost
        plans = [front.lean(way) for way in ways[-LAST_WAYS:]]
        least = min((plan.arena_bytes for plan in plans if limits.allow_work(plan)), default=math.inf)
        for i, point in enumerate(front.points if ways else ()):
            may_win = point.live_bytes >= ways[-1].bytes and front.may_fit(i, least - 1)
            if may_win and front.session.work.goes_on():
                plans.append(front.plan(i))
                least = min(least, plans[-1].arena_bytes) if limits.allow_work(plans[-1]) else least
        return plans
    sizes = sorted({way.bytes for way in ways} | {point.live_bytes for point in front.points})
    plans = []
    low, high = 0, len(sizes) - 1
    while low <= high and (not plans or front.session.work.goes_on()):
        middle = (low + high) // 2
        batch = cheapest(front, replace(limits, ram=sizes[middle]))
        plans += batch
        if any(limits.allow_work(plan) and plan.arena_bytes <= sizes[middle] for plan in batch):
            high = middle - 1
        else:
            low = middle + 1
    return plans


def refusal(front: Front, plans: list[Plan], limits: Limits) -> PlanError:
    """Returns the error for the case that no plan is within the limits.

    It names the memory that is needed, and settings that are enough. `plans`: the placed plans.
    """
    candidates = [plan for plan in plans if limits.allow_work(plan)]
    least = min(candidates, key=lambda plan: (plan.arena_bytes, plan.f), default=None)
    if least is None or least.arena_bytes <= limits.ram:
        return _too_much_work(front, limits)
    board, state = front.target.board, least.state_bytes
    # Another memory helps only where the board's memory is the limit, not an option.
    elsewhere, limit = list[Hint](), f"the limit is {limits.ram:,}"
    room = available_bytes(board, state)
    if limits.ram >= room:
        check_state_fits(board, state)
        elsewhere = suggest_larger_memories(board, least.arena_bytes, state)
        beside = board.describe_other_contents(board.arena)
        limit = f"{limits.ram:,} are available on '{board.name}'{beside}"
    # A larger limit helps only within what the board has.
    allowed = list[Hint]()
    if least.arena_bytes <= room:
        allowed = [suggest(f"the smallest arena: {format_price(least, front.target)}", ram=least.arena_bytes)]
    ways = _ways_out(front, limits) or ([] if allowed else [NO_SETTING])
    return PlanError(
        f"the arena requires {least.arena_bytes:,} bytes, {limit}: "
        f"{least.arena_bytes - limits.ram:,} too many",
        operator=binding(least, front.graph, front.session).operator,
        hint=[*allowed, *elsewhere, *ways],
    )


def _too_much_work(front: Front, limits: Limits) -> PlanError:
    """Returns the error for the case that a plan fits the memory, but none is within the other limits."""
    if limits.cost is None:
        bounds = f"F of at most {limits.f}"
    elif limits.in_ms is None:
        bounds = f"a cost of at most {limits.cost:,.0f} {front.target.cost_unit}"
    else:
        bounds = f"an estimated time of at most {format_ms(limits.cost * limits.in_ms)}"
    room = "" if math.isinf(limits.ram) else f" of at most {limits.ram:,} bytes"
    return PlanError(f"no plan{room} has {bounds}", hint=_ways_out(front, limits) or [NO_SETTING])


def _ways_out(front: Front, limits: Limits) -> list[Hint]:
    """Returns hints for settings with which a plan fits.

    They are more work, a higher cost, or another mode for the input image.
    """
    hints: list[Hint] = []
    for image in dict.fromkeys((front.settings.image, "overwritable", "stream")):
        changed = replace(front.settings, image=image)
        try:
            same = image == front.settings.image
            other = front if same else front_of(front.graph, front.target, changed, front.session)
        except BuildtoolError:
            continue  # this network's input image cannot be streamed
        plan = _find_within_memory(other, limits)
        if plan is not None:
            hints.append(limits.wider(plan, **({} if same else {"image": str(image)})))
    return hints


def _find_within_memory(front: Front, limits: Limits) -> Plan | None:
    """Returns a plan within the memory that exceeds the limits on work and cost only slightly, or None.

    None means that no plan fits the memory. With a limit on cost the plan is the cheapest one within the
    limit on F, if there is one.
    """
    free = replace(limits, cost=None, objective=Objective.COST)
    cheap = free.best(cheapest(front, free)) if limits.cost is not None else None
    if cheap is not None:
        return cheap
    plans = _place_ways(front, Search(front.space.tables), limits.ram)
    return plans[-1] if plans and plans[-1].arena_bytes <= limits.ram else None
