"""Puts a network together operator by operator, for everything that makes networks in code.

Weights and quantisations come from the classes built on it: the zoo calibrates them, tests draw them at
random, benchmarks take those of published figures.
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
    """Collects tensors and operators; methods that add one return the number of the tensor it makes."""

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
        """A tensor, constant when it has data; named t0, t1, ... or, with data, w0, w1, ... by default."""
        number = len(self.tensors)
        label = name or f"{'t' if data is None else 'w'}{number}"
        self.tensors.append(Tensor(label, tuple(int(n) for n in shape), dtype, quant, data))
        return number

    def feed(
        self, shape: Sequence[int], quant: Quantization | None, dtype: DType = DType.INT8, name: str = ""
    ) -> int:
        """A network input."""
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
        """A state's tensor `before`; `keep` sets its tensor `after`."""
        before = self.tensor(shape, quant, dtype)
        self.states.append(State(before, before, initial, name or f"state{len(self.states)}"))
        return before

    def keep(self, before: int, after: int) -> None:
        """Sets the tensor `after` of a state."""
        self.states = [replace(s, after=after) if s.before == before else s for s in self.states]

    def shape(self, tensor: int) -> tuple[int, ...]:
        """The shape of a tensor, batch included."""
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
        """An operator with one output; `shape` where the inputs and attributes do not say it."""
        new = Op(kind, tuple(inputs), (len(self.tensors),), attrs, len(self.ops))
        if shape is None:
            rule = DEFS[kind].shape
            assert rule is not None
            shape = rule(new, [self.shape(t) if t >= 0 else () for t in inputs], [])
        self.ops.append(new)
        return self.tensor(shape, quant, dtype, name=name)

    def graph(self, outputs: Sequence[int]) -> Graph:
        """The network so far."""
        return graph_of(self.network, self.tensors, self.ops, self.inputs, outputs, self.states)
