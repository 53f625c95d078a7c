"""Profiling: executed instructions and multiply-accumulates of every operator, counted exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.emit.names import shape
from buildtool.modes import Level, Reference
from buildtool.plan.summary.summary import Summary, summarize
from buildtool.service.answers.estimate import facts
from buildtool.service.emulation.bounded import operator_bounds
from buildtool.service.emulation.compare import difference, reference
from buildtool.service.emulation.execute import Outcome, execute
from buildtool.service.emulation.issues import (
    beside_published,
    counted,
    of_operator,
    refuse_unless_same,
    why_uncounted,
)
from buildtool.service.emulation.issues import summary as issue_summary
from buildtool.service.emulation.levels import named, reality
from buildtool.service.emulation.subject import firmware, subject
from buildtool.service.emulation.validation import every_tensor, inputs_of, is_rounded, within

if TYPE_CHECKING:
    from buildtool.schema.runs import LayerProfile, OperatorBound, OutputTop, ProfileAnswer
    from buildtool.service.pipeline.pipeline import Planned
    from buildtool.service.requests import Profile
    from buildtool.session import Session
    from buildtool.target.types import Board


def profiling(request: Profile, session: Session) -> ProfileAnswer:
    """The answer to a `profile` request; the output is compared with the reference as well.

    Counted is the first input, on the same image that gives the outputs of all. On the host nothing is
    counted: `instructions` is null there. Over a wire `cycles` are counted by the core itself, where it can.
    """
    made, sources = subject(request, session)
    inputs = inputs_of(request.inputs, made)
    emulated = reality(made.target.board).level is Level.EMULATOR
    with firmware(request, made, sources) as image:
        if request.desk is not None:
            run = plain = execute(made, image, inputs, desk=request.desk)
        else:
            run = execute(made, image, inputs[:1], count=emulated)
            plain = execute(made, image, inputs) if len(inputs) > 1 else run
    counting = counted(made, sources, inputs[0]) if request.desk is None else None
    if counting is not None:
        refuse_unless_same(counting, run)
    exact = all(
        not difference(
            made.graph, n, got, reference(Reference.NUMPY, b"", made.source, made.graph, inputs[n])
        )
        for n, got in [*enumerate(plain.outputs), (0, run.outputs[0])]
    )
    bounds: list[OperatorBound] = []
    if is_rounded(made):
        bounds = operator_bounds(made, every_tensor(made, sources, inputs, request.desk), inputs)
    summary = summarize(
        made.plan, made.graph, made.target.named(made.plan.kernels), made.target.costs, made.session
    )
    rows, known = _rows(made, run, summary, counting), facts(made)
    return {
        "model": made.model.name,
        "board": made.target.board.name,
        **named(run.reality),
        "compiler": run.compiler,
        "strategy": made.plan.strategy,
        "instructions": run.total_instructions,
        "cycles": run.total_cycles,
        "no_cycles": run.no_cycles,
        "seconds": _seconds(run, made.target.board),
        "issues": issue_summary(rows, made.target.board) if counting else None,
        "published": beside_published(made, rows, known["estimate"]),
        "macs": made.plan.macs,
        "macs_layerwise": made.plan.macs_layerwise,
        "f": made.plan.f,
        "arena_bytes": made.plan.arena_bytes,
        "arena_high_water": plain.arena_high_water,
        "stack_high_water": plain.stack_high_water,
        "flash_bytes": len(sources.image.data),
        "inputs": len(inputs),
        "exact": exact,
        "requantise": str(made.target.requantise),
        "within_bounds": within(bounds) if is_rounded(made) else exact,
        "bounds": bounds,
        "per_operator": rows,
        "outputs": _top(made, plain),
        **known,
    }


def _seconds(run: Outcome, board: Board) -> float | None:
    """What the cycles take at the board's clock; None where either is not known."""
    return run.total_cycles / board.clock_hz if run.total_cycles is not None and board.clock_hz else None


def _rows(made: Planned, run: Outcome, summary: Summary, counting: Outcome | None) -> list[LayerProfile]:
    """A row an operator, in the order of execution; multiply-accumulates are those executed."""
    rows: list[LayerProfile] = []
    counts = counting.issues if counting else {}
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
                "instructions": run.counts.get(position) if run.total_instructions is not None else None,
                "cycles": run.cycles.get(position) if run.total_cycles is not None else None,
                "issues": issues,
                "uncounted": why_uncounted(counts, position) if counting and not issues else "",
            }
        )
    return rows


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
