"""The reference executor: every operator in numpy, equal to the bit to LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from buildtool.errors import BuildtoolError, UnsupportedError, UsageError
from buildtool.graph.operands import varying
from buildtool.graph.reference import (
    activation,
    arranging,
    convolution,
    elementwise,
    lstm,
    matmul,
    normalise,
    pairs,
    pooling,
    reduction,
    resize,
    shape,
    softmax,
    svdf,
    wide,
)
from buildtool.graph.reference.tensors import Rule, Values
from buildtool.graph.types import COMPARISONS, TABLE_KINDS, DType, Graph, Op, OpKind, Tensor

__all__ = ["execute", "initially", "next_held", "table"]

_RULES: dict[OpKind, Rule] = {
    OpKind.CONV_2D: convolution.conv_2d,
    OpKind.DEPTHWISE_CONV_2D: convolution.depthwise_conv_2d,
    OpKind.TRANSPOSE_CONV: convolution.transpose_conv,
    OpKind.FULLY_CONNECTED: convolution.fully_connected,
    OpKind.ADD: elementwise.add_sub,
    OpKind.SUB: elementwise.add_sub,
    OpKind.MUL: elementwise.mul,
    OpKind.PRELU: elementwise.prelu,
    OpKind.PAD: shape.pad,
    OpKind.MIRROR_PAD: shape.pad,
    OpKind.AVERAGE_POOL_2D: pooling.pool,
    OpKind.MAX_POOL_2D: pooling.pool,
    OpKind.MEAN: reduction.mean,
    OpKind.SOFTMAX: softmax.softmax,
    OpKind.LOGISTIC: activation.apply_table,
    OpKind.TANH: activation.apply_table,
    OpKind.HARD_SWISH: activation.apply_table,
    OpKind.RELU: activation.apply_table,
    OpKind.RELU6: activation.apply_table,
    OpKind.LEAKY_RELU: activation.apply_table,
    OpKind.ABS: activation.apply_table,
    OpKind.EXP: activation.apply_table,
    OpKind.LOG: activation.apply_table,
    OpKind.GELU: activation.apply_table,
    OpKind.NEG: activation.apply_table,
    OpKind.SQRT: activation.apply_table,
    OpKind.RSQRT: activation.apply_table,
    OpKind.ELU: activation.apply_table,
    OpKind.RELU_N1_TO_1: activation.apply_table,
    OpKind.RELU_0_TO_1: activation.apply_table,
    OpKind.LOGICAL_NOT: pairs.negate,
    OpKind.LOOKUP: activation.apply_table,
    OpKind.MAXIMUM: pairs.extremum,
    OpKind.MINIMUM: pairs.extremum,
    OpKind.LOGICAL_OR: pairs.extremum,
    OpKind.LOGICAL_AND: pairs.extremum,
    OpKind.SQUARED_DIFFERENCE: pairs.squared_difference,
    OpKind.DIV: pairs.divide,
    **dict.fromkeys(COMPARISONS, pairs.compare),
    OpKind.SELECT_V2: pairs.select,
    OpKind.L2_NORMALIZATION: normalise.l2_normalization,
    OpKind.LOG_SOFTMAX: normalise.log_softmax,
    OpKind.QUANTIZE: activation.quantize,
    OpKind.CAST: wide.cast,
    OpKind.DEQUANTIZE: activation.dequantize,
    OpKind.RESHAPE: shape.reshape,
    OpKind.SQUEEZE: shape.reshape,
    OpKind.EXPAND_DIMS: shape.reshape,
    OpKind.TRANSPOSE: shape.transpose,
    OpKind.CONCATENATION: shape.concatenation,
    OpKind.JOINED: shape.concatenation,
    OpKind.SPLIT: shape.split,
    OpKind.STRIDED_SLICE: shape.slice_,
    OpKind.SLICE: shape.slice_,
    OpKind.VIEW: shape.slice_,
    OpKind.TILE: arranging.tile,
    OpKind.GATHER: arranging.gather,
    OpKind.DEPTH_TO_SPACE: arranging.depth_to_space,
    OpKind.SPACE_TO_DEPTH: arranging.space_to_depth,
    OpKind.BATCH_TO_SPACE_ND: arranging.batch_to_space,
    OpKind.SPACE_TO_BATCH_ND: arranging.space_to_batch,
    OpKind.REDUCE_MAX: reduction.extreme,
    OpKind.REDUCE_MIN: reduction.extreme,
    OpKind.ARG_MAX: reduction.arg_extreme,
    OpKind.ARG_MIN: reduction.arg_extreme,
    OpKind.BATCH_MATMUL: matmul.batch_matmul,
    OpKind.RESIZE_NEAREST_NEIGHBOR: resize.nearest,
    OpKind.RESIZE_BILINEAR: resize.bilinear,
    OpKind.READ_VARIABLE: shape.copy,
    OpKind.ASSIGN_VARIABLE: shape.copy,
    OpKind.SHIFT: shape.shift,
    OpKind.SVDF: svdf.svdf,
    OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM: lstm.lstm,
}


def table(graph: Graph, op: Op) -> npt.NDArray[np.uint8]:
    """The output byte of each input byte (uint8[256]) of an operator of TABLE_KINDS, or of one `varying`.

    Bytes are the elements' bit patterns: an int8 element -1 is byte 255. UnsupportedError where the
    input or output is not 8 bits wide.
    """
    if op.kind in TABLE_KINDS and op.kind is not OpKind.LOGICAL_NOT:
        return activation.table(graph, op)
    position = varying(graph, op)
    if position is None:
        raise UnsupportedError(f"{op.kind} of several tensors is not a table", operator=op.place)
    dtype = graph.tensors[op.inputs[position]].dtype
    every = np.arange(256, dtype=np.uint8)
    values: list[Values] = []
    for t in op.inputs:
        data = graph.tensors[t].data
        if data is not None:
            values.append(data.reshape(1))
        else:
            values.append(every != 0 if dtype is DType.BOOL else every.view(dtype.value))
    return _RULES[op.kind](graph, op, values)[0].view(np.uint8)


def execute(
    graph: Graph, inputs: Sequence[Values], held: Sequence[Values] | None = None
) -> dict[int, Values]:
    """Runs the graph once: the value of every activation tensor (inputs too) by index.

    `held`: what the states are as the invoke begins, by default their initial values (see `next_held`).

    `inputs` in the order of `graph.inputs`, of the tensors' own types and shapes; UsageError
    otherwise.
    """
    if len(inputs) != len(graph.inputs):
        raise UsageError(f"the network has {len(graph.inputs)} inputs, {len(inputs)} were given")
    values: dict[int, Values] = {}
    for index, value in zip(graph.inputs, inputs, strict=True):
        values[index] = _checked(graph.tensors[index], np.asarray(value))
    for state, value in zip(graph.states, initially(graph) if held is None else held, strict=True):
        values[state.before] = _checked(graph.tensors[state.before], np.asarray(value))
    for op in graph.ops:
        values.update(zip(op.outputs, execute_op(graph, op, values), strict=True))
    return values


def initially(graph: Graph) -> list[Values]:
    """What the states are after init and reset."""
    return [np.asarray(state.initial) for state in graph.states]


def next_held(graph: Graph, values: Mapping[int, Values]) -> list[Values]:
    """What the states are for the next invoke; `values`: what `execute` has returned for this one."""
    found = []
    for state in graph.states:
        data = graph.tensors[state.after].data
        value = np.asarray(values[state.after] if data is None else data)
        found.append(value.reshape(graph.tensors[state.before].shape))
    return found


def execute_op(graph: Graph, op: Op, values: dict[int, Values]) -> list[Values]:
    """The outputs of one operator; `values` holds the activations it reads."""
    op = op.as_seen
    operands = []
    for index in op.inputs:
        if index >= 0:
            data = graph.tensors[index].data
            operands.append(values[index] if data is None else data)
    try:
        made = _rule(graph, op)(graph, op, operands)
    except BuildtoolError as error:
        raise error.at(operator=op.place) from None
    for index, value in zip(op.outputs, made, strict=True):
        _checked(graph.tensors[index], value)
    return made


def _rule(graph: Graph, op: Op) -> Rule:
    """What computes an operator: of wide integers some kinds have other arithmetic."""
    if op.kind is OpKind.SOFTMAX and graph.tensors[op.inputs[0]].dtype is DType.INT8:
        return softmax.softmax
    types = {graph.tensors[t].dtype for t in (op.inputs[0], op.outputs[0])}
    if types & _WIDE and DType.FLOAT32 not in types and op.kind in wide.RULES:
        return wide.RULES[op.kind]
    return _RULES[op.kind]


_WIDE = {DType.INT16, DType.INT32}


def _checked(tensor: Tensor, value: Values) -> Values:
    """The value, if it has the tensor's shape and type."""
    if value.shape != tensor.shape or value.dtype != np.dtype(tensor.dtype.value):
        raise UsageError(
            f"expected {tensor.dtype} {list(tensor.shape)}, got {value.dtype} {list(value.shape)}",
            tensor=tensor.name,
        )
    return value
