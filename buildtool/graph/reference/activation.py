"""Functions of one element: LOGISTIC, TANH, EXP, RELU, ... and QUANTIZE. Those of 8 bits are tables.

LiteRT computes the tables of LOGISTIC, TANH, EXP, LOG, GELU and ELU in float32. Here their functions are
computed in double precision and rounded to float32, so a table does not depend on the machine's float32
library. Close to a tie of the 8-bit rounding, the two could differ by one step.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UnsupportedError
from buildtool.graph import fixedpoint
from buildtool.graph.fixedpoint import RANGES, quantize_multiplier, quantize_value, rounding_divide_by_pot
from buildtool.graph.geometry import attributes
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.types import load
from buildtool.graph.reference import tensors, wide
from buildtool.graph.reference.curves import inverse_root
from buildtool.graph.reference.tensors import Factor, Int64, Values, float_factor, quantization, requantise
from buildtool.graph.types import AsUint8, DType, GeluAttrs, Graph, LeakyReluAttrs, Op, OpKind, Quantization

Limits = tuple[int, int]  # least and greatest element of a type
# (graph, operator, input elements minus their zero point, limits of the output's type) -> output elements
ByteRule = Callable[[Graph, Op, Int64, Limits], Int64]
Float32 = npt.NDArray[np.float32]
_BYTES = (DType.INT8, DType.UINT8)
_UNSIGNED = 128  # difference between a uint8 value and the int8 value that represents it
_ROOT_BITS = 20  # bits by which an inverse root is shifted left


def table(graph: Graph, op: Op) -> npt.NDArray[np.uint8]:
    """Returns the output byte for each input byte of an operator of TABLE_KINDS."""
    if op.kind is OpKind.LOOKUP:
        data = graph.tensors[op.inputs[1]].data
        assert data is not None
        return data.view(np.uint8)
    source, out = graph.tensors[op.inputs[0]].dtype, graph.tensors[op.outputs[0]].dtype
    if source not in _BYTES or out not in _BYTES:
        text = f"{op.kind} from {source} to {out} is not a function of one byte"
        raise UnsupportedError(text, operator=op.place)
    x = np.arange(256, dtype=np.uint8).view(source.value).astype(np.int64)
    return _compute(graph, op, x - quantization(graph, op, op.inputs[0]).zero_point).view(np.uint8)


def _compute(graph: Graph, op: Op, x: Int64) -> Values:
    """Computes the outputs from `x`, the input elements minus their zero point."""
    rule: ByteRule = load("graph.reference", DEFS[op.kind].byte)
    out = graph.tensors[op.outputs[0]].dtype
    return rule(graph, op, x, RANGES[out]).astype(out.value)


def apply_wide(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes RELU, similar operators and QUANTIZE for elements of more than 8 bits.

    The arithmetic is the same as for 8 bits, but no table is used.
    """
    return [_compute(graph, op, tensors.centre(graph, op, 0, inputs[0]))]


def apply_curve(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes EXP, LOG, GELU and RSQRT of int16, interpolated in a table."""
    return [wide.interpolate(inputs[0].astype(np.int64), curve(graph, op)).astype(np.int16)]


def curve(graph: Graph, op: Op) -> Int64:
    """Returns the interpolation table of an operator of `apply_curve`: int64[513]."""
    scale, out = _read_scales(graph, op)
    ends = np.array(wide.HALVES, np.float32)
    (low, high), (least, most) = (np.float32(step) * ends for step in (scale, out.scale))
    return wide.sample(low, high, np.float32(1 << 16) / (most - least), _real_function(graph, op))


def apply_table(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes an operator of TABLE_KINDS on 8-bit elements."""
    out = graph.tensors[op.outputs[0]].dtype
    return [table(graph, op)[inputs[0].view(np.uint8)].view(out.value)]


def _read_scales(graph: Graph, op: Op) -> tuple[float, Quantization]:
    """Returns (input scale, output quantisation)."""
    return quantization(graph, op, op.inputs[0]).scale, tensors.output_quantization(graph, op)


def float_table(graph: Graph, op: Op, x: Int64, limits: Limits) -> Int64:
    """Computes LOGISTIC, TANH, EXP, LOG, GELU and ELU in float32.

    It dequantises the elements, applies the function and quantises the results. Where the function is not
    defined (LOG below 0), the result is the least output.
    """
    scale, out = _read_scales(graph, op)
    real = np.float32(scale) * x.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = _real_function(graph, op)(real) * (np.float32(1) / np.float32(out.scale))
        rounded = tensors.round_half_away_array(scaled.astype(np.float32)) + out.zero_point
    return np.asarray(np.clip(np.where(np.isnan(rounded), limits[0], rounded), *limits), np.int64)


def _real_function(graph: Graph, op: Op) -> Callable[[Float32], Float32]:
    """Returns the real function of an operator of `float_table` or `apply_curve`.

    At and below 0, LOG is the real value of the least output, and RSQRT that of the greatest output.
    """
    out, (low, high) = tensors.output_quantization(graph, op), RANGES[graph.tensors[op.outputs[0]].dtype]
    least, most = (np.float32(end - out.zero_point) * np.float32(out.scale) for end in (low, high))
    if op.kind is OpKind.LOG:
        return lambda real: np.where(real > 0, _map(_log, real), least)
    if op.kind is OpKind.RSQRT:
        return lambda real: np.where(real > 0, np.float32(1) / np.sqrt(real), most)
    if op.kind is OpKind.LOGISTIC:
        return lambda real: np.float32(1) / (np.float32(1) + _map(_exp, -real))
    if op.kind is OpKind.GELU:
        return _gelu_tanh if attributes(op, GeluAttrs).approximate else _gelu
    function = {OpKind.TANH: math.tanh, OpKind.EXP: _exp, OpKind.ELU: elu}[op.kind]
    return lambda real: _map(function, real)


def _map(function: Callable[[float], float], values: Float32) -> Float32:
    results = [function(float(value)) for value in values.flat]
    return np.array(results, np.float32).reshape(values.shape)


def _exp(value: float) -> float:
    """Returns exp(value), infinity beyond the range of float32."""
    return math.exp(value) if value < 128 * math.log(2) else math.inf


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def elu(value: float) -> float:
    """Returns the ELU of a real number."""
    return math.expm1(value) if value < 0 else value


def _gelu(real: Float32) -> Float32:
    """Returns 0.5 * x * erfc(-x / sqrt(2)), in float32 except erfc."""
    return np.float32(0.5) * real * _map(math.erfc, real * np.float32(-math.sqrt(0.5)))


def _gelu_tanh(real: Float32) -> Float32:
    """Returns 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), in float32 except tanh."""
    inner = np.float32(math.sqrt(2 / math.pi)) * (real + np.float32(0.044715) * real * real * real)
    return np.float32(0.5) * real * (np.float32(1) + _map(math.tanh, inner))


def absolute(graph: Graph, op: Op, x: Int64, limits: Limits) -> Int64:
    """Computes ABS. With equal scales it does not rescale."""
    scale, out = _read_scales(graph, op)
    if scale == out.scale:
        return np.asarray(np.clip(np.abs(x) + out.zero_point, *limits), np.int64)
    return requantise(np.abs(x), *float_factor(graph, op), out.zero_point, limits)


_ENDS = {
    OpKind.RELU: (0.0, None),
    OpKind.RELU6: (0.0, 6.0),
    OpKind.RELU_N1_TO_1: (-1.0, 1.0),
    OpKind.RELU_0_TO_1: (0.0, 1.0),
}


def clamp(graph: Graph, op: Op, x: Int64, limits: Limits) -> Int64:
    """Computes RELU and similar operators: rescales by a float32 ratio and clamps to the quantised limits."""
    out, (least, most), (low, high) = tensors.output_quantization(graph, op), _ENDS[op.kind], limits
    low = max(low, quantize_value(least, out))
    high = high if most is None else min(high, quantize_value(most, out))
    return requantise(x, *float_factor(graph, op), out.zero_point, (low, high))


def leaky_relu(graph: Graph, op: Op, x: Int64, limits: Limits) -> Int64:
    """Computes LEAKY_RELU. Inputs below 0 have their own factor.

    If this factor is negative, LiteRT multiplies by its magnitude, rounds, and then changes the sign. For
    exact halves this differs from a convolution whose channel has a negative scale.
    """
    identity, (multiplier, shift) = leaky_factors(graph, op)
    zero_point, negative = tensors.output_quantization(graph, op).zero_point, np.minimum(x, 0)
    if multiplier >= 0:
        below = requantise(negative, multiplier, shift, zero_point, limits)
    else:
        opposite = requantise(negative, -multiplier, shift, 0, RANGES[DType.INT32])
        below = np.clip(zero_point - opposite, *limits)
    return np.where(x >= 0, requantise(x, *identity, zero_point, limits), below)


def leaky_factors(graph: Graph, op: Op) -> tuple[Factor, Factor]:
    """Returns LEAKY_RELU's (multiplier, shift) for inputs >= 0 and for inputs < 0."""
    return float_factor(graph, op), float_factor(graph, op, attributes(op, LeakyReluAttrs).alpha)


def rescale(graph: Graph, op: Op, x: Int64, limits: Limits) -> Int64:
    """Computes QUANTIZE between integers. The ratio of the scales is in double precision.

    For an operand of a CONCATENATION in a uint8 network it computes q * ratio - zero point * ratio in
    float32, where q is the unsigned value.
    """
    source, out = quantization(graph, op, op.inputs[0]), tensors.output_quantization(graph, op)
    if not isinstance(op.attrs, AsUint8):
        return requantise(x, *quantize_multiplier(source.scale / out.scale), out.zero_point, limits)
    ratio = np.float32(source.scale) * (np.float32(1) / np.float32(out.scale))
    zero_point = np.float32(source.zero_point + _UNSIGNED)
    unsigned = (x + source.zero_point + _UNSIGNED).astype(np.float32)
    rounded = tensors.round_half_away_array(unsigned * ratio + -zero_point * ratio)
    return np.asarray(np.clip(rounded + out.zero_point, *limits), np.int64)


def negate(graph: Graph, op: Op, x: Int64, limits: Limits) -> Int64:
    """Computes NEG as LiteRT: it negates the stored byte modulo 256 and ignores scales and zero points."""
    stored = x + quantization(graph, op, op.inputs[0]).zero_point
    return np.where(stored == limits[0], limits[0], -stored)


def root(graph: Graph, op: Op, x: Int64, limits: Limits) -> Int64:
    """Computes SQRT in float32, rounded down. Below 0, where LiteRT fails, it returns the least output."""
    scale, out = _read_scales(graph, op)
    real = np.float32(scale) * np.maximum(x, 0).astype(np.float32)
    y = np.trunc(np.sqrt(real) / np.float32(out.scale)).astype(np.int64) + out.zero_point
    return np.where(x < 0, limits[0], np.clip(y, *limits))


def inverse_square_root(graph: Graph, op: Op, x: Int64, limits: Limits) -> Int64:
    """Computes RSQRT in integers.

    The result is the greatest output at 0, and the least output below 0, where LiteRT fails.
    """
    scale, out = _read_scales(graph, op)
    multiplier, shift = quantize_multiplier(1 / (float(np.sqrt(np.float32(scale))) * out.scale))
    factor, factor_shift = inverse_root(np.maximum(x, 0))
    data = fixedpoint.multiply_by_quantized_multiplier(1, factor, factor_shift + _ROOT_BITS)
    y = requantise(data, multiplier, shift - _ROOT_BITS, out.zero_point, limits)
    return np.where(x > 0, y, np.where(x == 0, limits[1], limits[0]))


# ---- the hard swish -----------------------------------------------------------------------------------


def _half_multiplier(real: float) -> tuple[int, int]:
    """Returns (16-bit multiplier, shift) such that `real` is about multiplier * 2^(shift - 15)."""
    multiplier, shift = quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), shift


def _saturate(x: Int64) -> Int64:
    return np.asarray(np.clip(x, -(1 << 15), (1 << 15) - 1))


def _high_mul_16(x: Int64, multiplier: int) -> Int64:
    """Returns round(x * multiplier / 2^15), with halves rounded up."""
    return _saturate((x * multiplier + (1 << 14)) >> 15)


def hard_swish(graph: Graph, op: Op, x: Int64, limits: Limits) -> Int64:
    """Computes the hard swish, x * relu6(x + 3) / 6, in 16-bit fixed point."""
    scale, out = _read_scales(graph, op)
    fine = float(np.float32(1 / 128) * np.float32(scale))  # the scale of x * 128, for precision
    out_multiplier, out_shift = _half_multiplier(tensors.float_ratio(fine, over=out.scale))
    if out_shift > 0:
        text = f"the output scale of {op.kind} is too small for its input scale"
        raise UnsupportedError(text, operator=op.place)
    # 32768 represents 3.0: [-3, 3] becomes [-1, 1] as a 16-bit fraction
    three = float(np.float32(3) / np.float32(32768))
    relu_multiplier, relu_shift = _half_multiplier(tensors.float_ratio(fine, over=three))
    fine_x = x * 128
    unshifted = _high_mul_16(fine_x, out_multiplier)
    gate = _saturate(fine_x << (relu_shift - 1)) if relu_shift > 0 else fine_x
    gate = _high_mul_16(gate, relu_multiplier)
    if relu_shift > 0:
        gate = _saturate(gate << 1)
    if relu_shift < 0:
        gate = rounding_divide_by_pot(gate, -relu_shift)
    gate = (gate + (1 << 15)) >> 1  # [-1, 1] to [0, 1]
    product = gate * unshifted
    towards_zero = np.sign(product) * (np.abs(product) >> 15)
    return np.clip(rounding_divide_by_pot(towards_zero, -out_shift) + out.zero_point, *limits)


# ---- from and to float ---------------------------------------------------------------------------------


def quantize(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes QUANTIZE from float32 (halves away from zero), or from 8 bits to 8 bits by table.

    NaN counts as 0. Values that do not fit become the nearest end of the range; for values beyond int32
    LiteRT's result is undefined.
    """
    out = graph.tensors[op.outputs[0]].dtype
    if graph.tensors[op.inputs[0]].dtype is not DType.FLOAT32:
        return apply_table(graph, op, inputs)
    quant = tensors.output_quantization(graph, op)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.nan_to_num(inputs[0].astype(np.float32) / np.float32(quant.scale), nan=0.0)
        rounded = tensors.round_half_away_array(steps)
    return [np.clip(rounded + quant.zero_point, *RANGES[out]).astype(out.value)]


def dequantize(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes DEQUANTIZE: scale * (q - zero point), with the product in double precision."""
    quant = quantization(graph, op, op.inputs[0])
    return [(quant.scale * (inputs[0].astype(np.float64) - quant.zero_point)).astype(np.float32)]
