"""A plan step by step: the cost of each call, the live bytes in each step, and each buffer's place and life.

The cost model computes costs for kinds of calls; here they are divided over the steps. All listed costs add
up to the plan's cost, to the last sixteenth (see `target.costs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.base.session import Session
from buildtool.graph.types import Graph, OpKind
from buildtool.plan.schedule.costs import CostModel, region_calls
from buildtool.plan.schedule.schedule import Run, Steps
from buildtool.plan.schedule.timeline import Timeline, load_steps
from buildtool.plan.summary.memory import ArenaUse
from buildtool.plan.types import SOURCE, Buffer, Load, Move, Plan
from buildtool.target.costs import Rings, part
from buildtool.target.types import Costs, KernelVariant

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Held(NamedTuple):
    """A buffer of the arena, with its position in Plan.buffers and the names of the tensors in it.

    `operator`: the operator that writes the buffer or uses it; -1 for the network's inputs, and for scratch
    of a whole region.
    """

    position: int
    buffer: Buffer
    tensors: tuple[str, ...]
    operator: int


class Brought(NamedTuple):
    """Constants that are loaded into the arena when a step begins, and the cost of the load.

    If the constants are loaded in slices, the cost includes the extra cost of the calls that read them.
    """

    step: int
    load: Load
    cost: float


class Moved(NamedTuple):
    """A tensor of `size` bytes that is copied within the arena before a step begins, and the copy's cost."""

    step: int
    move: Move
    size: int
    cost: float


@dataclass(frozen=True, eq=False)
class PlanSteps:
    """A plan step by step; arrays have one entry per step.

    steps: operator (-1: a row of the input image is delivered), first and end row, first and end column.
    region: the region that runs.
    cost: the cost of the call, in the target's unit.
    live: aligned bytes of the arena in use; shared bytes count once.
    starts: the number of each region's first step, then the number of all steps.
    held: the buffers.
    loads: the constants that are loaded.
    moves: the tensors that are copied.
    """

    steps: Steps
    region: Ints
    cost: Floats
    live: Ints
    starts: tuple[int, ...]
    held: tuple[Held, ...]
    loads: tuple[Brought, ...]
    moves: tuple[Moved, ...]

    @property
    def total(self) -> float:
        """Returns the sum of all costs, which is the plan's cost."""
        beside = sum(one.cost for one in self.loads) + sum(one.cost for one in self.moves)
        return float(self.cost.sum()) + beside


def plan_steps(
    plan: Plan,
    graph: Graph,
    kernels: Sequence[KernelVariant | None],
    costs: Costs,
    session: Session | None = None,
) -> PlanSteps:
    """Returns a placed plan step by step.

    `kernels`: one per operator, None for aliases. `costs`: the target's. `session`: may already have the
    plan's timeline.
    """
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    model, use = CostModel(graph, kernels, costs), ArenaUse(plan, graph)
    cost, live = np.zeros(timeline.starts[-1]), np.zeros(timeline.starts[-1], np.int64)
    for run, first in zip(timeline.runs, timeline.starts, strict=False):
        end = first + run.count
        cost[first:end] = _costs(model, run, run.steps, plan.image)
        live[first:end] = use.by_step(run.region, use.buffers(run.region, first, end - 1), first, run.steps)
    targets = [plan.buffers[move.target] for move in plan.moves]
    lengths = [run.count for run in timeline.runs]
    return PlanSteps(
        steps=timeline.steps,
        region=np.repeat(np.arange(len(lengths)), lengths),
        cost=cost,
        live=live,
        starts=timeline.starts,
        held=held_buffers(plan, graph),
        loads=tuple(
            Brought(step, load, model.loading(load))
            for step, load in load_steps(timeline, plan.loads, plan.buffers)
        ),
        moves=tuple(
            Moved(target.first, move, target.size, model.pricer.move(target.size))
            for move, target in zip(plan.moves, targets, strict=True)
        ),
    )


def held_buffers(plan: Plan, graph: Graph) -> tuple[Held, ...]:
    """Returns a plan's buffers with the names of their tensors, in their order."""
    running = ((position, op) for position, op in enumerate(graph.ops) if op.kind is not OpKind.JOINED)
    makers = {t: position for position, op in running for t in op.outputs}
    buffers = []
    for position, buffer in enumerate(plan.buffers):
        made_by = (makers[t] for t in buffer.tensors if t in makers)
        names = tuple(graph.tensors[t].name for t in buffer.tensors)
        buffers.append(Held(position, buffer, names, buffer.op if buffer.op >= 0 else next(made_by, -1)))
    return tuple(buffers)


def _costs(model: CostModel, run: Run, steps: Steps, image: str) -> Floats:
    """Returns the cost of each step of a region."""
    costs, graph = np.zeros(len(steps)), model.graph
    calls = region_calls(graph, run.region, image).operators
    for op in np.unique(steps[:, 0]).tolist():
        at = np.flatnonzero(steps[:, 0] == op)
        if op == SOURCE:
            costs[at] = model.delivery(1)
            continue
        costs[at] = _calls(model, op, steps[at], run.region.is_streamed, calls[op].rings)
        if run.region.is_streamed and op in model.fed_in_parts:
            costs[at[-1]] += model.pricer.sums_end(model.geometries[op])
    return costs


def _calls(model: CostModel, op: int, steps: Steps, streamed: bool, rings: Rings) -> Floats:
    """Returns the cost of each of an operator's calls.

    `streamed`: whether its region is streamed. `rings`: how many columns of its input and output are kept in
    windows. Many calls have equal ranges of rows or of columns, so equal costs are computed once.
    """
    kernel = model.kernels[op]
    if kernel is None:
        return np.zeros(len(steps))
    of, pricer = model.geometries[op], model.pricer
    rows, row = np.unique(steps[:, 1:3], axis=0, return_inverse=True)
    columns, column = np.unique(steps[:, 3:5], axis=0, return_inverse=True)
    if streamed and op in model.fed_in_parts:
        prices = [
            [pricer.sums(of, y1 - y0, x1 - x0) for x0, x1 in columns.tolist()] for y0, y1 in rows.tolist()
        ]
    else:
        low = [part(of, 0, y0, y1) for y0, y1 in rows.tolist()]
        along = [part(of, 1, x0, x1, rings) for x0, x1 in columns.tolist()]
        prices = [[pricer.cost(kernel, of, y, x) for x in along] for y in low]
    return np.array(prices)[row.reshape(-1), column.reshape(-1)]
