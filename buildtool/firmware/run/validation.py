"""Validation: a network runs on a board (or its emulator, or the host) and equals the reference.

Where outputs may be rounded otherwise, every operator of a run is also compared with the reference of that
operator alone, on the run's own inputs of it: an exact one adds no difference of its own, and one that is
requantised otherwise stays within the bound that its kernel's family has proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from buildtool.api.answers.estimate import facts
from buildtool.api.requests.kinds import Validate
from buildtool.api.requests.parts import OnDesk
from buildtool.base.errors import BuildtoolError, UsageError, suggest
from buildtool.base.modes import Level, Requantise
from buildtool.base.session import Session
from buildtool.emit.packing import Bound, proven_bound
from buildtool.emit.sources import Sources
from buildtool.firmware.datasets.arrays import Array, inputs_of, sequences
from buildtool.firmware.planned import Planned
from buildtool.firmware.run.compare import Difference, computed, difference
from buildtool.firmware.run.execute import Outcome, built, execute, image_of, subject
from buildtool.firmware.run.judge import judging
from buildtool.firmware.run.levels import reality, reality_answer
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.reference import execute_op, initially, next_held
from buildtool.graph.types import Graph
from buildtool.schema.runs import DifferenceAnswer, OperatorBound, ReferenceAnswer, Run, ValidationAnswer
from buildtool.target.types import Board

SEQUENCE = 8  # random inputs of a network with state, where no number is given
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1")


def validation(request: Validate, session: Session) -> ValidationAnswer:
    """The answer to a `validate` request."""
    with judging(request.reference, request.model) as judge:
        made, sources = subject(request, session)
        flags = sanitizer_flags(request, made.target.board)
        inputs = inputs_of(request.inputs, made.graph, SEQUENCE)
        resets = sequences(made.graph, len(inputs), request.sequence)
        with image_of(request, made, sources, flags) as firmware:
            plain = execute(made, firmware, inputs, attached=request.desk, resets=resets)
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
                found += difference(made.graph, number, run.tensors(number), want, run.partial)
        compared = [t for t in (runs[-1].traces or runs[-1].outputs)[0] if t in expected[0]]
        return {
            **run_answer(made, plain, judge.answer(), not found, bounds),
            **_figures(made.graph, plain, found),
            "resets": sum(resets[1:]) if made.graph.states else 0,
            "tensors_compared": len(compared),
        }


class _Figures(TypedDict):
    output_values: int
    inputs_equal: int
    elements_different: int
    max_abs_diff: int
    first_difference: DifferenceAnswer | None


def _figures(graph: Graph, run: Outcome, found: Sequence[Difference]) -> _Figures:
    """Counts over all inputs of a run; `found`: all differences."""
    outputs = (b"".join(one[t] for one in run.outputs) for t in run.outputs[0])
    order = {t: i for i, t in enumerate(graph.activations())}
    first = min(found, key=lambda d: (d.input_set, order[d.tensor]), default=None)
    wrong = {(d.input_set, d.tensor): d.elements for d in found}  # outputs are in the trace as well
    return {
        # how many different bytes each output has, over all inputs
        "output_values": sum(int(np.unique(np.frombuffer(raw, np.uint8)).size) for raw in outputs),
        "inputs_equal": len(run.outputs) - len({number for number, _ in wrong}),
        "elements_different": sum(wrong.values()),
        "max_abs_diff": max((d.max_abs for d in found), default=0),
        "first_difference": first.json() if first else None,
    }


def run_answer(
    made: Planned, run: Outcome, reference: ReferenceAnswer, exact: bool, bounds: list[OperatorBound]
) -> Run:
    """What all answers say of a run."""
    return {
        "model": made.model.name,
        "board": made.target.board.name,
        **reality_answer(run.reality),
        "compiler": run.compiler,
        "reference": reference,
        "strategy": made.plan.strategy,
        "inputs": len(run.outputs),
        "exact": exact,
        "requantise": str(made.target.requantise),
        "within_bounds": keeps_bounds(bounds) if is_rounded(made) else exact,
        "bounds": bounds,
        "state_bytes": made.plan.state_bytes,
        "arena_bytes": made.plan.arena_bytes,
        "arena_high_water": run.arena_high_water,
        "stack_high_water": run.stack_high_water,
        **facts(made),
    }


def sanitizer_flags(request: Validate, board: Board) -> tuple[str, ...]:
    """The flags of sanitizers, if the request asks for them; UsageError where the host does not run it."""
    if not request.sanitize:
        return ()
    if reality(board).level not in (Level.HOST, Level.MODEL):
        text = f"sanitizers run on the host, not on '{board.name}'"
        raise UsageError(text, option="sanitize", hint=suggest(board="host"))
    return SANITIZERS


# ---- bounds of operators ------------------------------------------------------------------------------


_EXACT = Bound(0, 0.0, 0, 0)


@dataclass
class _Seen:
    """How an operator's outputs differed over all inputs: elements compared and different, most steps off."""

    elements: int = 0
    different: int = 0
    largest: int = 0

    def add(self, have: Array, want: Array, mask: npt.NDArray[np.bool_] | None) -> None:
        """Counts one set of inputs; `mask`: the elements that were computed, None: all."""
        off = np.abs(have.astype(np.int64) - want.astype(np.int64))
        off = off if mask is None else off[mask]
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
    graph = made.graph
    seen = [_Seen() for _ in graph.ops]
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
    for op, kernel, found in zip(graph.ops, made.target.named(made.plan.kernels), seen, strict=True):
        proven = proven_bound(graph, op, kernel) if kernel is not None else None
        bound = proven or (_EXACT if found.different else None)
        if kernel is not None and bound is not None:
            rows.append(
                {
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
            )
    return rows


def _compare(
    graph: Graph,
    values: dict[int, Array],
    trace: Mapping[int, bytes],
    partial: Mapping[int, bytes],
    seen: Sequence[_Seen],
) -> None:
    """Compares the operators of one invoke, each on the values that the run itself had."""
    for op, found in zip(graph.ops, seen, strict=True):
        for t, expected in zip(op.outputs, execute_op(graph, op, values), strict=True):
            tensor = graph.tensors[t]
            values[t] = expected
            if t in trace:
                values[t] = np.frombuffer(trace[t], tensor.dtype.value).reshape(expected.shape)
                mask = computed(partial[t], tensor).reshape(expected.shape) if t in partial else None
                found.add(values[t], expected, mask)
            elif op.kind not in ALIAS_KINDS:
                raise BuildtoolError("the run handed out no such tensor", tensor=tensor.name)


def every_tensor(
    made: Planned,
    sources: Sources,
    inputs: list[list[Array]],
    attached: OnDesk | None,
    flags: tuple[str, ...] = (),
    resets: Sequence[bool] | None = None,
) -> Outcome:
    """A run of an image of its own that hands out every tensor; `resets`: see `execute`."""
    if attached is not None and attached.is_flashed:
        text = "of every tensor an image of its own is built, which has to be flashed"
        raise UsageError(text, option="flashed", hint=suggest(flashed=None))
    with built(made, sources, flags, trace=True, emulated=True) as image:
        return execute(made, image, inputs, trace=True, attached=attached, resets=resets)


def is_rounded(made: Planned) -> bool:
    """Whether outputs may differ from the reference's, within bounds."""
    return made.target.requantise is not Requantise.EXACT


def keeps_bounds(bounds: Sequence[OperatorBound]) -> bool:
    """Whether every operator kept its bound."""
    return all(row["max_abs_diff"] <= row["bound"] for row in bounds)


def bounds_of(
    made: Planned,
    sources: Sources,
    inputs: list[list[Array]],
    attached: OnDesk | None,
    flags: tuple[str, ...] = (),
) -> list[OperatorBound]:
    """As `operator_bounds`, of a run of its own; nothing where outputs equal the reference's."""
    if not is_rounded(made):
        return []
    return operator_bounds(made, every_tensor(made, sources, inputs, attached, flags), inputs)
