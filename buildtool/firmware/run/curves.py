"""Compares operators with exp, log and tanh of float32, whose results may differ from LiteRT's.

LiteRT calls the math library of the machine that it runs on. Firmware has routines of its own, which give the
same bits on every core. So an operator with such a function is compared with LiteRT within a bound, on those
elements whose operands are equal. Values computed from results that differ are compared with buildtool's own
executor. All other values must equal LiteRT's, even after such an operator: after a QUANTIZE, the integers
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
    """Whether a network has operators whose float32 results may differ from LiteRT's."""
    return any(curve_bound(graph, op) for op in graph.ops)


@dataclass
class Curves:
    """The differences between LiteRT's values and those of buildtool's executor, over all inputs.

    `operators`: the number of operators with exp, log or tanh.
    `bound`, `largest`: their allowed and their largest difference, in units in the last place.
    `values`: the number of compared elements: those of the network's outputs, and those of integer tensors
    that were computed from different floats.
    `different`: how many of these differ.
    `steps`: their largest difference (float outputs: units in the last place).
    """

    operators: int
    bound: int
    largest: int = 0
    values: int = 0
    different: int = 0
    steps: int = 0
    _carried: frozenset[int] = field(default=frozenset(), repr=False)  # states that differ before an invoke

    @classmethod
    def of(cls, graph: Graph) -> Curves:
        """Returns the Curves for a network before its first input: no values have been compared yet."""
        bounds = [bound for op in graph.ops if (bound := curve_bound(graph, op))]
        return cls(len(bounds), max(bounds, default=0))

    def answer(self) -> CurvesAnswer:
        """Returns the differences as part of an answer."""
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
        """Returns the values that a run must have: LiteRT's, or those of `ours` where they may differ within
        the bound.

        `litert` and `ours` map a tensor's index to its value; `ours` is buildtool's executor. `reset` says
        that the state was reset before this input.
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
        """Whether an operator's results differ by at most its `bound`, on elements whose operands are
        equal.
        """
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
