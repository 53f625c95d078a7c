"""What a plan comes to, region by region: bytes live while it runs and what they are, work, calls, cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from buildtool.graph.macs import op_macs
from buildtool.graph.types import Graph
from buildtool.plan.assemble.totals import costs, executed_macs, move_cost
from buildtool.plan.schedule.schedule import Steps
from buildtool.plan.schedule.timeline import Timeline, calls
from buildtool.plan.summary.memory import Held, Holders, Moment, Use
from buildtool.plan.types import SOURCE, Plan, Region
from buildtool.session import Session
from buildtool.target.types import KernelVariant


@dataclass(frozen=True)
class Work:
    """What some operators do in all their steps: multiply-accumulates, kernel calls, the target's cost.

    `once`: multiply-accumulates of the same operators run once, one by one.
    """

    macs: int
    once: int
    calls: int
    cost: float

    @property
    def f(self) -> float:
        """Multiply-accumulates executed over those of the operators run once."""
        return self.macs / self.once if self.once else 1.0


@dataclass(frozen=True)
class RegionSummary:
    """One region: its steps [first, last], where it is fullest, what is live there, and its work.

    `parts`: (use, bytes) at the fullest step; they add up to its bytes and `shared`, which is what
    lies on each other. `held`: all buffers that are live in any of its steps. `delivered`: rows of a
    streamed image that it waits for, each a call of its `work` beside those of its groups. `operators`:
    of each, in order: its position, most bytes live in any of its steps, its own work. `moved`: bytes of
    tensors that are copied within the arena before it begins; `work` has their cost.
    """

    first: int
    last: int
    fullest: Moment
    parts: tuple[tuple[Use, int], ...]
    shared: int
    held: tuple[Held, ...]
    at_fullest: tuple[Held, ...]
    work: Work
    groups: tuple[Work, ...]
    delivered: int
    operators: tuple[tuple[int, int, Work], ...]
    moved: int


@dataclass(frozen=True)
class Summary:
    """A plan, region by region.

    `live`: bytes live in the fullest step of all, that of region `fullest`; the rest of the arena is
    lost between buffers. `without_weights`: the same if constants took no memory.
    """

    regions: tuple[RegionSummary, ...]
    fullest: int
    live: int
    without_weights: int


def summarize(
    plan: Plan,
    graph: Graph,
    kernels: Sequence[KernelVariant | None],
    session: Session | None = None,
) -> Summary:
    """The summary of a placed plan; `kernels`: one an operator, None for aliases.

    `session`: what may know the plan's timeline already.
    """
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    at = Holders(plan, graph)
    moving: dict[int, list[int]] = {}  # step -> bytes of what is moved before it
    for move in plan.moves:
        target = plan.buffers[move.target]
        moving.setdefault(target.first, []).append(target.size)
    found: list[RegionSummary] = []
    without = 0
    for run, first in zip(timeline.runs, timeline.starts, strict=False):
        work = _work_by_operator(graph, kernels, run.steps)
        summary, bare = _region(run.region, run.steps, first, at, work, moving.get(first, []))
        found.append(summary)
        without = max(without, bare)
    live = max((r.fullest.bytes for r in found), default=0)
    place = next((i for i, r in enumerate(found) if r.fullest.bytes == live), -1)
    return Summary(tuple(found), place, live, without)


def _region(
    region: Region, steps: Steps, first: int, at: Holders, work: dict[int, Work], moved: Sequence[int]
) -> tuple[RegionSummary, int]:
    """One region, and the most bytes live in it if constants took no memory."""
    last = first + len(steps) - 1
    held = at.held(region, first, last)
    fullest, live, alive = at.fullest(region, held, first, steps)
    bare = [h for h in held if h.use is not Use.WEIGHTS]
    least = fullest if len(bare) == len(held) else at.fullest(region, bare, first, steps)[0]
    parts = at.parts(live)
    delivered = work.get(SOURCE)
    whole = [*(work[op] for op in region.ops), *([delivered] if delivered else [])]
    summary = RegionSummary(
        first=first,
        last=last,
        fullest=fullest,
        parts=parts,
        shared=sum(size for _, size in parts) - fullest.bytes,
        held=tuple(held),
        at_fullest=tuple(live),
        work=_together([*whole, Work(0, 0, 0, sum(map(move_cost, moved)))]),
        groups=tuple(_together(work[op] for op in group.ops) for group in region.groups),
        delivered=delivered.calls if delivered else 0,
        operators=tuple((op, alive.get(op, 0), work[op]) for op in region.ops),
        moved=sum(moved),
    )
    return summary, least.bytes


def peak(plan: Plan, graph: Graph, *, weights: bool = True, session: Session | None = None) -> Moment | None:
    """The first step in which most bytes are live; None for a plan without steps.

    `weights`: whether buffers of constants count.
    """
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    at = Holders(plan, graph)
    best: Moment | None = None
    for run, first in zip(timeline.runs, timeline.starts, strict=False):
        held = at.held(run.region, first, first + len(run.steps) - 1)
        counted = [h for h in held if weights or h.use is not Use.WEIGHTS]
        moment, _, _ = at.fullest(run.region, counted, first, run.steps)
        if best is None or moment.bytes > best.bytes:
            best = moment
    return best


def _work_by_operator(graph: Graph, kernels: Sequence[KernelVariant | None], steps: Steps) -> dict[int, Work]:
    """Operator (SOURCE: deliveries of rows) -> what it does in a region's steps."""
    macs, cost = executed_macs(graph, steps), costs(graph, kernels, steps)
    return {
        op: Work(macs.get(op, 0), op_macs(graph, graph.ops[op]) if op != SOURCE else 0, count, cost[op])
        for op, count in calls(steps).items()
    }


def _together(parts: Iterable[Work]) -> Work:
    """The work of several."""
    found = list(parts)
    return Work(
        sum(w.macs for w in found),
        sum(w.once for w in found),
        sum(w.calls for w in found),
        sum(w.cost for w in found),
    )
