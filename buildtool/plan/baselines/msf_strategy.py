"""msf-CNN's choice as an executable plan: each block a region of one H-cached group, all else one by one.

The model does not see residuals, and neither the network's input nor its last output. So each choice
of the model's front becomes a plan, and limits and figures are those of the plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Session
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.baselines.msf_model import all_blocks, chain, front, layer
from buildtool.plan.schedule.inner import objection
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Plan, Region, Scheme
from buildtool.target import catalogue
from buildtool.target.digest import planning_digest
from buildtool.target.types import KernelVariant, Target

STRATEGY = "msf-cnn"


def plans(
    graph: Graph,
    target: Target,
    in_place: str = InPlace.ROWS,
    image: str = Image.OVERWRITABLE,
    session: Session | None = None,
) -> tuple[Plan, ...]:
    """The plans of the choices on the model's front; the session keeps them for every limit.

    UsageError for a network without a chain of convolutions.
    """
    session = session or Session()

    def made() -> tuple[Plan, ...]:
        kernels = catalogue.select_all(target, graph)
        return tuple(
            _executable(graph, target, fused, in_place, image, session) for fused in _fused(graph, kernels)
        )

    return session.remember(
        STRATEGY, (topology_digest(graph), planning_digest(target), in_place, image), made
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
    possible = [
        block
        for block in all_blocks([layer(graph, graph.ops[p]) for p in layers])
        if block.end - block.first == 1
        or objection(graph, _joined(owned[block.first : block.end]), kernels) is None
    ]
    return [
        [_joined(owned[block.first : block.end]) for block in choice.parts if block.end - block.first > 1]
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
