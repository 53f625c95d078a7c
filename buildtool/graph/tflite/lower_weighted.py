"""Convolutions, dense layers and pools for a .tflite file; explicit padding becomes SAME or VALID."""

from __future__ import annotations

import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.geometry import same_padding
from buildtool.graph.tflite.fileops import ACTIVATIONS, FileOp, Lowering, OptionValue

_SAME, _VALID = 0, 1  # the schema's Padding


def _weights(op: g.Op) -> tuple[int, ...]:
    """The inputs without an absent last operand (a bias)."""
    return op.inputs[:-1] if op.inputs[-1] < 0 else op.inputs


# ---- padding -----------------------------------------------------------------------------------


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
        return _VALID
    same = [same_padding(n, k, s)[:2] for n, k, s in zip(size, kernel, stride, strict=True)]
    if same == list(zip(out, before, strict=True)):
        return _SAME
    return None


def _dilated(kernel: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int]:
    return (kernel[0] - 1) * dilation[0] + 1, (kernel[1] - 1) * dilation[1] + 1


def rows_columns(tensor: g.Tensor) -> tuple[int, int]:
    """Rows and columns of an NHWC tensor, or of a filter."""
    return tensor.shape[1], tensor.shape[2]


def _padded_input(low: Lowering, op: g.Op, pad: g.Pad, *, least: bool = False) -> int:
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


# ---- convolutions ------------------------------------------------------------------------------


def convolution(low: Lowering, op: g.Op) -> FileOp:
    """CONV_2D and DEPTHWISE_CONV_2D."""
    attrs = op.attrs
    assert isinstance(attrs, g.ConvAttrs)
    tensors = low.graph.tensors
    source, weights, out = tensors[op.inputs[0]], tensors[op.inputs[1]], tensors[op.outputs[0]]
    kernel = _dilated(rows_columns(weights), attrs.dilation)
    before = (attrs.pad.top, attrs.pad.left)
    mode = _padding_mode(before, rows_columns(out), rows_columns(source), kernel, attrs.stride)
    inputs = _weights(op)
    if mode is None:
        mode = _VALID
        inputs = (_padded_input(low, op, attrs.pad), *inputs[1:])
    options: dict[str, OptionValue] = {
        "Padding": mode,
        "StrideH": attrs.stride[0],
        "StrideW": attrs.stride[1],
        "DilationHFactor": attrs.dilation[0],
        "DilationWFactor": attrs.dilation[1],
        "FusedActivationFunction": ACTIVATIONS[attrs.activation],
    }
    if isinstance(attrs, g.DepthwiseAttrs):
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


def transpose_convolution(low: Lowering, op: g.Op) -> FileOp:
    """TRANSPOSE_CONV; the output's shape comes first of the inputs."""
    attrs = op.attrs
    assert isinstance(attrs, g.ConvAttrs)
    tensors = low.graph.tensors
    source, weights, out = tensors[op.inputs[0]], tensors[op.inputs[1]], tensors[op.outputs[0]]
    # Its padding is that of the convolution from its output to its input.
    before = (attrs.pad.top, attrs.pad.left)
    mode = _padding_mode(before, rows_columns(source), rows_columns(out), rows_columns(weights), attrs.stride)
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


def fully_connected(low: Lowering, op: g.Op) -> FileOp:
    """FULLY_CONNECTED."""
    attrs = op.attrs
    assert isinstance(attrs, g.FullyConnectedAttrs)
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


def pool(low: Lowering, op: g.Op) -> FileOp:
    """AVERAGE_POOL_2D and MAX_POOL_2D; a maximum padded in its own way gets a PADV2 of least values."""
    attrs = op.attrs
    assert isinstance(attrs, g.PoolAttrs)
    tensors = low.graph.tensors
    out, size = rows_columns(tensors[op.outputs[0]]), rows_columns(tensors[op.inputs[0]])
    mode = _padding_mode((attrs.pad.top, attrs.pad.left), out, size, attrs.kernel, attrs.stride)
    inputs = op.inputs
    if mode is None and op.kind is g.OpKind.MAX_POOL_2D:
        mode, inputs = _VALID, (_padded_input(low, op, attrs.pad, least=True),)
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
