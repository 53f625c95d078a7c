"""How far LiteRT's exp, log and tanh of float32 are from buildtool's, and what follows from that.

LiteRT calls the library of the machine that it runs on; firmware has routines of its own, which give the
same bits on every core. So an operator with such a function is compared with LiteRT within a bound, on the
elements whose operands are equal. What is computed from results that differ is compared with our own
executor. All other values have to equal LiteRT's, also behind such an operator: after a QUANTIZE the integers
are mostly equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from buildtool.firmware.run.compare import Array, distance
from buildtool.graph.floats import curve_bound, curve_units
from buildtool.graph.types import DType, Graph, Op, OpKind
from buildtool.schema.runs import CurvesAnswer


def has_curves(graph: Graph) -> bool:
    """Whether a network has operators whose results may differ from LiteRT's."""
    return any(curve_bound(graph, op) for op in graph.ops)


@dataclass
class Curves:
    """The distances between LiteRT's values and ours, over all inputs.

    `bound` and `largest` are in units in the last place, of the operators alone. `values` counts elements of
    integer tensors that were computed from different floats, and of the network's outputs. `different` of
    them differ, by at most `steps` (float outputs: units in the last place).
    """

    operators: int
    bound: int
    largest: int = 0
    values: int = 0
    different: int = 0
    steps: int = 0
    _carried: frozenset[int] = field(default=frozenset(), repr=False)  # states that began apart

    @classmethod
    def of(cls, graph: Graph) -> Curves:
        """Returns the distances before the first input."""
        bounds = [bound for op in graph.ops if (bound := curve_bound(graph, op))]
        return cls(len(bounds), max(bounds, default=0))

    def answer(self) -> CurvesAnswer:
        """Describes the distances in an answer."""
        return {
            "operators": self.operators,
            "bound_ulp": self.bound,
            "largest_ulp": self.largest,
            "values": self.values,
            "values_different": self.different,
            "largest_step": self.steps,
        }

    def settle(
        self, graph: Graph, litert: Mapping[int, Array], ours: Mapping[int, Array], reset: bool
    ) -> Mapping[int, Array]:
        """Returns the values that a run must have: LiteRT's, or ours where they may differ from LiteRT's.

        `reset`: the state is that of the start again.
        """
        expected = dict(litert)
        # whether a tensor differs from LiteRT's, or may
        apart = dict.fromkeys([] if reset else self._carried, True)
        for op in graph.ops:
            bound, follows = curve_bound(graph, op), any(apart.get(t, False) for t in op.inputs)
            for t in op.outputs:
                apart[t] = follows or bound > 0
                if t in litert and apart[t]:
                    steps = distance(ours[t], litert[t].reshape(ours[t].shape))
                    apart[t] = bool(steps.any())
                    within = not bound or self._keeps_bound(op, bound, steps, litert, ours)
                    if within:
                        expected[t] = ours[t]
                    self._count(graph, t, steps)
        self._carried = frozenset(s.before for s in graph.states if apart.get(s.after, False))
        return expected

    def _keeps_bound(
        self,
        op: Op,
        bound: int,
        steps: npt.NDArray[np.int64],
        litert: Mapping[int, Array],
        ours: Mapping[int, Array],
    ) -> bool:
        """Whether an operator keeps its bound where its operand is known to be equal."""
        x, *others = op.inputs
        if x not in litert or x not in ours:
            return True
        if any(t in litert and distance(ours[t], litert[t].reshape(ours[t].shape)).any() for t in others):
            return True
        same = distance(ours[x], litert[x].reshape(ours[x].shape)) == 0
        if op.kind in (OpKind.SOFTMAX, OpKind.LOG_SOFTMAX):
            same = np.broadcast_to(same.all(axis=-1, keepdims=True), same.shape)
        if (least := curve_units(op, ours[x])) is not None:
            y = op.outputs[0]
            steps = distance(ours[y], litert[y].reshape(ours[y].shape), least)
        largest = int(steps[np.broadcast_to(same, steps.shape)].max(initial=0))
        self.largest = max(self.largest, largest)
        return largest <= bound

    def _count(self, graph: Graph, t: int, steps: npt.NDArray[np.int64]) -> None:
        if graph.tensors[t].dtype is not DType.FLOAT32 or t in graph.outputs:
            self.values += steps.size
            self.different += int(np.count_nonzero(steps))
            self.steps = max(self.steps, int(steps.max(initial=0)))
