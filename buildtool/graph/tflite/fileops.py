"""What a .tflite file holds of an operator, and a graph on its way there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from buildtool.graph import types as g
from buildtool.graph.tflite.schema import tflite

# A field of an option table: a scalar, text, a vector of int32, or what the schema has numbers for.
OptionValue = int | float | bool | str | tuple[int, ...] | g.Activation | g.DType

# What the schema has for them.
ACTIVATIONS: dict[g.Activation, int] = {
    activation: getattr(tflite.ActivationFunctionType, activation.name) for activation in g.Activation
}
TYPE_CODES: dict[g.DType, int] = {dtype: getattr(tflite.TensorType, dtype.name) for dtype in g.DType}


@dataclass(frozen=True)
class FileOp:
    """An operator of the file; `options` are the fields of its `table`, those with defaults left out."""

    builtin: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: str = ""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    intermediates: tuple[int, ...] = ()


@dataclass(frozen=True)
class Variable:
    """A resource variable: its name, its first value, and the tensor that names it in the main subgraph."""

    name: str
    initial: g.Tensor
    handle: int


@dataclass
class Lowering:
    """A graph on its way to a file: its tensors keep their indices, new ones follow.

    `variables`: what a state is before an invoke -> the resource variable that it is in the file; `variable`:
    tensors that are marked as variable.
    """

    graph: g.Graph
    tensors: list[g.Tensor]
    ops: list[FileOp]
    variables: dict[int, Variable] = field(default_factory=dict)
    variable: frozenset[int] = frozenset()

    def parameter(self, op: g.Op, role: str, values: npt.ArrayLike) -> int:
        """A new int32 constant; its index."""
        return self.add(op, role, np.asarray(values, np.int32), g.DType.INT32, None)

    def add(
        self,
        op: g.Op,
        role: str,
        data: npt.NDArray[np.generic],
        dtype: g.DType,
        quant: g.Quantization | None,
    ) -> int:
        """A new constant named after the operator's output and its role; its index."""
        self.tensors.append(g.Tensor(self._name(op, role), data.shape, dtype, quant, data))
        return len(self.tensors) - 1

    def tensor(self, op: g.Op, role: str, shape: Sequence[int], like: g.Tensor) -> int:
        """A new activation of `shape`, named likewise, in type and quantisation as `like`; its index."""
        self.tensors.append(g.Tensor(self._name(op, role), tuple(shape), like.dtype, like.quant))
        return len(self.tensors) - 1

    def _name(self, op: g.Op, role: str) -> str:
        return f"{self.graph.tensors[op.outputs[0]].name}/{role}"
