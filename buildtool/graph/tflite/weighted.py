"""Operators with weights and windows, from a file and into one: convolutions, dense layers, pools, resizing.

TFLite pads as SAME or VALID; in the graph all padding is explicit.
"""

from __future__ import annotations

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.geometry import dilated, same_padding
from buildtool.graph.tflite.fileops import ACTIVATIONS, FileOp, Lowering, OptionValue
from buildtool.graph.tflite.opview import Decoded, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import (
    ConvAttrs,
    DepthwiseAttrs,
    FullyConnectedAttrs,
    OpKind,
    Pad,
    PoolAttrs,
    ResizeAttrs,
)


def _explicit_pad(
    padding: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int] = (1, 1),
) -> Pad:
    """Padding of a window over `size` (rows, columns); an odd row or column goes to the bottom, right."""
    if padding not in (tflite.Padding.SAME, tflite.Padding.VALID):
        raise ModelError(f"padding {padding} is neither SAME nor VALID")
    if min(stride) < 1 or min(dilation) < 1 or min(kernel) < 1:
        raise ModelError(f"stride {list(stride)}, dilation {list(dilation)} or kernel {list(kernel)} below 1")
    if padding == tflite.Padding.VALID:
        return Pad()
    (_, *rows), (_, *columns) = map(same_padding, size, map(dilated, kernel, dilation), stride)
    return Pad(*rows, *columns)


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
        pad=_explicit_pad(options.Padding(), (h, w), (kh, kw), stride, dilation),
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
        pad=_explicit_pad(options.Padding(), (h, w), (kh, kw), stride, dilation),
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
        pad=_explicit_pad(options.Padding(), (wanted[1], wanted[2]), (kh, kw), stride),
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


def pool(view: OpView) -> Decoded:
    """AVERAGE_POOL_2D and MAX_POOL_2D."""
    options = view.options(tflite.Pool2DOptions)
    _, h, w, _ = view.image(0)
    kernel = (int(options.FilterHeight()), int(options.FilterWidth()))
    stride = (int(options.StrideH()), int(options.StrideW()))
    attrs = PoolAttrs(
        kernel=kernel,
        stride=stride,
        pad=_explicit_pad(options.Padding(), (h, w), kernel, stride),
        activation=view.activation(options.FusedActivationFunction()),
    )
    return view.decoded(OpKind(view.op.name), attrs)


def resize(view: OpView) -> Decoded:
    """RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR."""
    nearest = view.op.name == OpKind.RESIZE_NEAREST_NEIGHBOR
    table = tflite.ResizeNearestNeighborOptions if nearest else tflite.ResizeBilinearOptions
    options, size, attrs = view.optional_options(table), view.ints(1), ResizeAttrs()
    if len(size) != 2 or size != view.output.shape[1:3]:
        raise ModelError(f"output shape {list(view.output.shape)}, the parameter says {list(size)}")
    if options is not None:
        attrs = ResizeAttrs(bool(options.AlignCorners()), bool(options.HalfPixelCenters()))
    if not nearest and attrs.align_corners and attrs.half_pixel_centers:
        raise ModelError("align_corners and half_pixel_centers exclude each other")
    return view.decoded(OpKind(view.op.name), attrs)


# ---- into a file -------------------------------------------------------------------------------


def _weights(op: g.Op) -> tuple[int, ...]:
    """The inputs without an absent last operand (a bias)."""
    return op.inputs[:-1] if op.inputs[-1] < 0 else op.inputs


def _padding_mode(
    before: tuple[int, int],
    out: tuple[int, int],
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
) -> int | None:
    """VALID or SAME if it means the explicit padding, else None; pairs are (rows, columns)."""
    valid = tuple((n - k) // s + 1 for n, k, s in zip(size, kernel, stride, strict=True))
    if before == (0, 0) and out == valid:
        return int(tflite.Padding.VALID)
    same = [same_padding(n, k, s)[:2] for n, k, s in zip(size, kernel, stride, strict=True)]
    if same == list(zip(out, before, strict=True)):
        return int(tflite.Padding.SAME)
    return None


def _rows_columns(tensor: g.Tensor) -> tuple[int, int]:
    """Rows and columns of an NHWC tensor, or of a filter."""
    return tensor.shape[1], tensor.shape[2]


def _padded_input(low: Lowering, op: g.Op, pad: Pad, *, least: bool = False) -> int:
    """Puts a PAD before an operator whose padding is neither SAME nor VALID; `least`: not of zero points."""
    source = low.graph.tensors[op.inputs[0]]
    paddings = [[0, 0], [pad.top, pad.bottom], [pad.left, pad.right], [0, 0]]
    shape = tuple(n + sum(p) for n, p in zip(source.shape, paddings, strict=True))
    role = f"{low.graph.tensors[op.outputs[0]].name}/padded"
    low.tensors.append(g.Tensor(role, shape, source.dtype, source.quant))
    padded = len(low.tensors) - 1
    operand = low.parameter(op, "paddings", paddings)
    if least:
        filling = np.array([np.iinfo(source.dtype.value).min], source.dtype.value)
        value = low.add(op, "padding_value", filling, source.dtype, source.quant)
        low.ops.append(FileOp("PADV2", 2, (op.inputs[0], operand, value), (padded,), "PadV2Options"))
    else:
        low.ops.append(FileOp("PAD", 2, (op.inputs[0], operand), (padded,), "PadOptions"))
    return padded


def write_convolution(low: Lowering, op: g.Op) -> FileOp:
    """CONV_2D and DEPTHWISE_CONV_2D."""
    attrs = op.attrs
    assert isinstance(attrs, ConvAttrs)
    tensors = low.graph.tensors
    source, weights, out = tensors[op.inputs[0]], tensors[op.inputs[1]], tensors[op.outputs[0]]
    rows, columns = map(dilated, _rows_columns(weights), attrs.dilation)
    before = (attrs.pad.top, attrs.pad.left)
    mode = _padding_mode(before, _rows_columns(out), _rows_columns(source), (rows, columns), attrs.stride)
    inputs = _weights(op)
    if mode is None:
        mode = tflite.Padding.VALID
        inputs = (_padded_input(low, op, attrs.pad), *inputs[1:])
    options: dict[str, OptionValue] = {
        "Padding": mode,
        "StrideH": attrs.stride[0],
        "StrideW": attrs.stride[1],
        "DilationHFactor": attrs.dilation[0],
        "DilationWFactor": attrs.dilation[1],
        "FusedActivationFunction": ACTIVATIONS[attrs.activation],
    }
    if isinstance(attrs, DepthwiseAttrs):
        options["DepthMultiplier"] = attrs.depth_multiplier
        return FileOp("DEPTHWISE_CONV_2D", 3, inputs, op.outputs, "DepthwiseConv2DOptions", options)
    if len(inputs) == 2:  # unlike the other kinds, a quantised CONV_2D must have a bias
        inputs = (*inputs, _zero_bias(low, op, source, weights))
    version = 3 if weights.shape[3] == source.shape[3] else 6  # 6: groups of input channels
    return FileOp("CONV_2D", version, inputs, op.outputs, "Conv2DOptions", options)


def _zero_bias(low: Lowering, op: g.Op, source: g.Tensor, weights: g.Tensor) -> int:
    """A bias of zeros, quantised as the products are; its index."""
    quant = None
    if source.quant is not None and weights.quant is not None:
        factor = np.float32(source.quant.scale)
        scales = tuple(float(factor * np.float32(scale)) for scale in weights.quant.scales)
        quant = g.Quantization(scales, (0,) * len(scales))
    dtype = g.DType.INT64 if source.dtype is g.DType.INT16 else g.DType.INT32
    return low.add(op, "bias", np.zeros(weights.shape[0], dtype.value), dtype, quant)


def write_transpose_convolution(low: Lowering, op: g.Op) -> FileOp:
    """TRANSPOSE_CONV; the output's shape comes first of the inputs."""
    attrs = op.attrs
    assert isinstance(attrs, ConvAttrs)
    tensors = low.graph.tensors
    source, weights, out = tensors[op.inputs[0]], tensors[op.inputs[1]], tensors[op.outputs[0]]
    # Its padding is that of the convolution from its output to its input.
    before = (attrs.pad.top, attrs.pad.left)
    mode = _padding_mode(
        before, _rows_columns(source), _rows_columns(out), _rows_columns(weights), attrs.stride
    )
    if mode is None or attrs.dilation != (1, 1):
        raise UnsupportedError(
            "a .tflite TRANSPOSE_CONV pads as SAME or VALID and does not dilate", operator=op.place
        )
    options: dict[str, OptionValue] = {
        "Padding": mode,
        "StrideH": attrs.stride[0],
        "StrideW": attrs.stride[1],
        "FusedActivationFunction": ACTIVATIONS[attrs.activation],
    }
    x, *parameters = _weights(op)
    shape = low.parameter(op, "output_shape", out.shape)
    version = 2 if len(parameters) == 1 else 3  # 3: a bias
    if attrs.activation is not g.Activation.NONE:
        version = 4
    inputs = (shape, parameters[0], x, *parameters[1:])
    return FileOp("TRANSPOSE_CONV", version, inputs, op.outputs, "TransposeConvOptions", options)


def write_fully_connected(low: Lowering, op: g.Op) -> FileOp:
    """FULLY_CONNECTED."""
    attrs = op.attrs
    assert isinstance(attrs, FullyConnectedAttrs)
    options: dict[str, OptionValue] = {
        "FusedActivationFunction": ACTIVATIONS[attrs.activation],
        "KeepNumDims": attrs.keep_num_dims,
    }
    inputs = _weights(op)
    quant = low.graph.tensors[op.inputs[1]].quant
    version = 4
    if attrs.keep_num_dims:
        version = 5
    if len(inputs) == 2:
        version = 6
    if quant is not None and len(quant.scales) > 1:
        version = 12
    return FileOp("FULLY_CONNECTED", version, inputs, op.outputs, "FullyConnectedOptions", options)


def write_pool(low: Lowering, op: g.Op) -> FileOp:
    """AVERAGE_POOL_2D and MAX_POOL_2D; a maximum padded in its own way gets a PADV2 of least values."""
    attrs = op.attrs
    assert isinstance(attrs, PoolAttrs)
    tensors = low.graph.tensors
    out, size = _rows_columns(tensors[op.outputs[0]]), _rows_columns(tensors[op.inputs[0]])
    mode = _padding_mode((attrs.pad.top, attrs.pad.left), out, size, attrs.kernel, attrs.stride)
    inputs = op.inputs
    if mode is None and op.kind is OpKind.MAX_POOL_2D:
        mode, inputs = tflite.Padding.VALID, (_padded_input(low, op, attrs.pad, least=True),)
    if mode is None:
        raise UnsupportedError("a .tflite average pool pads as SAME or VALID", operator=op.place)
    options: dict[str, OptionValue] = {
        "Padding": mode,
        "StrideH": attrs.stride[0],
        "StrideW": attrs.stride[1],
        "FilterHeight": attrs.kernel[0],
        "FilterWidth": attrs.kernel[1],
        "FusedActivationFunction": ACTIVATIONS[attrs.activation],
    }
    return FileOp(op.kind, 2, inputs, op.outputs, "Pool2DOptions", options)


def write_resize(low: Lowering, op: g.Op) -> FileOp:
    """RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR; the size is a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, ResizeAttrs)
    size = low.parameter(op, "size", _rows_columns(low.graph.tensors[op.outputs[0]]))
    options: dict[str, OptionValue] = {
        "AlignCorners": attrs.align_corners,
        "HalfPixelCenters": attrs.half_pixel_centers,
    }
    nearest = op.kind is OpKind.RESIZE_NEAREST_NEIGHBOR
    table = "ResizeNearestNeighborOptions" if nearest else "ResizeBilinearOptions"
    version = 3 if attrs.half_pixel_centers or attrs.align_corners else 2
    return FileOp(op.kind, version, (*op.inputs, size), op.outputs, table, options)
