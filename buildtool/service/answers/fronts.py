"""The front of a model on a board, and what other strategies reach beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from buildtool.emit.image import image_layout
from buildtool.errors import BuildtoolError, PlanError
from buildtool.modes import Image, Objective, Strategy
from buildtool.service.pipeline.choose import chosen
from buildtool.service.pipeline.fronts import points, settings
from buildtool.service.pipeline.needs import refuse_weights
from buildtool.service.pipeline.prepare import Prepared, load_network, prepare
from buildtool.service.pipeline.targets import load_target

if TYPE_CHECKING:
    from buildtool.plan.types import Plan
    from buildtool.schema.fronts import Figures, FrontAnswer, Peer, Refusal
    from buildtool.service.requests import Front
    from buildtool.session import Session


def front_of(request: Front, session: Session) -> FrontAnswer:
    """The answer to a `front` request. PlanError where no plan keeps the limits.

    Without a limit on memory the points that the board has no room for are there as well.
    """
    from buildtool.target import catalogue

    target, options = load_target(request.target), request.options
    network = load_network(request.model, session)
    prepared = prepare(network, target, options, session)
    graph = prepared.graphs[0]
    refuse_weights(target, options, image_layout(graph, catalogue.select_all(target, graph)).size)
    found = points(prepared, options.ram)
    if not found:
        raise _refused(prepared)
    searched = settings(graph, prepared)
    return {
        "model": network.model.name,
        "board": target.board.name,
        "image": options.image,
        "in_place": options.in_place,
        "hand_offs": list(searched.hand_offs),
        "max_f": options.max_f or searched.max_f,
        "available_bytes": prepared.available,
        "macs": found[0].plan.macs_layerwise,
        "points": [
            {"live_bytes": p.live_bytes, "strategy": p.plan.strategy, **_figures(p.plan)} for p in found
        ],
        "beside": _beside(prepared, request.peers),
        "accounting": list(found[0].plan.accounting),
    }


def _figures(plan: Plan) -> Figures:
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


def _refused(prepared: Prepared) -> PlanError:
    """Why no plan keeps the limits: the refusal of the request for the one with the least memory."""
    options = replace(prepared.options, objective=Objective.RAM)
    try:
        chosen(replace(prepared, options=options, bounded=False))
    except PlanError as error:
        return error
    return PlanError("no plan of the front keeps the limits", path=prepared.path)


def _beside(prepared: Prepared, peers: bool) -> list[Peer | Refusal]:
    """Plans of the other strategies that serve this network, with their figures."""
    strategies = [] if prepared.options.image == Image.STREAM else [Strategy.LAYERWISE]
    strategies += [Strategy.MSF_CNN, Strategy.XCORE_STRIPS] if peers else []
    found: list[Peer | Refusal] = []
    for strategy in strategies:
        options = replace(prepared.options, strategy=strategy, hand_off=None)
        try:
            _, plan = chosen(replace(prepared, options=options, bounded=False))
            found.append({"strategy": strategy, **_figures(plan)})
        except BuildtoolError as error:
            found.append({"strategy": strategy, "error": error.text})
    return found
