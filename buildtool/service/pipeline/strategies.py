"""The strategies that follow other systems: msf-CNN's blocks, xcore-opt's strips."""

from __future__ import annotations

from buildtool.errors import PlanError
from buildtool.graph.types import Graph
from buildtool.plan.types import Plan
from buildtool.service.pipeline.options import PlanOptions
from buildtool.target.types import Target


def msf_cnn(graph: Graph, target: Target, options: PlanOptions) -> Plan:
    """msf-CNN's choice within `ram` and `max_f`."""
    from buildtool.plan.baselines.msf_strategy import plan_msf

    return plan_msf(
        graph,
        target,
        ram=options.ram,
        max_f=options.max_f,
        in_place=options.in_place,
        image=options.image,
    )


def xcore_strips(graph: Graph, target: Target, options: PlanOptions) -> Plan:
    """The given segments in strips, or the best ones found; within `ram` and `max_f`."""
    from buildtool.plan.baselines.strip_search import best_strips
    from buildtool.plan.baselines.strips import parse_segments, plan_strips

    if not options.segments:
        return best_strips(
            graph,
            target,
            ram=options.ram,
            max_f=options.max_f,
            in_place=options.in_place,
            image=options.image,
        )
    segments = parse_segments(options.segments)
    plan = plan_strips(graph, target, segments, in_place=options.in_place, image=options.image)
    if options.ram is not None and plan.arena_bytes > options.ram:
        raise PlanError(
            f"these segments need an arena of {plan.arena_bytes} bytes, {options.ram} are allowed: "
            f"{plan.arena_bytes - options.ram} too many",
            hint="leave out --segments to have them searched",
        )
    if options.max_f is not None and plan.f > options.max_f:
        raise PlanError(
            f"these segments multiply the work by {plan.f:.3f}, {options.max_f} is allowed",
            hint="leave out --segments to have them searched",
        )
    return plan
