"""Builds a network in code, operator by operator.

The callers provide weights and quantisations: the zoo calibrates them, tests draw them at random, and
benchmarks take them from published figures.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from buildtool.graph.numbering import graph_of
from buildtool.graph.ops import DEFS
from buildtool.graph.types import Attrs, DType, Graph, Op, OpKind, Pad, Quantization, State, Tensor

NO_PAD, NO_ATTRS = Pad(), Attrs()


class GraphBuilder:
    """Builds a network. A method that adds a tensor or an operator returns the number of the new tensor."""

    def __init__(self, name: str = "net") -> None:
        self.network = name
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self.inputs: list[int] = []
        self.states: list[State] = []

    def tensor(
        self,
        shape: Sequence[int],
        quant: Quantization | None = None,
        dtype: DType = DType.INT8,
        data: npt.NDArray[np.generic] | None = None,
        name: str = "",
    ) -> int:
        """Adds a tensor, which is a constant if `data` is given.

        The default names are t0, t1, ... for activations and w0, w1, ... for constants.
        """
        number = len(self.tensors)
        label = name or f"{'t' if data is None else 'w'}{number}"
        self.tensors.append(Tensor(label, tuple(int(n) for n in shape), dtype, quant, data))
        return number

    def feed(
        self, shape: Sequence[int], quant: Quantization | None, dtype: DType = DType.INT8, name: str = ""
    ) -> int:
        """Adds a network input."""
        self.inputs.append(self.tensor(shape, quant, dtype, name=name))
        return self.inputs[-1]

    def state(
        self,
        shape: Sequence[int],
        quant: Quantization | None,
        initial: npt.NDArray[np.generic],
        dtype: DType = DType.INT8,
        name: str = "",
    ) -> int:
        """Adds a state with the first value `initial`. Returns its tensor `before`; `keep` sets `after`."""
        before = self.tensor(shape, quant, dtype)
        self.states.append(State(before, before, initial, name or f"state{len(self.states)}"))
        return before

    def keep(self, before: int, after: int) -> None:
        """Makes the tensor `after` the new value of the state whose tensor is `before`."""
        self.states = [replace(s, after=after) if s.before == before else s for s in self.states]

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Returns the shape of a tensor, batch included."""
        return self.tensors[tensor].shape

    def op(
        self,
        kind: OpKind,
        inputs: Sequence[int],
        attrs: Attrs = NO_ATTRS,
        quant: Quantization | None = None,
        dtype: DType = DType.INT8,
        name: str = "",
        shape: Sequence[int] | None = None,
    ) -> int:
        """Adds an operator with one output.

        `shape` is the output's; it is needed where inputs and attributes do not determine it.
        """
        new = Op(kind, tuple(inputs), (len(self.tensors),), attrs, len(self.ops))
        if shape is None:
            rule = DEFS[kind].shape
            assert rule is not None
            shape = rule(new, [self.shape(t) if t >= 0 else () for t in inputs], [])
        self.ops.append(new)
        return self.tensor(shape, quant, dtype, name=name)

    def graph(self, outputs: Sequence[int]) -> Graph:
        """Returns the network built so far."""
        return graph_of(self.network, self.tensors, self.ops, self.inputs, outputs, self.states)
