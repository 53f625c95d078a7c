"""Validates a network: runs it on a board, its emulator or this machine, and compares it with the reference.

Where outputs may be rounded differently, every operator of a run is also compared alone with the reference,
on the inputs that it had in the run. An exact operator must have no difference. One that is requantised
differently must stay within the bound that its kernel's family has proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from buildtool.api.answers.estimate import facts
from buildtool.api.requests.kinds import Validate
from buildtool.api.requests.parts import AttachedRun
from buildtool.base.errors import BuildtoolError, UsageError, suggest
from buildtool.base.modes import Requantise
from buildtool.base.session import Session
from buildtool.emit.packing import Bound, proven_bound
from buildtool.emit.sources import Sources
from buildtool.firmware.datasets.arrays import Array, inputs_of, sequences
from buildtool.firmware.levels import reality_answer
from buildtool.firmware.planned import Planned
from buildtool.firmware.run.compare import Difference, computed, difference, distance
from buildtool.firmware.run.execute import Outcome, build_temporarily, execute, image_of, plan_and_sources
from buildtool.firmware.run.judge import judging
from buildtool.firmware.run.moving_window import WINDOWS, count_hops
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.reference import execute_op, initial_states, next_states
from buildtool.graph.types import Graph
from buildtool.schema.runs import DifferenceAnswer, OperatorBound, ReferenceAnswer, Run, ValidationAnswer
from buildtool.target.types import Board

SEQUENCE = 8  # default number of random inputs for a network with state
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1")


def validation(request: Validate, session: Session) -> ValidationAnswer:
    """Returns the answer to a `validate` request."""
    with judging(request.reference, request.model) as judge:
        planned, sources = plan_and_sources(request, session)
        flags = sanitizer_flags(request, planned.target.board)
        hops = count_hops(planned.graph, WINDOWS)
        inputs = inputs_of(request.inputs, planned.graph, hops + hops // WINDOWS or SEQUENCE)
        resets = sequences(planned.graph, len(inputs), request.sequence or hops)
        with image_of(request, planned, sources, flags) as firmware:
            plain = execute(planned, firmware, inputs, attached=request.attached, resets=resets)
        runs = [plain]
        bounds: list[OperatorBound] = []
        if request.tensors or is_rounded(planned):
            traced = every_tensor(planned, sources, inputs, request.attached, flags, resets)
            bounds = operator_bounds(planned, traced, inputs, resets) if is_rounded(planned) else []
            runs += [traced] if request.tensors else []
        judge.set_network(
            planned.model, planned.source, planned.graph, every=request.tensors, hop=planned.hop
        )
        expected = []
        for number, (one, reset) in enumerate(zip(inputs, resets, strict=True), 1):
            session.tell(f"computing the reference of input {number} of {len(inputs)}")
            expected.append(judge.refer(one, reset))
        differences = []
        for run in runs:
            for number, tensors in enumerate(expected):
                differences += difference(planned.graph, number, run.tensors(number), tensors, run.partial)
        compared = [t for t in (runs[-1].traces or runs[-1].outputs)[0] if t in expected[0]]
        return {
            **run_answer(planned, plain, judge.answer(), not differences, bounds),
            **_count_differences(planned.graph, plain, differences),
            "resets": sum(resets[1:]) if planned.graph.states else 0,
            "tensors_compared": len(compared),
        }


class _Figures(TypedDict):
    output_values: int
    inputs_equal: int
    elements_different: int
    max_abs_diff: int
    first_difference: DifferenceAnswer | None


def _count_differences(graph: Graph, run: Outcome, differences: Sequence[Difference]) -> _Figures:
    """Returns the figures of a run's differences over all its inputs."""
    outputs = (b"".join(one[t] for one in run.outputs) for t in run.outputs[0])
    order = {t: i for i, t in enumerate(graph.activations())}
    first = min(differences, key=lambda d: (d.input_set, order[d.tensor]), default=None)
    wrong = {(d.input_set, d.tensor): d.elements for d in differences}  # outputs are in the trace as well
    return {
        # the number of different bytes in each output, over all inputs
        "output_values": sum(int(np.unique(np.frombuffer(raw, np.uint8)).size) for raw in outputs),
        "inputs_equal": len(run.outputs) - len({number for number, _ in wrong}),
        "elements_different": sum(wrong.values()),
        "max_abs_diff": max((d.max_abs for d in differences), default=0),
        "first_difference": first.json() if first else None,
    }


def run_answer(
    planned: Planned, run: Outcome, reference: ReferenceAnswer, exact: bool, bounds: list[OperatorBound]
) -> Run:
    """Returns the part of an answer that describes a run.

    `exact` says whether the run has all the values that the judge demands. `bounds` are from
    `operator_bounds`.
    """
    curves = reference["curves"]
    return {
        "model": planned.model.name,
        "board": planned.target.board.name,
        **reality_answer(run.reality),
        "compiler": run.compiler,
        "reference": reference,
        "strategy": planned.plan.strategy,
        "inputs": len(run.outputs),
        "exact": exact and not (curves and curves["values_different"]),
        "requantise": str(planned.target.requantise),
        "within_bounds": keeps_bounds(bounds) if is_rounded(planned) else exact,
        "bounds": bounds,
        "state_bytes": planned.plan.state_bytes,
        "arena_bytes": planned.plan.arena_bytes,
        "arena_high_water": run.arena_high_water,
        "stack_high_water": run.stack_high_water,
        **facts(planned),
    }


def sanitizer_flags(request: Validate, board: Board) -> tuple[str, ...]:
    """Returns the compiler's flags for sanitizers; none unless the request demands sanitizers.

    Raises UsageError if the firmware does not run on this machine.
    """
    if not request.sanitize:
        return ()
    if not board.is_native:
        text = f"sanitizers run on the host, not on '{board.name}'"
        raise UsageError(text, option="sanitize", hint=suggest(board="host"))
    return SANITIZERS


# ---- bounds of operators ------------------------------------------------------------------------------


_EXACT = Bound(0, 0.0, 0, 0)


@dataclass
class _Deviation:
    """The differences of an operator's outputs over all inputs.

    `elements`: the number of compared elements.
    `different`: the number of those that differ.
    `largest`: the largest difference, in output steps.
    """

    elements: int = 0
    different: int = 0
    largest: int = 0

    def add(self, actual: Array, expected: Array, mask: npt.NDArray[np.bool_] | None) -> None:
        """Adds the output for one set of inputs; `mask` has the elements that were computed (None: all)."""
        steps = distance(actual, expected)
        steps = steps if mask is None else steps[mask]
        self.elements += steps.size
        self.different += int(np.count_nonzero(steps))
        self.largest = max(self.largest, int(steps.max(initial=0)))


def operator_bounds(
    planned: Planned, run: Outcome, inputs: Sequence[Sequence[Array]], resets: Sequence[bool] | None = None
) -> list[OperatorBound]:
    """Returns the proven bound and the largest difference of each operator whose outputs are not exact.

    `run` is one of a trace build. `resets` says before which inputs the state is reset (None: before each).
    An exact operator, whose bound is 0, is listed only if it differs.
    """
    graph = planned.graph
    deviations = [_Deviation() for _ in graph.ops]
    states = initial_states(graph)
    for number, one in enumerate(inputs):
        planned.session.tell(f"checking every operator on input {number + 1} of {len(inputs)}")
        trace = run.traces[number] if run.traces else {}  # empty where the network computes nothing
        if resets is None or resets[number]:
            states = initial_states(graph)
        befores = (state.before for state in graph.states)
        values = dict(zip((*graph.inputs, *befores), (*one, *states), strict=True))
        _compare(graph, values, trace, run.partial, deviations)
        states = next_states(graph, values)
    rows: list[OperatorBound] = []
    kernels = planned.target.kernels_by_name(planned.plan.kernels)
    for op, kernel, deviation in zip(graph.ops, kernels, deviations, strict=True):
        proven = proven_bound(graph, op, kernel) if kernel is not None else None
        bound = proven or (_EXACT if deviation.different else None)
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
                    "max_abs_diff": deviation.largest,
                    "elements": deviation.elements,
                    "elements_different": deviation.different,
                }
            )
    return rows


def _compare(
    graph: Graph,
    values: dict[int, Array],
    trace: Mapping[int, bytes],
    partial: Mapping[int, bytes],
    deviations: Sequence[_Deviation],
) -> None:
    """Computes each operator of one invoke again, from the inputs that it had in the run, and adds the
    differences to `deviations`.

    `values` has the network's inputs and states at first, and all tensors at the end. `trace` and `partial`
    are from the run's `Outcome`.
    """
    for op, deviation in zip(graph.ops, deviations, strict=True):
        for t, expected in zip(op.outputs, execute_op(graph, op, values), strict=True):
            tensor = graph.tensors[t]
            values[t] = expected
            if t in trace:
                values[t] = np.frombuffer(trace[t], tensor.dtype.value).reshape(expected.shape)
                mask = computed(partial[t], tensor).reshape(expected.shape) if t in partial else None
                deviation.add(values[t], expected, mask)
            elif op.kind not in ALIAS_KINDS:
                raise BuildtoolError("the run did not write this tensor", tensor=tensor.name)


def every_tensor(
    planned: Planned,
    sources: Sources,
    inputs: list[list[Array]],
    attached: AttachedRun | None,
    flags: tuple[str, ...] = (),
    resets: Sequence[bool] | None = None,
) -> Outcome:
    """Builds firmware that writes every tensor, and runs it; `resets` is that of `execute`."""
    if attached is not None and attached.is_flashed:
        text = "comparing every tensor needs another firmware image, which has to be flashed"
        raise UsageError(text, option="flashed", hint=suggest(flashed=None))
    with build_temporarily(planned, sources, flags, trace=True, emulated=True) as image:
        return execute(planned, image, inputs, trace=True, attached=attached, resets=resets)


def is_rounded(planned: Planned) -> bool:
    """Whether outputs may differ from the reference's, within proven bounds."""
    return planned.target.requantise is not Requantise.EXACT


def keeps_bounds(bounds: Sequence[OperatorBound]) -> bool:
    """Whether all operators are within their bounds."""
    return all(row["max_abs_diff"] <= row["bound"] for row in bounds)


def bounds_of(
    planned: Planned,
    sources: Sources,
    inputs: list[list[Array]],
    attached: AttachedRun | None,
    flags: tuple[str, ...] = (),
) -> list[OperatorBound]:
    """Runs the firmware and returns the `operator_bounds` of this run.

    The list is empty if outputs have to equal the reference's.
    """
    if not is_rounded(planned):
        return []
    return operator_bounds(planned, every_tensor(planned, sources, inputs, attached, flags), inputs)
