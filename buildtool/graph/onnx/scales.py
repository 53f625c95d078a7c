"""Scales and zero points of QuantizeLinear and DequantizeLinear, and how constants and biases get theirs."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.fixedpoint import activation_range
from buildtool.graph.onnx.file import Array, printable_name
from buildtool.graph.onnx.values import ACTIVATIONS, Clamp, Constant, Quantized
from buildtool.graph.types import Activation, DType, Quantization

_SAME = 1e-5  # relative difference below which a bias scale counts as input scale * weight scale
SYMMETRIC = "quantise weights symmetrically to int8 (onnxruntime: weight_type=QuantType.QInt8)"
QUANTISE_CONSTANT = "quantise it: put a DequantizeLinear between it and the operator"
_RANGES = {"int8": (-128, 127), "uint8": (0, 255)}


def quantize_constant(quant: Quantization, dtype: str, x: Array) -> Constant:
    """Returns float weights quantised to `dtype`. Rounds halves to even, as QuantizeLinear does."""
    if dtype not in _RANGES:
        raise UnsupportedError(f"weights of type {dtype}", hint="quantise weights to int8")
    if x.dtype.kind != "f":
        raise ModelError(f"a QuantizeLinear of {x.dtype}")
    scale, zero = _broadcast(quant, x)
    with np.errstate(all="ignore"):
        steps = np.rint(x.astype(np.float32) / scale)
        data = np.clip(np.nan_to_num(steps) + zero, *_RANGES[dtype])
    return Constant(data.astype(dtype))


def _broadcast(quant: Quantization, x: Array) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Returns (scales, zero points), both in a shape that broadcasts with `x`."""
    scale, zero = np.array(quant.scales, np.float32), np.array(quant.zero_points, np.int64)
    if scale.size == 1:
        return scale.reshape(()), zero.reshape(())
    shape = [1] * x.ndim
    shape[_find_axis(quant, x)] = scale.size
    return scale.reshape(shape), zero.reshape(shape)


def _find_axis(quant: Quantization, x: Array) -> int:
    axis = quant.axis
    if not -x.ndim <= axis < x.ndim or x.shape[axis] != len(quant.scales):
        raise ModelError(f"{len(quant.scales)} scales along axis {axis} of a tensor of shape {list(x.shape)}")
    return axis % x.ndim


def dequantize_constant(quant: Quantization, x: Array, name: str) -> Quantized:
    """Returns weights or a bias `x` that the file dequantises with `quant`. uint8 becomes int8."""
    if x.dtype.name not in ("int8", "uint8", "int32"):
        hint = "quantise weights to int8"
        raise UnsupportedError(f"constants of type {x.dtype}", tensor=printable_name(name), hint=hint)
    axis = _find_axis(quant, x) if len(quant.scales) > 1 else 0
    if x.dtype == np.uint8:
        points = tuple(z - 128 for z in quant.zero_points)
        return Quantized((x ^ 128).view(np.int8), Quantization(quant.scales, points, axis))
    return Quantized(x, Quantization(quant.scales, quant.zero_points, axis))


def centre(value: Quantized, name: str) -> Quantized:
    """Returns int8 weights that have at most one zero point for the whole tensor.

    If `value` has several zero points, they are subtracted from the weights. Refuses weights that do not fit
    int8 after that.
    """
    if value.data.dtype != np.int8:
        hint = "quantise weights to int8"
        raise UnsupportedError(f"weights of type {value.data.dtype}", tensor=printable_name(name), hint=hint)
    quant = value.quant
    if not any(quant.zero_points):
        return value
    _, zero = _broadcast(quant, value.data)
    data = value.data.astype(np.int64) - zero
    if data.min(initial=0) < -128 or data.max(initial=0) > 127:
        if len(set(quant.zero_points)) == 1:
            return value
        text = "weights with several zero points, of which some are not in the middle of their range"
        raise UnsupportedError(text, tensor=printable_name(name), hint=SYMMETRIC)
    return Quantized(data.astype(np.int8), Quantization(quant.scales, (0,) * len(quant.scales), quant.axis))


def to_floats(value: Constant | Quantized, name: str = "") -> Constant:
    """Returns a constant as float32. A quantised one is dequantised as DequantizeLinear does it."""
    if isinstance(value, Quantized):
        scale, zero = _broadcast(value.quant, value.data)
        return Constant((value.data.astype(np.int64) - zero).astype(np.float32) * scale)
    if value.data.dtype.kind != "f":
        raise ModelError(f"a constant operand of {value.data.dtype}", tensor=printable_name(name))
    with np.errstate(over="ignore"):  # a double beyond float32 becomes infinite, as a Cast makes it
        return Constant(value.data.astype(np.float32))


def exact_scalar(data: Array | np.float32, name: str = "") -> Quantized:
    """Returns a float scalar as an exact int8 constant: 1, -1 or 0, with its magnitude as the scale."""
    data = np.asarray(data)
    if data.size != 1 or data.dtype.kind != "f" or not np.isfinite(data).all():
        text = "a constant operand that is not quantised"
        raise UnsupportedError(text, tensor=printable_name(name), hint=QUANTISE_CONSTANT)
    value = float(np.float32(data.reshape(-1)[0]))
    steps = np.full((1,) * data.ndim, int(np.sign(value)), np.int8)
    return Quantized(steps, Quantization((abs(value) or 1.0,), (0,)))


def round_constants(data: Array, name: str) -> Quantized:
    """Returns float constants rounded to int8. The scale is the largest magnitude / 127."""
    largest = float(np.abs(data).max(initial=0))
    if not math.isfinite(largest) or not largest:
        raise ModelError("constants that are not finite", tensor=printable_name(name))
    scale = float(np.float32(largest / 127))
    steps = np.clip(np.rint(data / scale), -127, 127).astype(np.int8)
    return Quantized(steps, Quantization((scale,), (0,)))


def clamp_limits(clamp: Clamp, quant: Quantization) -> tuple[int, int]:
    """Returns the smallest and largest int8 value in the range `clamp`. Rounds as QuantizeLinear does."""

    def steps(value: float, end: int) -> int:
        if not math.isfinite(value):
            return end
        return round(min(max(value / quant.scale, -512.0), 512.0)) + quant.zero_point

    low, high = steps(clamp[0], -128), steps(clamp[1], 127)
    return min(max(low, -128), 127), min(max(high, -128), 127)


def activation(clamp: Clamp, quant: Quantization | None) -> Activation | None:
    """Returns the fused activation that clamps to the range `clamp`; None if no activation does.

    `quant`: the quantisation of the clamped values, None in float32. With a quantisation, an activation of
    another range is also accepted if both ranges have the same int8 limits.
    """
    if clamp in ACTIVATIONS or quant is None:
        return ACTIVATIONS.get(clamp)
    limits = clamp_limits(clamp, quant)
    for activation in ACTIVATIONS.values():
        if activation_range(activation, quant, DType.INT8) == limits:
            return activation
    return None


def bias(value: Constant | Quantized, factors: Sequence[float], channels: int, name: str) -> Array:
    """Returns a bias as int32[channels].

    Its scales are `factors`: input scale * weight scale, one for all channels or one per channel. An int32
    bias with these scales keeps its values. Any other bias is rounded to these scales.
    """
    data = value.data
    if data.size not in (1, channels) or data.size != max(data.shape, default=1):
        raise ModelError(
            f"a bias of shape {list(data.shape)} for {channels} channels", tensor=printable_name(name)
        )
    flat = np.broadcast_to(data.reshape(-1), (channels,))
    if isinstance(value, Constant) and data.dtype == np.int32:
        return flat.astype(np.int32)
    unit = np.array(factors, np.float64)
    if isinstance(value, Constant) and data.dtype.kind != "f":
        raise ModelError(f"a bias of {data.dtype}", tensor=printable_name(name))
    quant = value.quant if isinstance(value, Quantized) and data.dtype == np.int32 else None
    if quant is not None and np.allclose(quant.scales, unit, rtol=_SAME, atol=0):
        real = np.asarray(flat.astype(np.float64) - np.array(quant.zero_points))
    else:  # not finite where a unit is 0, as the product of tiny scales may be
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            real = np.asarray(np.broadcast_to(value.real.reshape(-1), (channels,)) / unit)
    lowest, highest = real.min(initial=0), real.max(initial=0)
    if not np.isfinite(real).all() or lowest < -(1 << 31) or highest > (1 << 31) - 1:
        hint = "check the scales, or raise those of the channels' weights"
        raise UnsupportedError("a bias that does not fit int32", tensor=printable_name(name), hint=hint)
    return np.asarray(np.rint(real), np.int32)
