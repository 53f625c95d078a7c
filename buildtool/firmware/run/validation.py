"""Validation: a network runs on a board (or its emulator, or the host) and equals the reference.

Where outputs may be rounded otherwise, every operator of a run is also compared with the reference of that
operator alone, on the run's own inputs of it: an exact one adds no difference of its own, and one that is
requantised otherwise stays within the bound that its kernel's family has proven.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from buildtool.api.answers.estimate import facts
from buildtool.base.errors import BuildtoolError, UsageError, suggest
from buildtool.base.modes import Level, Requantise
from buildtool.emit.packing import Bound, proven_bound
from buildtool.firmware.datasets.arrays import Array, inputs_of, sequences
from buildtool.firmware.run.compare import Difference, difference
from buildtool.firmware.run.execute import Outcome, built, execute, image_of, subject
from buildtool.firmware.run.judge import Judge, judging
from buildtool.firmware.run.levels import named, reality
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.reference import execute_op, initially, next_held

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from buildtool.api.requests.kinds import Validate
    from buildtool.api.requests.parts import OnDesk
    from buildtool.base.session import Session
    from buildtool.emit.sources import Sources
    from buildtool.firmware.planned import Planned
    from buildtool.graph.types import Graph
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
    inputs = inputs_of(request.inputs, made.graph, SEQUENCE)
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
    found = []
    for run in runs:
        for number, want in enumerate(expected):
            got = {**(run.traces[number] if run.traces else {}), **run.outputs[number]}
            found += difference(made.graph, number, got, want, run.partial)
    compared = [t for t in (runs[-1].traces or runs[-1].outputs)[0] if t in expected[0]]
    return _answer(made, judge.told(), inputs, resets, runs, found, bounds, len(compared))


def sanitizer_flags(request: Validate, board: Board) -> tuple[str, ...]:
    """The flags of sanitizers, if the request asks for them; UsageError where the host does not run it."""
    if not request.sanitize:
        return ()
    if reality(board).level not in (Level.HOST, Level.MODEL):
        text = f"sanitizers run on the host, not on '{board.name}'"
        raise UsageError(text, option="sanitize", hint=suggest(board="host"))
    return SANITIZERS


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
    outputs = (b"".join(one[t] for one in plain.outputs) for t in plain.outputs[0])
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
        # how many different bytes each output has, over all inputs
        "output_values": sum(int(np.unique(np.frombuffer(raw, np.uint8)).size) for raw in outputs),
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


# ---- bounds of operators ------------------------------------------------------------------------------


_EXACT = Bound(0, 0.0, 0, 0)


@dataclass
class _Seen:
    """How an operator's outputs differed over all inputs: elements compared and different, most steps off."""

    elements: int = 0
    different: int = 0
    largest: int = 0

    def add(self, have: Array, want: Array, computed: npt.NDArray[np.bool_]) -> None:
        """One set of inputs, the elements that were computed."""
        off = np.abs(have.astype(np.int64) - want.astype(np.int64))[computed]
        self.elements += off.size
        self.different += int(np.count_nonzero(off))
        self.largest = max(self.largest, int(off.max(initial=0)))


def operator_bounds(
    made: Planned, run: Outcome, inputs: Sequence[Sequence[Array]], resets: Sequence[bool] | None = None
) -> list[OperatorBound]:
    """The proven and the observed bound of each operator's outputs that are not exact; `run` was traced.

    `resets`: before which inputs the state is reset (None: before each). An exact operator is listed only if
    it differed: its bound is 0.
    """
    graph, kernels = made.graph, made.target.named(made.plan.kernels)
    seen: dict[int, _Seen] = {}
    held = initially(graph)
    for number, one in enumerate(inputs):
        made.session.tell(f"checking every operator on input {number + 1} of {len(inputs)}")
        trace = run.traces[number] if run.traces else {}  # none where the network computes nothing
        if resets is None or resets[number]:
            held = initially(graph)
        befores = (state.before for state in graph.states)
        values = dict(zip((*graph.inputs, *befores), (*one, *held), strict=True))
        _compare(graph, values, trace, run.partial, seen)
        held = next_held(graph, values)
    rows: list[OperatorBound] = []
    for position, op in enumerate(graph.ops):
        kernel = kernels[position]
        proven = proven_bound(graph, op, kernel) if kernel is not None else None
        found = seen.get(position, _Seen())
        if kernel is None or (proven is None and not found.different):
            continue
        bound = proven or _EXACT
        row: OperatorBound = {
            "tensor": graph.tensors[op.outputs[0]].name,
            "operator": op.place,
            "kernel": kernel.name,
            "channels": bound.channels,
            "channels_rounded": bound.rounded,
            "bound_before_rounding": bound.before_rounding,
            "bound": bound.steps,
            "max_abs_diff": found.largest,
            "elements": found.elements,
            "elements_different": found.different,
        }
        rows.append(row)
    return rows


def _compare(
    graph: Graph,
    values: dict[int, Array],
    trace: Mapping[int, bytes],
    partial: Mapping[int, bytes],
    seen: dict[int, _Seen],
) -> None:
    """Compares the operators of one invoke, each on the values that the run itself had."""
    for position, op in enumerate(graph.ops):
        want = execute_op(graph, op, values)
        found = seen.setdefault(position, _Seen())
        for t, expected in zip(op.outputs, want, strict=True):
            tensor = graph.tensors[t]
            if t not in trace:
                if op.kind not in ALIAS_KINDS:
                    raise BuildtoolError("the run handed out no such tensor", tensor=tensor.name)
                values[t] = expected
                continue
            have = np.frombuffer(trace[t], tensor.dtype.value).reshape(expected.shape)
            computed = np.ones(expected.shape, bool)
            if t in partial:
                mask = np.frombuffer(partial[t], np.uint8)[:: tensor.dtype.size]
                computed = mask.reshape(expected.shape) != 0
            found.add(have, expected, computed)
            values[t] = have


def every_tensor(
    made: Planned,
    sources: Sources,
    inputs: list[list[Array]],
    desk: OnDesk | None,
    flags: tuple[str, ...] = (),
    resets: Sequence[bool] | None = None,
) -> Outcome:
    """A run of an image of its own that hands out every tensor; `resets`: see `execute`."""
    if desk is not None and desk.is_flashed:
        text = "of every tensor an image of its own is built, which has to be flashed"
        raise UsageError(text, option="flashed", hint=suggest(flashed=None))
    with built(made, sources, flags, trace=True, emulated=True) as image:
        return execute(made, image, inputs, trace=True, desk=desk, resets=resets)


def is_rounded(made: Planned) -> bool:
    """Whether outputs may differ from the reference's, within bounds."""
    return made.target.requantise is not Requantise.EXACT


def within(bounds: Sequence[OperatorBound]) -> bool:
    """Whether every operator kept its bound."""
    return all(row["max_abs_diff"] <= row["bound"] for row in bounds)


def bounds_of(
    made: Planned,
    sources: Sources,
    inputs: list[list[Array]],
    desk: OnDesk | None,
    flags: tuple[str, ...] = (),
) -> list[OperatorBound]:
    """As `operator_bounds`, of a run of its own; nothing where outputs equal the reference's."""
    if not is_rounded(made):
        return []
    return operator_bounds(made, every_tensor(made, sources, inputs, desk, flags), inputs)
