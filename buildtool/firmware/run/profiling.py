"""Profiling: executed instructions and multiply-accumulates of every operator, counted exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from buildtool.api.answers.estimate import facts
from buildtool.base.errors import ToolError
from buildtool.base.modes import Level
from buildtool.emit.ctext import shape
from buildtool.firmware.run.bounded import bounds_of, is_rounded, within
from buildtool.firmware.run.compare import difference
from buildtool.firmware.run.cycles import (
    Parts,
    Timing,
    estimate,
    find_timer,
    in_ms,
    parts_answer,
    timed,
)
from buildtool.firmware.run.execute import Outcome, execute, image_of, subject
from buildtool.firmware.run.inputs import inputs_of
from buildtool.firmware.run.issues import (
    beside_published,
    counted,
    of_operator,
    refuse_unless_same,
    why_uncounted,
)
from buildtool.firmware.run.issues import summary as issue_summary
from buildtool.firmware.run.judge import Judge, judging
from buildtool.firmware.run.levels import named, reality
from buildtool.plan.summary.summary import Summary, summarize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from buildtool.api.requests.kinds import Profile
    from buildtool.base.session import Session
    from buildtool.firmware.planned import Planned
    from buildtool.firmware.run.compare import Array
    from buildtool.schema.runs import (
        CycleEstimate,
        CycleParts,
        LayerProfile,
        OutputTop,
        ProfileAnswer,
    )
    from buildtool.target.plugin import Timer
    from buildtool.target.types import Board


def profiling(request: Profile, session: Session) -> ProfileAnswer:
    """The answer to a `profile` request; the output is compared with the reference as well.

    Counted is the first input, on the same image that gives the outputs of all. On the host nothing is
    counted: `instructions` is null there. Over a wire `cycles` are counted by the core itself, where it can;
    in an emulator they are estimated, where there is a model of the core.
    """
    with judging(request.reference, request.model) as judge:
        return _judged(request, judge, session)


def _judged(request: Profile, judge: Judge, session: Session) -> ProfileAnswer:
    made, sources = subject(request, session)
    inputs = inputs_of(request.inputs, made)
    emulated = reality(made.target.board).level is Level.EMULATOR
    timer = find_timer(made.target.board) if request.desk is None else ""
    with image_of(request, made, sources) as firmware:
        if request.desk is not None:
            run = plain = execute(made, firmware, inputs, desk=request.desk)
        else:
            run = execute(made, firmware, inputs[:1], count=emulated, blocks=not isinstance(timer, str))
            plain = execute(made, firmware, inputs) if len(inputs) > 1 else run
    timing, no_cycles = _timing(run, timer, made)
    counting = counted(made, sources, inputs[0]) if request.desk is None else None
    if counting is not None:
        refuse_unless_same(counting, run)
    exact = _is_exact(made, judge, run, plain, inputs)
    bounds = bounds_of(made, sources, inputs, request.desk)
    summary = summarize(
        made.plan, made.graph, made.target.named(made.plan.kernels), made.target.costs, made.session
    )
    rows, known = _rows(made, run, timing, summary, counting), facts(made)
    total = timing.total.cycles if timing else run.counted.total_cycles
    return {
        "model": made.model.name,
        "board": made.target.board.name,
        **named(run.reality),
        "compiler": run.compiler,
        "strategy": made.plan.strategy,
        "instructions": run.counted.total_instructions,
        "cycles": total,
        "cycles_are": "estimated" if timing else "measured" if total is not None else "",
        "no_cycles": no_cycles,
        "estimated_ms": in_ms(timing.total.cycles, made.target.board) if timing else None,
        "estimated_by": _estimated_by(run, timing, made.target.board),
        "seconds": _seconds(run, made.target.board),
        "issues": issue_summary(rows, made.target.board) if counting else None,
        "published": beside_published(made, rows, known["estimate"]),
        "macs": made.plan.macs,
        "macs_layerwise": made.plan.macs_layerwise,
        "f": made.plan.f,
        "arena_bytes": made.plan.arena_bytes,
        "arena_high_water": plain.arena_high_water,
        "state_bytes": made.plan.state_bytes,
        "stack_high_water": plain.stack_high_water,
        "flash_bytes": len(sources.image.data),
        "inputs": len(inputs),
        "reference": judge.told(),
        "exact": exact,
        "requantise": str(made.target.requantise),
        "within_bounds": within(bounds) if is_rounded(made) else exact,
        "bounds": bounds,
        "per_operator": rows,
        "outputs": _top(made, plain),
        **known,
    }


def _is_exact(
    made: Planned, judge: Judge, run: Outcome, plain: Outcome, inputs: Sequence[Sequence[Array]]
) -> bool:
    """Whether every output of both runs is the judge's; each input comes after a reset."""
    judge.hear(made.model, made.source, made.graph, every=False)
    expected = [judge.refer(one, True) for one in inputs]
    outputs = [*enumerate(plain.outputs), (0, run.outputs[0])]
    return not any(difference(made.graph, n, got, expected[n]) for n, got in outputs)


def _timing(run: Outcome, timer: Timer | str, made: Planned) -> tuple[Timing | None, str]:
    """The estimate of a run's cycles, or why there is none."""
    if isinstance(timer, str):
        return None, run.counted.no_cycles or timer
    if run.counted.executed is None:
        return None, f"the runner of board '{made.target.board.name}' counts no blocks of code"
    try:
        return timed(run.counted.executed, made.target.board, timer, made.session), ""
    except ToolError as error:
        return None, error.text


def _seconds(run: Outcome, board: Board) -> float | None:
    """What the cycles take at the board's clock; None where either is not known."""
    cycles = run.counted.total_cycles
    return cycles / board.clock_hz if cycles is not None and board.clock_hz else None


def _rows(
    made: Planned, run: Outcome, timing: Timing | None, summary: Summary, counting: Outcome | None
) -> list[LayerProfile]:
    """A row an operator, in the order of execution; multiply-accumulates are those executed."""
    rows: list[LayerProfile] = []
    ran, counts = run.counted, counting.counted.issues if counting else {}
    for position, alive, work in (entry for region in summary.regions for entry in region.operators):
        op = made.graph.ops[position]
        issues = of_operator(counts.get(position), work.macs, made.target.board)
        rows.append(
            {
                "name": made.graph.op_name(position),
                "operator": str(op.kind),
                "kernel": made.plan.kernels[position],
                "output_shape": shape(made.graph.tensors[op.outputs[0]].shape),
                "macs": work.macs,
                "macs_once": work.once,
                "f": work.f,
                "calls": work.calls,
                "ram_alive": alive,
                "instructions": ran.counts.get(position) if ran.total_instructions is not None else None,
                **_cycles(position, run, timing, made.target.board),
                "issues": issues,
                "uncounted": why_uncounted(counts, position) if counting and not issues else "",
            }
        )
    return rows


def _estimated_by(run: Outcome, timing: Timing | None, board: Board) -> CycleEstimate | None:
    return estimate(timing, run.counted.executed, board) if timing and run.counted.executed else None


class _Cycles(TypedDict):
    cycles: int | None
    estimated_ms: float | None
    parts: CycleParts | None


def _cycles(position: int, run: Outcome, timing: Timing | None, board: Board) -> _Cycles:
    """An operator's cycles, estimated or of the core's own counter."""
    if timing is None:
        measured = run.counted.cycles.get(position) if run.counted.total_cycles is not None else None
        return {"cycles": measured, "estimated_ms": None, "parts": None}
    parts = timing.parts.get(position, Parts() if position in run.counted.counts else None)
    if parts is None:  # it runs no code
        return {"cycles": None, "estimated_ms": None, "parts": None}
    ms = in_ms(parts.cycles, board)
    return {"cycles": parts.cycles, "estimated_ms": ms, "parts": parts_answer(parts)}


def _top(made: Planned, run: Outcome) -> list[OutputTop]:
    """The largest values of each output, for a user who knows what the answer should be."""
    import numpy as np

    tops: list[OutputTop] = []
    for t in made.graph.outputs:
        tensor = made.graph.tensors[t]
        values = np.frombuffer(run.outputs[0][t], tensor.dtype.value)
        best = np.argsort(-values.astype(np.int32), kind="stable")[:5]
        tops.append(
            {
                "name": tensor.name,
                "shape": shape(tensor.shape),
                "top": [{"index": int(i), "value": int(values[i])} for i in best],
                "scale": tensor.quant.scale if tensor.quant else None,
                "zero_point": tensor.quant.zero_point if tensor.quant else None,
            }
        )
    return tops
