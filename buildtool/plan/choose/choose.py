"""One plan of a prepared network: the one that the options ask for, placed and checked."""

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
from buildtool.plan.choose import kept, problem
from buildtool.plan.choose.fronts import Point, least_cost, point_of, points, searched, undominated
from buildtool.plan.choose.kept import Choice
from buildtool.plan.choose.limits import within_cost
from buildtool.plan.choose.planners import ATTEMPTS, factor_of, plan_of
from buildtool.plan.choose.prepare import own_firmware
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.summary.fit import available_bytes, excess_bytes, holds
from buildtool.plan.types import Plan
from buildtool.target.types import Target

# ---- the variants of a network ------------------------------------------------------------------------

Lighter = Callable[[Prepared, Graph, Plan], Graph | None]


@dataclass(frozen=True)
class Variant:
    """A kind of graphs that a network may run as.

    `graphs`: those there are, each with its index as in `Choice`. `forms`: of the problem of one of them,
    what is planned. `may_pay`: whether any of them may be better than the best plan so far, if there is one;
    `pays`: whether the problem of one of them may have such a plan. Both are bounds that cost less than
    planning. `part`: of the work that is left, how much each graph may take that has others behind it.

    `lighter`: what is tried in the place of a form whose plan needs more memory than the best plan of the
    variants before; without it plans count whatever they need.
    """

    graphs: Callable[[Prepared], Iterable[tuple[int, Graph]]]
    forms: Callable[[Prepared], tuple[Graph, ...]] = lambda alone: alone.graphs
    may_pay: Callable[[Prepared, Plan | None], bool] = lambda prepared, best: True
    pays: Callable[[Prepared, Plan | None], bool] = lambda alone, best: True
    part: float = 1.0
    lighter: Lighter | None = None


def _passes_may_pay(prepared: Prepared, best: Plan | None) -> bool:
    """Whether second passes may make a better plan: before the search that finds them."""
    if not prepared.varied or not problem.may_have_passes(prepared):
        return False
    if best is None or not holds(prepared.target.board, best):
        return True
    if prepared.options.objective == Objective.RAM:
        return True
    return all(best.cost > least_cost(prepared.of(graph)) for graph in prepared.graphs)


def _pass_pays(alone: Prepared, best: Plan | None) -> bool:
    """Whether a network with some second passes may have a better plan."""
    if best is None or not holds(alone.target.board, best):
        return True
    if alone.options.objective == Objective.RAM:
        found = searched(alone)
        return any(found.may_fit(i, best.arena_bytes - 1) for i in range(len(found.points)))
    return problem.least_cost_with_passes(alone) < best.cost


VARIANTS = (
    Variant(lambda prepared: enumerate(prepared.graphs), part=0.5),  # orders of the operators
    Variant(  # views of channels
        lambda prepared: enumerate(prepared.unsliced if prepared.varied else ()),
        forms=problem.viewed,
        lighter=problem.with_fewer_views,
    ),
    Variant(  # second passes
        lambda prepared: enumerate(prepared.twice, len(prepared.graphs)),
        may_pay=_passes_may_pay,
        pays=_pass_pays,
    ),
)


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
    """The best plan of all variants that the budget allows, the first of equals: the given order."""
    work = prepared.session.work
    prepared.session.tell(f"planning, strategy {prepared.options.strategy}")
    made: list[Choice] = []
    refused: list[tuple[Variant, PlanError]] = []
    for variant in VARIANTS:
        before = _best(made, prepared)
        graphs = tuple(variant.graphs(prepared)) if variant.may_pay(prepared, before) else ()
        for number, (index, graph) in enumerate(graphs, 1):
            alone = prepared.of(graph)
            if (made and not work.goes_on()) or not variant.pays(alone, _best(made, prepared)):
                continue
            # A graph that is hard to place leaves the others a part of the work.
            with work.share(variant.part if number < len(graphs) else 1.0):
                made += _plans_of(variant, index, alone, before, refused)
    if not made:
        of_orders = [error for variant, error in refused if variant.lighter is None]
        nearer = (error for variant, error in refused if variant.lighter is not None)
        raise min((of_orders[-1], *nearer), key=_suggested).at(path=prepared.path)
    return min(made, key=lambda found: _merit(found.plan, prepared))


def _plans_of(
    variant: Variant,
    index: int,
    alone: Prepared,
    before: Plan | None,
    refused: list[tuple[Variant, PlanError]],
) -> Iterator[Choice]:
    """The plans of one graph of a variant that count beside the best plan of those `before`."""
    for form in variant.forms(alone):
        trying: Graph | None = form
        while trying is not None:
            one = replace(alone.of(trying), missed={})  # nothing is known of what its plan may miss
            try:
                plan = plan_of(one)
            except PlanError as error:
                refused.append((variant, error))
                break
            if variant.lighter is None or _needs_no_more(plan, before, alone):
                yield Choice(index, plan, factor_of(one))
                break
            trying = variant.lighter(alone, trying, plan)


def _needs_no_more(plan: Plan, before: Plan | None, alone: Prepared) -> bool:
    """Whether a plan needs no more memory than another that fits the board; without one, whether it fits."""
    board = alone.target.board
    if before is None:
        return holds(board, plan)
    return not holds(board, before) or plan.arena_bytes <= before.arena_bytes


def _best(made: Sequence[Choice], prepared: Prepared) -> Plan | None:
    return min((found.plan for found in made), key=lambda plan: _merit(plan, prepared), default=None)


def _suggested(error: PlanError) -> float:
    """The bytes that an error says would do."""
    found = (value for hint in error.hints for option, value in hint.settings if option == "ram")
    return min((value for value in found if isinstance(value, int)), default=math.inf)


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
