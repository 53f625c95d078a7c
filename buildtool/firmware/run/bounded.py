"""Every operator of a run against the reference of that operator alone, on the run's own inputs of it.

So what an operator adds of its own is seen, whatever came before it: an exact one adds nothing, and one that
is requantised otherwise stays within the bound that its kernel's family has proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError, UsageError, suggest
from buildtool.base.modes import Requantise
from buildtool.emit.packing import Bound, proven_bound
from buildtool.firmware.run.execute import built, execute
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.reference import execute_op, initially, next_held
from buildtool.graph.types import Graph, Op

if TYPE_CHECKING:
    from buildtool.api.requests.parts import OnDesk
    from buildtool.emit.sources import Sources
    from buildtool.firmware.planned import Planned
    from buildtool.firmware.run.compare import Array
    from buildtool.firmware.run.execute import Outcome
    from buildtool.schema.runs import OperatorBound

_EXACT = Bound(0, 0.0, 0, 0)


@dataclass
class _Seen:
    """How an operator's outputs differed over all inputs: elements compared, different, the largest."""

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
    """What is proven and what was seen of each operator's outputs that are not exact; `run` was traced.

    `resets`: before which inputs the state is reset (None: before each).

    An exact operator is among them only where it differed: its bound is 0.
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
        rows.append(_row(graph, op, kernel.name, proven or _EXACT, found))
    return rows


def _row(graph: Graph, op: Op, kernel: str, proven: Bound, found: _Seen) -> OperatorBound:
    return {
        "tensor": graph.tensors[op.outputs[0]].name,
        "operator": op.place,
        "kernel": kernel,
        "channels": proven.channels,
        "channels_rounded": proven.rounded,
        "bound_before_rounding": proven.before_rounding,
        "bound": proven.steps,
        "max_abs_diff": found.largest,
        "elements": found.elements,
        "elements_different": found.different,
    }


def _compare(
    graph: Graph,
    values: dict[int, Array],
    trace: Mapping[int, bytes],
    partial: Mapping[int, bytes],
    seen: dict[int, _Seen],
) -> None:
    """One run's operators, each on the values that the run itself had."""
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
    """A run of the image that hands out every tensor, which is one of its own; `resets`: see `execute`."""
    if desk is not None and desk.is_flashed:
        text = "of every tensor an image of its own is built, which has to be flashed"
        raise UsageError(text, option="flashed", hint=suggest(flashed=None))
    with built(made, sources, flags, trace=True, emulated=True) as image:
        return execute(made, image, inputs, trace=True, desk=desk, resets=resets)


def is_rounded(made: Planned) -> bool:
    """Whether outputs may differ from the reference's, within bounds."""
    return made.target.requantise is not Requantise.EXACT


def within(bounds: Sequence[OperatorBound]) -> bool:
    """Whether every operator was as near to the reference as is proven."""
    return all(row["max_abs_diff"] <= row["bound"] for row in bounds)


def bounds_of(
    made: Planned,
    sources: Sources,
    inputs: list[list[Array]],
    desk: OnDesk | None,
    flags: tuple[str, ...] = (),
) -> list[OperatorBound]:
    """As `operator_bounds`, of a run of its own; nothing where outputs are the reference's."""
    if not is_rounded(made):
        return []
    return operator_bounds(made, every_tensor(made, sources, inputs, desk, flags), inputs)
