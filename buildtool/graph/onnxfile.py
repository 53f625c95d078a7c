"""An ONNX file: parsed, its shapes inferred; what hostile files could cost is bounded here."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from buildtool.base.errors import ModelError, ToolError, UnsupportedError

Proto = Any  # messages of the onnx package, whose types mypy does not know
Tensor = tuple[tuple[int, ...], int]  # dimensions, bits of an element

MAX_NODES = 1 << 14
MAX_RANK = 16
MAX_NAME = 200
MOST_SECONDS = 120  # that shape inference may take in all
SMALL = 1024  # elements: larger constants are not shapes, so inference need not see them

_BITS = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64}
_BITS |= {15: 128, 16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8}
_EXTERNAL = 1  # TensorProto.DataLocation


@dataclass(frozen=True)
class Node:
    """An operator, by its tensors' names."""

    kind: str
    inputs: tuple[str, ...]  # "" where an optional one is absent
    outputs: tuple[str, ...]
    index: int

    @property
    def place(self) -> str:
        """For error messages."""
        return f"#{self.index} {self.kind}"


@dataclass(frozen=True)
class OnnxFile:
    """The main graph: operators, inputs and outputs, constants, and what is known of each tensor."""

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: frozenset[str]
    tensors: dict[str, Tensor]
    batch: int  # of the file's own first input

    def size(self, name: str) -> int:
        """Bytes of a tensor (4-bit elements lie two in a byte); UnsupportedError if its shape is open."""
        if name not in self.tensors:
            hint = "give the input's size (--size), or export with fixed shapes"
            raise UnsupportedError("its shape cannot be told from the file", tensor=shown(name), hint=hint)
        dims, bits = self.tensors[name]
        return -(-math.prod(dims) * bits // 8)


def shown(name: str) -> str:
    """A name fit for messages and tables."""
    return "".join(c if c.isprintable() else "?" for c in name[:MAX_NAME])


def plain_model(data: bytes) -> Proto:
    """Parses `data`: a model of some operators, not too many, whose names are fit and without functions."""
    model = parse_model(data)
    nodes = model.graph.node
    if len(nodes) > MAX_NODES:
        raise ModelError(f"{len(nodes)} operators, more than {MAX_NODES}")
    if not nodes:
        raise ModelError("the graph has no operators")
    if len(model.functions):
        raise UnsupportedError("local functions", hint="export with functions inlined")
    check_names(model.graph)
    return model


def read_file(data: bytes, size: tuple[int, int] | None) -> OnnxFile:
    """Parses `data`; `size`: rows and columns that image inputs (NCHW) get.

    Raises ModelError, UnsupportedError (subgraphs, local functions, open shapes), ToolError without
    the onnx package.
    """
    model = plain_model(data)
    graph = model.graph
    nodes = tuple(_node(node, i) for i, node in enumerate(graph.node))
    tensors, small = _constants(graph)
    constants = frozenset(tensors)
    inputs = [value for value in graph.input if value.name not in constants]
    _fix_inputs(inputs, size)
    reduced = _without_values(model, small, size is not None)
    inferred = _inferred(reduced)
    for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        known = _known(value)
        if known is not None and value.name not in constants:
            tensors[value.name] = known
    batches = {tensors[v.name][0][0] for v in inputs if v.name in tensors and tensors[v.name][0]}
    return OnnxFile(
        shown(graph.name),
        nodes,
        tuple(v.name for v in inputs),
        tuple(dict.fromkeys(v.name for v in graph.output)),
        constants,
        tensors,
        batches.pop() if len(batches) == 1 else 1,
    )


def parse_model(data: bytes) -> Proto:
    """The file's message; ModelError, or ToolError without the onnx package."""
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
    return model


def check_names(graph: Proto) -> None:
    """Refuses names that are not UTF-8, which protobuf returns as bytes."""
    named = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
    names = [graph.name, *(value.name for value in named)]
    for node in graph.node:
        names += [node.op_type, *node.input, *node.output]
    if not all(isinstance(name, str) for name in names):
        raise ModelError("a name that is not text", hint="export the model again")


def _node(node: Proto, index: int) -> Node:
    if any(a.HasField("g") or len(a.graphs) for a in node.attribute):
        hint = "fix conditions and unroll loops before exporting"
        raise UnsupportedError("control flow", operator=f"#{index} {shown(node.op_type)}", hint=hint)
    return Node(shown(node.op_type), tuple(node.input), tuple(node.output), index)


def _constants(graph: Proto) -> tuple[dict[str, Tensor], list[Proto]]:
    """Every initializer's shape and type, and those whose values shapes may depend on."""
    tensors: dict[str, Tensor] = {}
    small = []
    for tensor in (*graph.initializer, *(s.values for s in graph.sparse_initializer)):
        dims = tuple(int(n) for n in tensor.dims)
        _check_dims(dims, tensor.name)
        tensors[tensor.name] = (dims, _bits(tensor.data_type, tensor.name))
        if math.prod(dims) <= SMALL and tensor.data_location != _EXTERNAL:
            small.append(tensor)
    return tensors, small


def _check_dims(dims: tuple[int, ...], name: str) -> None:
    if len(dims) > MAX_RANK or any(n < 0 for n in dims):
        raise ModelError(f"the shape {list(dims[:MAX_RANK])}", tensor=shown(name))


def _bits(data_type: int, name: str) -> int:
    if data_type not in _BITS:
        raise UnsupportedError(f"elements of type {data_type}", tensor=shown(name))
    return _BITS[data_type]


def _fix_inputs(inputs: Iterable[Proto], size: tuple[int, int] | None) -> None:
    """Open batches become 1, images get `size`; what is open then is refused."""
    for value in inputs:
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            raise UnsupportedError("an input that is not a tensor of a known rank", tensor=shown(value.name))
        dims = value.type.tensor_type.shape.dim
        if size is not None and len(dims) == 4:
            dims[2].dim_value, dims[3].dim_value = size
        for place, dim in enumerate(dims):
            if not dim.HasField("dim_value") or dim.dim_value < 1:
                if place:
                    hint = "give --size ROWSxCOLUMNS, or export with a fixed input shape"
                    text = f"dimension {place} of an input is open"
                    raise UnsupportedError(text, tensor=shown(value.name), hint=hint)
                dim.dim_value = 1


def _without_values(model: Proto, small: list[Proto], resized: bool) -> bytes:
    """The model for shape inference: large constants as inputs of their shape, old shapes dropped."""
    from onnx import helper

    graph, keep = model.graph, {t.name for t in small}
    declared = {v.name for v in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in keep and tensor.name not in declared:
            value = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            graph.input.append(value)
    kept = [t for t in graph.initializer if t.name in keep]
    del graph.initializer[:], graph.sparse_initializer[:]
    graph.initializer.extend(kept)
    if resized:
        del graph.value_info[:]
    for value in graph.output if resized else ():
        value.type.tensor_type.ClearField("shape")
    return bytes(model.SerializeToString())


def _inferred(data: bytes) -> Proto:
    """The model with the shapes that onnx infers; in another process, which may fail or be stopped."""
    import onnx

    command = [sys.executable, "-P", str(Path(__file__).with_name("onnxshapes.py"))]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise ModelError("shape inference does not end", hint="simplify the model") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = shown(said[-1]) if said else f"ended with status {done.returncode}"
        raise ModelError(f"shape inference failed: {why}", hint="check the model with onnx.checker")
    model = onnx.ModelProto()
    model.ParseFromString(done.stdout)
    return model


def _known(value: Proto) -> Tensor | None:
    """Shape and type of a tensor if both are settled."""
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        return None
    kind = value.type.tensor_type
    dims = [int(d.dim_value) if d.HasField("dim_value") else -1 for d in kind.shape.dim]
    if any(n < 0 for n in dims) or kind.elem_type not in _BITS:
        return None
    return tuple(dims), _BITS[kind.elem_type]
