"""The front of a model on a board, and what other ways to plan reach beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from buildtool.errors import BuildtoolError
from buildtool.graph.types import Graph
from buildtool.plan.types import Plan
from buildtool.service.pipeline import strategies
from buildtool.service.pipeline.models import load_model, read_graph
from buildtool.service.pipeline.options import PlanOptions
from buildtool.service.pipeline.pipeline import settings
from buildtool.target.registry import load_target
from buildtool.target.types import Target

Answer = dict[str, Any]


def front_of(spec: str, board: str, options: PlanOptions, peers: bool) -> Answer:
    """The answer to a `front` request; `peers`: with msf-CNN's and xcore's strategies beside it."""
    from buildtool.plan.search.front import front
    from buildtool.plan.summary.fit import available_bytes

    target = load_target(board)
    model = load_model(spec)
    _, graph = read_graph(model)
    found = front(graph, target, settings(options))
    points = []
    for index, point in enumerate(found.points):
        plan = found.plan(index)
        points.append({"live_bytes": point.live_bytes, **_figures(plan)})
    return {
        "model": model.name,
        "board": target.board.name,
        "image": options.image,
        "in_place": options.in_place,
        "hand_offs": list(found.settings.hand_offs),
        "max_f": found.settings.max_f,
        "available_bytes": available_bytes(target.board),
        "macs": found.tables.before[-1],
        "points": points,
        "beside": _beside(graph, target, options, peers),
        "accounting": list(found.plan(0).accounting) if found.points else [],
    }


def _figures(plan: Plan) -> Answer:
    streamed = [region for region in plan.regions if region.is_streamed]
    return {
        "arena_bytes": plan.arena_bytes,
        "arena_bound_bytes": plan.arena_bound_bytes,
        "f": plan.f,
        "macs": plan.macs,
        "cost": plan.cost,
        "regions": len(plan.regions),
        "streamed_regions": len(streamed),
        "groups": sum(len(region.groups) for region in streamed),
    }


def _beside(graph: Graph, target: Target, options: PlanOptions, peers: bool) -> list[Answer]:
    """Plans of the other strategies that serve this network, with their figures."""
    planners: list[tuple[str, Callable[[], Plan]]] = []
    if options.image != "stream":
        planners.append(("layerwise", lambda: _layerwise(graph, target, options)))
    if peers:
        planners += [
            ("msf-cnn", lambda: strategies.msf_cnn(graph, target, options)),
            ("xcore-strips", lambda: strategies.xcore_strips(graph, target, options)),
        ]
    found = []
    for name, make in planners:
        try:
            found.append({"strategy": name, **_figures(make())})
        except BuildtoolError as error:
            found.append({"strategy": name, "error": error.text})
    return found


def _layerwise(graph: Graph, target: Target, options: PlanOptions) -> Plan:
    from buildtool.plan.assemble.layerwise import plan

    return plan(graph, target, in_place=options.in_place, image=options.image)
