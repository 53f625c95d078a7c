"""From a network, a target and options to what is planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgpack

from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import InPlace, Objective, Order, Strategy
from buildtool.base.session import Level, Session
from buildtool.graph.fusions import with_sliced_fusions
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.limits import within_cost
from buildtool.plan.choose.problem import Beside, Prepared
from buildtool.plan.summary.fit import excess_bytes
from buildtool.target.choice import loads
from buildtool.target.hardware import Taken
from buildtool.target.types import Target

if TYPE_CHECKING:
    from buildtool.graph import order as graph_order
    from buildtool.plan.types import Plan


def problem(
    graph: Graph, target: Target, options: PlanOptions, session: Session, beside: Beside, *, path: str
) -> Prepared:
    """The planning problem of a network on a target; UsageError for an option that has no effect there.

    `graph`: as it was rewritten for planning.
    """
    refuse_idle(target, options)
    options = within_cost(options, target)
    target = target.with_firmware(beside(graph, target))
    graphs, status = _orders(graph, options, session)
    other_form = _with_sliced_fusions(graph, target, options)
    return Prepared(
        path,
        (*graphs, *other_form),
        target,
        options,
        session=session,
        order_status=status,
        sliced=bool(other_form),
        beside=beside,
    )


def own_firmware(
    beside: Beside, graph: Graph, plan: Plan, target: Target, session: Session
) -> tuple[Taken, ...]:
    """What the firmware of a plan takes, counted at the least that it may turn out to be where the plan fits
    beside no more: then linking decides.
    """
    most = beside(graph, target, plan, session)
    if not excess_bytes(target.with_firmware(most).board, plan):
        return most
    least = beside(graph, target, plan, session, least=True)
    return most if excess_bytes(target.with_firmware(least).board, plan) else least


def _orders(graph: Graph, options: PlanOptions, session: Session) -> tuple[tuple[Graph, ...], str | None]:
    """A network in the order that it has and in others that may be better; what is proven of the best order.

    Where the operators' relations alone tell that no order has less alive than the given one, nothing is
    searched. The strategies that follow other systems take another order only where that is asked for.
    """
    follows = options.strategy not in (Strategy.BEST, Strategy.LAYERWISE)
    if options.order == Order.GIVEN or (follows and options.order != Order.BEST):
        return (graph,), None
    from buildtool.graph.order import BUDGET, SHORT_BUDGET, in_order
    from buildtool.graph.topology import topology_digest

    is_long = options.order == Order.BEST
    budget = BUDGET if is_long else SHORT_BUDGET
    whole = _best_order(graph, budget, session)
    of_chains = _best_order(graph, budget, session, of_chains=True)
    found = [in_order(graph, of_chains)]
    if is_long or whole.peak < of_chains.peak:  # else one more plan is hardly worth its time
        found.insert(0, in_order(graph, whole))
    graphs: tuple[Graph, ...] = (graph,)
    for one in found:
        if topology_digest(one) not in map(topology_digest, graphs):
            graphs = (*graphs, one)
    return graphs, whole.status if is_long else None


def _with_sliced_fusions(graph: Graph, target: Target, options: PlanOptions) -> tuple[Graph, ...]:
    """The form of a network in which slices may take the places of branches, where it has one."""
    if options.strategy != Strategy.BEST or options.in_place != InPlace.ROWS or loads(target.board):
        return ()
    sliced = with_sliced_fusions(graph)
    return () if sliced is graph else (sliced,)


def _best_order(graph: Graph, budget: int, session: Session, *, of_chains: bool = False) -> graph_order.Order:
    """The order with the least peak of live bytes; it depends on the topology alone.

    `of_chains`: one in which chains of operators stay together (see graph.order).
    """
    from buildtool.graph.flow import flow_of
    from buildtool.graph.order import Order, is_order, least_peak_of_chains, least_peak_order
    from buildtool.graph.topology import topology_digest

    def unpacked(data: bytes) -> Order:
        order, status, *numbers = msgpack.unpackb(data)
        found = Order(tuple(order), status, *numbers)
        if status not in ("optimal", "feasible") or not is_order(graph, found):
            raise ValueError("not an order of these operators")
        return found

    level = Level("orders", lambda found: bytes(msgpack.packb(list(vars(found).values()))), unpacked)
    parts = {"topology": topology_digest(graph), "budget": budget, **({"of": "chains"} if of_chains else {})}
    search = least_peak_of_chains if of_chains else least_peak_order
    session.tell("looking for the best order of operators")
    return session.keep(level, parts, lambda: search(flow_of(graph), budget=budget))


def refuse_idle(target: Target, options: PlanOptions) -> None:
    """UsageError for an objective where there is nothing to choose.

    The strategies that follow other systems make one plan: of two orders of the operators the better one is
    taken, and where weights are loaded, the objective says how many buffers they get. Layer by layer, tensors
    are moved between operators where the least memory is asked for.
    """
    chooses = options.strategy in (Strategy.BEST, Strategy.LAYERWISE) or options.order == Order.BEST
    if options.objective != Objective.COST and not chooses and not loads(target.board):
        raise UsageError(
            f"it has no effect with strategy {options.strategy}, which makes one plan",
            option="objective",
            hint=[suggest(objective=None), suggest(strategy="best")],
        )
