"""Profiles a network: counts the executed instructions and multiply-accumulates of every operator exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from buildtool.api.requests.kinds import Profile
from buildtool.base.errors import ToolError
from buildtool.base.modes import Level
from buildtool.base.session import Session
from buildtool.emit.ctext import shape
from buildtool.emit.sources import Sources
from buildtool.firmware.datasets.arrays import inputs_of
from buildtool.firmware.levels import reality, reality_answer
from buildtool.firmware.planned import Planned
from buildtool.firmware.run.compare import Array, difference
from buildtool.firmware.run.cycles import (
    Parts,
    Timing,
    estimate,
    find_timer,
    in_ms,
    parts_answer,
    time_blocks,
)
from buildtool.firmware.run.execute import Outcome, build_temporarily, execute, image_of, plan_and_sources
from buildtool.firmware.run.judge import Judge, judging
from buildtool.firmware.run.validation import bounds_of, run_answer
from buildtool.graph.types import Tensor
from buildtool.plan.summary.summary import summarize
from buildtool.schema.boards import Estimate
from buildtool.schema.runs import (
    IssueCount,
    IssueSummary,
    LayerProfile,
    OutputTop,
    ProfileAnswer,
    ProfileLine,
    PublishedProfile,
)
from buildtool.target.hardware import PublishedPart
from buildtool.target.plugin import Timer
from buildtool.target.registry import plugin
from buildtool.target.types import Board, Issues

SOURCE = "counted in a model of the VPU"
EXECUTED = "counted in a simulator, which executes them"
LOADS = "LOAD"  # loading weights, as an operator kind of a published profile


def profiling(request: Profile, session: Session) -> ProfileAnswer:
    """Returns the answer to a `profile` request; the outputs are also compared with the reference.

    The counts are those of the first input, in a run of the same firmware image that computes all outputs. On
    the host, nothing is counted, and `instructions` is null. Over a link, the core counts its `cycles`, if it
    can. In an emulator, cycles are estimated, if there is a model of the core.
    """
    with judging(request.reference, request.model) as judge:
        planned, sources = plan_and_sources(request, session)
        board, plan = planned.target.board, planned.plan
        inputs = inputs_of(request.inputs, planned.graph)
        timer = find_timer(board) if request.attached is None else ""
        run, plain = _run_twice(request, planned, sources, inputs, not isinstance(timer, str))
        timing, no_cycles = _estimate_timing(run, timer, planned)
        counting = run if run.counted.issues else None
        if counting is None and request.attached is None:
            counting = _count_issues(planned, sources, inputs[0])
        if counting is not None and counting.outputs[0] != run.outputs[0]:
            raise ToolError("the firmware that counts issues has other outputs", hint="please report this")
        exact = _is_exact(planned, judge, run, plain, inputs)
        about = run_answer(
            planned, plain, judge.answer(), exact, bounds_of(planned, sources, inputs, request.attached)
        )
        rows, measured = _list_rows(planned, run, timing, counting), run.counted.total_cycles
        total = timing.total.cycles if timing else measured
        return {
            **about,
            **reality_answer(run.reality),
            "instructions": run.counted.total_instructions,
            "cycles": total,
            "cycles_are": "estimated" if timing else "measured" if total is not None else "",
            "no_cycles": no_cycles,
            "estimated_ms": in_ms(timing.total.cycles, board) if timing else None,
            "estimated_by": estimate(timing, run.counted, board) if timing else None,
            "seconds": measured / board.clock_hz if measured is not None and board.clock_hz else None,
            "issues": _sum_issues(rows, board, EXECUTED if counting is run else SOURCE) if counting else None,
            "published": beside_published(planned, rows, about["estimate"]),
            "macs": plan.macs,
            "macs_layerwise": plan.macs_layerwise,
            "f": plan.f,
            "flash_bytes": len(sources.image.data),
            "per_operator": rows,
            "outputs": [
                _find_top(planned.graph.tensors[t], plain.outputs[0][t]) for t in planned.graph.outputs
            ],
        }


def _run_twice(
    request: Profile, planned: Planned, sources: Sources, inputs: list[list[Array]], blocks: bool
) -> tuple[Outcome, Outcome]:
    """Returns the run on the first input, in which instructions are counted, and the run on all inputs.

    If `blocks` is true, the first run also counts how often each block of code runs.
    """
    with image_of(request, planned, sources) as firmware:
        if request.attached is not None:
            plain = execute(planned, firmware, inputs, attached=request.attached)
            return plain, plain
        emulated = reality(planned.target.board).level is Level.EMULATOR
        run = execute(planned, firmware, inputs[:1], count=emulated, blocks=blocks)
        return run, execute(planned, firmware, inputs) if len(inputs) > 1 else run


def _is_exact(
    planned: Planned, judge: Judge, run: Outcome, plain: Outcome, inputs: Sequence[Sequence[Array]]
) -> bool:
    """Whether every output of two runs equals the reference's, which `judge` computes.

    `run` is the run on the first of the `inputs`, and `plain` the run on all of them. The state is reset
    before each input.
    """
    judge.set_network(planned.model, planned.source, planned.graph, every=False, hop=planned.hop)
    expected = [judge.refer(one, True) for one in inputs]
    outputs = [*enumerate(plain.outputs), (0, run.outputs[0])]
    return not any(difference(planned.graph, n, values, expected[n]) for n, values in outputs)


def _estimate_timing(run: Outcome, timer: Timer | str, planned: Planned) -> tuple[Timing | None, str]:
    """Returns the estimated cycles of a run and ""; or None and the reason why there is no estimate."""
    if isinstance(timer, str):
        return None, run.counted.no_cycles or timer
    if run.counted.executed is None:
        return None, f"the runner of board '{planned.target.board.name}' cannot count blocks of code"
    try:
        return time_blocks(run.counted.executed, planned.target.board, timer, planned.session), ""
    except ToolError as error:
        return None, error.text


def _list_rows(
    planned: Planned, run: Outcome, timing: Timing | None, counting: Outcome | None
) -> list[LayerProfile]:
    """Returns a row of the profile for each operator, in the order of execution.

    `timing` has estimated cycles, `counting` counts of issue slots (None: there are none).
    """
    kernels, costs = planned.target.kernels_by_name(planned.plan.kernels), planned.target.costs
    summary = summarize(planned.plan, planned.graph, kernels, costs, planned.session)
    rows: list[LayerProfile] = []
    ran, counts = run.counted, counting.counted.issues if counting else {}
    for position, alive, work in (entry for region in summary.regions for entry in region.operators):
        op = planned.graph.ops[position]
        issues = _describe_issues(counts.get(position), work.macs, planned.target.board)
        cycles, parts = ran.cycles.get(position) if ran.total_cycles is not None else None, None
        if timing is not None:  # `parts` stays None for an operator that runs no code
            parts = timing.parts.get(position, Parts() if position in ran.counts else None)
            cycles = parts and parts.cycles
        rows.append(
            {
                "name": planned.graph.op_name(position),
                "operator": str(op.kind),
                "kernel": planned.plan.kernels[position],
                "output_shape": shape(planned.graph.tensors[op.outputs[0]].shape),
                "macs": work.macs,
                "macs_once": work.once,
                "f": work.f,
                "calls": work.calls,
                "ram_alive": alive,
                "instructions": ran.counts.get(position) if ran.total_instructions is not None else None,
                "cycles": cycles,
                "estimated_ms": parts and in_ms(parts.cycles, planned.target.board),
                "parts": parts and parts_answer(parts),
                "issues": issues,
                "uncounted": _explain_uncounted(counts, position) if counting and not issues else "",
            }
        )
    return rows


def _find_top(tensor: Tensor, raw: bytes) -> OutputTop:
    """Returns the five largest values of an output, for a user who knows what the right answer is."""
    values = np.frombuffer(raw, tensor.dtype.value)
    best = np.argsort(-values.astype(np.int32), kind="stable")[:5]
    return {
        "name": tensor.name,
        "shape": shape(tensor.shape),
        "top": [{"index": int(i), "value": int(values[i])} for i in best],
        "scale": tensor.quant.scale if tensor.quant else None,
        "zero_point": tensor.quant.zero_point if tensor.quant else None,
    }


# ---- issues of a core's vector unit ---------------------------------------------------------------------


def _count_issues(planned: Planned, sources: Sources, inputs: Sequence[Array]) -> Outcome | None:
    """Runs a firmware that counts each operator's issue slots on one set of inputs.

    This is a separate firmware, which runs on this machine with a model of the board's vector unit. Returns
    None if the board has no such model.
    """
    board = planned.target.board
    find = getattr(plugin(board), "counting_harness", None)
    if find is None or board.vector_unit is None:
        return None
    with build_temporarily(planned, sources, harness=find(board)) as image:
        return execute(planned, image, [inputs], count=True)


def _describe_issues(issues: Issues | None, macs: int, board: Board) -> IssueCount | None:
    """Returns an operator's issue slots as part of the answer; None if none were counted."""
    unit = board.vector_unit
    if issues is None or unit is None or not issues.vpu + issues.scalar:
        return None
    return {
        "vpu": issues.vpu,
        "mac": issues.mac,
        "scalar": issues.scalar,
        "slowest": issues.slowest,
        "vpu_per_mac": issues.vpu / macs if macs else None,
        # for a thread that issues instructions as fast as it can
        "seconds": issues.slowest * unit.cycles / board.clock_hz if board.clock_hz else 0.0,
    }


def _explain_uncounted(counts: Mapping[int, Issues], position: int) -> str:
    """Returns why the operator at `position` has no count of issue slots."""
    if position not in counts:
        return "no code runs for them"
    return "they run plain C, which the model of the vector unit does not count"


def _sum_issues(rows: Sequence[LayerProfile], board: Board, source: str) -> IssueSummary | None:
    """Returns the sum of the issue slots of all operators that were counted; None if the board has no vector
    unit.
    """
    unit = board.vector_unit
    if unit is None:
        return None
    counts = [row["issues"] for row in rows if row["issues"] is not None]
    return {
        "source": source,
        "limit_per_mac": 1 / unit.macs,
        "clock_hz": board.clock_hz,
        "cycles_per_issue": unit.cycles,
        "threads": board.core.threads,
        "vpu": sum(one["vpu"] for one in counts),
        "scalar": sum(one["scalar"] for one in counts),
        "slowest": sum(one["slowest"] for one in counts),
        "seconds": sum(one["seconds"] for one in counts),
        "operators": len(counts),
        "macs": sum(row["macs"] for row in rows if row["issues"] is not None),
        "all_operators": len(rows),
        "all_macs": sum(row["macs"] for row in rows),
    }


def beside_published(
    planned: Planned, rows: Sequence[LayerProfile], estimate: Estimate | None
) -> PublishedProfile | None:
    """Returns a comparison of the rows with the published profile of this network; None if the board's file
    has none.
    """
    board, plan = planned.target.board, planned.plan
    published = board.published
    if published is None or published.macs != plan.macs_layerwise:
        return None
    return {
        "network": published.network,
        "source": published.source,
        "seconds": published.milliseconds / 1e3,
        "estimated_seconds": estimate["total_seconds"] if estimate else None,
        "lines": [_compare_line(part, rows, estimate) for part in published.parts],
    }


def _compare_line(
    part: PublishedPart, rows: Sequence[LayerProfile], estimate: Estimate | None
) -> ProfileLine:
    own = [row for row in rows if row["operator"] in part.operators]
    macs = sum(row["macs"] for row in own)
    counts = [row["issues"] for row in own]
    seconds = [one["seconds"] for one in counts if one is not None]
    counted = sum(seconds) if own and len(seconds) == len(counts) else None
    estimated = macs / estimate["macs_per_second"] if macs and estimate else None
    if LOADS in part.operators:
        estimated = estimate["load_seconds"] if estimate else None
    return {
        "name": part.name,
        "operators": len(own) + (LOADS in part.operators),
        "published": part.milliseconds / 1e3,
        "estimated": estimated,
        "counted": counted,
    }
