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
from buildtool.service.pipeline.models import load_model, read_graph
from buildtool.service.pipeline.options import PlanOptions
from buildtool.service.pipeline.pipeline import Planned, load


def given_plan(spec: str, board: str, options: PlanOptions, data: bytes, path: str) -> Planned:
    """The model with the plan of a .plan file (`data`; `path` for messages).

    PlanError for a file that is no plan, or one of another network, board or version of buildtool. Of
    the options only those count that choose the target's kernels.
    """
    target = load(board, options)
    model = load_model(spec)
    source, graph = read_graph(model)
    try:
        plan = from_bytes(data)
        graph = _ordered_for(plan, graph)
        check(plan, graph, target)
    except PlanError as error:
        raise error.at(path=path) from None
    return Planned(model, source, graph, target, plan, options.max_flash)


def _ordered_for(plan: Plan, graph: Graph) -> Graph:
    """The graph in the order of operators that the plan is for; as it is where none is known."""
    orders = (one for one in _orders(graph) if topology_digest(one) == plan.topology)
    return next(orders, graph)


def _orders(graph: Graph) -> Iterator[Graph]:
    """Every order that planning may have chosen; the second one takes a search."""
    yield graph
    yield reorder(graph).graph
