"""Chooses the plan of a prepared network that the options ask for. The plan is placed and checked."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from buildtool.base.errors import PlanError
from buildtool.base.modes import Objective
from buildtool.base.session import Session
from buildtool.base.work import PLANNING
from buildtool.graph.partviews import without_views
from buildtool.graph.secondpass import without_second_passes
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions
from buildtool.plan.choose import cache, narrow, problem, scratch
from buildtool.plan.choose.cache import Choice
from buildtool.plan.choose.fronts import Point, least_cost, pareto_front, point_of, points, search_front
from buildtool.plan.choose.hints import tried
from buildtool.plan.choose.limits import limit_cost, merit
from buildtool.plan.choose.planners import ATTEMPTS, factor_of, plan_of
from buildtool.plan.choose.problem import Prepared, own_firmware
from buildtool.plan.summary.fit import available_bytes, excess_bytes, holds
from buildtool.plan.types import Plan
from buildtool.target.types import Target

# ---- the variants of a network ------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """Graphs that a network may run as, and how they are planned.

    graphs: returns the graphs, each with its index as in `Choice`.
    forms: returns the graphs to plan for one graph, such as those with views.
    may_pay, pays: decide with quick bounds whether a plan better than the best so far may exist, for any of
        the graphs (`may_pay`) or for one graph (`pays`).
    part: the share of the remaining work budget that one graph may use while other graphs wait.
    lighter: returns the form to try after a form whose plan needs more memory than the best plan of the
        earlier variants. If `lighter` is None, plans of any size are accepted.
    problem: returns the problem to plan in place of a form's problem, for example with other kernels.
    finish: returns the final plan in place of the plan of that problem.
    """

    graphs: Callable[[Prepared], Iterable[tuple[int, Graph]]]
    forms: Callable[[Prepared], tuple[Graph, ...]] = lambda alone: alone.graphs
    may_pay: Callable[[Prepared, Plan | None], bool] = lambda prepared, best: True
    pays: Callable[[Prepared, Plan | None], bool] = lambda alone, best: True
    part: float = 1.0
    lighter: Callable[[Prepared, Graph, Plan], Graph | None] | None = None
    problem: Callable[[Prepared], Prepared] = lambda alone: alone
    finish: Callable[[Plan, Prepared], Plan] = lambda plan, alone: plan


def _passes_may_pay(prepared: Prepared, best: Plan | None) -> bool:
    """Returns whether second passes may make a better plan than `best`, without searching for them."""
    if not prepared.varied or not problem.may_have_passes(prepared):
        return False
    if best is None or not holds(prepared.target.board, best) or prepared.options.objective == Objective.RAM:
        return True
    return all(best.cost > least_cost(prepared.with_graph(graph)) for graph in prepared.graphs)


def _pass_pays(alone: Prepared, best: Plan | None) -> bool:
    """Returns whether a network with some second passes may have a better plan than `best`."""
    if best is None or not holds(alone.target.board, best):
        return True
    if alone.options.objective == Objective.RAM:
        front = search_front(alone)
        return any(front.may_fit(i, best.arena_bytes - 1) for i in range(len(front.points)))
    return problem.least_cost_with_passes(alone) < best.cost


VARIANTS = (
    Variant(lambda prepared: enumerate(prepared.graphs), part=0.5),  # orders of the operators
    Variant(  # views of channels
        lambda prepared: enumerate(prepared.unsliced if prepared.varied else ()),
        forms=problem.graphs_with_views,
        lighter=problem.with_fewer_views,
    ),
    Variant(  # second passes
        lambda prepared: enumerate(prepared.with_second_passes, len(prepared.graphs)),
        may_pay=_passes_may_pay,
        pays=_pass_pays,
    ),
    Variant(  # kernels with less scratch
        lambda prepared: enumerate(prepared.graphs),
        may_pay=scratch.may_pay,
        problem=scratch.lean,
        finish=scratch.with_better_kernels,
    ),
    Variant(  # constants in narrow slices
        lambda prepared: enumerate(prepared.graphs),
        may_pay=narrow.may_pay,
        pays=narrow.pays,
        problem=narrow.narrow,
    ),
)


Placed = tuple[Graph, Plan]  # a plan, and the graph in the order of operators that it is for


def choose_plan(prepared: Prepared) -> Placed:
    """Returns the plan that the options ask for, and its graph.

    If a strategy makes only one plan, the plan may be larger than the board's memory. Raises PlanError if no
    plan is within the limits.
    """
    best = choose(prepared)
    return prepared.graph_for(best.index, best.plan), best.plan


def choose(prepared: Prepared) -> Choice:
    """Returns the plan of `choose_plan`, with its optimality gap. The session caches the result."""
    return cache.choice(prepared, lambda: _choose_within_budget(prepared))


def settle(prepared: Prepared) -> Prepared:
    """Returns the problem with the memory that the chosen plan's firmware leaves for the arena.

    If code does not lie in the arena's memory, or if there is no plan, the problem stays as it is.
    """
    if not prepared.is_beside_code:
        return prepared
    try:
        return replace(prepared, target=prepared.target.with_firmware(choose(prepared).firmware))
    except PlanError:
        return prepared


def front(prepared: Prepared, ram: int | None) -> tuple[tuple[Point, ...], bool]:
    """Returns the points within `ram` bytes, and whether a work budget ended before all of them were placed.

    The first point is the plan that objective `ram` asks for.
    """
    with prepared.session.budget(PLANNING) as work:
        placed = list(points(prepared, ram))
    ended = work.ended
    options = replace(prepared.options, ram=ram, objective=Objective.RAM)
    with contextlib.suppress(PlanError):
        least = choose(replace(prepared, options=options, bounded=False))
        placed.append(point_of(least.plan, prepared.graph_for(least.index, least.plan), prepared))
        ended = ended or least.ended
    return pareto_front(placed), ended


def _choose_fitting(prepared: Prepared) -> Choice:
    """Returns the best plan that fits together with its own firmware.

    The firmware's code and variables take memory, too. Without code in the arena's memory, they are estimated
    for all plans together. If code lies there, the memory that it leaves depends on the plan. So the first
    plan is made for the least code, and the next one for the code of the plan before it, until a plan fits.

    If no plan fits beside an upper bound of code and variables, a plan is chosen that fits beside a lower
    bound. Linking then shows whether it really fits. Raises PlanError if there is no such plan.
    """
    try:
        if prepared.bounded and prepared.is_beside_code:
            return _choose_smaller_until_it_fits(prepared)
        return replace(_choose_best(prepared), firmware=prepared.target.board.firmware)
    except PlanError:
        if not prepared.bounded or not prepared.target.board.firmware:
            raise
        choice = (
            _choose_smallest(prepared) if prepared.is_beside_code else _choose_beside_least_code(prepared)
        )
        if choice is None:
            raise
        return choice


def _choose_beside_least_code(prepared: Prepared) -> Choice | None:
    """Returns the best plan if the firmware takes only the least bytes that are possible beside the arena.

    None if that leaves the arena no more memory than the problem already has. Raises PlanError if no plan
    fits.
    """
    firmware = prepared.beside(prepared.graph, prepared.target, least=True)
    beside = prepared.target.with_firmware(firmware)
    if available_bytes(beside.board, prepared.state_bytes) <= prepared.available:
        return None
    return replace(_choose_best(replace(prepared, target=beside)), firmware=firmware)


def _choose_smallest(prepared: Prepared) -> Choice | None:
    """Returns the plan with the least memory; None if it does not fit beside its own firmware."""
    options = replace(prepared.options, objective=Objective.RAM)
    smallest = _choose_best(replace(prepared, options=options, bounded=False))
    graph, target = prepared.graph_for(smallest.index, smallest.plan), prepared.target
    firmware = own_firmware(prepared.beside, graph, smallest.plan, target, prepared.session)
    if excess_bytes(target.with_firmware(firmware).board, smallest.plan):
        return None
    return replace(smallest, firmware=firmware)


def _choose_smaller_until_it_fits(prepared: Prepared) -> Choice:
    best = _choose_best(prepared)
    for _ in range(ATTEMPTS):
        graph = prepared.graph_for(best.index, best.plan)
        best = replace(best, firmware=prepared.beside(graph, prepared.target, best.plan, prepared.session))
        beside = prepared.target.with_firmware(best.firmware)
        if not excess_bytes(beside.board, best.plan):
            break
        smaller = _choose_best(replace(prepared, target=beside))
        if smaller.plan.arena_bytes >= best.plan.arena_bytes:
            break  # the strategy makes only one plan
        best = smaller
    return best


def _choose_within_budget(prepared: Prepared) -> Choice:
    """Returns the choice that one work budget allows.

    The choice says whether the budget ended before everything was tried.
    """
    with prepared.session.budget(PLANNING) as work:
        try:
            best = _choose_fitting(prepared)
        except PlanError as error:
            error.hints = tried(prepared, error, _choose_fitting)
            if work.ended:
                error.text += " (the budget for placing plans ended: it is not proven to be the smallest)"
            raise
        return replace(best, ended=work.ended)


def _choose_best(prepared: Prepared) -> Choice:
    """Returns the best plan of the variants that the budget allows to try; among equal plans the first one.

    Raises PlanError if no variant has a plan within the limits.
    """
    work = prepared.session.work
    prepared.session.tell(f"planning, strategy {prepared.options.strategy}")
    choices: list[Choice] = []
    refused: list[tuple[Variant, PlanError]] = []
    for variant in VARIANTS:
        before = _best(choices, prepared)
        graphs = tuple(variant.graphs(prepared)) if variant.may_pay(prepared, before) else ()
        for number, (index, graph) in enumerate(graphs, 1):
            alone = prepared.with_graph(graph)
            if (choices and not work.goes_on()) or not variant.pays(alone, _best(choices, prepared)):
                continue
            # A graph that is hard to place leaves a share of the work for the others.
            with work.share(variant.part if number < len(graphs) else 1.0):
                choices += _plans_of(variant, index, alone, before, refused)
    if not choices:
        of_orders = [error for variant, error in refused if variant.lighter is None]
        nearer = (error for variant, error in refused if variant.lighter is not None)
        raise min((of_orders[-1], *nearer), key=_suggested_bytes).at(path=prepared.path)
    return min(choices, key=lambda choice: _merit(choice.plan, prepared))


def _plans_of(
    variant: Variant,
    index: int,
    alone: Prepared,
    before: Plan | None,
    refused: list[tuple[Variant, PlanError]],
) -> Iterator[Choice]:
    """Yields the plans of one graph of a variant, one per form.

    `index`: the graph's index, as in `Choice`. `before`: the best plan of the earlier variants. Errors of
    forms without a plan are appended to `refused`.
    """
    board = alone.target.board
    # the limit for light plans: the memory of an earlier plan that fits, else the board's memory
    most = before.arena_bytes if before is not None and holds(board, before) else math.inf
    for form in variant.forms(alone):
        trying: Graph | None = form
        while trying is not None:
            # its optimality gap is not known yet
            form_problem = variant.problem(replace(alone.with_graph(trying), gaps={}))
            try:
                plan = variant.finish(plan_of(form_problem), form_problem)
            except PlanError as error:
                refused.append((variant, error))
                break
            is_light = plan.arena_bytes <= most and (before is not None or holds(board, plan))
            if variant.lighter is None or is_light:
                yield Choice(index, plan, factor_of(form_problem))
                break
            trying = variant.lighter(alone, trying, plan)


def _best(choices: Sequence[Choice], prepared: Prepared) -> Plan | None:
    return min((choice.plan for choice in choices), key=lambda plan: _merit(plan, prepared), default=None)


def _merit(plan: Plan, prepared: Prepared) -> tuple[float, ...]:
    """Returns a sort key: plans that do not fit the board come last, then the objective decides."""
    return excess_bytes(prepared.target.board, plan), *merit(plan, prepared.options.objective)


def _suggested_bytes(error: PlanError) -> float:
    """Returns the smallest arena in bytes that an error's hints suggest; infinite if they suggest none."""
    values = (value for hint in error.hints for option, value in hint.settings if option == "ram")
    return min((value for value in values if isinstance(value, int)), default=math.inf)


def nearest(prepared: Prepared) -> Placed:
    """Returns the plan that the options ask for. If no plan is within their limits, returns the smallest one.

    Then the limit on memory and the board's memory do not count, so the board may have too little memory for
    the plan. Raises the first PlanError if there is no such plan either.
    """
    try:
        return choose_plan(prepared)
    except PlanError as error:
        free = replace(prepared.options, ram=None, objective=Objective.RAM)
        try:
            return choose_plan(replace(prepared, options=free, bounded=False))
        except PlanError:
            raise error from None


def make_plan(
    graph: Graph,
    target: Target,
    options: PlanOptions,
    session: Session | None = None,
    *,
    every_kind: bool = False,
) -> Plan:
    """Returns the plan of a graph, with its operators in the given order.

    `every_kind`: whether the planner chooses second passes and views. If so, it ignores those of the graph.
    """
    alone = without_views(without_second_passes(graph)) if every_kind else graph
    limited = limit_cost(options, target)
    return choose_plan(
        Prepared("", (alone,), target, limited, session=session or Session(), varied=every_kind)
    )[1]
