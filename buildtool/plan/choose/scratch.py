"""Kernels with less scratch, where scratch decides how much memory a plan needs.

A network is planned with the best kernel of each operator. If scratch is a large part of that plan's fullest
step, the network is planned once more with the kernels that need the least scratch (`Target.lean`). Then each
operator gets the best kernel whose scratch fits beside the rest of its region.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from buildtool.base.errors import PlanError
from buildtool.base.modes import Objective, Strategy
from buildtool.graph.partviews import tensors_written_in_place
from buildtool.graph.topology import topology_digest
from buildtool.plan.summary.fit import holds
from buildtool.plan.summary.summary import binding
from buildtool.plan.types import BufferKind, Plan
from buildtool.target import catalogue
from buildtool.target.choice import loads
from buildtool.target.types import KernelVariant

if TYPE_CHECKING:
    from buildtool.plan.choose.problem import Prepared
    from buildtool.plan.schedule.timeline import Timeline

NOTICED = 8  # scratch below an eighth of the memory does not matter: leaner kernels are slower
ATTEMPTS = 4  # to place a plan with better kernels in the same memory
Kernels = Sequence[KernelVariant | None]


def may_pay(prepared: Prepared, best: Plan | None) -> bool:
    """Returns whether kernels with less scratch may make a better plan than `best` (None: no plan)."""
    options, board = prepared.options, prepared.target.board
    if options.strategy not in (Strategy.BEST, Strategy.LAYERWISE) or board.second:
        return False
    graph = prepared.graph
    if not any(len(catalogue.leaner(prepared.target, graph, op)) > 1 for op in graph.ops):
        return False
    if best is None or not holds(board, best):
        best = _least(prepared)
    elif options.objective != Objective.RAM and (
        prepared.ram is None or not any(region.is_streamed for region in best.regions)
    ):
        return False
    return best is not None and NOTICED * _binding_savings(prepared, best) >= best.arena_bytes


def _least(prepared: Prepared) -> Plan | None:
    """Returns the plan with the least memory whose operators all have their best kernels.

    The limit on memory does not count. None if no plan is within the other limits.
    """
    from buildtool.plan.choose.planners import plan_of

    options = replace(prepared.options, ram=None, objective=Objective.RAM)
    with contextlib.suppress(PlanError):
        return plan_of(replace(prepared.with_graph(prepared.graph), options=options, bounded=False, gaps={}))
    return None


def _binding_savings(prepared: Prepared, plan: Plan) -> int:
    """Returns the bytes of scratch that leaner kernels save in a plan's fullest step.

    0 for a plan with views.
    """
    graphs = (graph for graph in prepared.graphs if topology_digest(graph) == plan.topology)
    graph = next(graphs, None)
    if graph is None:
        return 0
    step, most = binding(plan, graph, prepared.session).step, 0
    for buffer in plan.buffers:
        if buffer.kind is BufferKind.SCRATCH and buffer.first <= step <= buffer.last:
            lean = catalogue.leaner(prepared.target, graph, graph.ops[buffer.op])[-1]
            most = max(most, buffer.size - catalogue.scratch_bytes(lean, graph, graph.ops[buffer.op]))
    return most


def lean(alone: Prepared) -> Prepared:
    """Returns the problem with the kernels that need the least scratch."""
    return replace(alone, target=replace(alone.target, lean=True))


def with_better_kernels(plan: Plan, alone: Prepared) -> Plan:
    """Returns `plan` with better kernels for its operators, as far as their scratch fits.

    `plan`: a plan with the kernels that need the least scratch. `alone`: the problem that it solves. The new
    plan has to fit into this plan's arena, or into the memory limit unless memory is the objective. If no
    better plan is found, the result is `plan`.
    """
    from buildtool.plan.assemble.assemble import assemble
    from buildtool.plan.choose.loads import with_loads
    from buildtool.plan.schedule.timeline import Timeline

    graph, target, session = alone.graph, alone.target, alone.session
    if tensors_written_in_place(graph):
        return plan
    limit = plan.arena_bytes if alone.options.objective == Objective.RAM else alone.ram
    room = most = plan.arena_bytes if limit is None else max(limit, plan.arena_bytes)
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    how = plan.strategy, alone.options.in_place
    place = partial(
        assemble, timeline, target, strategy=how[0], in_place=how[1], enough=most, session=session
    )
    for attempt in range(ATTEMPTS):
        if attempt == ATTEMPTS - 1 and loads(target.board):  # what is left beside narrow slices is not known
            room = min(room, place(target.kernels_by_name(plan.kernels)).arena_bytes)
        kernels = _kernels_within(timeline, alone, room)
        if [kernel.name if kernel else "" for kernel in kernels] == [*plan.kernels]:
            break
        better = with_loads(place(kernels), alone, most)
        if better.arena_bytes <= most and better.cost < plan.cost:
            return better
        room -= max(target.board.alignment, better.arena_bytes - most)
    return plan


def _kernels_within(timeline: Timeline, alone: Prepared, room: int) -> Kernels:
    """Returns the best kernel of each operator such that every region's lower bound is at most `room` bytes.

    Kernels are one per operator, None for aliases.
    """
    from buildtool.plan.assemble.assemble import region_bounds
    from buildtool.plan.assemble.workspace import Regions, workspace

    graph, target, in_place = timeline.graph, alone.target, alone.options.in_place
    kernels = [*catalogue.select_all(target, graph)]
    regions = Regions.of(graph, kernels, target, timeline.image, in_place, alone.session)
    for run, bytes_ in zip(timeline.runs, region_bounds(timeline, regions), strict=True):
        columns = {op: activity.columns for op, activity in run.activities.items()}
        most = regions.facts(run).workspace.size + room - bytes_
        for op in run.region.ops:
            for kernel in catalogue.leaner(target, graph, graph.ops[op]):
                trial = [*kernels[:op], kernel, *kernels[op + 1 :]]
                args = graph, run.region, trial, target.board.alignment, in_place, columns
                if workspace(*args).size <= most:
                    kernels = trial
                    break
    return kernels
