"""Compares what a plan from elsewhere states about itself with what is true.

`plan.check` proves that a plan is legal. This module checks statements on which no safety depends, but which
people and limits rely on: the plan's cost, its strategy, the options that it follows, and what its arena
counts.
"""

from __future__ import annotations

from buildtool.base.errors import PlanError
from buildtool.base.modes import Strategy
from buildtool.graph.partviews import tensors_written_in_place
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import accounting
from buildtool.plan.choose.limits import Limits, limit_cost
from buildtool.plan.choose.problem import Prepared, own_firmware
from buildtool.plan.summary.fit import holds
from buildtool.plan.summary.summary import estimate_cost
from buildtool.plan.types import Plan, Scheme
from buildtool.target.hardware import FirmwareUse

# The schemes of the groups that a strategy joins to regions.
_SCHEMES = {
    Strategy.BEST: frozenset(Scheme),
    Strategy.LAYERWISE: frozenset({Scheme.OPERATOR}),
    Strategy.MSF_CNN: frozenset({Scheme.OPERATOR, Scheme.H_CACHED}),
    Strategy.XCORE_STRIPS: frozenset({Scheme.OPERATOR, Scheme.HALO}),
}


def refuse_another(plan: Plan, graph: Graph, prepared: Prepared) -> None:
    """Raises PlanError if a plan does not follow the options. The plan need not be legal."""
    options, target = prepared.options, prepared.target
    limits = Limits.of(limit_cost(options, target), target, options.ram)
    if not limits.allow(plan) or plan.image != options.image:
        raise PlanError("the plan is beyond the limits")
    if plan.removed or plan.narrowed or plan.hop is not None:  # the request decides that
        raise PlanError("the plan is for another network")
    if not _follows(plan, graph, options.strategy):
        raise PlanError("the plan follows another strategy")
    counted = (
        accounting(plan.image, options.in_place, plan.alignment, is_loaded=one) for one in (False, True)
    )
    if plan.accounting not in counted:
        raise PlanError("the plan's arena counts something else")


def refuse_wrong_cost(plan: Plan, graph: Graph, prepared: Prepared) -> None:
    """Raises PlanError if the cost that a legal plan states is not its cost."""
    target = prepared.target
    kernels = target.kernels_by_name(plan.kernels)
    cost = estimate_cost(plan, graph, kernels, target.costs, prepared.session)
    if (plan.cost, plan.cost_unit) != (cost, target.cost_unit):
        raise PlanError(f"the plan declares a cost of {plan.cost}, its steps cost {cost}")


def _follows(plan: Plan, graph: Graph, strategy: Strategy) -> bool:
    """Returns whether a plan names `strategy`, and joins operators to groups as this strategy does."""
    if strategy == Strategy.BEST or tensors_written_in_place(graph):
        known = {strategy, Strategy.LAYERWISE}
    else:
        known = {strategy}
    if plan.strategy not in known:
        return False
    streamed = [region for region in plan.regions if region.is_streamed]
    if plan.strategy == Strategy.LAYERWISE and streamed:
        return False
    single = plan.strategy == Strategy.BEST or all(len(region.groups) == 1 for region in streamed)
    schemes = _SCHEMES[Strategy(plan.strategy)]
    return single and all(group.scheme in schemes for region in streamed for group in region.groups)


def firmware_beside(plan: Plan, graph: Graph, prepared: Prepared) -> tuple[FirmwareUse, ...]:
    """Returns the bytes that a plan's firmware takes beside the arena.

    The plan may come from elsewhere; its firmware is counted like that of a plan that is chosen here.
    """
    board = prepared.target.board
    if prepared.bounded and prepared.is_beside_code:
        return own_firmware(prepared.beside, graph, plan, prepared.target, prepared.session)
    if not prepared.bounded or holds(board, plan):
        return board.firmware
    return prepared.beside(prepared.graph, prepared.target, least=True)
