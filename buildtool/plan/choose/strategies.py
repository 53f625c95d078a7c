"""The strategies that follow other systems: msf-CNN's blocks, xcore-opt's strips."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildtool.plan.choose.problem import Prepared
    from buildtool.plan.types import Plan


def msf_cnn(prepared: Prepared) -> Plan:
    """msf-CNN's choice within `ram` and `max_f`."""
    from buildtool.plan.baselines.msf_strategy import plan_msf

    options = prepared.options
    return plan_msf(
        prepared.graphs[0],
        prepared.target,
        ram=options.ram,
        max_f=options.max_f,
        in_place=options.in_place,
        image=options.image,
        session=prepared.session,
    )


def xcore_strips(prepared: Prepared) -> Plan:
    """The given segments in strips, or the best ones found within `ram` and `max_f`."""
    from buildtool.plan.baselines.strip_search import best_strips
    from buildtool.plan.baselines.strips import parse_segments, plan_strips

    graph, target, options = prepared.graphs[0], prepared.target, prepared.options
    if options.segments:
        return plan_strips(
            graph,
            target,
            parse_segments(options.segments),
            in_place=options.in_place,
            image=options.image,
            session=prepared.session,
        )
    return best_strips(
        graph,
        target,
        ram=options.ram,
        max_f=options.max_f,
        in_place=options.in_place,
        image=options.image,
        session=prepared.session,
    )
