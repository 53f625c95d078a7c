"""Checks a Graph: indices, order, shapes, types and quantisation. Later stages rely on these checks."""

import math

import numpy as np

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.fixedpoint import RANGES
from buildtool.graph.floats import check_floats, computes_in_floats
from buildtool.graph.geometry import GeometryError, demand
from buildtool.graph.limits import MAX_ACTIVATION, check_limits
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.signal import CUSTOM
from buildtool.graph.ops.types import load
from buildtool.graph.quantrules import (
    QuantError,
    check_fixed_output,
    check_tensor,
    check_unscaled,
    is_unscaled,
)
from buildtool.graph.states import check_states
from buildtool.graph.types import DType, Graph, Op, OpKind, PadAttrs, Tensor, WidenedAttrs

MAX_RANK = 6  # dimensions that the kernels' copies and reductions can walk


def check_graph(graph: Graph) -> None:
    """Raises ModelError for an invalid graph, and UnsupportedError for a valid one that is not supported."""
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
        _check_operands(graph, op)
        if isinstance(op.attrs, PadAttrs):
            value, dtype = op.attrs.value, graph.tensors[op.outputs[0]].dtype
            low, high = RANGES[DType.INT32 if dtype is DType.FLOAT32 else dtype]
            if not low <= value <= high:
                raise ModelError(f"padding value {value} is outside {dtype}")
        check_limits(graph, op)
    except (GeometryError, QuantError, BuildtoolError) as error:
        tensor = graph.tensors[op.outputs[0]].name if op.outputs else ""
        if isinstance(error, BuildtoolError):
            raise error.at(operator=op.place, tensor=tensor) from None
        if isinstance(error, GeometryError):
            raise ModelError(str(error), operator=op.place, tensor=tensor) from error
        tensor, hint = error.tensor.name if error.tensor else tensor, "check how the model was quantised"
        raise UnsupportedError(str(error), operator=op.place, tensor=tensor, hint=hint) from error


def _check_operands(graph: Graph, op: Op) -> None:
    """Checks how many operands there are, and whether their shapes, types and quantisation fit together."""
    definition = DEFS[op.kind]
    count = 3 if isinstance(op.attrs, WidenedAttrs) else definition.operands
    if (count is not None and len(op.inputs) != count) or not op.inputs:
        raise ModelError(f"{len(op.inputs)} inputs, expected {count or 1}")
    if not definition.state and definition.results not in (None, len(op.outputs)):
        raise ModelError(f"{len(op.outputs)} outputs, expected {definition.results}")
    if any(t < 0 and i not in definition.optional for i, t in enumerate(op.inputs)):
        raise ModelError("an operand is missing")
    if definition.whole:
        load("graph", definition.whole)(graph, op)
        return
    if definition.shape is None:
        raise ModelError(f"{op.kind} is allowed in planned networks only")
    shapes = [graph.tensors[t].shape if t >= 0 else () for t in op.inputs]
    outputs = [graph.tensors[t].shape for t in op.outputs]
    expected = definition.shape(op, shapes, outputs)
    demand(outputs[0] == expected, f"the output has shape {list(outputs[0])}, expected {list(expected)}")
    if computes_in_floats(graph, op):
        check_floats(graph, op)
        return
    if definition.unscaled and is_unscaled(graph, op):
        check_unscaled(graph, op)
        return
    for tensor in (graph.tensors[t] for t in (*op.inputs, *op.outputs) if definition.no_int16 and t >= 0):
        if tensor.dtype is DType.INT16:
            raise QuantError(f"int16: {definition.no_int16}", tensor)
    definition.types(graph, op)
    if definition.output is not None:
        check_fixed_output(graph, op, definition.output)
    if definition.quant is not None:
        definition.quant(graph, op)


def _check_tensor(tensor: Tensor) -> None:
    if any(n < 1 for n in tensor.shape):
        raise UnsupportedError(f"a tensor without elements: shape {list(tensor.shape)}", tensor=tensor.name)
    if len(tensor.shape) > MAX_RANK:
        raise UnsupportedError(f"{len(tensor.shape)} dimensions, more than {MAX_RANK}", tensor=tensor.name)
    if math.prod(tensor.shape) * tensor.dtype.size > MAX_ACTIVATION:
        raise UnsupportedError(f"{tensor.size} bytes, more than {MAX_ACTIVATION}", tensor=tensor.name)
    data = tensor.data
    if data is not None and (data.shape != tensor.shape or data.dtype != np.dtype(tensor.dtype.value)):
        raise ModelError(f"a constant of {data.dtype}{list(data.shape)}", tensor=tensor.name)
    try:
        check_tensor(tensor)
    except QuantError as error:
        raise UnsupportedError(str(error), tensor=tensor.name) from error


def _takes_numbers(graph: Graph, op: Op) -> bool:
    """Whether the operator reads int32 numbers that have no scale."""
    return op.kind in CUSTOM or (bool(DEFS[op.kind].unscaled) and is_unscaled(graph, op))


def _check_order(graph: Graph) -> None:
    """Checks that each activation is written once, before it is read, and that no constant is written."""
    if not graph.inputs or not graph.outputs:
        raise ModelError(f"{len(graph.inputs)} network inputs, {len(graph.outputs)} outputs")
    for t in (*graph.inputs, *graph.outputs):
        if not 0 <= t < len(graph.tensors):
            raise ModelError(f"tensor index {t} does not exist")
    if len(set(graph.inputs)) != len(graph.inputs):
        raise ModelError("a tensor is a network input twice")
    for tensor in (graph.tensors[t] for t in graph.inputs):
        if tensor.is_constant:
            raise ModelError("a network input with a constant value", tensor=tensor.name)
    indices = {t for op in graph.ops if op.kind is OpKind.GATHER for t in op.inputs[1:]}
    others = {
        t
        for op in graph.ops
        if not _takes_numbers(graph, op)
        for t in op.inputs[: 1 if op.kind is OpKind.GATHER else None]
    }
    indices |= {t for op in graph.ops if _takes_numbers(graph, op) for t in op.inputs}
    for t in graph.inputs:
        if graph.tensors[t].dtype == DType.INT32 and (t not in indices or t in others):
            hint = "an int32 input must be the indices of a GATHER or EMBEDDING_LOOKUP, or have no scale"
            raise UnsupportedError("an int32 network input", tensor=graph.tensors[t].name, hint=hint)
    available = {*graph.inputs, *(state.before for state in graph.states)}
    for op in graph.ops:
        for t in op.inputs:
            if t >= len(graph.tensors) or t < -1:
                raise ModelError(f"tensor index {t} does not exist", operator=op.place)
            if t >= 0 and t not in available and not graph.tensors[t].is_constant:
                text = "is read before an operator makes it"
                raise ModelError(text, operator=op.place, tensor=graph.tensors[t].name)
        for t in op.outputs:
            if not 0 <= t < len(graph.tensors):
                raise ModelError(f"tensor index {t} does not exist", operator=op.place)
            if t in available or graph.tensors[t].is_constant:
                text = "is made twice, or is a network input or a constant"
                raise ModelError(text, operator=op.place, tensor=graph.tensors[t].name)
            available.add(t)
    check_states(graph, available)
    for t in graph.outputs:
        if t not in available:
            text = "a network output that no operator makes"
            raise UnsupportedError(text, tensor=graph.tensors[t].name)
