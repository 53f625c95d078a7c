"""A plan that a build made earlier, in place of planning: read, and proved legal for the model and board."""

from __future__ import annotations

from collections.abc import Iterator

from buildtool.errors import PlanError
from buildtool.graph.digest import topology_digest
from buildtool.graph.order import reorder
from buildtool.graph.types import Graph
from buildtool.plan.check.check import check
from buildtool.plan.codec import from_bytes
from buildtool.plan.types import Plan
from buildtool.service.files import File
from buildtool.service.pipeline.models import Named
from buildtool.service.pipeline.options import PlanOptions
from buildtool.service.pipeline.pipeline import Planned
from buildtool.service.pipeline.prepare import load_network
from buildtool.service.pipeline.targets import TargetChoice, load_target
from buildtool.session import Session

MOST_PLAN_BYTES = 1 << 28


def given_plan(spec: Named, choice: TargetChoice, file: File, session: Session) -> Planned:
    """The model with the plan of a .plan file.

    PlanError for a file that is no plan, or one of another network, board or version of buildtool.
    """
    target = load_target(choice, session)
    network = load_network(spec, session)
    data = file.read("the plan", MOST_PLAN_BYTES)
    try:
        plan = from_bytes(data)
        graph = _ordered_for(plan, network.graph)
        check(plan, graph, target)
    except PlanError as error:
        raise error.at(path=file.path) from None
    return Planned(network.model, network.source, graph, target, plan, choice, PlanOptions(), session)


def _ordered_for(plan: Plan, graph: Graph) -> Graph:
    """The graph in the order of operators that the plan is for; as it is where none is known."""
    orders = (one for one in _orders(graph) if topology_digest(one) == plan.topology)
    return next(orders, graph)


def _orders(graph: Graph) -> Iterator[Graph]:
    """Every order that planning may have chosen; the second one takes a search."""
    yield graph
    yield reorder(graph).graph
