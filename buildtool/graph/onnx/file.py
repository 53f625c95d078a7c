"""The main graph of an ONNX file as plain values: operators with attributes, constants, inputs and outputs.

Limits bound the time and memory that a hostile file can cost.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, ToolError, UnsupportedError

_T = TypeVar("_T", int, float, str)
Proto = Any  # a protobuf message of the onnx package, whose types mypy does not know
Array = npt.NDArray[Any]
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Array

LEAST_OPSET, MOST_OPSET = 10, 25
MAX_NODES = 1 << 14
MAX_RANK = 16
MAX_NAME = 200
MAX_LIST = 4096  # upper limit for the elements of an attribute
EXTERNAL = 1  # TensorProto.DataLocation
_DOMAINS = ("", "ai.onnx", "com.microsoft")
_WIDE = 1 << 31  # upper limit for the bytes of a constant and for the elements of an input

# TensorProto.DataType -> numpy's name. An int8 network has no tensors of other types.
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
    """An operator with the names of its tensors ("" for an optional tensor that is absent)."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    index: int = -1
    name: str = ""

    @property
    def place(self) -> str:
        """The operator's name in error messages, e.g. "#3 Conv 'stem/conv'"."""
        return f"#{self.index} {self.kind} '{self.name}'" if self.name else f"#{self.index} {self.kind}"

    def input(self, position: int) -> str:
        """Returns the name of the input at `position`, "" if it is absent."""
        return self.inputs[position] if position < len(self.inputs) else ""

    def _get_attribute(self, name: str, default: _T, what: str, *types: type[Any]) -> _T:
        value = self.attributes.get(name, default)
        if not isinstance(value, types):
            raise ModelError(f"attribute {name} is not {what}")
        return cast(_T, value)

    def integer(self, name: str, default: int) -> int:
        """Returns an integer attribute, `default` if it is absent."""
        return self._get_attribute(name, default, "an integer", int)

    def number(self, name: str, default: float) -> float:
        """Returns a float attribute, `default` if it is absent."""
        return float(self._get_attribute(name, default, "a number", int, float))

    def text(self, name: str, default: str) -> str:
        """Returns a string attribute, `default` if it is absent."""
        return self._get_attribute(name, default, "a string", str)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Returns an attribute that is a list of integers, None if it is absent."""
        value = self.attributes.get(name)
        if value is None or value == ():
            return None
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            raise ModelError(f"attribute {name} is not a list of integers")
        return tuple(int(v) for v in value)


@dataclass(frozen=True)
class Interface:
    """A network input: its name, shape and type."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class OnnxFile:
    """The main graph of an ONNX file. Constants are decoded on demand."""

    name: str
    opset: int
    nodes: tuple[Node, ...]
    inputs: tuple[Interface, ...]
    outputs: tuple[str, ...]
    initializers: Mapping[str, Proto]

    def constant(self, name: str) -> Array:
        """Returns the value of the initializer `name`. Refuses unsupported types and external data."""
        return to_array(self.initializers[name], name)


def printable_name(name: str) -> str:
    """Returns a name for messages and tables: shortened, with "?" for characters that cannot be printed."""
    return "".join(c if c.isprintable() else "?" for c in name[:MAX_NAME])


def parse_model(data: bytes) -> Proto:
    """Returns the file's ModelProto, which has 1 to MAX_NODES operators and no local functions.

    All its names are text. Raises ModelError or UnsupportedError, and ToolError if onnx is not installed.
    """
    try:
        import onnx
    except ImportError:
        hint = "pip install onnx"
        raise ToolError("the Python package onnx is not installed", hint=hint) from None
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError, RecursionError):
        raise ModelError("not an ONNX file, or a damaged one", hint="export the model again") from None
    if not model.HasField("graph"):
        raise ModelError("the file has no graph", hint="export the model again")
    nodes = model.graph.node
    if len(nodes) > MAX_NODES:
        raise ModelError(f"{len(nodes)} operators, more than {MAX_NODES}")
    if not nodes:
        raise ModelError("the graph has no operators")
    if len(model.functions):
        raise UnsupportedError("local functions", hint="export with functions inlined")
    graph = model.graph
    tensors = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
    names = [graph.name, *(value.name for value in tensors)]
    for node in nodes:
        names += [node.op_type, *node.input, *node.output]
    if not all(isinstance(name, str) for name in names):  # protobuf returns other than UTF-8 as bytes
        raise ModelError("a name that is not text", hint="export the model again")
    return model


def read_file(data: bytes) -> OnnxFile:
    """Returns the main graph of an ONNX file with the bytes `data`. Raises errors as `parse_model` does."""
    model = parse_model(data)
    graph = model.graph
    if len(graph.sparse_initializer):
        raise UnsupportedError("sparse constants", hint="store them densely")
    versions = {entry.domain: int(entry.version) for entry in model.opset_import}
    opset = versions.get("", versions.get("ai.onnx", 0))
    if not LEAST_OPSET <= opset <= MOST_OPSET:
        hint = f"export with an opset from {LEAST_OPSET} to {MOST_OPSET}, or use onnx.version_converter"
        raise UnsupportedError(f"opset {opset}", hint=hint)
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    nodes = tuple(_read_node(node, i) for i, node in enumerate(graph.node))
    inputs = tuple(_read_interface(value) for value in graph.input if value.name not in initializers)
    outputs = tuple(value.name for value in graph.output)
    if not inputs or not outputs:
        raise ModelError(f"the network has {len(inputs)} inputs and {len(outputs)} outputs")
    return OnnxFile(printable_name(graph.name) or "network", opset, nodes, inputs, outputs, initializers)


def _read_node(node: Proto, index: int) -> Node:
    name = node.name if isinstance(node.name, str) else ""
    place = f"#{index} {printable_name(node.op_type)}"
    try:
        if node.domain not in _DOMAINS:
            hint = "replace it with standard ONNX operators"
            raise UnsupportedError(
                f"an operator of the domain '{printable_name(str(node.domain))}'", hint=hint
            )
        attributes = {str(a.name): _read_attribute(a) for a in node.attribute}
    except (ModelError, UnsupportedError) as error:
        raise error.at(operator=place) from None
    outputs = tuple(node.output)
    while outputs and not outputs[-1]:
        outputs = outputs[:-1]
    return Node(
        printable_name(node.op_type), tuple(node.input), outputs, attributes, index, printable_name(name)
    )


def _read_attribute(a: Proto) -> Attribute:
    """Returns an attribute's value. Refuses subgraphs and other attributes that are not plain values."""
    if max(len(a.ints), len(a.floats), len(a.strings)) > MAX_LIST:
        raise ModelError(f"attribute {printable_name(str(a.name))} has more than {MAX_LIST} elements")
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
    hint = "make conditions constant and unroll loops before exporting"
    raise UnsupportedError("control flow, or an attribute that is not a tensor, number or text", hint=hint)


def to_array(tensor: Proto, name: str) -> Array:
    """Returns a TensorProto as a numpy array. Refuses one whose data do not fit its shape."""
    from onnx import numpy_helper

    if tensor.data_location == EXTERNAL:
        hint = "save it in one file: onnx.save(onnx.load(path), path, save_as_external_data=False)"
        raise UnsupportedError("the weights are in another file", tensor=printable_name(name), hint=hint)
    if tensor.data_type not in DTYPES:
        hint = "quantise weights to 8 bits"
        raise UnsupportedError(f"elements of type {tensor.data_type}", tensor=printable_name(name), hint=hint)
    dims = check_dims(tensor.dims, name, most=_WIDE // 8)
    try:
        array = np.asarray(numpy_helper.to_array(tensor))
    except Exception as error:  # numpy and onnx raise many kinds of errors on damaged data
        raise ModelError("a constant whose data do not fit its shape", tensor=printable_name(name)) from error
    if array.shape != dims or array.dtype.name != DTYPES[tensor.data_type]:
        raise ModelError("a constant whose data do not fit its shape", tensor=printable_name(name))
    return array


def check_dims(given: Iterable[int], name: str, most: float = math.inf) -> tuple[int, ...]:
    """Returns the dimensions `given` as a tensor's shape.

    Raises ModelError for too many dimensions, invalid sizes or more than `most` elements. `name` is the
    tensor's, for the message.
    """
    dims = tuple(int(n) for n in given)
    if len(dims) > MAX_RANK or any(n < 0 for n in dims) or math.prod(dims) > most:
        raise ModelError(f"invalid shape {list(dims[:MAX_RANK])}", tensor=printable_name(name))
    return dims


def fix_input(value: Proto, hint: str) -> None:
    """Sets a network input's batch to 1 if the file leaves it open.

    Refuses other dimensions that are open; `hint` is the hint of that error.
    """
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        raise UnsupportedError(
            "an input that is not a tensor of a known rank", tensor=printable_name(value.name)
        )
    for number, dim in enumerate(value.type.tensor_type.shape.dim):
        if not dim.HasField("dim_value") or dim.dim_value < 1:
            if number:
                text = f"dimension {number} of an input is open"
                raise UnsupportedError(text, tensor=printable_name(value.name), hint=hint)
            dim.dim_value = 1


def _read_interface(value: Proto) -> Interface:
    """Returns a network input with a fixed shape."""
    fix_input(value, "export with a fixed input shape, or use onnxruntime's make_dynamic_shape_fixed")
    kind = value.type.tensor_type
    shape = check_dims((dim.dim_value for dim in kind.shape.dim), value.name, most=_WIDE)
    dtype = DTYPES.get(int(kind.elem_type), "")
    if dtype not in ("float32", "int8", "uint8"):
        text = f"an input of type {dtype or kind.elem_type}"
        hint = "inputs must be float32, int8 or uint8"
        raise UnsupportedError(text, tensor=printable_name(value.name), hint=hint)
    return Interface(value.name, shape, dtype)
