"""The answers to `plan` and `trace`: the plan, its regions, their memory and work, and other strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from buildtool.api.answers.estimate import count_wait_cycles, facts, memories_of, price
from buildtool.api.answers.fronts import point_instead
from buildtool.api.answers.simplified import describe, describe_four_bits
from buildtool.api.answers.slowwork import float_work, plain_work
from buildtool.api.answers.windows import describe_window
from buildtool.base.errors import BuildtoolError
from buildtool.base.modes import Image, Objective, Strategy
from buildtool.emit.image import image_layout
from buildtool.firmware.planned import Planned, plan_or_read, refuse_unless_fits
from buildtool.graph.fusions import fusions
from buildtool.graph.types import ConvAttrs, Graph, Op, OpKind, PoolAttrs
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.choose.limits import estimate_ms
from buildtool.plan.codec import digest, to_bytes
from buildtool.plan.locked import Locked, operators, to_text
from buildtool.plan.summary.memory import LiveBuffer, Moment, Use
from buildtool.plan.summary.summary import RegionSummary, Summary, Work, summarize
from buildtool.plan.summary.view import group_view, to_json
from buildtool.plan.types import SOURCE, BufferKind, Plan, Region
from buildtool.target.digest import planning_digest

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Plan as Asked
    from buildtool.api.requests.kinds import Trace
    from buildtool.base.session import Session
    from buildtool.options.values import PlanOptions
    from buildtool.plan.others.chrometrace import Clock
    from buildtool.schema import plans as answers
    from buildtool.target.types import Target

    Beside = answers.OtherPlan | answers.NoOtherPlan

_SHORT = {
    OpKind.CONV_2D: "conv",
    OpKind.DEPTHWISE_CONV_2D: "dw",
    OpKind.FULLY_CONNECTED: "dense",
    OpKind.AVERAGE_POOL_2D: "avgpool",
    OpKind.MAX_POOL_2D: "maxpool",
}


def answer(request: Asked, session: Session) -> answers.PlanAnswer:
    """Returns the answer to a `plan` request: how a model runs on a board. Raises PlanError if it does not
    fit.
    """
    planned = plan_or_read(request.model, request.target, request.options, request.lock, session)
    image_bytes = image_layout(planned.graph, planned.target.kernels_by_name(planned.plan.kernels)).size
    refuse_unless_fits(planned, image_bytes)
    return {
        **planned_model(planned, image_bytes, request.period),
        "wait_cycles": count_wait_cycles(planned),
        "front_point": None if request.lock else point_instead(planned, request.model),
        "beside": other_plans(planned, request.compare),
        "plan": to_bytes(planned.plan),
        "locked": to_text(Locked(planned.plan, planned.target.board.name, operators(planned.graph))),
    }


def totals(request: Asked, session: Session) -> dict[str, str | int | float | None]:
    """Returns the totals of the answer to a `plan` request, under the answer's keys.

    Computing only these takes less time than the whole answer.
    """
    planned = plan_or_read(request.model, request.target, request.options, request.lock, session)
    plan, target = planned.plan, planned.target
    image_bytes = image_layout(planned.graph, target.kernels_by_name(plan.kernels)).size
    refuse_unless_fits(planned, image_bytes)
    names = ("arena_bytes", "state_bytes", "macs", "macs_layerwise", "f", "cost")
    whole = {name: getattr(plan, name) for name in names}
    words = {"strategy": str(plan.strategy), "image": str(plan.image), "cost_unit": str(target.cost_unit)}
    return {**whole, **words, "flash_bytes": image_bytes, "estimated_ms": estimate_ms(plan.cost, target)}


def planned_model(planned: Planned, flash_bytes: int, period: float | None = None) -> answers.PlannedModel:
    """Returns the part that the answers to `plan` and `report` share.

    `flash_bytes` is the size of the weight image. `period` is the time in milliseconds from one move of the
    input's window to the next (None: not known).
    """
    details = describe_plan(planned)
    ms = estimate_ms(details["cost"], planned.target)
    return {
        **details,
        **facts(planned),
        "model": planned.model.name,
        "board": planned.target.board.name,
        "flash_bytes": flash_bytes,
        "estimated_ms": ms,
        "cost_by_ratio": sorted(planned.target.by_ratio.intersection(planned.plan.kernels)),
        "removed": describe(planned.simplified),
        "four_bits": describe_four_bits(planned.simplified, planned.target),
        "memories": memories_of(planned),
        "window": describe_window(planned, period, ms),
        "inputs": list(planned.graph.inputs),
        "outputs": list(planned.graph.outputs),
        "search_factor": planned.search_factor,
        "placing_ended": planned.placing_ended,
        "order_status": planned.order_status,
    }


def describe_plan(planned: Planned) -> answers.PlanDetails:
    """Returns the plan as plain values.

    They include the memory and work of every region, the fullest step, and the bytes lost to gaps in the
    arena.
    """
    # a given plan may be for another target than the one whose costs count here
    key = (digest(planned.plan), planned.model.digest, planning_digest(planned.target))
    return planned.session.remember("described", key, lambda: _describe_plan(planned))


def _describe_plan(planned: Planned) -> answers.PlanDetails:
    plan, graph = planned.plan, planned.graph
    kernels, costs = planned.target.kernels_by_name(plan.kernels), planned.target.costs
    whole = summarize(plan, graph, kernels, costs, planned.session)
    view = to_json(plan, graph, planned.session, whole.peak)
    return {
        **view,
        # a given plan may have been made with other formulas: these are the ones of the regions' costs
        "cost": sum(region.work.cost for region in whole.regions),
        "cost_unit": str(planned.target.cost_unit),
        "regions": [
            _describe_region(region, summary, graph)
            for region, summary in zip(plan.regions, whole.regions, strict=True)
        ],
        "operators": [
            {**entry, "form": form(graph, op)} for entry, op in zip(view["operators"], graph.ops, strict=True)
        ],
        "placement": {
            "arena_bytes": plan.arena_bytes,
            "live_bytes": whole.live,
            "lost_bytes": plan.arena_bytes - whole.live,
            "bound_bytes": plan.arena_bound_bytes,
            "above_bound_bytes": plan.arena_bytes - plan.arena_bound_bytes,
        },
        "peak": _find_peak(plan, graph, whole),
        "floats": float_work(graph, whole, planned.target),
        "plain": plain_work(graph, plan.kernels, whole, planned.target),
    }


def form(graph: Graph, op: Op) -> str:
    """Returns an operator's kind, window and stride in a few letters: dw 3x3/2 has a 3x3 window and stride
    2.
    """
    name = _SHORT.get(op.kind, str(op.kind).lower())
    if isinstance(op.attrs, PoolAttrs):
        kernel, stride = op.attrs.kernel, op.attrs.stride
    elif isinstance(op.attrs, ConvAttrs) and op.kind in _SHORT:
        shape = graph.tensors[op.inputs[1]].shape
        kernel, stride = (shape[1], shape[2]), op.attrs.stride
    else:
        return name
    window = "" if kernel == (1, 1) else f" {kernel[0]}x{kernel[1]}"
    step = f"/{stride[0]}" if stride[0] == stride[1] else f"/{stride[0]}x{stride[1]}"
    return f"{name}{window}{'' if max(stride) == 1 else step}"


def work_view(work: Work) -> answers.WorkView:
    """Returns work as plain values."""
    return {"macs": work.macs, "macs_once": work.once, "f": work.f, "calls": work.calls, "cost": work.cost}


def _describe_region(region: Region, summary: RegionSummary, graph: Graph) -> answers.RegionView:
    return {
        "groups": [
            {**group_view(group), **work_view(work)}
            for group, work in zip(region.groups, summary.groups, strict=True)
        ],
        "operators": list(region.ops),
        "streamed": region.is_streamed,
        "first_step": summary.first,
        "last_step": summary.last,
        "live_bytes": summary.fullest.bytes,
        "fullest": _describe_moment(summary.fullest, graph),
        "parts": {str(use): size for use, size in summary.parts},
        "shared_bytes": summary.shared,
        "buffers": _list_buffers(summary.buffers),
        "delivered_rows": summary.delivered,
        "moved_bytes": summary.moved,
        **work_view(summary.work),
    }


def _list_buffers(live_buffers: Sequence[LiveBuffer]) -> list[answers.LiveBufferView]:
    return [{"buffer": live.buffer, "use": str(live.use)} for live in live_buffers]


def _describe_moment(moment: Moment, graph: Graph) -> answers.MomentView:
    step = moment.step
    return {
        "step": moment.number,
        "operator": step.op,
        "name": "" if step.op == SOURCE else graph.op_name(step.op),
        "rows": [step.y0, step.y1],
        "columns": [step.x0, step.x1],
    }


def _find_peak(plan: Plan, graph: Graph, whole: Summary) -> answers.Peak | None:
    """Returns the step with the most live bytes, and its live buffers, the largest first.

    None if no step has live buffers.
    """
    if whole.fullest < 0:
        return None
    summary = whole.regions[whole.fullest]
    live = sorted(summary.at_fullest, key=lambda b: (-plan.buffers[b.buffer].size, b.buffer))
    return {
        "region": whole.fullest,
        **_describe_moment(summary.fullest, graph),
        "live_bytes": whole.live,
        "parts": {str(use): size for use, size in summary.parts},
        "shared_bytes": summary.shared,
        "buffers": _list_buffers(live),
        "live_bytes_without_weights": whole.without_weights,
        "weights_bind": any(b.use is Use.WEIGHTS for b in live) and whole.without_weights < whole.live,
    }


# ---- other strategies ------------------------------------------------------------------------------


def other_plans(planned: Planned, all_of_them: bool) -> list[Beside]:
    """Returns plans of other strategies with the same input image, accounting and weights.

    The first one runs layer by layer. If `all_of_them` is true, up to three plans follow for msf-CNN's
    scheme, and again for xcore-opt's strips: its plan with no more work than `planned`, its plan with the
    least arena, and a plan of the strategy `best` with no more work than the latter.
    """

    def within(options: PlanOptions, f: float) -> Beside:
        most = max(1.0, f)
        return _make_other(planned, replace(options, max_f=most), f"F <= {most:.3f}")

    rows: list[Beside] = []
    options = planned.options
    unlimited = replace(options, ram=None, max_f=None, max_cost=None, max_ms=None)
    free = replace(unlimited, objective=Objective.RAM, segments="", hand_off=None)
    if planned.plan.strategy != Strategy.LAYERWISE:
        image = Image.OVERWRITABLE if options.image == Image.STREAM else options.image
        whole = replace(free, strategy=Strategy.LAYERWISE, image=image)
        rows.append(_make_other(planned, whole, "no work repeated"))
    if all_of_them:
        for strategy in (Strategy.MSF_CNN, Strategy.XCORE_STRIPS):
            other = replace(free, strategy=strategy)
            least = _make_other(planned, other, "least arena found")
            rows += [within(other, planned.plan.f), least]
            if "error" not in least:
                rows.append(within(replace(free, strategy=Strategy.BEST), least["f"]))
    return rows


def _make_other(planned: Planned, options: PlanOptions, setting: str) -> Beside:
    # only `best` has fusions in slices
    sliced = fusions(planned.graph) and options.strategy != Strategy.BEST
    graph = planned.unsliced if sliced else planned.graph
    try:
        plan = make_plan(graph, planned.target, options, planned.session, every_kind=True)
    except BuildtoolError as error:
        text, strategy = error.text, options.strategy
        return {"strategy": strategy, "setting": setting, "image": options.image, "error": text}
    return {
        "strategy": options.strategy,
        "setting": setting,
        "image": options.image,
        **price(plan, planned.target),
        "arena_bound_bytes": plan.arena_bound_bytes,
        "macs": plan.macs,
        "weights_in_arena": any(b.kind is BufferKind.WEIGHTS and b.size for b in plan.buffers),
        "ratio": plan.arena_bytes / planned.plan.arena_bytes if planned.plan.arena_bytes else 1.0,
    }


# ---- over time, for trace viewers -------------------------------------------------------------------


def clock_of(target: Target) -> Clock:
    """Returns how a trace shows a unit of cost: as a time if costs are cycles and the board's clock is
    known.
    """
    from buildtool.plan.others.chrometrace import Clock

    if target.cost_ms is None:
        unit = target.cost_unit.removesuffix("s")
        return Clock(words=f"1 us stands for 1 {unit} of the estimated cost; it is not a time")
    clock = (target.board.clock_hz or 0) / 1e6
    return Clock(target.cost_ms * 1e6, f"estimated: cycles of the cost model at {clock:g} MHz")


def trace_answer(request: Trace, session: Session) -> answers.TraceAnswer:
    """Returns the answer to a `trace` request: a plan over time for viewers, even if it does not fit."""
    from buildtool.plan.others.chrometrace import trace  # not needed for a `plan` request
    from buildtool.plan.summary.steps import plan_steps

    planned = plan_or_read(request.model, request.target, request.options, request.lock, session)
    plan, graph, target = planned.plan, planned.graph, planned.target
    steps = plan_steps(plan, graph, target.kernels_by_name(plan.kernels), target.costs, planned.session)
    clock = clock_of(target)
    about = {"model": planned.model.name, "board": target.board.name}
    file = trace(steps, plan, graph, clock, about, target.board.holders)
    return {
        "model": planned.model.name,
        "board": target.board.name,
        "cost_unit": str(target.cost_unit),
        "time": clock.words,
        "steps": len(steps.cost),
        "slices": file.slices,
        "merged": file.merged,
        "buffers": len(steps.held),
        "files": {f"{planned.model.name}.trace.json": file.data},
    }
