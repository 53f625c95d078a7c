"""The answer to `report`: a plan with all data of its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from buildtool.api.answers.analysis import verdict_of
from buildtool.api.answers.cures import cures, fit_plan
from buildtool.api.answers.fronts import in_figures, peers_of
from buildtool.api.answers.planreport import form, planned_model, work_view
from buildtool.base.errors import BuildtoolError, PlanError, to_data
from buildtool.base.modes import Objective, Strategy
from buildtool.emit.ctext import shape
from buildtool.emit.image import ImageLayout, image_layout
from buildtool.firmware.planned import Planned, plan_or_read, prepare
from buildtool.graph.liveness import alias_roots
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.plan.choose.choose import front, nearest
from buildtool.plan.choose.fronts import Point, front_factor
from buildtool.plan.choose.problem import Prepared, own_firmware
from buildtool.plan.models import load_network
from buildtool.plan.schedule.schedule import Steps
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.summary.memory import ArenaUse
from buildtool.plan.summary.summary import Summary, summarize
from buildtool.plan.types import SOURCE, BufferKind
from buildtool.target.choice import load_target

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Report
    from buildtool.base.session import Session
    from buildtool.schema import reports as answers
    from buildtool.schema.analysis import NoPlan, Verdict

_LEAST = 4  # steps of a repetition, at least; a shorter repetition would save nothing


def report_of(request: Report, session: Session) -> answers.ReportAnswer:
    """Returns the answer to a `report` request. Raises PlanError only if there is no plan at all."""
    planned, prepared = _make_plan(request, session)
    kernels = planned.target.kernels_by_name(planned.plan.kernels)
    layout = image_layout(planned.graph, kernels)
    summary = summarize(planned.plan, planned.graph, kernels, planned.target.costs, session)
    session.tell("counting the bytes in each memory")
    return {
        **planned_model(planned, layout.size, request.period),
        "title": planned.target.board.title,
        "verdict": _make_verdict(request, planned, prepared),
        "layers": _list_layers(planned, summary, layout),
        "steps": _list_steps(planned),
        "front": _find_front(planned, prepared, request.peers),
        "run": None,
        "linked": None,
        "against": None,
    }


def _make_plan(request: Report, session: Session) -> tuple[Planned, Prepared]:
    """Returns the plan and the problem that it solves.

    If no plan is within the limits, the plan is the one with the least memory.
    """
    target = load_target(request.target, session)
    network = load_network(request.model, session)
    prepared = prepare(network, target, request.options, session)
    try:
        planned = plan_or_read(request.model, request.target, request.options, request.lock, session)
    except PlanError:
        if request.lock is not None:
            raise
        graph, plan = nearest(prepared)
        firmware = own_firmware(prepared.beside, graph, plan, prepared.target, prepared.session)
        assert prepared.simplified is not None
        about = request.target, request.options, session, prepared.simplified, prepared.order_status
        target = prepared.target.with_firmware(firmware)
        plan = replace(plan, **prepared.in_plan)
        planned = Planned(network.model, network.source, graph, target, plan, *about, hop=prepared.hop)
    return planned, replace(prepared, target=planned.target)


def _make_verdict(request: Report, planned: Planned, prepared: Prepared) -> Verdict | NoPlan:
    """Returns whether the plan fits, and if not, what would help.

    The code is counted by an upper limit. If this does not show that the plan fits, the code is counted as
    for `analyze`. For a plan from a file nothing is proposed, as that would be another plan.
    """
    plan, session = (prepared, planned.graph, planned.plan, planned.model.name), prepared.session
    try:
        fitting = fit_plan(*plan, exactly=False)
        if fitting.fits or request.lock is not None:
            return verdict_of(fitting, [])
        fitting = fit_plan(*plan, exactly=True)
        network = load_network(request.model, session)
        return verdict_of(fitting, cures(network, request.target, fitting, session))
    except BuildtoolError as error:
        board = planned.target.board
        return {"board": board.name, "title": board.title, "fits": False, "error": to_data(error)}


# ---- layers ------------------------------------------------------------------------------------------


def _list_layers(planned: Planned, summary: Summary, layout: ImageLayout) -> list[answers.ReportLayer]:
    """Returns a row for each operator that runs, in the order of execution."""
    graph, plan = planned.graph, planned.plan
    roots = alias_roots(graph)
    makers: dict[int, list[int]] = {}  # root -> operators; a tensor that is written in parts has several
    for position, op in enumerate(graph.ops):
        for t in op.outputs if op.kind not in ALIAS_KINDS else ():
            makers.setdefault(roots[t], []).append(position)
    scratch: Counter[int] = Counter()
    for buffer in plan.buffers:
        if buffer.kind in (BufferKind.SCRATCH, BufferKind.ACCUMULATOR):
            scratch[buffer.op] += buffer.size
    weights: Counter[int] = Counter()
    for position, _, _, size in layout.entries:
        weights[position] += size
    rows: list[answers.ReportLayer] = []
    for number, region in enumerate(summary.regions):
        for position, alive, work in region.operators:
            op = graph.ops[position]
            inputs = [maker for t in op.inputs if t in roots for maker in makers.get(roots[t], (-1,))]
            rows.append(
                {
                    "position": position,
                    "name": graph.op_name(position),
                    "kind": str(op.kind),
                    "form": form(graph, op),
                    "kernel": plan.kernels[position],
                    "output_shape": shape(graph.tensors[op.outputs[0]].shape),
                    "region": number,
                    "inputs": list(dict.fromkeys(inputs)),
                    **work_view(work),
                    "share": work.cost / plan.cost if plan.cost else 0.0,
                    "ram_alive": alive,
                    "scratch_bytes": scratch[position],
                    "weight_bytes": weights[position],
                    "instructions": None,
                    "cycles": None,
                }
            )
    return rows


def _list_steps(planned: Planned) -> list[answers.RegionSteps]:
    """Returns the steps of the streamed regions. Every other region has one step for each operator."""
    plan, session = planned.plan, planned.session
    timeline = Timeline.of(planned.graph, plan.regions, plan.image, session)
    use = ArenaUse(plan, planned.graph)
    rows: list[answers.RegionSteps] = []
    for number, (run, first) in enumerate(zip(timeline.runs, timeline.starts, strict=False)):
        live = use.buffers(run.region, first, first + run.count - 1)
        if not run.region.is_streamed:
            continue
        symbols, sequence = pack_steps(run.steps)
        turns = {
            str(op): [buffer.buffer for buffer in use.in_turn(run.region, live, op)]
            for op in (SOURCE, *run.region.ops)
        }
        rows.append({"region": number, "symbols": symbols, "sequence": sequence, "turns": turns})
    return rows


def pack_steps(steps: Steps) -> tuple[list[list[int]], list[int]]:
    """Returns steps as (symbols, sequence), as in `RegionSteps`. This is short, as steps repeat often."""
    numbers: dict[tuple[int, ...], int] = {}
    before: dict[int, tuple[int, int]] = {}
    sequence = []
    for op, y0, y1, x0, x1 in steps.tolist():
        row, column = before.get(op, (0, 0))
        before[op] = y0, x0
        symbol = (op, y0 - row, y1 - y0, x0 - column, x1 - x0)
        sequence.append(numbers.setdefault(symbol, len(numbers)))
    return [list(symbol) for symbol in numbers], fold_repeats(sequence)


def fold_repeats(numbers: Sequence[int]) -> list[int]:
    """Returns `numbers` (all at least 0) with each repetition replaced by a pair -d, n.

    Such a pair means that the last d numbers are repeated for the next n numbers. A repetition is recognised
    by its first _LEAST numbers: it repeats the place where these numbers occurred last.
    """
    shortened: list[int] = []
    seen: dict[tuple[int, ...], int] = {}
    at = 0
    while at < len(numbers):
        key = tuple(numbers[at : at + _LEAST])
        start, length = seen.get(key), 1
        if start is not None and len(key) == _LEAST:
            while at + length < len(numbers) and numbers[start + length] == numbers[at + length]:
                length += 1
            shortened += [start - at, length]
        else:
            shortened.append(numbers[at])
        for place in range(at, at + length):
            seen[tuple(numbers[place : place + _LEAST])] = place
        at += length
    return shortened


# ---- the front ---------------------------------------------------------------------------------------


def _find_front(planned: Planned, prepared: Prepared, peers: bool) -> answers.ReportFront:
    """Returns the front without limits on memory and cost, so that it also shows points beyond the limits."""
    unlimited = replace(prepared.options, ram=None, max_cost=None, max_ms=None, max_flash=None, segments="")
    options = replace(unlimited, strategy=Strategy.BEST, objective=Objective.COST)
    free = replace(prepared, options=options)
    points: tuple[Point, ...] = ()
    error, ended = "", False
    try:
        points, ended = front(free, None)
    except BuildtoolError as refused:
        error = refused.text
    return {
        "available_bytes": prepared.available,
        "limit_bytes": prepared.options.ram,
        "points": [_describe_point(point, planned) for point in points],
        "beside": peers_of(free, peers),
        "search_factor": front_factor(free) if points else 1.0,
        "placing_ended": ended,
        "error": error,
    }


def _describe_point(point: Point, planned: Planned) -> answers.ReportPoint:
    plan, target = point.plan, planned.target
    summary = summarize(
        plan, point.graph, target.kernels_by_name(plan.kernels), target.costs, planned.session
    )
    runs: list[answers.PointRegion] = [
        {
            "first": region.ops[0],
            "last": region.ops[-1],
            "streamed": region.is_streamed,
            "schemes": list(dict.fromkeys(str(group.scheme) for group in region.groups)),
            "live_bytes": about.fullest.bytes,
            "macs": about.work.macs,
            "f": about.work.f,
            "cost": about.work.cost,
        }
        for region, about in zip(plan.regions, summary.regions, strict=True)
    ]
    chosen = plan.regions == planned.plan.regions and plan.arena_bytes == planned.plan.arena_bytes
    return {
        **in_figures(point, target),
        "chosen": chosen,
        "runs": runs,
    }
