"""Types and quantisation: what every operator demands of its tensors, as TFLite's kernels do."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from buildtool.graph.types import DType, Graph, Op, OpKind, Quantization, Tensor

_ZERO_POINTS = {DType.INT8: (-128, 127), DType.UINT8: (0, 255), DType.INT32: (0, 0), DType.FLOAT32: (0, 0)}
_LARGEST_RATIO = 2.0**30  # a requantisation factor beyond this saturates every result


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
    any_sign = tensor.is_constant and (tensor.dtype == DType.INT32 or len(quant.scales) > 1)
    if not all(map(math.isfinite, quant.scales)) or not (any_sign or min(quant.scales) > 0):
        raise QuantError("a scale is not a finite positive number", tensor)
    low, high = _ZERO_POINTS[tensor.dtype]
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
    return tensor.quant


def _int8_activations(graph: Graph, op: Op) -> None:
    for t in dict.fromkeys((*op.inputs, *op.outputs)):
        if t < 0:
            raise QuantError("an operand is missing")
        _per_tensor(graph.tensors[t], DType.INT8)


def _weighted_types(graph: Graph, op: Op) -> None:
    """CONV_2D and its kin: activation, filter (int8, zero points 0), bias (int32) or -1."""
    x, weights = graph.tensors[op.inputs[0]], graph.tensors[op.inputs[1]]
    out = _per_tensor(graph.tensors[op.outputs[0]], DType.INT8)
    source = _per_tensor(x, DType.INT8)
    if weights.dtype != DType.INT8 or weights.data is None:
        raise QuantError("the filter must be an int8 constant", weights)
    if weights.quant is None:
        raise QuantError("the filter has no scale", weights)
    if any(weights.quant.zero_points):
        raise QuantError("the filter's zero points must be 0", weights)
    axis = 3 if op.kind == OpKind.DEPTHWISE_CONV_2D else 0
    if len(weights.quant.scales) > 1 and weights.quant.axis != axis:
        raise QuantError(f"the filter is quantised along axis {weights.quant.axis}, expected {axis}", weights)
    sizes = [abs(scale) for scale in weights.quant.scales if scale != 0]
    for scale in (min(sizes), max(sizes)) if sizes else ():
        _ratio(source.scale * scale / out.scale, weights)
    if op.inputs[2] >= 0:
        bias = graph.tensors[op.inputs[2]]
        if bias.dtype != DType.INT32 or bias.data is None:
            raise QuantError("the bias must be an int32 constant", bias)


def _ratio(value: float, tensor: Tensor, limit: float = _LARGEST_RATIO) -> None:
    if not 0.0 < value < limit:
        raise QuantError(f"a requantisation factor of {value:g}: the scales are too far apart", tensor)


def _quantize_types(graph: Graph, op: Op) -> None:
    x, out = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if x.dtype == DType.FLOAT32:
        _per_tensor(out, DType.INT8)
        return
    source = _per_tensor(x, DType.INT8, DType.UINT8)
    result = _per_tensor(out, DType.INT8, DType.UINT8)
    if x.dtype == out.dtype == DType.UINT8:
        raise QuantError("uint8 on both sides", out)
    _ratio(source.scale / result.scale, out)


def _dequantize_types(graph: Graph, op: Op) -> None:
    _per_tensor(graph.tensors[op.inputs[0]], DType.INT8)
    out = graph.tensors[op.outputs[0]]
    if out.dtype != DType.FLOAT32:
        raise QuantError(f"type {out.dtype}, expected float32", out)


def _operands(graph: Graph, op: Op) -> tuple[list[Quantization], Quantization]:
    """Quantisation of the inputs, and of the first output; types were checked before."""
    quants = [graph.tensors[t].quant for t in (*op.inputs, op.outputs[0])]
    known = [q for q in quants if q is not None]
    return known[:-1], known[-1]


def _sum(graph: Graph, op: Op) -> None:
    """ADD, SUB: TFLite scales both operands to twice the larger scale, times 2^-20; factors below 1."""
    (a, b), out = _operands(graph, op)
    twice = 2.0 * max(a.scale, b.scale)
    _ratio(twice / ((1 << 20) * out.scale), graph.tensors[op.outputs[0]], 1.0)


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


def _concatenation(graph: Graph, op: Op) -> None:
    operands, out = _operands(graph, op)
    for t, quant in zip(op.inputs, operands, strict=True):
        if not same_quantization(quant, out):
            raise QuantError("quantised otherwise than the concatenation's output", graph.tensors[t])


def _fixed_output(scale: float, zero_point: int) -> Callable[[Graph, Op], None]:
    def rule(graph: Graph, op: Op) -> None:
        (a,), out = _operands(graph, op)
        tensor = graph.tensors[op.outputs[0]]
        if out.zero_point != zero_point or abs(out.scale - scale) > 0.001 * scale:
            raise QuantError(f"the output's scale must be {scale:g}, its zero point {zero_point}", tensor)
        _ratio(a.scale, tensor)
        beta = getattr(op.attrs, "beta", 1.0)
        if not math.isfinite(np.float32(beta)):
            raise QuantError(f"beta is {beta}")

    return rule


_TYPES: dict[OpKind, Callable[[Graph, Op], None]] = {
    OpKind.CONV_2D: _weighted_types,
    OpKind.DEPTHWISE_CONV_2D: _weighted_types,
    OpKind.TRANSPOSE_CONV: _weighted_types,
    OpKind.FULLY_CONNECTED: _weighted_types,
    OpKind.QUANTIZE: _quantize_types,
    OpKind.DEQUANTIZE: _dequantize_types,
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
    OpKind.AVERAGE_POOL_2D: _pool,
    OpKind.MAX_POOL_2D: _pool,
    OpKind.CONCATENATION: _concatenation,
    OpKind.SOFTMAX: _fixed_output(1.0 / 256.0, -128),
    OpKind.LOGISTIC: _fixed_output(1.0 / 256.0, -128),
    OpKind.TANH: _fixed_output(1.0 / 128.0, 0),
}
