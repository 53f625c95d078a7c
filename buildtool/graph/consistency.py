"""Proves a Graph sound: indices, order, shapes, types, quantisation. Later rooms trust what passed."""

from __future__ import annotations

import math

import numpy as np

from buildtool.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.geometry import GeometryError, check_output_shapes
from buildtool.graph.limits import MAX_ACTIVATION, check_limits
from buildtool.graph.quantrules import QuantError, check_quantization, check_tensor
from buildtool.graph.types import DType, Graph, Op, OpKind, PadAttrs, Tensor

MAX_RANK = 6  # of the kernels' copies and reductions
_WEIGHTED = {OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED}
_OPERANDS = {OpKind.ADD: 2, OpKind.SUB: 2, OpKind.MUL: 2, OpKind.PRELU: 2} | dict.fromkeys(_WEIGHTED, 3)


def check_graph(graph: Graph) -> None:
    """Raises ModelError (UnsupportedError for what is legal but not served) unless `graph` is sound."""
    users = {t: op.place for op in reversed(graph.ops) for t in (*op.inputs, *op.outputs)}
    for t, tensor in enumerate(graph.tensors):
        try:
            _check_tensor(tensor)
        except BuildtoolError as error:
            raise error.at(operator=users.get(t, "")) from error.__cause__
    _check_order(graph)
    for op in graph.ops:
        check_op(graph, op)


def check_op(graph: Graph, op: Op) -> None:
    """Raises ModelError or UnsupportedError unless `op`'s tensors and attributes fit together."""
    try:
        _check_arity(op)
        check_output_shapes(graph, op)
        check_quantization(graph, op)
        _check_filling(op)
        check_limits(graph, op)
    except GeometryError as error:
        raise ModelError(str(error), operator=op.place, tensor=_output_name(graph, op)) from error
    except QuantError as error:
        tensor = error.tensor.name if error.tensor else _output_name(graph, op)
        raise UnsupportedError(
            str(error), operator=op.place, tensor=tensor, hint="check how the model was quantised"
        ) from error
    except BuildtoolError as error:
        raise error.at(operator=op.place, tensor=_output_name(graph, op)) from None


def _output_name(graph: Graph, op: Op) -> str:
    return graph.tensors[op.outputs[0]].name if op.outputs else ""


def _check_arity(op: Op) -> None:
    count = _OPERANDS.get(op.kind, 1)
    exact = op.kind != OpKind.CONCATENATION
    if (exact and len(op.inputs) != count) or not op.inputs:
        raise ModelError(f"{len(op.inputs)} inputs, expected {count}")
    if op.kind != OpKind.SPLIT and len(op.outputs) != 1:
        raise ModelError(f"{len(op.outputs)} outputs, expected 1")
    optional = {2} if op.kind in _WEIGHTED else set()
    if any(t < 0 and i not in optional for i, t in enumerate(op.inputs)):
        raise ModelError("an operand is missing")


def _check_filling(op: Op) -> None:
    """Keeps a PAD's filling within its type."""
    if isinstance(op.attrs, PadAttrs) and not -128 <= op.attrs.value <= 127:
        raise ModelError(f"padding value {op.attrs.value} is outside int8")


def _check_tensor(tensor: Tensor) -> None:
    if any(n < 1 for n in tensor.shape):
        raise UnsupportedError(f"a tensor without elements: shape {list(tensor.shape)}", tensor=tensor.name)
    if len(tensor.shape) > MAX_RANK:
        raise UnsupportedError(f"{len(tensor.shape)} dimensions, more than {MAX_RANK}", tensor=tensor.name)
    if math.prod(tensor.shape) * tensor.dtype.size > MAX_ACTIVATION:
        raise UnsupportedError(f"{tensor.size} bytes, more than {MAX_ACTIVATION}", tensor=tensor.name)
    data = tensor.data
    if data is not None:
        if data.shape != tensor.shape or data.dtype != np.dtype(tensor.dtype.value):
            raise ModelError(f"a constant of {data.dtype}{list(data.shape)}", tensor=tensor.name)
        if data.flags.writeable:
            raise ModelError("a constant that can be written to", tensor=tensor.name)
    try:
        check_tensor(tensor)
    except QuantError as error:
        raise UnsupportedError(str(error), tensor=tensor.name) from error


def _check_order(graph: Graph) -> None:
    """Every activation is made once, before it is read; constants never."""
    _check_interface(graph)
    made = set(graph.inputs)
    for op in graph.ops:
        for t in op.inputs:
            if t >= len(graph.tensors) or t < -1:
                raise ModelError(f"tensor index {t} does not exist", operator=op.place)
            if t >= 0 and t not in made and not graph.tensors[t].is_constant:
                text = "read before any operator made it"
                raise ModelError(text, operator=op.place, tensor=graph.tensors[t].name)
        for t in op.outputs:
            if not 0 <= t < len(graph.tensors):
                raise ModelError(f"tensor index {t} does not exist", operator=op.place)
            if t in made or graph.tensors[t].is_constant:
                text = "made twice, or a network input or constant"
                raise ModelError(text, operator=op.place, tensor=graph.tensors[t].name)
            made.add(t)
    for t in graph.outputs:
        if t not in made:
            text = "a network output that no operator makes"
            raise UnsupportedError(text, tensor=graph.tensors[t].name)


def _check_interface(graph: Graph) -> None:
    if not graph.inputs or not graph.outputs:
        raise ModelError(f"{len(graph.inputs)} network inputs, {len(graph.outputs)} outputs")
    for t in (*graph.inputs, *graph.outputs):
        if not 0 <= t < len(graph.tensors):
            raise ModelError(f"tensor index {t} does not exist")
    if len(set(graph.inputs)) != len(graph.inputs):
        raise ModelError("a tensor is a network input twice")
    for t in graph.inputs:
        tensor = graph.tensors[t]
        if tensor.is_constant:
            raise ModelError("a network input with a constant value", tensor=tensor.name)
        if tensor.dtype == DType.INT32:
            raise UnsupportedError("an int32 network input", tensor=tensor.name)
