"""msf-CNN's choice as an executable plan: each block a region of one H-cached group, all else one by one.

The model does not see residuals, and neither the network's input nor its last output. So each choice
of the model's front becomes a plan, and limits and figures are those of the plans.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from buildtool.base.errors import PlanError, UsageError, suggest
from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Session
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.baselines.choice import chosen
from buildtool.plan.baselines.msf_layers import chain, layer
from buildtool.plan.baselines.msf_solve import all_blocks, front
from buildtool.plan.schedule.inner import objection
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Plan, Region, Scheme
from buildtool.target import catalogue
from buildtool.target.digest import planning_digest
from buildtool.target.types import KernelVariant, Target

STRATEGY = "msf-cnn"


def plan_msf(
    graph: Graph,
    target: Target,
    *,
    ram: int | None = None,
    max_f: float | None = None,
    in_place: str = InPlace.ROWS,
    image: str = Image.OVERWRITABLE,
    session: Session | None = None,
) -> Plan:
    """The plan of msf-CNN's choice.

    Of the choices on the model's front: with `ram` (bytes of the arena; the second problem) the one
    of the least work that fits, else (the first problem) the one of the least arena with no more work
    than `max_f` times the network's own (None: whatever it takes). Raises PlanError if none keeps the
    limits, UsageError for a network without a chain of convolutions.
    """
    session = session or Session()
    # one network is asked about under several limits
    key = (topology_digest(graph), planning_digest(target), in_place, image)
    plans = session.remember(STRATEGY, key, lambda: _plans(graph, target, in_place, image, session))
    plan = chosen(plans, ram, max_f)
    if plan is None:
        raise _refusal(plans, ram, max_f)
    return plan


def _plans(graph: Graph, target: Target, in_place: str, image: str, session: Session) -> tuple[Plan, ...]:
    kernels = catalogue.select_all(target, graph)
    return tuple(
        _executable(graph, target, fused, in_place, image, session) for fused in _fused(graph, kernels)
    )


def _fused(graph: Graph, kernels: Sequence[KernelVariant | None]) -> list[list[tuple[int, ...]]]:
    """Of each choice on the model's front, the operators of its blocks of several layers."""
    layers = chain(graph)
    if not layers:
        raise UsageError(
            "msf-cnn plans chains of convolutions, and the network begins with none",
            hint=suggest("it serves every network", strategy="best"),
        )
    owned = [  # a layer and the additions that follow it
        tuple(p for p in range(start, end) if graph.ops[p].kind not in ALIAS_KINDS)
        for start, end in pairwise([*layers, layers[-1] + 1])
    ]
    possible = {
        (m, n): cost
        for (m, n), cost in all_blocks([layer(graph, graph.ops[p]) for p in layers]).items()
        if n - m == 1 or objection(graph, _joined(owned[m:n]), kernels) is None
    }
    return [
        [_joined(owned[m:n]) for m, n in choice.blocks if n - m > 1]
        for choice in front(possible, len(layers))
    ]


def _joined(parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(position for part in parts for position in part)


def _executable(
    graph: Graph,
    target: Target,
    fused: Sequence[tuple[int, ...]],
    in_place: str,
    image: str,
    session: Session,
) -> Plan:
    kernels = catalogue.select_all(target, graph)
    groups = {ops[0]: Group(ops, Scheme.H_CACHED, 1, 1) for ops in fused}
    covered = {p for ops in fused for p in ops[1:]}
    regions = tuple(
        Region((groups.get(position, Group((position,))),))
        for position, kernel in enumerate(kernels)
        if kernel is not None and position not in covered
    )
    timeline = Timeline.of(graph, regions, image, session)
    return assemble(timeline, target, kernels, strategy=STRATEGY, in_place=in_place)


def _refusal(tried: Sequence[Plan], ram: int | None, max_f: float | None) -> PlanError:
    """What none of the choices kept, and the nearest limits that one would."""
    allowed = [p for p in tried if max_f is None or p.f <= max_f] or tried
    nearest = min(allowed, key=lambda p: (p.arena_bytes, p.macs))
    if ram is not None and nearest.arena_bytes > ram:
        return PlanError(
            f"msf-cnn needs an arena of {nearest.arena_bytes} bytes, {ram} are allowed: "
            f"{nearest.arena_bytes - ram} too many",
            hint=[suggest(ram=nearest.arena_bytes), suggest(strategy="best")],
        )
    least = min(tried, key=lambda p: (p.f, p.arena_bytes))
    return PlanError(
        f"msf-cnn multiplies the work by {least.f:.3f} at least, {max_f} is allowed",
        hint=[suggest(max_f=math.ceil(least.f * 1000) / 1000), suggest(strategy="best")],
    )
