"""From regions to a placed plan, in five steps: lives, buffers, overlaps, offsets, totals.

Tensors between regions are whole. Inside a streamed region a tensor is a ring (between groups) or a
column window (inside a group). The windows and the kernel scratch of different groups of a region are
never in use at the same time, so they share memory (see `workspace`). Whoever asks for a plan of some
regions, layer by layer or streamed, is answered here; so equal regions give equal plans.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from buildtool.base.session import Session
from buildtool.graph.macs import total_macs
from buildtool.graph.partviews import views
from buildtool.graph.topology import topology_digest
from buildtool.plan.assemble.buffers import accumulators, state_buffers, tensor_buffers
from buildtool.plan.assemble.moves import least_between
from buildtool.plan.assemble.offsets import lay
from buildtool.plan.assemble.overlaps import overlaps
from buildtool.plan.assemble.regionfacts import RegionFacts, Regions
from buildtool.plan.assemble.workspace import Ticks, with_turns
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, Overlap, Plan
from buildtool.target.digest import planning_digest
from buildtool.target.types import KernelVariant, Target

ASSEMBLED = 2_000  # units of work a buffer: all that putting a plan together takes beside its offsets


class Contents(NamedTuple):
    """What lies in the arena: steps 1 to 3 of the five."""

    facts: list[RegionFacts]
    buffers: list[Buffer]
    overlaps: list[Overlap]


def contents(
    timeline: Timeline,
    regions: Regions,
    apart: Collection[int] = (),
    turns: Mapping[int, int] = MappingProxyType({}),
) -> Contents:
    """Buffers and overlaps of a timeline, and what is known of each of its regions.

    `turns`: as in `assemble`.
    """
    # 1. The timeline says when each tensor's and each operator's memory is touched first and last.
    # 2. What lies in the arena: workspaces of regions, whole tensors and rings, sums of poolings.
    facts = [regions.facts(run) for run in timeline.runs]
    if turns:
        alignment = regions.target.board.alignment
        facts = [
            known._replace(workspace=with_turns(known.workspace, run.region, turns, alignment))
            for known, run in zip(facts, timeline.runs, strict=True)
        ]
    inside = {window.tensor for known in facts for window in known.workspace.windows}
    in_rings = (ring for known in facts for ring in known.rings)
    buffers = [*tensor_buffers(timeline, inside, in_rings), *accumulators(timeline)]

    # 3. Which of these may lie on each other.
    streamed = (overlap for known in facts for overlap in known.overlaps)
    return Contents(facts, buffers, overlaps(timeline, regions.permitted, streamed, buffers, apart))


def region_bounds(timeline: Timeline, regions: Regions, apart: Collection[int] = ()) -> list[int]:
    """Region -> bytes that the arena has at the least while it runs, wherever tensors are moved to."""
    if not timeline.regions:  # a network whose outputs are its inputs
        return []
    facts, buffers, permitted = contents(timeline, regions, apart)
    ticks = Ticks(timeline, [known.workspace for known in facts])
    timed = [*map(ticks.timed, buffers), *ticks.pieces()]
    alignment = regions.target.board.alignment
    return least_between(timed, permitted, alignment, ticks.starts) if timed else []


def assemble(
    timeline: Timeline,
    target: Target,
    kernels: Sequence[KernelVariant | None],
    *,
    strategy: str,
    in_place: str,
    extra: Sequence[Buffer] = (),
    apart: Collection[int] = (),
    turns: Mapping[int, int] = MappingProxyType({}),
    enough: float = 0,
    session: Session | None = None,
) -> Plan:
    """The plan that runs a timeline's regions with `kernels` (one an operator, None for aliases), laid.

    `extra`: buffers of other use, which are placed with the rest and come last in the plan; `apart`:
    operators whose output must not lie on their input; `turns`: by operator, bytes of constants that come
    with every turn of its group. `enough`: an arena of so many bytes is low
    enough: no tensor is moved between regions to lower it further (math.inf: tensors never move).
    """
    graph, alignment = timeline.graph, target.board.alignment
    regions = Regions.of(graph, kernels, target, timeline.image, in_place, session)

    facts, buffers, permitted = contents(timeline, regions, apart, turns)
    spaces = [known.workspace for known in facts]

    session = session or Session()
    session.work.spend(ASSEMBLED * (len(buffers) + len(extra)))

    # 4. Offsets as low as found; tensors move between regions where that makes the arena lower.
    laid, moves = lay(timeline, buffers, extra, spaces, permitted, alignment, enough, session)

    # 5. What it comes to.
    moved = [laid.buffers[move.source].size for move in moves]
    return Plan(
        strategy=strategy,
        topology=topology_digest(graph),
        target=planning_digest(target),
        image=timeline.image,
        regions=timeline.regions,
        kernels=tuple(kernel.name if kernel else "" for kernel in kernels),
        buffers=laid.buffers,
        overlaps=laid.overlaps,
        alignment=alignment,
        arena_bytes=laid.height,
        arena_bound_bytes=laid.bound,
        macs=sum(known.macs for known in facts),
        macs_layerwise=total_macs(graph),
        cost=sum((known.cost for known in facts), 0.0) + sum(map(regions.model.pricer.move, moved)),
        cost_unit=target.cost_unit,
        accounting=_accounting(target, timeline.image, in_place),
        moves=moves,
        states=state_buffers(graph, timeline.last, alignment),
        second_passes=graph.second_passes,
        views=views(graph),
    )


def _accounting(target: Target, image: str, in_place: str) -> tuple[str, ...]:
    """What the arena's bytes count, in words."""
    overlaps = {
        "rows": "an output may lie over rows of its input that are dead",
        "elementwise": "an output may lie over its dying input element by element",
        "none": "no output lies over its input",
    }
    inputs = {
        "overwritable": "the network's inputs are in the arena; their memory is used again once read",
        "resident": "the network's inputs are in the arena to the end",
        "stream": "the network's input comes row by row; the rows still needed are in the arena",
    }
    return (
        inputs[image],
        "the network's outputs are in the arena until the end",
        "reshaped tensors share their bytes",
        overlaps[in_place],
        "kernel scratch is in the arena during its operator",
        f"offsets and sizes are rounded up to {target.board.alignment} bytes",
        "stack, weights and the application's memory are not in the arena",
    )
