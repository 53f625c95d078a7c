"""Decodes operators with weights and windows: convolutions, dense layers, pools."""

from __future__ import annotations

from buildtool.base.errors import ModelError
from buildtool.graph.tflite.opview import Decoded, OpView
from buildtool.graph.tflite.padding import explicit_pad
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import ConvAttrs, DepthwiseAttrs, FullyConnectedAttrs, OpKind, PoolAttrs


def conv_2d(view: OpView) -> Decoded:
    """CONV_2D; filter OHWI."""
    options = view.options(tflite.Conv2DOptions)
    _, h, w, _ = view.image(0)
    _, kh, kw, _ = view.image(1)
    stride = (int(options.StrideH()), int(options.StrideW()))
    dilation = (int(options.DilationHFactor()), int(options.DilationWFactor()))
    attrs = ConvAttrs(
        stride=stride,
        dilation=dilation,
        pad=explicit_pad(options.Padding(), (h, w), (kh, kw), stride, dilation),
        activation=view.activation(options.FusedActivationFunction()),
    )
    return view.decoded(OpKind.CONV_2D, attrs, 3)


def depthwise_conv_2d(view: OpView) -> Decoded:
    """DEPTHWISE_CONV_2D; the multiplier follows from the filter's shape, the option may be 0."""
    options = view.options(tflite.DepthwiseConv2DOptions)
    _, h, w, cin = view.image(0)
    _, kh, kw, cout = view.image(1)
    multiplier = cout // cin
    if options.DepthMultiplier() not in (0, multiplier):
        raise ModelError(f"depth multiplier {options.DepthMultiplier()} for {cin} to {cout} channels")
    stride = (int(options.StrideH()), int(options.StrideW()))
    dilation = (int(options.DilationHFactor()), int(options.DilationWFactor()))
    attrs = DepthwiseAttrs(
        stride=stride,
        dilation=dilation,
        pad=explicit_pad(options.Padding(), (h, w), (kh, kw), stride, dilation),
        activation=view.activation(options.FusedActivationFunction()),
        depth_multiplier=multiplier,
    )
    return view.decoded(OpKind.DEPTHWISE_CONV_2D, attrs, 3)


def transpose_conv(view: OpView) -> Decoded:
    """TRANSPOSE_CONV (output shape, filter, x, bias) as (x, filter, bias).

    The padding is that of the convolution it transposes, whose input has this one's output size.
    """
    options = view.options(tflite.TransposeConvOptions)
    wanted = view.ints(0)
    if len(wanted) != 4 or wanted != view.output.shape:
        raise ModelError(f"output shape {list(view.output.shape)}, the parameter says {list(wanted)}")
    _, kh, kw, _ = view.image(1)
    stride = (int(options.StrideH()), int(options.StrideW()))
    attrs = ConvAttrs(
        stride=stride,
        pad=explicit_pad(options.Padding(), (wanted[1], wanted[2]), (kh, kw), stride),
        activation=view.activation(options.FusedActivationFunction()),
    )
    _, filter_index, x, bias = view.data(4)
    return Decoded(OpKind.TRANSPOSE_CONV, (x, filter_index, bias), view.op.outputs, attrs)


def fully_connected(view: OpView) -> Decoded:
    """FULLY_CONNECTED; filter OI."""
    options = view.options(tflite.FullyConnectedOptions)
    if options.WeightsFormat() != tflite.FullyConnectedOptionsWeightsFormat.DEFAULT:
        view.refuse("shuffled weights", "re-export for the CPU's default weight format")
    attrs = FullyConnectedAttrs(
        activation=view.activation(options.FusedActivationFunction()),
        keep_num_dims=bool(options.KeepNumDims()),
    )
    return view.decoded(OpKind.FULLY_CONNECTED, attrs, 3)


def _pool(view: OpView, kind: OpKind) -> Decoded:
    options = view.options(tflite.Pool2DOptions)
    _, h, w, _ = view.image(0)
    kernel = (int(options.FilterHeight()), int(options.FilterWidth()))
    stride = (int(options.StrideH()), int(options.StrideW()))
    attrs = PoolAttrs(
        kernel=kernel,
        stride=stride,
        pad=explicit_pad(options.Padding(), (h, w), kernel, stride),
        activation=view.activation(options.FusedActivationFunction()),
    )
    return view.decoded(kind, attrs)


def average_pool_2d(view: OpView) -> Decoded:
    """AVERAGE_POOL_2D."""
    return _pool(view, OpKind.AVERAGE_POOL_2D)


def max_pool_2d(view: OpView) -> Decoded:
    """MAX_POOL_2D."""
    return _pool(view, OpKind.MAX_POOL_2D)
