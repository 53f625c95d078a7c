"""The Pareto front of a model on a board, and the plans of other strategies."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypedDict

import msgpack

from buildtool.api.answers.estimate import price
from buildtool.base.errors import BuildtoolError, PlanError
from buildtool.base.modes import Image, Objective, Strategy
from buildtool.base.plain import from_plain
from buildtool.base.session import Namespace
from buildtool.base.work import PLANNING
from buildtool.emit.image import image_layout
from buildtool.firmware.needs import refuse_weights
from buildtool.firmware.planned import prepare, prepare_each
from buildtool.graph.partviews import tensors_written_in_place
from buildtool.plan.choose.cache import parts
from buildtool.plan.choose.choose import choose_plan, front, settle
from buildtool.plan.choose.fronts import front_factor, search_front
from buildtool.plan.choose.limits import estimate_ms
from buildtool.plan.choose.loads import with_loads
from buildtool.plan.choose.problem import Prepared, settings
from buildtool.plan.codec import digest
from buildtool.plan.models import load_network
from buildtool.schema.boards import Price
from buildtool.schema.fronts import Point
from buildtool.target.choice import load_target

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Front
    from buildtool.base.files import NetworkSpec
    from buildtool.base.session import Session
    from buildtool.firmware.planned import Planned as PlannedNetwork
    from buildtool.plan.choose.fronts import Point as Planned
    from buildtool.plan.types import Plan
    from buildtool.schema.fronts import Figures, FrontAnswer, Peer, Refusal
    from buildtool.target.types import Target

CHEAPER = 0.9  # factor: a point with more memory and no less work has to cost this much less to stay


def front_of(request: Front, session: Session) -> FrontAnswer:
    """Returns the answer to a `front` request. Raises PlanError if no plan is within the limits.

    Without a limit on memory, the front includes points that the board has no room for.
    """
    from buildtool.target import catalogue

    target, options = load_target(request.target, session), request.options
    network = load_network(request.model, session)
    prepared = settle(prepare(network, target, options, session))
    graph = prepared.graphs[0]
    refuse_weights(target, options, image_layout(graph, catalogue.select_all(target, graph)).size)
    problems = [settle(one) for one in prepare_each(network, target, options, session)]
    rows = _join_fronts([session.keep(FRONTS, parts(one), partial(_find_front, one)) for one in problems])
    if not rows["points"]:
        # choosing the plan with the least memory raises the error that says why no plan is within the limits
        free = replace(prepared.options, objective=Objective.RAM)
        choose_plan(replace(prepared, options=free, bounded=False))
        raise PlanError("no plan of the front is within the limits", path=prepared.path)
    searched = settings(prepared)
    return {
        "model": network.model.name,
        "board": target.board.name,
        "image": options.image,
        "in_place": options.in_place,
        "hand_offs": list(searched.hand_offs),
        "max_f": options.max_f or searched.max_f,
        "arenas_in": list(prepared.target.board.holders),
        "available_bytes": prepared.available,
        "state_bytes": prepared.state_bytes,
        "hop": options.hop,
        "macs": rows["macs"],
        "cost_unit": str(target.cost_unit),
        "points": [{**p, "estimated_ms": estimate_ms(p["cost"], target)} for p in rows["points"]],
        "beside": peers_of(prepared, request.peers),
        "search_factor": rows["search_factor"],
        "placing_ended": rows["placing_ended"],
        "order_status": prepared.order_status,
        "accounting": rows["accounting"],
    }


class FrontFigures(TypedDict):
    """The figures of a front, in the form in which it is cached.

    `points` have no milliseconds, because these depend on the board's clock.
    """

    macs: int
    points: list[Point]
    search_factor: float
    placing_ended: bool
    accounting: list[str]


def _find_front(prepared: Prepared) -> FrontFigures:
    points, ended = front(prepared, prepared.options.ram)
    return {
        "macs": points[0].plan.macs_layerwise if points else 0,
        "points": [{**in_figures(p, prepared.target), "estimated_ms": None} for p in points],
        "search_factor": front_factor(prepared),
        "placing_ended": ended,
        "accounting": list(points[0].plan.accounting) if points else [],
    }


def _join_fronts(fronts: list[FrontFigures]) -> FrontFigures:
    """Returns one Pareto front, made of the fronts of several networks that compute the same moving window.

    These networks differ in the rows that they keep between invokes. Points are sorted by memory. A point is
    left out if a smaller one does no more work; but it stays if it costs at most CHEAPER times as much as the
    cheapest smaller one.
    """
    first, *others = fronts
    if not others:
        return first
    every = [point for one in fronts for point in one["points"]]
    points, macs, cost = list[Point](), math.inf, math.inf
    for point in sorted(every, key=lambda p: (p["arena_bytes"] + p["state_bytes"], p["macs"], p["cost"])):
        if point["macs"] < macs or point["cost"] <= CHEAPER * cost:
            points.append(point)
            macs, cost = min(macs, point["macs"]), min(cost, point["cost"])
    return {
        "macs": max(one["macs"] for one in fronts),
        "points": points,
        "search_factor": max(one["search_factor"] for one in fronts),
        "placing_ended": any(one["placing_ended"] for one in fronts),
        "accounting": next((one["accounting"] for one in fronts if one["accounting"]), []),
    }


def _unpack(data: bytes) -> FrontFigures:
    figures: FrontFigures = from_plain(msgpack.unpackb(data), FrontFigures, "front")
    return figures


FRONTS: Namespace[FrontFigures] = Namespace("fronts", msgpack.packb, _unpack)


class Instead(TypedDict):
    """The result of `point_instead`, in the form in which it is cached."""

    price: Price | None


def _unpack_instead(data: bytes) -> Instead:
    instead: Instead = from_plain(msgpack.unpackb(data), Instead, "front point")
    return instead


# No clash with FRONTS: these keys also have a plan.
INSTEAD: Namespace[Instead] = Namespace("fronts", msgpack.packb, _unpack_instead)


def point_instead(planned: PlannedNetwork, spec: NetworkSpec) -> Price | None:
    """Returns a point of the Pareto front that is smaller or does less work than the plan, but costs more.

    A plan with the least cost within a limit on memory need not be a point of the front. The returned point
    needs no more memory and does no more work than this plan; of several such points it is the one with the
    least work. Returns None if there is no such point, if the request has no limit on memory, or if the plan
    does not minimise cost.
    """
    options, session = planned.options, planned.session
    by_cost = options.strategy == Strategy.BEST and options.objective == Objective.COST
    if options.ram is None or not by_cost:
        return None
    network = load_network(spec, session)
    prepared = replace(prepare(network, planned.target, options, session), target=planned.target)
    key = {**parts(prepared), "plan": digest(planned.plan)}
    return session.keep(INSTEAD, key, lambda: {"price": _find_point(prepared, planned.plan)})["price"]


def _find_point(prepared: Prepared, plan: Plan) -> Price | None:
    """Returns the point that `point_instead` describes, or None.

    Its buffers are placed, which proves that it needs no more memory than the plan.
    """
    for graph in prepared.graphs:
        alone = prepared.with_graph(graph)
        if tensors_written_in_place(graph):
            continue
        found = search_front(alone)
        for index in reversed(range(len(found.points))):
            point = found.points[index]
            if point.live_bytes > plan.arena_bytes or point.work > plan.macs:
                continue
            with prepared.session.budget(PLANNING):
                other = with_loads(found.plan(index), alone, None)
            is_other = (other.arena_bytes, other.macs) != (plan.arena_bytes, plan.macs)
            if other.arena_bytes <= plan.arena_bytes and is_other and other.cost > plan.cost:
                return price(other, prepared.target)
    return None


def in_figures(point: Planned, target: Target) -> Point:
    """Returns the figures of a point of the front."""
    plan = point.plan
    return {
        "live_bytes": point.live_bytes,
        "state_bytes": plan.state_bytes,
        "strategy": plan.strategy,
        **figures(plan, target),
    }


def figures(plan: Plan, target: Target) -> Figures:
    """Returns the figures of a plan as answers give them: memory, cost, work, and the number of its
    regions.
    """
    streamed = [region for region in plan.regions if region.is_streamed]
    return {
        **price(plan, target),
        "arena_bound_bytes": plan.arena_bound_bytes,
        "macs": plan.macs,
        "regions": len(plan.regions),
        "streamed_regions": len(streamed),
        "groups": sum(len(region.groups) for region in streamed),
    }


def peers_of(prepared: Prepared, peers: bool) -> list[Peer | Refusal]:
    """Returns the figures of other strategies' plans for this network, or why a strategy makes no plan.

    The first plan runs layer by layer; it is left out for a streamed input image. If `peers` is true, plans
    of msf-cnn and xcore-strips follow.
    """
    strategies = [] if prepared.options.image == Image.STREAM else [Strategy.LAYERWISE]
    strategies += [Strategy.MSF_CNN, Strategy.XCORE_STRIPS] if peers else []
    others: list[Peer | Refusal] = []
    for strategy in strategies:
        options = replace(prepared.options, strategy=strategy, hand_off=None)
        try:
            _, plan = choose_plan(prepared.with_strategy(options))
            others.append({"strategy": strategy, **figures(plan, prepared.target)})
        except BuildtoolError as error:
            others.append({"strategy": strategy, "error": error.text})
    return others
