"""Functions of one byte, as tables of 256 bytes: LOGISTIC, TANH, EXP, RELU, ... and QUANTIZE.

LOGISTIC, TANH, EXP, LOG, GELU and ELU are float32 tables in the reference. Their functions are taken
here in double precision and rounded to float32, so that a table does not depend on the machine's
single-precision library; near a tie of the 8-bit rounding the two could differ by one step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UnsupportedError
from buildtool.graph.fixedpoint import (
    RANGES,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    quantize_value,
    rounding_divide_by_pot,
)
from buildtool.graph.geometry import attributes
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.types import load
from buildtool.graph.reference.curves import inverse_root
from buildtool.graph.reference.tensors import (
    Factor,
    Int64,
    Values,
    centred,
    float_factor,
    float_ratio,
    leak,
    output_quantization,
    quantization,
    requantise,
    round_half_away_array,
)
from buildtool.graph.types import AsUint8, DType, GeluAttrs, Graph, LeakyReluAttrs, Op, OpKind, Quantization

Table = npt.NDArray[np.uint8]
# Elements of the output from elements less the input's zero point, within the limits of the output's type.
ByteRule = Callable[[Graph, Op, Int64, tuple[int, int]], Int64]
_BYTES = (DType.INT8, DType.UINT8)
Float32 = npt.NDArray[np.float32]
_UNSIGNED = 128  # what makes a uint8 of an int8


def table(graph: Graph, op: Op) -> Table:
    """The output byte of each input byte (uint8[256]) of an operator of TABLE_KINDS.

    Bytes are the elements' bit patterns: an int8 element -1 is byte 255. UnsupportedError where the
    input or output is not 8 bits wide.
    """
    if op.kind is OpKind.LOOKUP:
        data = graph.tensors[op.inputs[1]].data
        assert data is not None
        return data.view(np.uint8)
    source, out = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if source.dtype not in _BYTES or out.dtype not in _BYTES:
        raise UnsupportedError(
            f"{op.kind} of {source.dtype} to {out.dtype} is not a table", operator=op.place
        )
    x = np.arange(256, dtype=np.uint8).view(source.dtype.value).astype(np.int64)
    x -= quantization(graph, op, op.inputs[0]).zero_point
    return _computed(graph, op, x).view(np.uint8)


def _computed(graph: Graph, op: Op, x: Int64) -> Values:
    """The operator's outputs of elements less the input's zero point, by the rule of its definition."""
    rule: ByteRule = load("graph.reference", DEFS[op.kind].byte)
    out = graph.tensors[op.outputs[0]].dtype
    return rule(graph, op, x, RANGES[out]).astype(out.value)


def apply_wide(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """RELU and its kin, and QUANTIZE, of elements of more than 8 bits: the rule of the bytes."""
    return [_computed(graph, op, centred(graph, op, 0, inputs[0]))]


def apply_table(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """An operator of TABLE_KINDS on 8-bit elements."""
    out = graph.tensors[op.outputs[0]]
    return [table(graph, op)[inputs[0].view(np.uint8)].view(out.dtype.value)]


def _scales(graph: Graph, op: Op) -> tuple[float, Quantization]:
    """(input scale, output quantisation)."""
    return quantization(graph, op, op.inputs[0]).scale, output_quantization(graph, op)


def float_table(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """LOGISTIC and TANH: dequantise, apply, scale, round, all in float32."""
    scale, out = _scales(graph, op)
    real = np.float32(scale) * x.astype(np.float32)
    if op.kind is OpKind.LOGISTIC:
        one = np.float32(1)
        with np.errstate(over="ignore"):
            exps = np.array([_exp(-float(value)) for value in real], np.float32)
        value = one / (one + exps)
    else:
        value = np.array([math.tanh(float(value)) for value in real], np.float32)
    scaled = (value * (np.float32(1) / np.float32(out.scale))).astype(np.float32)
    rounded = round_half_away_array(scaled)
    return np.asarray(np.clip(rounded + out.zero_point, *limits).astype(np.int64))


def transformed(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """EXP, LOG, GELU and ELU: as `float_table`; what has no value is the least output."""
    scale, out = _scales(graph, op)
    real = np.float32(scale) * x.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        value = _transforms(op)(real)
        scaled = (value * (np.float32(1) / np.float32(out.scale))).astype(np.float32)
        rounded = round_half_away_array(scaled) + out.zero_point
    return np.asarray(np.clip(np.where(np.isnan(rounded), limits[0], rounded), *limits), np.int64)


def _transforms(op: Op) -> Callable[[Float32], Float32]:
    """The real function of EXP, LOG, GELU, ELU."""
    if op.kind is OpKind.EXP:
        return lambda real: np.array([_exp(float(v)) for v in real], np.float32)
    if op.kind is OpKind.ELU:
        return lambda real: np.array([elu(float(v)) for v in real], np.float32)
    if op.kind is OpKind.LOG:
        return lambda real: np.array([math.log(v) if v > 0 else -math.inf for v in real], np.float32)
    return _gelu_tanh if attributes(op, GeluAttrs).approximate else _gelu


def _gelu(real: Float32) -> Float32:
    """0.5 * x * erfc(-x / sqrt(2)), in float32 but for erfc."""
    inner = real * np.float32(-math.sqrt(0.5))
    return np.float32(0.5) * real * np.array([math.erfc(float(v)) for v in inner], np.float32)


def _gelu_tanh(real: Float32) -> Float32:
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), in float32 but for tanh."""
    inner = np.float32(math.sqrt(2 / math.pi)) * (real + np.float32(0.044715) * real * real * real)
    curve = np.array([math.tanh(float(v)) for v in inner], np.float32)
    return np.float32(0.5) * real * (np.float32(1) + curve)


def absolute(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """ABS; where the scales are equal nothing is rescaled."""
    scale, out = _scales(graph, op)
    if scale == out.scale:
        return np.asarray(np.clip(np.abs(x) + out.zero_point, *limits), np.int64)
    return requantise(np.abs(x), *float_factor(graph, op), out.zero_point, limits)


def _exp(value: float) -> float:
    """exp, infinite beyond float32's range."""
    return math.exp(value) if value < 128 * math.log(2) else math.inf


_ENDS = {
    OpKind.RELU: (0.0, None),
    OpKind.RELU6: (0.0, 6.0),
    OpKind.RELU_N1_TO_1: (-1.0, 1.0),
    OpKind.RELU_0_TO_1: (0.0, 1.0),
}


def clamped(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """RELU and its kin: rescaled by a float32 ratio, cut at the quantised ends."""
    out, (least, most), (low, high) = output_quantization(graph, op), _ENDS[op.kind], limits
    low = max(low, quantize_value(least, out))
    high = high if most is None else min(high, quantize_value(most, out))
    return requantise(x, *float_factor(graph, op), out.zero_point, (low, high))


def leaky_relu(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """Each side of 0 has a factor of its own."""
    identity, factor = leaky_factors(graph, op)
    zero_point = output_quantization(graph, op).zero_point
    below = leak(np.minimum(x, 0), *factor, zero_point, limits)
    return np.where(x >= 0, requantise(x, *identity, zero_point, limits), below)


def leaky_factors(graph: Graph, op: Op) -> tuple[Factor, Factor]:
    """LEAKY_RELU's (multiplier, shift) of inputs that are not negative, and of those that are."""
    return float_factor(graph, op), float_factor(graph, op, attributes(op, LeakyReluAttrs).alpha)


def rescaled(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """QUANTIZE among integers; the ratio is in double precision."""
    if isinstance(op.attrs, AsUint8):
        return _rescaled_in_floats(graph, op, x, limits)
    scale, out = _scales(graph, op)
    return requantise(x, *quantize_multiplier(scale / out.scale), out.zero_point, limits)


def _rescaled_in_floats(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """An operand of a uint8 CONCATENATION: q * ratio - zero point * ratio, in float32 and of unsigned q."""
    source, out = quantization(graph, op, op.inputs[0]), output_quantization(graph, op)
    ratio = np.float32(source.scale) * (np.float32(1) / np.float32(out.scale))
    zero_point = np.float32(source.zero_point + _UNSIGNED)
    unsigned = (x + source.zero_point + _UNSIGNED).astype(np.float32)
    rounded = round_half_away_array(unsigned * ratio + -zero_point * ratio)
    return np.asarray(np.clip(rounded + out.zero_point, *limits), np.int64)


# ---- the hard swish -----------------------------------------------------------------------------------


def _half_multiplier(real: float) -> tuple[int, int]:
    """(16-bit multiplier, shift): real ~ multiplier * 2^(shift - 15)."""
    multiplier, shift = quantize_multiplier(real)
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), shift


def _saturate(x: Int64) -> Int64:
    return np.asarray(np.clip(x, -(1 << 15), (1 << 15) - 1))


def _high_mul_16(x: Int64, multiplier: int) -> Int64:
    """round(x * multiplier / 2^15), halves up."""
    return _saturate((x * multiplier + (1 << 14)) >> 15)


def hard_swish(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """X * relu6(x + 3) / 6 in 16-bit fixed point."""
    scale, out = _scales(graph, op)
    fine = float(np.float32(1 / 128) * np.float32(scale))  # the scale of x * 128, for precision
    out_multiplier, out_shift = _half_multiplier(float_ratio(fine, over=out.scale))
    if out_shift > 0:
        raise UnsupportedError(f"{op.kind}'s output scale is too small for its input's", operator=op.place)
    # 32768 stands for 3.0: [-3, 3] becomes [-1, 1] as a 16-bit fraction.
    three = float(np.float32(3) / np.float32(32768))
    relu_multiplier, relu_shift = _half_multiplier(float_ratio(fine, over=three))
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


# ---- the float edges ---------------------------------------------------------------------------------


def quantize(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """QUANTIZE: float32 to 8 bits (halves away from zero), or 8 bits to 8 bits by table."""
    out = graph.tensors[op.outputs[0]]
    if graph.tensors[op.inputs[0]].dtype is not DType.FLOAT32:
        return apply_table(graph, op, inputs)
    quant = output_quantization(graph, op)
    rounded = round_half_away_array(inputs[0].astype(np.float32) / np.float32(quant.scale))
    return [np.clip(rounded + quant.zero_point, *RANGES[out.dtype]).astype(out.dtype.value)]


def dequantize(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """DEQUANTIZE: scale * (q - zero point), the product in double precision."""
    quant = quantization(graph, op, op.inputs[0])
    return [(quant.scale * (inputs[0].astype(np.float64) - quant.zero_point)).astype(np.float32)]


_ROOT_BITS = 20  # that an inverse root is shifted left by


def negated(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """NEG: the stored byte negated modulo 256, whatever scales and zero points say, as the reference does."""
    stored = x + quantization(graph, op, op.inputs[0]).zero_point
    return np.where(stored == limits[0], limits[0], -stored)


def root(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """SQRT: float32, rounded down; LiteRT stops at values below zero, which here give the least output."""
    scale, out = _scales(graph, op)
    real = np.float32(scale) * np.maximum(x, 0).astype(np.float32)
    y = np.trunc(np.sqrt(real) / np.float32(out.scale)).astype(np.int64) + out.zero_point
    return np.where(x < 0, limits[0], np.clip(y, *limits))


def inverse_square_root(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """RSQRT in integers; of 0 the greatest output, of values below zero, where LiteRT stops, the least."""
    scale, out = _scales(graph, op)
    multiplier, shift = quantize_multiplier(1 / (float(np.sqrt(np.float32(scale))) * out.scale))
    factor, factor_shift = inverse_root(np.maximum(x, 0))
    data = multiply_by_quantized_multiplier(1, factor, factor_shift + _ROOT_BITS)
    y = requantise(data, multiplier, shift - _ROOT_BITS, out.zero_point, limits)
    return np.where(x > 0, y, np.where(x == 0, limits[1], limits[0]))


def elu(value: float) -> float:
    """ELU of a real number."""
    return math.expm1(value) if value < 0 else value
