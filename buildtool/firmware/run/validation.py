"""Validation: a network runs on a board (or its emulator, or the host) and equals the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from buildtool.api.answers.estimate import facts
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Level
from buildtool.firmware.run.bounded import every_tensor, is_rounded, operator_bounds, within
from buildtool.firmware.run.compare import Array, Difference, difference
from buildtool.firmware.run.execute import Outcome, execute, image_of, subject
from buildtool.firmware.run.inputs import inputs_of, sequences
from buildtool.firmware.run.judge import Judge, judging
from buildtool.firmware.run.levels import named, reality

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from buildtool.api.requests.kinds import Validate
    from buildtool.base.session import Session
    from buildtool.firmware.planned import Planned
    from buildtool.schema.runs import OperatorBound, ReferenceAnswer, ValidationAnswer
    from buildtool.target.types import Board

SEQUENCE = 8  # random inputs of a network with state, where no number is given
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1")


def validation(request: Validate, session: Session) -> ValidationAnswer:
    """The answer to a `validate` request."""
    with judging(request.reference, request.model) as judge:
        return _judged(request, judge, session)


def _judged(request: Validate, judge: Judge, session: Session) -> ValidationAnswer:
    made, sources = subject(request, session)
    flags = sanitizer_flags(request, made.target.board)
    inputs = inputs_of(request.inputs, made, SEQUENCE)
    resets = sequences(made.graph, len(inputs), request.sequence)
    with image_of(request, made, sources, flags) as firmware:
        plain = execute(made, firmware, inputs, desk=request.desk, resets=resets)
    runs = [plain]
    bounds: list[OperatorBound] = []
    if request.tensors or is_rounded(made):
        traced = every_tensor(made, sources, inputs, request.desk, flags, resets)
        bounds = operator_bounds(made, traced, inputs, resets) if is_rounded(made) else []
        runs += [traced] if request.tensors else []
    judge.hear(made.model, made.source, made.graph, every=request.tensors)
    expected = []
    for number, (one, reset) in enumerate(zip(inputs, resets, strict=True), 1):
        session.tell(f"computing the reference of input {number} of {len(inputs)}")
        expected.append(judge.refer(one, reset))
    found = [d for run in runs for d in _differences(made, run, expected)]
    compared = [t for t in (runs[-1].traces or runs[-1].outputs)[0] if t in expected[0]]
    return _answer(made, judge.told(), inputs, resets, runs, found, bounds, len(compared))


def sanitizer_flags(request: Validate, board: Board) -> tuple[str, ...]:
    """What a request's firmware is compiled with besides; UsageError where the host does not run it."""
    if not request.sanitize:
        return ()
    if reality(board).level not in (Level.HOST, Level.MODEL):
        text = f"sanitizers run on the host, not on '{board.name}'"
        raise UsageError(text, option="sanitize", hint=suggest(board="host"))
    return SANITIZERS


def _differences(made: Planned, run: Outcome, expected: Sequence[Mapping[int, Array]]) -> list[Difference]:
    found = []
    for number, want in enumerate(expected):
        got = dict(run.traces[number]) if run.traces else {}
        got.update(run.outputs[number])
        found += difference(made.graph, number, got, want, run.partial)
    return found


def _answer(
    made: Planned,
    reference: ReferenceAnswer,
    inputs: list[list[Array]],
    resets: Sequence[bool],
    runs: list[Outcome],
    found: list[Difference],
    bounds: list[OperatorBound],
    tensors: int,
) -> ValidationAnswer:
    plain = runs[0]
    order = {t: i for i, t in enumerate(made.graph.activations())}
    first = min(found, key=lambda d: (d.input_set, order[d.tensor]), default=None)
    wrong = {(d.input_set, d.tensor): d.elements for d in found}  # outputs are in the trace as well
    return {
        "model": made.model.name,
        "board": made.target.board.name,
        **named(plain.reality),
        "compiler": plain.compiler,
        "reference": reference,
        "strategy": made.plan.strategy,
        "inputs": len(inputs),
        "resets": sum(resets[1:]) if made.graph.states else 0,
        "state_bytes": made.plan.state_bytes,
        "tensors_compared": tensors,
        "output_values": _output_values(plain),
        "inputs_equal": len(inputs) - len({number for number, _ in wrong}),
        "elements_different": sum(wrong.values()),
        "exact": not found,
        "requantise": str(made.target.requantise),
        "within_bounds": within(bounds) if is_rounded(made) else not found,
        "bounds": bounds,
        "max_abs_diff": max((d.max_abs for d in found), default=0),
        "first_difference": first.json() if first else None,
        "arena_bytes": made.plan.arena_bytes,
        "arena_high_water": plain.arena_high_water,
        "stack_high_water": plain.stack_high_water,
        **facts(made),
    }


def _output_values(run: Outcome) -> int:
    """How many different bytes each output has, over all inputs; the sum over the outputs."""
    together = (b"".join(one[t] for one in run.outputs) for t in run.outputs[0])
    return int(sum(np.unique(np.frombuffer(raw, np.uint8)).size for raw in together))
