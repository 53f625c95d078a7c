"""Types and quantisation: what every operator demands of its tensors, as TFLite's kernels do."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from buildtool.graph.types import (
    ALIAS_KINDS,
    COMPARISONS,
    AsUint8,
    DType,
    Graph,
    Op,
    OpKind,
    Quantization,
    Tensor,
)

# Of all others only 0; of int16 another one only where SOFTMAX makes it of int8, and QUANTIZE reads it.
_ZERO_POINTS = {DType.INT8: (-128, 127), DType.UINT8: (0, 255), DType.INT16: (-32768, 0)}
_ACTIVATIONS = (DType.INT8, DType.INT16)
_LARGEST_RATIO = 2.0**30  # a requantisation factor beyond this saturates every result
_LARGEST_WIDE = 2.0**7  # of 64-bit sums, as LiteRT's multiplication demands
_LARGEST_QUOTIENT = 2.0**22  # of DIV: beyond it LiteRT's shift turns negative


class QuantError(ValueError):
    """An operator's types or quantisation do not fit; the text says how, `tensor` names which."""

    def __init__(self, text: str, tensor: Tensor | None = None) -> None:
        super().__init__(text)
        self.tensor = tensor


def check_quantization(graph: Graph, op: Op) -> None:
    """Raises QuantError unless the types and the quantisation of `op`'s tensors are usable.

    Each tensor by itself was checked by `check_tensor`.
    """
    _TYPES.get(op.kind, _int8_activations)(graph, op)
    rule = _RULES.get(op.kind)
    if rule is not None:
        rule(graph, op)


def check_tensor(tensor: Tensor) -> None:
    """Raises QuantError unless scales are finite and positive, zero points in range, lengths right."""
    quant = tensor.quant
    if quant is None:
        return
    if len(quant.scales) != len(quant.zero_points) or not quant.scales:
        raise QuantError(f"{len(quant.scales)} scales, {len(quant.zero_points)} zero points", tensor)
    # Converters that fold batch norm late give channels a negative scale, or 0 where all weights are 0.
    any_sign = tensor.is_constant and (tensor.dtype in (DType.INT32, DType.INT64) or len(quant.scales) > 1)
    if not all(map(math.isfinite, quant.scales)) or not (any_sign or min(quant.scales) > 0):
        raise QuantError("a scale is not a finite positive number", tensor)
    low, high = _ZERO_POINTS.get(tensor.dtype, (0, 0))
    if min(quant.zero_points) < low or max(quant.zero_points) > high:
        raise QuantError(f"a zero point is outside {low}..{high}", tensor)
    if len(quant.scales) > 1:
        if not 0 <= quant.axis < len(tensor.shape):
            raise QuantError(f"quantised along axis {quant.axis} of {len(tensor.shape)}", tensor)
        if tensor.shape[quant.axis] != len(quant.scales):
            raise QuantError(f"{len(quant.scales)} scales for {tensor.shape[quant.axis]} channels", tensor)


def same_quantization(a: Quantization | None, b: Quantization | None) -> bool:
    """Whether two per-tensor quantisations are equal (scale to the bit)."""
    if a is None or b is None:
        return a is b
    return a.scales == b.scales and a.zero_points == b.zero_points


def _per_tensor(tensor: Tensor, *dtypes: DType) -> Quantization:
    if tensor.dtype not in dtypes:
        raise QuantError(f"type {tensor.dtype}, expected {' or '.join(dtypes)}", tensor)
    if tensor.quant is None:
        raise QuantError(f"{tensor.dtype} without a scale and zero point", tensor)
    if len(tensor.quant.scales) != 1:
        raise QuantError("an activation quantised per channel", tensor)
    if tensor.dtype is DType.INT16 and tensor.quant.zero_point:
        raise QuantError("int16 with a zero point other than 0", tensor)
    return tensor.quant


def _int8_activations(graph: Graph, op: Op) -> None:
    _activations(graph, op, DType.INT8)


def _activations(graph: Graph, op: Op, *dtypes: DType) -> None:
    """All of one type, int8 in case of doubt."""
    first = graph.tensors[op.inputs[0]].dtype if op.inputs and op.inputs[0] >= 0 else DType.INT8
    for t in dict.fromkeys((*op.inputs, *op.outputs)):
        if t < 0:
            raise QuantError("an operand is missing")
        _per_tensor(graph.tensors[t], first if first in dtypes else dtypes[0])


def _int16_too(graph: Graph, op: Op) -> None:
    """Operators that int16 activations may go through."""
    _activations(graph, op, *_ACTIVATIONS)


def _moved_types(graph: Graph, op: Op) -> None:
    """Bytes that are moved and nothing else: a scale has no part in the result, and may be missing."""
    first = graph.tensors[op.inputs[0]].dtype
    for t in dict.fromkeys((*op.inputs, *op.outputs)):
        tensor = graph.tensors[t]
        if tensor.dtype == first == DType.BOOL:
            continue
        if tensor.quant is not None or tensor.dtype != first or first not in _ACTIVATIONS:
            _per_tensor(tensor, first if first in _ACTIVATIONS else DType.INT8)


def _truth_values(graph: Graph, op: Op) -> None:
    """LOGICAL_AND and its kin: truth values in and out."""
    for t in (*op.inputs, *op.outputs):
        _typed(graph.tensors[t], DType.BOOL)


def _compared_types(graph: Graph, op: Op) -> None:
    """EQUAL and its kin: int8, or truth values where there is no order to ask for; truth values out."""
    _typed(graph.tensors[op.outputs[0]], DType.BOOL)
    operands = [graph.tensors[t] for t in op.inputs]
    unordered = op.kind in (OpKind.EQUAL, OpKind.NOT_EQUAL)
    if unordered and all(tensor.dtype == DType.BOOL for tensor in operands):
        return
    for tensor in operands:
        if _per_tensor(tensor, DType.INT8).scale >= 1:  # the reference kernel shifts by a negative distance
            raise QuantError(
                "compared elements of a scale of 1 or more, for which LiteRT has no result", tensor
            )


def _selected_types(graph: Graph, op: Op) -> None:
    """SELECT_V2: truth values choose among elements of one type, which are moved as they are."""
    condition, *others = (graph.tensors[t] for t in (*op.inputs, *op.outputs))
    _typed(condition, DType.BOOL)
    for tensor in others:
        _typed(tensor, DType.BOOL if others[0].dtype == DType.BOOL else DType.INT8)


def _typed(tensor: Tensor, dtype: DType) -> None:
    if tensor.dtype != dtype:
        raise QuantError(f"type {tensor.dtype}, expected {dtype}", tensor)


def _weighted_types(graph: Graph, op: Op) -> None:
    """CONV_2D and its kin: activation, filter (int8, zero points 0), bias (int32) or -1.

    Of int16 activations the bias is int64: the reader has widened one of int32.
    """
    x, weights = graph.tensors[op.inputs[0]], graph.tensors[op.inputs[1]]
    wide = x.dtype is DType.INT16 and op.kind is not OpKind.TRANSPOSE_CONV
    out = _per_tensor(graph.tensors[op.outputs[0]], DType.INT16 if wide else DType.INT8)
    source = _per_tensor(x, DType.INT16 if wide else DType.INT8)
    if weights.dtype != DType.INT8 or weights.data is None:
        raise QuantError("the filter must be an int8 constant", weights)
    if weights.quant is None:
        raise QuantError("the filter has no scale", weights)
    if any(weights.quant.zero_points) and not isinstance(op.attrs, AsUint8):
        raise QuantError("the filter's zero points must be 0", weights)
    axis = 3 if op.kind == OpKind.DEPTHWISE_CONV_2D else 0
    if len(weights.quant.scales) > 1 and weights.quant.axis != axis:
        raise QuantError(f"the filter is quantised along axis {weights.quant.axis}, expected {axis}", weights)
    sizes = [abs(scale) for scale in weights.quant.scales if scale != 0]
    for scale in (min(sizes), max(sizes)) if sizes else ():
        _ratio(source.scale * scale / out.scale, weights, _LARGEST_WIDE if wide else _LARGEST_RATIO)
    if op.inputs[2] >= 0:
        bias = graph.tensors[op.inputs[2]]
        wanted = DType.INT64 if wide else DType.INT32
        if bias.dtype is not wanted or bias.data is None:
            raise QuantError(f"the bias must be an {wanted} constant", bias)


def _ratio(value: float, tensor: Tensor, limit: float = _LARGEST_RATIO) -> None:
    if not 0.0 < value < limit:
        raise QuantError(f"a requantisation factor of {value:g}: the scales are too far apart", tensor)


def _quantize_types(graph: Graph, op: Op) -> None:
    x, out = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if x.dtype == DType.FLOAT32:
        _per_tensor(out, *_ACTIVATIONS)
        return
    if _is_share(x) and out.dtype is DType.INT32:
        source = x.quant
    else:
        source = _per_tensor(x, DType.INT8, DType.UINT8, DType.INT16, DType.INT32)
    assert source is not None
    result = _per_tensor(out, DType.INT8, DType.UINT8, DType.INT16, DType.INT32)
    if (x.dtype, out.dtype) in _NO_QUANTIZE:
        raise QuantError(f"{x.dtype} to {out.dtype}, which LiteRT's kernel does not take", out)
    if x.dtype == out.dtype == DType.UINT8:
        raise QuantError("uint8 on both sides", out)
    _ratio(source.scale / result.scale, out)


def _is_share(tensor: Tensor) -> bool:
    """Whether a tensor is what SOFTMAX of int8 makes in int16: from 0 to 1 in steps of 1 / 65536."""
    quant = tensor.quant
    return (
        tensor.dtype is DType.INT16
        and quant is not None
        and quant.zero_points == (-32768,)
        and abs(quant.scale - 2.0**-16) <= 0.001 * 2.0**-16
    )


def _softmax_types(graph: Graph, op: Op) -> None:
    """As all of int16, and of int8 to int16."""
    out = graph.tensors[op.outputs[0]]
    if out.dtype is DType.INT16 and graph.tensors[op.inputs[0]].dtype is DType.INT8:
        _per_tensor(graph.tensors[op.inputs[0]], DType.INT8)
        if not _is_share(out):
            raise QuantError("the output's scale must be 1/65536, its zero point -32768", out)
        return
    _int16_too(graph, op)


def _dequantize_types(graph: Graph, op: Op) -> None:
    _per_tensor(graph.tensors[op.inputs[0]], *_ACTIVATIONS)
    out = graph.tensors[op.outputs[0]]
    if out.dtype != DType.FLOAT32:
        raise QuantError(f"type {out.dtype}, expected float32", out)


def _state_types(graph: Graph, op: Op) -> None:
    """READ_VARIABLE, ASSIGN_VARIABLE, SHIFT: bytes of any one type, whatever they stand for."""
    out = graph.tensors[op.outputs[0]]
    for t in op.inputs:
        if graph.tensors[t].dtype != out.dtype:
            raise QuantError(f"type {graph.tensors[t].dtype}, expected {out.dtype}", graph.tensors[t])


def _lookup_types(graph: Graph, op: Op) -> None:
    """LOOKUP: bytes stand for bytes, by a constant of int8; scales take no part."""
    source, table, out = (graph.tensors[t] for t in (*op.inputs, *op.outputs))
    for tensor in (source, out):
        _typed(tensor, DType.BOOL if tensor.dtype is DType.BOOL else DType.INT8)
    if table.dtype is not DType.INT8 or table.data is None:
        raise QuantError("the table must be an int8 constant", table)


def _cast_types(graph: Graph, op: Op) -> None:
    """CAST among integers moves values, whatever scales the tensors have, or none."""
    for t in (op.inputs[0], op.outputs[0]):
        if graph.tensors[t].dtype not in _CAST:
            raise QuantError(f"a CAST of {graph.tensors[t].dtype}", graph.tensors[t])


_CAST = (DType.INT8, DType.INT16, DType.INT32)
_NO_QUANTIZE = {
    *((DType.INT16, DType.UINT8), (DType.UINT8, DType.INT16), (DType.UINT8, DType.INT32)),
    *((DType.INT8, DType.INT32), (DType.INT32, DType.INT32), (DType.INT32, DType.UINT8)),
}


def _operands(graph: Graph, op: Op) -> tuple[list[Quantization], Quantization]:
    """Quantisation of the inputs, and of the first output; types were checked before."""
    quants = [graph.tensors[t].quant for t in (*op.inputs, op.outputs[0])]
    known = [q for q in quants if q is not None]
    return known[:-1], known[-1]


def _sum(graph: Graph, op: Op) -> None:
    """ADD, SUB: TFLite scales both operands to twice the larger scale, times 2^-20; factors below 1."""
    (a, b, *_), out = _operands(graph, op)
    twice = 2.0 * max(a.scale, b.scale)
    left = 15 if graph.tensors[op.outputs[0]].dtype is DType.INT16 else 20
    _ratio(twice / ((1 << left) * out.scale), graph.tensors[op.outputs[0]], 1.0)


def _difference(graph: Graph, op: Op) -> None:
    """SQUARED_DIFFERENCE: the square of 2^7 steps of twice the larger scale is never scaled up."""
    (a, b), out = _operands(graph, op)
    twice = 2.0 * max(a.scale, b.scale)
    _ratio(twice * twice / ((1 << 14) * out.scale), graph.tensors[op.outputs[0]], 1.0)


def _quotient(graph: Graph, op: Op) -> None:
    (a, b), out = _operands(graph, op)
    _ratio(a.scale / (b.scale * out.scale), graph.tensors[op.outputs[0]], _LARGEST_QUOTIENT)


def _root(graph: Graph, op: Op) -> None:
    (a,), out = _operands(graph, op)
    inverse = op.kind is OpKind.RSQRT
    factor = 1 / (math.sqrt(a.scale) * out.scale) if inverse else 16 * math.sqrt(a.scale) / out.scale
    _ratio(factor, graph.tensors[op.outputs[0]])


def _product(graph: Graph, op: Op) -> None:
    (a, b), out = _operands(graph, op)
    _ratio(a.scale * b.scale / out.scale, graph.tensors[op.outputs[0]])


def _one_to_one(graph: Graph, op: Op) -> None:
    (a, *_), out = _operands(graph, op)
    _ratio(a.scale / out.scale, graph.tensors[op.outputs[0]])


def _leaky(graph: Graph, op: Op) -> None:
    _one_to_one(graph, op)
    alpha = getattr(op.attrs, "alpha", 0.0)
    if not math.isfinite(alpha):
        raise QuantError(f"alpha is {alpha}")


def _pool(graph: Graph, op: Op) -> None:
    """Pools keep the scale (TFLite's tolerance) and the zero point."""
    (a,), out = _operands(graph, op)
    if abs(a.scale - out.scale) > 1.0e-6 or a.zero_point != out.zero_point:
        text = "a pool's output is quantised otherwise than its input"
        raise QuantError(text, graph.tensors[op.outputs[0]])


def _unchanged(graph: Graph, op: Op) -> None:
    """REDUCE_MAX, blocks of the batch and their like: LiteRT demands one quantisation."""
    (a,), out = _operands(graph, op)
    if not same_quantization(a, out):
        text = "the output is quantised otherwise than the input"
        raise QuantError(text, graph.tensors[op.outputs[0]])


def _arg_types(graph: Graph, op: Op) -> None:
    """ARG_MAX, ARG_MIN: places are integers of 32 or 64 bits."""
    _per_tensor(graph.tensors[op.inputs[0]], DType.INT8)
    out = graph.tensors[op.outputs[0]]
    if out.dtype not in (DType.INT32, DType.INT64):
        raise QuantError(f"type {out.dtype}, expected int32 or int64", out)


def _concatenation(graph: Graph, op: Op) -> None:
    out = graph.tensors[op.outputs[0]].quant
    for t in op.inputs:
        if not same_quantization(graph.tensors[t].quant, out):
            raise QuantError("quantised otherwise than the concatenation's output", graph.tensors[t])


def _fixed_output(scale: float, zero_point: int) -> Callable[[Graph, Op], None]:
    def rule(graph: Graph, op: Op) -> None:
        (a,), out = _operands(graph, op)
        tensor = graph.tensors[op.outputs[0]]
        if _is_share(tensor):  # checked
            wanted, zero = out.scale, out.zero_point
        elif tensor.dtype is DType.INT16:  # all of them end at 1
            wanted, zero = 1.0 / 32768.0, 0
        else:
            wanted, zero = scale, zero_point
        if out.zero_point != zero or abs(out.scale - wanted) > 0.001 * wanted:
            raise QuantError(f"the output's scale must be {wanted:g}, its zero point {zero}", tensor)
        _ratio(a.scale, tensor)
        beta = getattr(op.attrs, "beta", 1.0)
        if not math.isfinite(np.float32(beta)):
            raise QuantError(f"beta is {beta}")

    return rule


def _log_softmax(graph: Graph, op: Op) -> None:
    """LOG_SOFTMAX: steps of the input are counted in 2^-26, more than one and at most 30 bits."""
    _fixed_output(1.0 / 16.0, 127)(graph, op)
    (x,), _ = _operands(graph, op)
    if not 2.0**-26 < x.scale < 16.0:
        text = f"a log softmax of values of scale {x.scale:g}, which has to be above 2^-26 and below 16"
        raise QuantError(text, graph.tensors[op.inputs[0]])


_MOVES = (
    *ALIAS_KINDS,
    OpKind.TRANSPOSE,
    OpKind.CONCATENATION,
    OpKind.SPLIT,
    OpKind.SLICE,
    OpKind.STRIDED_SLICE,
)
_TYPES: dict[OpKind, Callable[[Graph, Op], None]] = {
    **dict.fromkeys(_MOVES, _moved_types),
    OpKind.CONV_2D: _weighted_types,
    OpKind.DEPTHWISE_CONV_2D: _weighted_types,
    OpKind.TRANSPOSE_CONV: _weighted_types,
    OpKind.FULLY_CONNECTED: _weighted_types,
    OpKind.QUANTIZE: _quantize_types,
    OpKind.DEQUANTIZE: _dequantize_types,
    OpKind.READ_VARIABLE: _state_types,
    OpKind.ASSIGN_VARIABLE: _state_types,
    OpKind.SHIFT: _state_types,
    OpKind.LOOKUP: _lookup_types,
    OpKind.CAST: _cast_types,
    OpKind.SOFTMAX: _softmax_types,
    **dict.fromkeys(
        (
            *(OpKind.ADD, OpKind.SUB, OpKind.MUL, OpKind.MEAN, OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D),
            *(OpKind.LOGISTIC, OpKind.TANH, OpKind.RELU, OpKind.RELU6, OpKind.LEAKY_RELU),
            *(OpKind.PAD, OpKind.MIRROR_PAD),
            *(OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR),
        ),
        _int16_too,
    ),
    **dict.fromkeys(COMPARISONS, _compared_types),
    OpKind.LOGICAL_AND: _truth_values,
    OpKind.LOGICAL_OR: _truth_values,
    OpKind.LOGICAL_NOT: _truth_values,
    OpKind.SELECT_V2: _selected_types,
    OpKind.ARG_MAX: _arg_types,
    OpKind.ARG_MIN: _arg_types,
}
_RULES: dict[OpKind, Callable[[Graph, Op], None]] = {
    OpKind.ADD: _sum,
    OpKind.SUB: _sum,
    OpKind.MUL: _product,
    OpKind.PRELU: _product,
    OpKind.MEAN: _one_to_one,
    OpKind.HARD_SWISH: _one_to_one,
    OpKind.RELU: _one_to_one,
    OpKind.RELU6: _one_to_one,
    OpKind.LEAKY_RELU: _leaky,
    OpKind.ABS: _one_to_one,
    OpKind.RELU_N1_TO_1: _one_to_one,
    OpKind.RELU_0_TO_1: _one_to_one,
    OpKind.SQRT: _root,
    OpKind.RSQRT: _root,
    OpKind.SQUARED_DIFFERENCE: _difference,
    OpKind.DIV: _quotient,
    OpKind.L2_NORMALIZATION: _fixed_output(1.0 / 128.0, 0),
    OpKind.LOG_SOFTMAX: _log_softmax,
    OpKind.AVERAGE_POOL_2D: _pool,
    OpKind.MAX_POOL_2D: _pool,
    OpKind.CONCATENATION: _concatenation,
    OpKind.SPACE_TO_BATCH_ND: _unchanged,
    OpKind.BATCH_TO_SPACE_ND: _unchanged,
    OpKind.REDUCE_MAX: _unchanged,
    OpKind.REDUCE_MIN: _unchanged,
    OpKind.BATCH_MATMUL: _product,
    OpKind.SOFTMAX: _fixed_output(1.0 / 256.0, -128),
    OpKind.LOGISTIC: _fixed_output(1.0 / 256.0, -128),
    OpKind.TANH: _fixed_output(1.0 / 128.0, 0),
}
