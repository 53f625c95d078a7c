"""Chooses quantisations from observed values: accumulators of a layer, and scales that spread its outputs.

Everything is exact or elementary float64 arithmetic (+ - * / sqrt), which IEEE 754 rounds the same way
on every machine. Sums are exact: accumulators are matrix products of integers in a float type that
holds every partial sum, so their order does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.graph.types import Activation, ConvAttrs, Quantization

Int8s = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]

# How many samples the prior counts as, which matters where a channel has few values.
_PRIOR_MEAN = 0.5
_PRIOR_VARIANCE = 8.0


@dataclass(frozen=True)
class Spread:
    """The intended distribution of a layer's real outputs before the activation.

    Each channel has its own mean, drawn from the range `offset`, and its own standard deviation, drawn from
    the range `deviation`.
    """

    offset: tuple[float, float] = (-0.5, 0.5)
    deviation: tuple[float, float] = (0.8, 1.2)


def spread_for(activation: Activation) -> Spread:
    """Returns a spread for which `activation` neither saturates nor gives zero almost everywhere."""
    if activation is Activation.RELU6:  # 6 is at least three deviations away: under 0.2 % reach it
        return Spread((0.0, 1.2), (1.0, 1.5))
    return Spread((0.0, 0.8)) if activation is Activation.RELU else Spread()


def spread_before_pooling(activation: Activation) -> Spread:
    """Returns a spread whose channels have very different means.

    Average pooling removes most of the variation within a channel, so the channels have to differ.
    """
    return Spread((-1.0, 3.0)) if activation is Activation.RELU else Spread((-2.0, 2.0), (0.6, 0.9))


@dataclass(frozen=True)
class Affine:
    """A layer's weight scales and biases, with one scale per channel or one for all.

    real = (accumulator + bias) * input scale * weight scale.
    """

    weight_scales: tuple[float, ...]
    biases: npt.NDArray[np.int32]


def float32(value: float) -> float:
    """Returns `value` rounded to float32, as a Python float."""
    return float(np.float32(value))


def convolution(x: Int8s, zero_point: int, filters: Int8s, attrs: ConvAttrs) -> Floats:
    """Returns the accumulators of CONV_2D: (batch, rows, columns, channels).

    The input is NHWC and the filter OHWI.
    """
    outputs, kh, kw, _ = filters.shape
    windows = _windows(x, zero_point, (kh, kw), attrs)
    columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, kh * kw * x.shape[3])
    result = _product(columns, filters.reshape(outputs, -1))
    return result.reshape(*windows.shape[:3], outputs)


def depthwise(x: Int8s, zero_point: int, filters: Int8s, attrs: ConvAttrs) -> Floats:
    """Returns the accumulators of DEPTHWISE_CONV_2D with depth multiplier 1.

    The filter has shape (1, rows, columns, channels).
    """
    _, kh, kw, _ = filters.shape
    windows = _windows(x, zero_point, (kh, kw), attrs)
    total = np.zeros(windows.shape[:4], dtype=np.int32)
    for i in range(kh):
        for j in range(kw):
            total += windows[..., i, j] * filters[0, i, j].astype(np.int32)
    return total.astype(np.float64)


def dense(x: Int8s, zero_point: int, filters: Int8s) -> Floats:
    """Returns the accumulators of FULLY_CONNECTED: (batch, outputs). The filter is (outputs, inputs)."""
    return _product(x.astype(np.int16) - np.int16(zero_point), filters)


def _product(rows: npt.NDArray[np.int16], filters: Int8s) -> Floats:
    """Returns `rows` @ `filters`.T exactly.

    Where float32 is exact, it is used, because it takes half the time.
    """
    bound = rows.shape[1] * 255 * 128
    exact = np.float32 if bound <= 1 << 24 else np.float64  # float32 holds all integers up to 2^24
    return np.asarray(rows.astype(exact) @ filters.T.astype(exact), dtype=np.float64)


def _windows(x: Int8s, zero_point: int, kernel: tuple[int, int], attrs: ConvAttrs) -> npt.NDArray[np.int16]:
    """Returns the input's windows minus the zero point.

    Their shape is (batch, rows, columns, channels, kernel rows, kernel columns).
    """
    pad = attrs.pad
    widths = ((0, 0), (pad.top, pad.bottom), (pad.left, pad.right), (0, 0))
    padded = np.pad(x.astype(np.int16) - np.int16(zero_point), widths)
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(1, 2))
    return windows[:, :: attrs.stride[0], :: attrs.stride[1]]


def affine(
    accumulators: Floats, input_scale: float, offsets: Floats, deviations: Floats, per_channel: bool
) -> Affine:
    """Returns weight scales and biases that give channel c mean `offsets[c]` and deviation `deviations[c]`.

    They follow from the accumulators of all samples. If a channel has few of them, the estimate of its
    variance is moved towards the variance of the whole layer, and that of its mean towards zero. Without
    `per_channel` there is one scale, from the layer's variance and the first deviation.
    """
    channels = accumulators.shape[-1]
    values = accumulators.reshape(-1, channels)
    count = values.shape[0]
    integers = values.astype(np.int64)
    means = integers.sum(axis=0).astype(np.float64) / (count + _PRIOR_MEAN)
    squares = (integers * integers).sum(axis=0).astype(np.float64) / count
    averages = integers.sum(axis=0).astype(np.float64) / count
    variances = squares - 2.0 * means * averages + means * means
    pooled = math.fsum(variances.tolist()) / channels
    pooled = pooled if pooled > 0.0 else 1.0
    if per_channel:
        estimates = (count * variances + _PRIOR_VARIANCE * pooled) / (count + _PRIOR_VARIANCE)
    else:
        estimates = np.full(1, pooled)
    real = deviations[: estimates.size] / (input_scale * np.sqrt(estimates))
    scales = real.astype(np.float32).astype(np.float64)
    biases = np.floor(offsets / (input_scale * scales) - means + 0.5)
    return Affine(tuple(scales.tolist()), biases.astype(np.int32))


def activate(values: Floats, activation: Activation) -> Floats:
    """Applies a fused activation to `values`."""
    if activation is Activation.NONE:
        return values
    low = -1.0 if activation is Activation.RELU_N1_TO_1 else 0.0
    high = {Activation.RELU6: 6.0, Activation.RELU_N1_TO_1: 1.0}.get(activation)
    return np.asarray(np.clip(values, low, high))


def quantization(values: Floats, headroom: float = 1.0) -> Quantization:
    """Returns the asymmetric int8 quantisation for the range of `values`, multiplied by `headroom`.

    It represents zero exactly.
    """
    low = min(0.0, float(values.min()) * headroom)
    high = max(0.0, float(values.max()) * headroom)
    scale = float32((high - low) / 255.0 if high > low else 1.0)
    zero_point = math.floor(-128.0 - low / scale + 0.5)
    return Quantization((scale,), (max(-128, min(127, zero_point)),))


def real(values: npt.NDArray[np.generic], quant: Quantization) -> Floats:
    """Returns the real values of quantised ones."""
    return (values.astype(np.float64) - quant.zero_point) * quant.scale
