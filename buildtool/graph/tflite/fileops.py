"""Types for writing a .tflite file: its operators, and the graph during its conversion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from buildtool.graph import types as g
from buildtool.graph.ops.types import option_table
from buildtool.graph.tflite.schema import tflite

# A field of an option table: a scalar, text, a vector of int32, or one of the enumerations below.
OptionValue = int | float | bool | str | tuple[int, ...] | g.Activation | g.DType

# Numbers of the schema's enumerations.
ACTIVATIONS: dict[g.Activation, int] = {
    activation: getattr(tflite.ActivationFunctionType, activation.name) for activation in g.Activation
}
TYPE_CODES: dict[g.DType, int] = {dtype: getattr(tflite.TensorType, dtype.name) for dtype in g.DType}


@dataclass(frozen=True)
class FileOp:
    """An operator of the file.

    `options` are fields of the option table `table`; other fields have their default values. A CUSTOM
    operator has the name `custom`, and its options are `data`.
    """

    builtin: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: str = ""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    intermediates: tuple[int, ...] = ()
    custom: str = ""
    data: bytes = b""


@dataclass(frozen=True)
class Variable:
    """A resource variable: its name, its first value, and the tensor that names it in the main subgraph."""

    name: str
    initial: g.Tensor
    handle: int


@dataclass
class Lowering:
    """A graph during its conversion into a file. Its tensors keep their indices; new tensors follow them.

    `variables` maps a state's tensor `before` to the state's resource variable in the file. `variable` holds
    the tensors that the file marks as variable.
    """

    graph: g.Graph
    tensors: list[g.Tensor]
    ops: list[FileOp]
    variables: dict[int, Variable] = field(default_factory=dict)
    variable: frozenset[int] = frozenset()

    def file_op(
        self, op: g.Op, version: int, *parameters: int, table: str = "", **options: OptionValue
    ) -> FileOp:
        """Returns the file's operator for `op`, which has the same name. `parameters` follow its inputs."""
        inputs = (*op.inputs, *parameters)
        return FileOp(op.kind, version, inputs, op.outputs, table or option_table(op.kind), options)

    def parameter(self, op: g.Op, role: str, values: npt.ArrayLike) -> int:
        """Adds an int32 constant; returns its index.

        It is named after the operator's output and its role.
        """
        return self.add(op, role, np.asarray(values, np.int32), None)

    def add(self, op: g.Op, role: str, data: npt.NDArray[np.generic], quant: g.Quantization | None) -> int:
        """Adds a constant that is named after the operator's output and its role; returns its index."""
        name = f"{self.graph.tensors[op.outputs[0]].name}/{role}"
        self.tensors.append(g.Tensor(name, data.shape, g.DType(data.dtype.name), quant, data))
        return len(self.tensors) - 1

    def tensor(self, op: g.Op, role: str, shape: Sequence[int], like: g.Tensor) -> int:
        """Adds an activation of `shape` with the type and quantisation of `like`; returns its index.

        It is named after the operator's output and its role.
        """
        name = f"{self.graph.tensors[op.outputs[0]].name}/{role}"
        self.tensors.append(g.Tensor(name, tuple(shape), like.dtype, like.quant))
        return len(self.tensors) - 1
