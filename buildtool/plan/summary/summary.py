"""Summary of a plan: its fullest step, and for each region the live bytes by use, work, and cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from buildtool.base.layers import short_names
from buildtool.base.session import Session
from buildtool.graph.macs import op_macs, pixel_macs
from buildtool.graph.types import Graph
from buildtool.plan.place.arena import arena_problem
from buildtool.plan.schedule.costs import CostModel, region_calls
from buildtool.plan.schedule.schedule import Run
from buildtool.plan.schedule.timeline import Timeline, load_steps
from buildtool.plan.summary.memory import ArenaUse, LiveBuffer, Moment, Use
from buildtool.plan.types import Load, Plan
from buildtool.target.types import Costs, KernelVariant


@dataclass(frozen=True)
class Work:
    """The work of some operators in all their steps.

    macs: executed multiply-accumulates.
    once: their multiply-accumulates if every pixel is computed only once.
    calls: kernel calls.
    cost: in the target's unit.
    """

    macs: int
    once: int
    calls: int
    cost: float

    @property
    def f(self) -> float:
        """Returns the executed multiply-accumulates divided by those where every pixel is computed once."""
        return self.macs / self.once if self.once else 1.0


@dataclass(frozen=True)
class RegionSummary:
    """One region of a plan: its live bytes and its work.

    first, last: its first and its last step.
    fullest: its first step with the most live bytes.
    parts: (use, bytes) at the fullest step; their sum is the step's bytes plus `shared`.
    shared: the bytes that overlapping buffers share at the fullest step.
    buffers: those that are live in any of its steps.
    at_fullest: those that are live in the fullest step.
    work: of all its operators, with delivered rows and moved tensors.
    groups: the work of each group.
    delivered: rows of a streamed image that it waits for; each is a call in its `work`.
    operators: for each operator its position, the most live bytes of its steps, and its own work.
    moved: bytes of tensors that are copied within the arena before the region begins; `work` includes their
        cost.
    """

    first: int
    last: int
    fullest: Moment
    parts: tuple[tuple[Use, int], ...]
    shared: int
    buffers: tuple[LiveBuffer, ...]
    at_fullest: tuple[LiveBuffer, ...]
    work: Work
    groups: tuple[Work, ...]
    delivered: int
    operators: tuple[tuple[int, int, Work], ...]
    moved: int


@dataclass(frozen=True)
class Summary:
    """A plan, region by region.

    regions: their summaries.
    fullest: the position of the region with the most live bytes; -1 if there are no regions.
    live: the most live bytes of any step. The rest of the arena is gaps between buffers.
    without_weights: the most live bytes if buffers of constants do not count.
    """

    regions: tuple[RegionSummary, ...]
    fullest: int
    live: int
    without_weights: int

    @property
    def peak(self) -> Moment | None:
        """Returns the first step with the most live bytes; None if there are no steps."""
        return self.regions[self.fullest].fullest if self.fullest >= 0 else None


def summarize(
    plan: Plan,
    graph: Graph,
    kernels: Sequence[KernelVariant | None],
    costs: Costs,
    session: Session | None = None,
) -> Summary:
    """Returns the summary of a placed plan.

    `kernels`: one per operator, None for aliases. `costs`: the target's. `session`: may already have the
    plan's timeline.
    """
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    at = ArenaUse(plan, graph)
    found: list[RegionSummary] = []
    without = 0
    works = _list_work(plan, timeline, CostModel(graph, kernels, costs))
    for run, first, work in zip(timeline.runs, timeline.starts, works, strict=False):
        summary, bare = _region(plan, run, first, at, work)
        found.append(summary)
        without = max(without, bare)
    live = max((r.fullest.bytes for r in found), default=0)
    place = next((i for i, r in enumerate(found) if r.fullest.bytes == live), -1)
    return Summary(tuple(found), place, live, without)


def estimate_cost(
    plan: Plan,
    graph: Graph,
    kernels: Sequence[KernelVariant | None],
    costs: Costs,
    session: Session | None = None,
) -> float:
    """Returns the plan's cost, computed from its steps; the arguments are those of `summarize`."""
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    return sum(work.total.cost for work in _list_work(plan, timeline, CostModel(graph, kernels, costs)))


class _RegionWork(NamedTuple):
    """What a region does.

    operators: the work of each operator.
    delivered: rows of a streamed image that it waits for.
    moved: bytes of tensors that are moved before it.
    total: the sum of the work.
    """

    operators: Mapping[int, Work]
    delivered: int
    moved: int
    total: Work


def _list_work(plan: Plan, timeline: Timeline, model: CostModel) -> Iterator[_RegionWork]:
    """Yields the work of each region."""
    graph = timeline.graph
    moving: dict[int, list[int]] = {}  # step -> bytes of what is moved before it
    for move in plan.moves:
        target = plan.buffers[move.target]
        moving.setdefault(target.first, []).append(target.size)
    loads: dict[int, list[Load]] = {}  # operator -> its loads, one for each time that its constants come
    for _, load in load_steps(timeline, plan.loads, plan.buffers):
        loads.setdefault(load.op, []).append(load)
    for region, first in zip(timeline.regions, timeline.starts, strict=False):
        does, moved = region_calls(graph, region, plan.image), moving.get(first, [])
        own = {}
        for op in region.ops:  # with what it costs that its weights are brought into the arena
            calls, here = does.operators[op], graph.ops[op]
            cost = model.operator(op, calls, region.is_streamed) + sum(map(model.loading, loads.get(op, [])))
            own[op] = Work(pixel_macs(graph, here, calls.pixels), op_macs(graph, here), calls.times, cost)
        beside = model.delivery(does.delivered) + sum(map(model.pricer.move, moved))
        total = _together(own.values(), does.delivered, beside)
        yield _RegionWork(own, does.delivered, sum(moved), total)


def _region(plan: Plan, run: Run, first: int, at: ArenaUse, work: _RegionWork) -> tuple[RegionSummary, int]:
    """Returns the summary of one region, and its most live bytes without buffers of constants.

    `first`: the number of its first step. `at`: has gone through the regions before this one.
    """
    region, last, own = run.region, first + run.count - 1, work.operators
    buffers = at.buffers(region, first, last)
    fullest, live, alive = at.fullest(run, buffers, first)
    bare = [h for h in buffers if h.use is not Use.WEIGHTS]
    least = fullest if len(bare) == len(buffers) else at.fullest(run, bare, first)[0]
    parts = at.parts(live)
    summary = RegionSummary(
        first=first,
        last=last,
        fullest=fullest,
        parts=parts,
        shared=sum(size for _, size in parts) - fullest.bytes,
        buffers=tuple(buffers),
        at_fullest=tuple(live),
        work=work.total,
        groups=tuple(_together(own[op] for op in group.ops) for group in region.groups),
        delivered=work.delivered,
        operators=tuple((op, alive.get(op, 0), own[op]) for op in region.ops),
        moved=work.moved,
    )
    return summary, least.bytes


def peak(plan: Plan, graph: Graph, *, weights: bool = True, session: Session | None = None) -> Moment | None:
    """Returns the first step with the most live bytes; None for a plan without steps.

    `weights`: whether buffers of constants count.
    """
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    at = ArenaUse(plan, graph)
    moments = list[Moment]()
    for run, first in zip(timeline.runs, timeline.starts, strict=False):
        buffers = at.buffers(run.region, first, first + run.count - 1)
        counted = [h for h in buffers if weights or h.use is not Use.WEIGHTS]
        moments.append(at.fullest(run, counted, first)[0])
    return max(moments, key=lambda moment: moment.bytes, default=None)


def _together(works: Iterable[Work], more_calls: int = 0, more_cost: float = 0.0) -> Work:
    """Returns the sum of the work of some operators, and of further calls and costs."""
    every = list(works)
    return Work(
        sum(work.macs for work in every),
        sum(work.once for work in every),
        sum(work.calls for work in every) + more_calls,
        sum(work.cost for work in every) + more_cost,
    )


@dataclass(frozen=True)
class Binding:
    """The step with the most live bytes (the first one, if there are several), and its operator.

    op: the operator's position; -1 if the step has no operator.
    place: the operator's number and kind.
    layer: its `layer_name`.
    step: the step's number.
    live_bytes: aligned; shared bytes count once. In a streamed region windows and scratch count only while
        they are in use.
    """

    op: int
    place: str
    layer: str
    step: int
    live_bytes: int

    @property
    def operator(self) -> str:
        """Returns the operator for error messages, such as "#12 CONV_2D (block3/expand)"; else the step."""
        return f"{self.place} ({self.layer})" if self.place else f"step {self.step}"


def binding(
    plan: Plan, graph: Graph, session: Session | None = None, moment: Moment | None = None
) -> Binding:
    """Returns the step of a plan with the most live bytes, and its operator.

    `session`: it may already have the plan's timeline. `moment`: this step, if the caller knows it.
    """
    if any(region.is_streamed for region in plan.regions):
        moment = moment or peak(plan, graph, session=session)
        assert moment is not None
        op, step, live = moment.step.op, moment.number, moment.bytes
    else:
        most = arena_problem(plan.buffers, plan.overlaps, plan.alignment).bound
        steps = Timeline.of(graph, plan.regions, plan.image, session).steps[:, 0].tolist()
        op, step, live = steps[most.time] if most.time < len(steps) else -1, most.time, most.live
    if op < 0:
        return Binding(op, "", "", step, live)
    return Binding(op, graph.ops[op].place, layer_name(graph, op), step, live)


def layer_name(graph: Graph, position: int) -> str:
    """Returns the short name of an operator's layer, by which tables list it."""
    return short_names([graph.op_name(each) for each in range(len(graph.ops))])[position]
