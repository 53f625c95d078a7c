"""One plan of a prepared network: the one that the options ask for, placed and checked."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from buildtool.base.errors import Hint, PlanError, Value, suggest
from buildtool.base.modes import Objective, Strategy
from buildtool.base.session import Session
from buildtool.base.work import PLANNING
from buildtool.graph.partviews import without_views, written_in_place
from buildtool.graph.secondpass import without_second_passes
from buildtool.graph.types import Graph
from buildtool.plan.choose import kept, passes, strategies, viewed
from buildtool.plan.choose.cost_units import shown_cost, within_cost
from buildtool.plan.choose.fronts import (
    Point,
    layerwise,
    least_cost,
    limits,
    plan_factor,
    point_of,
    points,
    searched,
    settings,
    start_factor,
    undominated,
)
from buildtool.plan.choose.kept import Choice
from buildtool.plan.choose.problem import Prepared, own_firmware
from buildtool.plan.choose.slow_weights import loads_weights, with_least_loads, with_loads
from buildtool.plan.choose.two_memories import spread
from buildtool.plan.options import PlanOptions
from buildtool.plan.summary.binding import binding
from buildtool.plan.summary.fit import available_bytes, excess_bytes, holds
from buildtool.plan.types import Plan
from buildtool.target.types import Target

REFUSING = PLANNING // 4  # units of work for what a refusal says that another goal would need
ATTEMPTS = 8  # at keeping a limit together with the constants, by asking for less without them
Placed = tuple[Graph, Plan]  # a plan, and the graph in the order of operators that it is for


def chosen(prepared: Prepared) -> Placed:
    """The plan that the options ask for. PlanError where there is none within their limits.

    It may be larger than the board's memory where a strategy makes one plan only: `analyze` says by how
    much, and every other request ends in `refuse_unless_fits`. Order `best` plans the given order as well,
    and takes the other one only where it is better.
    """
    found = choice(prepared)
    return prepared.graph_for(found.index, found.plan), found.plan


def choice(prepared: Prepared) -> Choice:
    """As `chosen`, with the factor by which the plan may miss the best; what is known is not made again."""
    return kept.choice(prepared, lambda: _within_budget(prepared))


def settled(prepared: Prepared) -> Prepared:
    """The problem on the board as the chosen plan's firmware leaves it, where code lies beside the arena."""
    if not prepared.is_beside_code:
        return prepared
    try:
        return replace(prepared, target=prepared.target.with_firmware(choice(prepared).firmware))
    except PlanError:
        return prepared


def front(prepared: Prepared, ram: int | None) -> tuple[tuple[Point, ...], bool]:
    """The points of the front within `ram` bytes; the first is the plan that objective `ram` asks for.

    Beside them, whether a budget of work ended before all were placed.
    """
    with prepared.session.budget(PLANNING) as work:
        found = list(points(prepared, ram))
    ended = work.ended
    options = replace(prepared.options, ram=ram, objective=Objective.RAM)
    with contextlib.suppress(PlanError):
        made = choice(replace(prepared, options=options, bounded=False))
        found.append(point_of(made.plan, prepared.graph_for(made.index, made.plan), prepared))
        ended = ended or made.ended
    return undominated(found), ended


def _that_fits(prepared: Prepared) -> Choice:
    """The best plan that fits together with its own firmware.

    Where code lies in the arena's memory, how much a plan has shows once it is there: it is made for what the
    least code leaves, then for what the code of that plan does, until it fits. Where nothing fits beside a
    bound of code and variables, the plan with the least memory is taken if it fits beside as little as these
    may turn out to be: linking decides.
    """
    if not prepared.bounded or not prepared.target.board.firmware:
        return replace(_chosen(prepared), firmware=prepared.target.board.firmware)
    if not prepared.is_beside_code:
        return _beside_variables(prepared)
    try:
        return _smaller_until_it_fits(prepared)
    except PlanError:
        options = replace(prepared.options, objective=Objective.RAM)
        found = _with_own_firmware(_chosen(replace(prepared, options=options, bounded=False)), prepared)
        if excess_bytes(prepared.target.with_firmware(found.firmware).board, found.plan):
            raise
        return found


def _beside_variables(prepared: Prepared) -> Choice:
    """The best plan where the firmware beside the arena is the same for every plan."""
    most = prepared.target.board.firmware
    try:
        return replace(_chosen(prepared), firmware=most)
    except PlanError:
        least = prepared.beside(prepared.graphs[0], prepared.target, least=True)
        beside = prepared.target.with_firmware(least)
        if available_bytes(beside.board, prepared.state_bytes) <= prepared.available:
            raise
        return replace(_chosen(replace(prepared, target=beside)), firmware=least)


def _smaller_until_it_fits(prepared: Prepared) -> Choice:
    found = _chosen(prepared)
    for _ in range(ATTEMPTS):
        graph = prepared.graph_for(found.index, found.plan)
        own = prepared.beside(graph, prepared.target, found.plan, prepared.session)
        found = replace(found, firmware=own)
        beside = prepared.target.with_firmware(own)
        if not excess_bytes(beside.board, found.plan):
            break
        smaller = _chosen(replace(prepared, target=beside))
        if smaller.plan.arena_bytes >= found.plan.arena_bytes:
            break  # a strategy that makes one plan
        found = smaller
    return found


def _with_own_firmware(found: Choice, prepared: Prepared) -> Choice:
    graph = prepared.graph_for(found.index, found.plan)
    own = own_firmware(prepared.beside, graph, found.plan, prepared.target, prepared.session)
    return replace(found, firmware=own)


def _within_budget(prepared: Prepared) -> Choice:
    """The choice that one budget of work allows, and whether that has ended before all was tried."""
    with prepared.session.budget(PLANNING) as work:
        try:
            found = _that_fits(prepared)
        except PlanError as error:
            if work.ended:
                error.text += " (the budget for placing plans ended first: this is not proven least)"
            raise
        return replace(found, ended=work.ended)


def _chosen(prepared: Prepared) -> Choice:
    prepared.session.tell(f"planning, strategy {prepared.options.strategy}")
    made: list[Choice] = []
    refused: list[PlanError] = []

    def plan(index: int, alone: Prepared) -> None:
        start_factor(alone)
        try:
            made.append(Choice(index, _of_one_order(alone), plan_factor(alone)))
        except PlanError as error:
            refused.append(error)

    for index, graph in enumerate(prepared.graphs):
        if not made or prepared.session.work.goes_on():
            # As in a front: an order that is hard to place leaves the others half of the work.
            with prepared.session.work.share(0.5 if index + 1 < len(prepared.graphs) else 1.0):
                plan(index, replace(prepared, graphs=(graph,), varied=False))
    nearer: list[PlanError] = []
    whole = min((found.plan for found in made), key=lambda plan: _merit(plan, prepared), default=None)
    for index, graph in enumerate(prepared.unsliced if prepared.varied else ()):
        if made and not prepared.session.work.goes_on():
            break
        alone = replace(prepared, graphs=(graph,), varied=False)
        made += (Choice(index, *one) for one in _with_views(alone, whole, nearer))
    if prepared.varied and _passes_may_pay(prepared, made):
        for index, graph in enumerate(prepared.twice, len(prepared.graphs)):
            alone = replace(prepared, graphs=(graph,), varied=False)
            if (not made or prepared.session.work.goes_on()) and _may_pay(alone, made):
                plan(index, alone)
    if not made:
        raise min((refused[-1], *nearer), key=_suggested).at(path=prepared.path)
    # min keeps the first of equals: the given order
    return min(made, key=lambda found: _merit(found.plan, prepared))


def _with_views(
    prepared: Prepared, whole: Plan | None, refused: list[PlanError]
) -> Iterator[tuple[Plan, float]]:
    """Plans with views that need no more memory than `whole`, the best one without; each with its factor.

    Where parts that are written in place need more, those are copied that are there when most is.
    """
    (graph,) = prepared.graphs
    room = math.inf
    if whole is not None and not excess_bytes(prepared.target.board, whole):
        room = whole.arena_bytes
    for one in viewed.graphs(graph, prepared.target, prepared.options):
        trying: Graph | None = one
        while trying is not None:
            alone = replace(prepared, graphs=(trying,))
            start_factor(alone)
            try:
                plan = _of_one_order(alone)
            except PlanError as error:
                refused.append(error)
                break
            fits = whole is not None or not excess_bytes(prepared.target.board, plan)
            if plan.arena_bytes <= room and fits:
                yield plan, plan_factor(alone)
                break
            trying = viewed.lighter(graph, trying, plan, prepared.session)


def _suggested(error: PlanError) -> float:
    """The bytes that an error says would do."""
    found = (value for hint in error.hints for option, value in hint.settings if option == "ram")
    return min((value for value in found if isinstance(value, int)), default=math.inf)


def _passes_may_pay(prepared: Prepared, made: Sequence[Choice]) -> bool:
    """Whether second passes may make a better plan than the ones without: before a search."""
    if not passes.possible(prepared.graphs, prepared.options):
        return False
    best = min((found.plan for found in made), key=lambda plan: _merit(plan, prepared), default=None)
    if best is None or excess_bytes(prepared.target.board, best):
        return True
    if prepared.options.objective == Objective.RAM:
        return True
    return all(best.cost > least_cost(replace(prepared, graphs=(graph,))) for graph in prepared.graphs)


def _may_pay(alone: Prepared, made: Sequence[Choice]) -> bool:
    """Whether a network with some second passes may have a better plan than those that are made."""
    best = min((found.plan for found in made), key=lambda plan: _merit(plan, alone), default=None)
    if best is None or excess_bytes(alone.target.board, best):
        return True
    (graph,) = alone.graphs
    if alone.options.objective == Objective.RAM:
        found = searched(graph, alone)
        return any(found.may_fit(i, best.arena_bytes - 1) for i in range(len(found.points)))
    return passes.least_cost(graph, alone.target, alone.options, alone.session, alone.ram) < best.cost


def nearest(prepared: Prepared) -> Placed:
    """The plan that the options ask for; where none keeps the limit on memory, the one that needs least."""
    try:
        return chosen(prepared)
    except PlanError as error:
        try:
            return least(prepared)
        except PlanError:
            raise error from None


def least(prepared: Prepared) -> Placed:
    """The plan with the least memory, whether the board has it or not."""
    free = replace(prepared.options, ram=None, objective=Objective.RAM)
    return chosen(replace(prepared, options=free, bounded=False))


def _merit(plan: Plan, prepared: Prepared) -> tuple[float, ...]:
    """The less, the better: what does not fit the board comes last, then the objective counts."""
    over = excess_bytes(prepared.target.board, plan)
    if prepared.options.objective == Objective.RAM:
        return (over, plan.arena_bytes, plan.cost)
    return (over, plan.cost, plan.arena_bytes)


def _of_one_order(prepared: Prepared) -> Plan:
    """The plan of one order of the operators, checked if the board has room for it."""
    (graph,), options = prepared.graphs, prepared.options
    # Where parts are written in place, tensors have several makers, which no region has.
    strategy = Strategy.LAYERWISE if written_in_place(graph) else options.strategy
    planner = _PLANNERS[strategy]
    if prepared.target.board.second:
        made = spread(prepared, planner)
    elif not loads_weights(prepared.target.board):
        made = planner(prepared)
    elif strategy == Strategy.BEST:
        made = _best_with_loads(prepared)
    else:
        made = _loaded(planner(prepared), prepared)
    if strategy != Strategy.BEST:
        _keep_limits(made, prepared)
    if holds(prepared.target.board, made):
        kept.checked(made, graph, prepared)
    return made


def make_plan(
    graph: Graph,
    target: Target,
    options: PlanOptions,
    session: Session | None = None,
    *,
    every_kind: bool = False,
) -> Plan:
    """The plan of a graph that is at hand, its operators in the order that they have.

    `every_kind`: with those second passes and views that the options ask for, whichever the graph has.
    """
    alone = without_views(without_second_passes(graph)) if every_kind else graph
    limited = within_cost(options, target)
    return chosen(Prepared("", (alone,), target, limited, session=session or Session(), varied=every_kind))[1]


# ---- the best plan -----------------------------------------------------------------------------------


def _best(prepared: Prepared) -> Plan:
    from buildtool.plan.search.choose import best_plan

    (graph,) = prepared.graphs
    most = limits(prepared, prepared.ram)
    return best_plan(graph, prepared.target, settings(graph, prepared), most, prepared.session)


def _best_with_loads(prepared: Prepared) -> Plan:
    """The best plan whose constants are brought into the arena, within the limits together with them.

    The least memory is a point of the front. The least cost is looked for without the constants, within
    ever less memory until they fit as well; points of the front are taken where they are cheaper.
    """
    if prepared.options.objective == Objective.RAM:
        return _least_with_loads(prepared)
    made = _cheap_with_loads(prepared)
    if made is not None and made.cost <= least_cost(prepared):
        return made
    below = math.inf if made is None else made.cost
    found = [point.plan for point in points(prepared, prepared.ram, below, filled=True)]
    if made is not None:
        found.append(made)
    if found:
        return min(found, key=lambda plan: (plan.cost, plan.arena_bytes))
    with prepared.session.budget(REFUSING):
        raise _too_large(prepared, points(replace(prepared, bounded=False), None, smallest=True))


def _least_with_loads(prepared: Prepared) -> Plan:
    """The plan with the least memory whose constants are brought into the arena, within the limits."""
    nearest = points(replace(prepared, bounded=False), None, smallest=True)
    most = limits(prepared, prepared.ram)
    found = [point.plan for point in nearest if most.allow(point.plan)]
    found += _smaller_with_loads(prepared, found)
    if not found:
        raise _too_large(prepared, nearest)
    return min(found, key=lambda plan: (plan.arena_bytes, plan.cost))


def _smaller_with_loads(prepared: Prepared, found: Sequence[Plan]) -> list[Plan]:
    """Plans in less memory than those found, where the limit on cost leaves no smaller point of the front."""
    made: list[Plan] = []
    while prepared.options.max_cost is not None and (known := [*found, *made]):
        if not prepared.session.work.goes_on():
            break
        below = min(plan.arena_bytes for plan in known) - 1
        options = replace(prepared.options, ram=below, objective=Objective.COST)
        plan = _cheap_with_loads(replace(prepared, options=options, bounded=False))
        if plan is None:
            break
        made.append(plan)
    return made


def _cheap_with_loads(prepared: Prepared) -> Plan | None:
    """A plan of little cost within the limits; None where the attempts find none."""
    asked = prepared.ram
    for _ in range(ATTEMPTS):
        try:
            options = replace(prepared.options, ram=asked)
            made = _loaded(_best(replace(prepared, options=options)), prepared)
        except PlanError:
            return None
        if limits(prepared, prepared.ram).allow(made):
            return made
        if asked is None or prepared.ram is None or not prepared.session.work.goes_on():
            return None
        asked -= max(prepared.target.board.alignment, made.arena_bytes - prepared.ram)
        if asked <= 0:
            return None
    return None


def _loaded(bare: Plan, prepared: Prepared) -> Plan:
    """A plan with its constants in the arena: in as many buffers as the limit allows, or as few as can be."""
    (graph,), options = prepared.graphs, prepared.options
    if options.objective == Objective.RAM or prepared.ram is None:
        return with_least_loads(bare, graph, prepared.target, options, prepared.session)
    return with_loads(bare, graph, prepared.target, options, prepared.ram, prepared.session)


def _too_large(prepared: Prepared, free: Sequence[Point]) -> PlanError:
    """What the plan with the least memory needs, the first of some without a limit on that; a question about
    work where there are none.
    """
    if not free:
        return _too_much_work(prepared)
    least_plan = [free[0].plan, *_smaller_with_loads(prepared, [free[0].plan])][-1]
    size, most = least_plan.arena_bytes, prepared.ram or 0
    board = prepared.target.board
    beside = board.beside(board.arena) if most == prepared.available else ""
    return PlanError(
        f"with the constants that are loaded into it the arena requires {size} bytes, {most} are available"
        f"{beside}: {size - most} too many",
        operator=binding(least_plan, free[0].graph, prepared.session).place,
        hint=suggest(f"F {least_plan.f:.3f}", ram=size),
    )


def _too_much_work(prepared: Prepared) -> PlanError:
    """What the limits on work and cost would have to be, in the memory that is there if that can be."""
    from buildtool.plan.search.choose import wider

    free = replace(prepared, options=replace(prepared.options, max_f=None, max_cost=None))
    plans = [p.plan for p in points(free, prepared.ram) or points(replace(free, bounded=False), None)]
    by_cost = prepared.options.max_cost is not None
    if by_cost and (cheap := _cheap_with_loads(free)) is not None:
        plans.append(cheap)
    plans.sort(key=lambda plan: plan.cost if by_cost else plan.macs)
    return PlanError(
        "no plan keeps the limits on work and cost together with the constants that are loaded",
        hint=[wider(plan, limits(prepared, prepared.ram)) for plan in plans[:1]],
    )


# ---- strategies that make one plan -------------------------------------------------------------------


def _layerwise(prepared: Prepared) -> Plan:
    return layerwise(prepared.graphs[0], prepared)


def _keep_limits(plan: Plan, prepared: Prepared) -> None:
    """PlanError for a plan over a limit that was given."""
    options = prepared.options
    if options.ram is not None and plan.arena_bytes > options.ram:
        raise PlanError(
            f"with strategy {options.strategy} the arena requires {plan.arena_bytes} bytes, "
            f"{options.ram} are allowed: {plan.arena_bytes - options.ram} too many",
            operator=binding(plan, prepared.graphs[0], prepared.session).place,
            hint=[suggest(ram=plan.arena_bytes), *_other_ways(options)],
        )
    if options.max_f is not None and plan.f > options.max_f + 1e-9:
        raise PlanError(
            f"with strategy {options.strategy} F is {plan.f:.3f}, {options.max_f} is allowed",
            hint=[suggest(max_f=round(plan.f + 0.0005, 3)), *_other_ways(options)],
        )
    if options.max_cost is not None and plan.cost > options.max_cost:
        raise PlanError(
            f"with strategy {options.strategy} the cost is {shown_cost(plan.cost, prepared.target)}, "
            f"{shown_cost(options.max_cost, prepared.target)} is allowed",
            hint=[suggest(**_dearer(plan, prepared)), *_other_ways(options)],
        )


def _dearer(plan: Plan, prepared: Prepared) -> dict[str, Value]:
    from buildtool.plan.search.choose import cost_setting

    return cost_setting(plan.cost, limits(prepared, None).in_ms)


def _other_ways(options: PlanOptions) -> list[Hint]:
    found = [suggest(strategy="best")] if options.strategy != Strategy.BEST else []
    return [suggest("they are searched", segments=None), *found] if options.segments else found


_PLANNERS: dict[Strategy, Callable[[Prepared], Plan]] = {
    Strategy.LAYERWISE: _layerwise,
    Strategy.BEST: _best,
    Strategy.MSF_CNN: strategies.msf_cnn,
    Strategy.XCORE_STRIPS: strategies.xcore_strips,
}
