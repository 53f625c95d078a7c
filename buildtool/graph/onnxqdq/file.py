"""An ONNX file's main graph as plain values: operators with their attributes, constants, the interface."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnxfile import MAX_RANK, Proto, plain_model, shown

Array = npt.NDArray[Any]
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array

LEAST_OPSET, MOST_OPSET = 11, 25
MAX_LIST = 4096  # elements of an attribute
_DOMAINS = ("", "ai.onnx", "com.microsoft")
_EXTERNAL = 1  # TensorProto.DataLocation
_WIDE = 1 << 31  # bytes of a constant

# TensorProto.DataType -> numpy's name; other types have no place in an int8 network.
DTYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
}


@dataclass(frozen=True)
class Node:
    """An operator, by its tensors' names ("" where an optional one is absent)."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    index: int = -1
    name: str = ""

    @property
    def place(self) -> str:
        """For error messages: "#3 Conv 'stem/conv'"."""
        return f"#{self.index} {self.kind} '{self.name}'" if self.name else f"#{self.index} {self.kind}"

    def input(self, position: int) -> str:
        """The name of input `position`, "" if absent."""
        return self.inputs[position] if position < len(self.inputs) else ""

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise ModelError(f"attribute {name} is not an integer")
        return value

    def number(self, name: str, default: float) -> float:
        """A float attribute."""
        value = self.attributes.get(name, default)
        if not isinstance(value, (int, float)):
            raise ModelError(f"attribute {name} is not a number")
        return float(value)

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        value = self.attributes.get(name, default)
        if not isinstance(value, str):
            raise ModelError(f"attribute {name} is not a string")
        return value

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, None if absent."""
        value = self.attributes.get(name)
        if value is None or value == ():
            return None
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            raise ModelError(f"attribute {name} is not a list of integers")
        return tuple(int(v) for v in value)


@dataclass(frozen=True)
class Interface:
    """A network input or output; shape () also where an output's is not known."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class QdqFile:
    """The main graph. Constants are decoded on demand."""

    name: str
    opset: int
    nodes: tuple[Node, ...]
    inputs: tuple[Interface, ...]
    outputs: tuple[str, ...]
    initializers: Mapping[str, Proto]

    def constant(self, name: str) -> Array:
        """The value of initializer `name`; refuses types and storage that are not read."""
        return to_array(self.initializers[name], name)


def read_file(data: bytes) -> QdqFile:
    """Parses `data`. Raises ModelError, UnsupportedError; ToolError without the onnx package."""
    model = plain_model(data)
    graph = model.graph
    if len(graph.sparse_initializer):
        raise UnsupportedError("sparse constants", hint="store them densely")
    opset = _opset(model)
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    nodes = tuple(_node(node, i) for i, node in enumerate(graph.node))
    inputs = tuple(_interface(value) for value in graph.input if value.name not in initializers)
    outputs = tuple(value.name for value in graph.output)
    if not inputs or not outputs:
        raise ModelError(f"{len(inputs)} network inputs, {len(outputs)} outputs")
    return QdqFile(shown(graph.name) or "network", opset, nodes, inputs, outputs, initializers)


def _opset(model: Proto) -> int:
    versions = {entry.domain: int(entry.version) for entry in model.opset_import}
    version = versions.get("", versions.get("ai.onnx", 0))
    if not LEAST_OPSET <= version <= MOST_OPSET:
        hint = f"export with an opset from {LEAST_OPSET} to {MOST_OPSET}, or use onnx.version_converter"
        raise UnsupportedError(f"opset {version}", hint=hint)
    return version


def _node(node: Proto, index: int) -> Node:
    name = node.name if isinstance(node.name, str) else ""
    place = f"#{index} {shown(node.op_type)}"
    try:
        if node.domain not in _DOMAINS:
            hint = "replace it by operators of ONNX itself"
            raise UnsupportedError(f"an operator of the domain '{shown(str(node.domain))}'", hint=hint)
        attributes = {str(a.name): _attribute(a) for a in node.attribute}
    except (ModelError, UnsupportedError) as error:
        raise error.at(operator=place) from None
    outputs = tuple(node.output)
    while outputs and not outputs[-1]:
        outputs = outputs[:-1]
    return Node(shown(node.op_type), tuple(node.input), outputs, attributes, index, shown(name))


def _attribute(a: Proto) -> Attribute:
    """An attribute's value; subgraphs and the like are refused."""
    if max(len(a.ints), len(a.floats), len(a.strings)) > MAX_LIST:
        raise ModelError(f"attribute {shown(str(a.name))} has more than {MAX_LIST} elements")
    match int(a.type):
        case 1:
            return float(a.f)
        case 2:
            return int(a.i)
        case 3:
            return str(bytes(a.s).decode("utf-8", "replace"))
        case 4:
            return to_array(a.t, str(a.name))
        case 6:
            return tuple(float(v) for v in a.floats)
        case 7:
            return tuple(int(v) for v in a.ints)
        case 8:
            return tuple(bytes(v).decode("utf-8", "replace") for v in a.strings)
    hint = "fix conditions and unroll loops before exporting"
    raise UnsupportedError("control flow, or an attribute that is not a tensor, number or text", hint=hint)


def to_array(tensor: Proto, name: str) -> Array:
    """A TensorProto as numpy has it, its size checked against its data first."""
    from onnx import numpy_helper

    if tensor.data_location == _EXTERNAL:
        hint = "save it in one file: onnx.save(onnx.load(path), path, save_as_external_data=False)"
        raise UnsupportedError("weights in another file", tensor=shown(name), hint=hint)
    if tensor.data_type not in DTYPES:
        hint = "quantise weights to 8 bits"
        raise UnsupportedError(f"elements of type {tensor.data_type}", tensor=shown(name), hint=hint)
    dims = tuple(int(n) for n in tensor.dims)
    if len(dims) > MAX_RANK or any(n < 0 for n in dims) or math.prod(dims) * 8 > _WIDE:
        raise ModelError(f"the shape {list(dims[:MAX_RANK])}", tensor=shown(name))
    try:
        array = np.asarray(numpy_helper.to_array(tensor))
    except Exception as error:  # numpy and onnx raise many kinds on damaged data
        raise ModelError("a constant whose data do not fit its shape", tensor=shown(name)) from error
    if array.shape != dims or array.dtype.name != DTYPES[tensor.data_type]:
        raise ModelError("a constant whose data do not fit its shape", tensor=shown(name))
    return array


def _interface(value: Proto) -> Interface:
    """A network input: open batch dimensions are 1, others are refused."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise UnsupportedError("an input that is not a tensor of a known rank", tensor=shown(value.name))
    shape: list[int] = []
    for place, dim in enumerate(kind.shape.dim):
        known = dim.HasField("dim_value") and dim.dim_value >= 1
        if not known and place:
            hint = "export with a fixed input shape, or use onnxruntime's make_dynamic_shape_fixed"
            raise UnsupportedError(
                f"dimension {place} of an input is open", tensor=shown(value.name), hint=hint
            )
        shape.append(int(dim.dim_value) if known else 1)
    if len(shape) > MAX_RANK or math.prod(shape) > _WIDE:
        raise ModelError(f"the shape {shape[:MAX_RANK]}", tensor=shown(value.name))
    dtype = DTYPES.get(int(kind.elem_type), "")
    if dtype not in ("float32", "int8", "uint8"):
        hint = "inputs are float32, int8 or uint8"
        raise UnsupportedError(
            f"an input of type {dtype or kind.elem_type}", tensor=shown(value.name), hint=hint
        )
    return Interface(value.name, tuple(shape), dtype)
