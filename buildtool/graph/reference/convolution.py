"""CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED, per tensor or per channel.

Sums are exact. A product of an int8 weight and an activation minus its zero point is at most 255 * 128 in
magnitude, so a float32 matrix product is exact up to 514 terms, and a float64 one up to 2^38. Sums of int16
activations have 64 bits; convolutions requantise them with a 16-bit multiplier and one rounding.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from buildtool.base.errors import ModelError
from buildtool.graph.fixedpoint import INT32_MAX, multiply_wide, quantize_multipliers, wrap_int32
from buildtool.graph.geometry import attributes, dilated_extent
from buildtool.graph.reference import tensors
from buildtool.graph.reference.tensors import Int64, Values, centre, clip, quantization
from buildtool.graph.types import AsUint8, ConvAttrs, DepthwiseAttrs, Graph, Op, OpKind

Numbers: TypeAlias = npt.NDArray[Any]  # float32, float64 or integers

_FLOAT32_TERMS = (1 << 24) // (255 * 128)
_LARGEST_PRODUCT = 255 * 255  # of int8 values minus their zero points
_WIDE = np.dtype(np.int16)  # activations whose products with int8 are exact in float64 up to 2^31 terms


def channel_scales(graph: Graph, op: Op) -> list[float]:
    """Returns input scale * filter scale / output scale for each output channel, in double precision."""
    source, weights, out = (quantization(graph, op, t) for t in (*op.inputs[:2], op.outputs[0]))
    filters = graph.tensors[op.inputs[1]]
    channels = filters.shape[3 if op.kind is OpKind.DEPTHWISE_CONV_2D else 0]
    if len(weights.scales) not in (1, channels):
        text = f"{len(weights.scales)} scales for {channels} channels"
        raise ModelError(text, operator=op.place, tensor=filters.name)
    scales = [source.scale * scale / out.scale for scale in weights.scales]
    return scales * channels if len(scales) == 1 else scales


def _add_bias(sums: Numbers, inputs: list[Values]) -> Int64:
    """Returns the sums plus the bias. The last dimension of the sums is the output channels.

    For int8 activations the result is modulo 2^32, as in LiteRT's int32.
    """
    total = np.asarray(sums, np.int64)
    most = inputs[1].size // max(total.shape[-1], 1) * _LARGEST_PRODUCT
    if len(inputs) > 2:
        bias = inputs[2].astype(np.int64)
        total = total + bias
        most += int(np.abs(bias).max(initial=0))
    return wrap_int32(total) if most > INT32_MAX and inputs[0].dtype != _WIDE else total


def _finish(graph: Graph, op: Op, sums: Numbers, inputs: list[Values]) -> list[Values]:
    """Adds the bias of a convolution, requantises, and applies the fused activation."""
    return [requantise_sums(graph, op, _add_bias(sums, inputs), wide=inputs[0].dtype == _WIDE)]


def requantise_sums(graph: Graph, op: Op, total: Int64, *, wide: bool) -> Values:
    """Returns the outputs of a convolution's sums with bias. The last dimension is the output channels.

    `wide`: the activations are int16.
    """
    multipliers, shifts = quantize_multipliers(channel_scales(graph, op))
    if wide:
        return clip(graph, op, multiply_wide(total, multipliers, shifts))
    return tensors.requantise_output(graph, op, total, (multipliers, shifts))


def _centre_filter(graph: Graph, op: Op, value: Values) -> npt.NDArray[np.int16]:
    """Returns the filter minus its zero point, which is 0 except in networks that were uint8."""
    zero_point = quantization(graph, op, op.inputs[1]).zero_point
    return (value.astype(np.int16) - np.int16(zero_point)).astype(np.int16)


def _find_exact_float(op: Op, x: Values, terms: int) -> type[np.float32] | type[np.float64]:
    """Returns a float type in which a sum of `terms` products is exact."""
    is_small = terms <= _FLOAT32_TERMS and x.dtype != _WIDE and not isinstance(op.attrs, AsUint8)
    return np.float32 if is_small else np.float64


def _make_windows(
    x: Int64, attrs: ConvAttrs, kernel: tuple[int, int], out: tuple[int, ...], dtype: npt.DTypeLike
) -> Numbers:
    """Pads `x` and returns its windows.

    Their shape is (batch, rows, columns, channels, kernel rows, kernel columns).
    """
    pad = attrs.pad
    border = ((0, 0), (pad.top, max(pad.bottom, 0)), (pad.left, max(pad.right, 0)), (0, 0))
    padded = np.pad(x.astype(dtype), border)  # 0: the zero point
    extent = [dilated_extent(k, d) for k, d in zip(kernel, attrs.dilation, strict=True)]
    (down, across), (dilation_h, dilation_w) = attrs.stride, attrs.dilation
    windows = sliding_window_view(padded, extent, axis=(1, 2))
    return windows[:, ::down, ::across, :, ::dilation_h, ::dilation_w][:, : out[1], : out[2]]


def conv_2d(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes CONV_2D with im2col and one matrix product per group."""
    attrs, out = attributes(op, ConvAttrs), graph.tensors[op.outputs[0]].shape
    weights = _centre_filter(graph, op, inputs[1])
    channels, rows, columns, depth = weights.shape
    terms = depth * rows * columns
    dtype = _find_exact_float(op, inputs[0], terms)
    windows = _make_windows(centre(graph, op, 0, inputs[0]), attrs, (rows, columns), out, dtype)
    groups = inputs[0].shape[3] // depth
    share = channels // groups
    sums = np.empty((*out[:3], channels), dtype)
    for i in range(groups):
        patches = windows[:, :, :, i * depth : (i + 1) * depth].transpose(0, 1, 2, 4, 5, 3).reshape(-1, terms)
        matrix = weights[i * share : (i + 1) * share].reshape(share, terms).T.astype(dtype)
        sums[..., i * share : (i + 1) * share] = (patches @ matrix).reshape(*out[:3], share)
    return _finish(graph, op, sums, inputs)


def depthwise_conv_2d(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes DEPTHWISE_CONV_2D with one multiply-add per tap, over whole planes."""
    attrs, out = attributes(op, DepthwiseAttrs), graph.tensors[op.outputs[0]].shape
    exact, channels = np.int64 if inputs[0].dtype == _WIDE else np.int32, inputs[0].shape[3]
    weights = _centre_filter(graph, op, inputs[1])[0].astype(exact)
    rows, columns, _ = weights.shape
    windows = _make_windows(centre(graph, op, 0, inputs[0]), attrs, (rows, columns), out, exact)
    taps = weights.reshape(rows, columns, channels, -1)  # output channel = input channel * m + i
    sums = np.zeros((*out[:3], channels, taps.shape[3]), exact)
    for ky in range(rows):
        for kx in range(columns):
            sums += windows[..., ky, kx][..., None] * taps[ky, kx]
    return _finish(graph, op, sums.reshape(out), inputs)


def transpose_conv(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes TRANSPOSE_CONV. Every input pixel adds its products to the result before pads are cut off."""
    attrs = attributes(op, ConvAttrs)
    batch, height, width, channels = graph.tensors[op.outputs[0]].shape
    weights = _centre_filter(graph, op, inputs[1])
    kernel_h, kernel_w, depth = weights.shape[1:]
    x = centre(graph, op, 0, inputs[0])
    rows, columns = x.shape[1:3]
    (stride_h, stride_w), pad = attrs.stride, attrs.pad
    full_h = max((rows - 1) * stride_h + kernel_h, pad.top + height)
    full_w = max((columns - 1) * stride_w + kernel_w, pad.left + width)
    full = np.zeros((batch, full_h, full_w, channels), np.int64)
    dtype = _find_exact_float(op, inputs[0], depth)
    source = x.reshape(-1, depth).astype(dtype)
    for ky in range(kernel_h):
        for kx in range(kernel_w):
            products = (source @ weights[:, ky, kx].T.astype(dtype)).reshape(batch, rows, columns, channels)
            last = (ky + (rows - 1) * stride_h + 1, kx + (columns - 1) * stride_w + 1)
            full[:, ky : last[0] : stride_h, kx : last[1] : stride_w] += products.astype(np.int64)
    sums = full[:, pad.top : pad.top + height, pad.left : pad.left + width]
    return _finish(graph, op, sums, inputs)


def fully_connected(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes FULLY_CONNECTED. The input is reshaped to rows that are as long as the filter's rows."""
    weights = _centre_filter(graph, op, inputs[1])
    dtype = _find_exact_float(op, inputs[0], weights.shape[1])
    x = centre(graph, op, 0, inputs[0]).reshape(-1, weights.shape[1])
    total = _add_bias(x.astype(dtype) @ weights.T.astype(dtype), inputs)
    return [scale_sums(graph, op, total).reshape(graph.tensors[op.outputs[0]].shape)]


def scale_sums(graph: Graph, op: Op, total: Int64) -> Values:
    """Returns the outputs of a dense layer's sums with bias. The last dimension is the output channels.

    Unlike a convolution, it requantises in double precision, with one rounding.
    """
    return clip(graph, op, tensors.round_half_away_array(total * np.array(channel_scales(graph, op))))
