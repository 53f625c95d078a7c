"""Decodes and writes convolutions, dense layers, pools and resizes.

A .tflite file gives padding as SAME or VALID. The graph gives it in rows and columns.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.geometry import attributes, dilated_extent, is_cropped, same_pad, same_padding
from buildtool.graph.ops.types import option_table
from buildtool.graph.tflite.fileops import FileOp, Lowering, OptionValue
from buildtool.graph.tflite.flat import Accessor
from buildtool.graph.tflite.movement import add_pad
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import Activation, Attrs, DType, Op, OpKind, Pad, Quantization, Tensor

Pair = tuple[int, int]  # rows, columns


def _read_window(view: OpView, options: Accessor, size: Pair, kernel: Pair) -> dict[str, Any]:
    """Returns the stride, padding and activation of a window, and its dilation if the options have one."""
    padding, stride, dilation = options.Padding(), (int(options.StrideH()), int(options.StrideW())), (1, 1)
    fields: dict[str, Any] = {"stride": stride}
    if hasattr(options, "DilationHFactor"):
        dilation = (int(options.DilationHFactor()), int(options.DilationWFactor()))
        fields["dilation"] = dilation
    if padding not in (tflite.Padding.SAME, tflite.Padding.VALID):
        raise ModelError(f"padding {padding} must be SAME or VALID")
    if min(stride) < 1 or min(dilation) < 1 or min(kernel) < 1:
        sizes = f"stride {list(stride)}, dilation {list(dilation)}, kernel {list(kernel)}"
        raise ModelError(f"a window needs sizes of at least 1: {sizes}")
    if padding == tflite.Padding.SAME:
        fields["pad"] = same_pad(size, kernel, stride, dilation)
    return {**fields, "activation": view.activation(options)}


def _add_layer(view: OpView, kind: OpKind, attrs: Attrs, places: tuple[int, int, int] = (0, 1, 2)) -> None:
    """Adds an operator with weights. `places` are the positions of input, filter and bias in the file."""
    x, weights, bias = map(view.operand, places)
    view.emit(kind, (x, weights, _convert_bias(view, bias, x)), attrs)


def _convert_bias(view: OpView, index: int, x: int) -> int:
    """Gives the bias, tensor `index`, the shape (C,). Returns `index`.

    In the file, the shape may be (1, 1, 1, C), for example. For int16 activations, the bias becomes int64.
    The axis of its scales becomes 0. The file may name another axis, because LiteRT does not read it.
    """
    tensors = view.network.tensors
    if index >= 0 and (data := tensors[index].data) is not None:
        bias = tensors[index]
        if tensors[x].dtype is DType.INT16 and bias.dtype is DType.INT32:
            data = data.astype(np.int64)
            data.setflags(write=False)
            bias = replace(bias, dtype=DType.INT64)
        quant = bias.quant
        if quant is not None and len(quant.scales) == bias.elements:
            quant = replace(quant, axis=0)
        data = data.reshape(-1)
        tensors[index] = replace(bias, shape=data.shape, data=data, quant=quant)
    return index


def _check_bias_type(view: OpView, options: Accessor, x: int) -> None:
    """Raises UnsupportedError for a layer of int16, `x` being its input, that has biases of type int32.

    LiteRT scales the 32-bit sums of such a layer by multipliers of 31 bits, but 64-bit sums by 16 bits.
    """
    is_wide = view.network.tensors[view.operand(x)].dtype is DType.INT16
    if is_wide and options.QuantizedBiasType() == tflite.TensorType.INT32:
        view.refuse(
            "int16 with quantized_bias_type INT32", "convert with int64 biases, the converter's default"
        )


def decode_conv_2d(view: OpView) -> None:
    """Decodes CONV_2D. The filter has the layout OHWI."""
    options = view.options(tflite.Conv2DOptions)
    _check_bias_type(view, options, 0)
    _, h, w, _ = view.image_shape(0)
    _, kh, kw, _ = view.image_shape(1)
    _add_layer(view, OpKind.CONV_2D, g.ConvAttrs(**_read_window(view, options, (h, w), (kh, kw))))


def decode_depthwise_conv_2d(view: OpView) -> None:
    """Decodes DEPTHWISE_CONV_2D. The filter's shape gives the depth multiplier; the option may be 0."""
    options = view.options(tflite.DepthwiseConv2DOptions)
    _, h, w, cin = view.image_shape(0)
    _, kh, kw, cout = view.image_shape(1)
    multiplier = cout // cin
    if options.DepthMultiplier() not in (0, multiplier):
        text = f"depth multiplier {options.DepthMultiplier()} does not fit"
        raise ModelError(f"{text} {cin} input and {cout} output channels")
    attrs = g.DepthwiseAttrs(**_read_window(view, options, (h, w), (kh, kw)), depth_multiplier=multiplier)
    _add_layer(view, OpKind.DEPTHWISE_CONV_2D, attrs)


def decode_transpose_conv(view: OpView) -> None:
    """Decodes TRANSPOSE_CONV. The operands (output shape, filter, x, bias) become (x, filter, bias).

    The padding is that of the convolution in the other direction: from this output to this input.
    """
    options = view.options(tflite.TransposeConvOptions)
    _check_bias_type(view, options, 2)
    shape = view.ints(0)
    if len(shape) != 4 or shape != view.output.shape:
        raise ModelError(f"output shape {list(view.output.shape)}, the parameter says {list(shape)}")
    _, kh, kw, _ = view.image_shape(1)
    attrs = g.ConvAttrs(**_read_window(view, options, (shape[1], shape[2]), (kh, kw)))
    _add_layer(view, OpKind.TRANSPOSE_CONV, attrs, (2, 1, 3))


def decode_fully_connected(view: OpView) -> None:
    """Decodes FULLY_CONNECTED. The filter is OI. A RESHAPE flattens the input, as TFLite does itself."""
    options, network = view.options(tflite.FullyConnectedOptions), view.network
    if options.WeightsFormat() != tflite.FullyConnectedOptionsWeightsFormat.DEFAULT:
        view.refuse("shuffled weights", "re-export with the default weight format of the CPU")
    activation, keep = view.activation(options), bool(options.KeepNumDims())
    x, weights, bias = map(view.operand, range(3))
    if x < 0 or weights < 0 or len(view.op.outputs) != 1:
        raise ModelError("the input, the filter or the output is missing")
    bias, (out,) = _convert_bias(view, bias, x), view.outputs()
    source, result, shape = network.tensors[x], network.tensors[out], network.tensors[weights].shape
    if len(shape) != 2 or min(shape) < 1 or source.elements % shape[1]:
        raise ModelError(f"{source.elements} input elements do not fit a filter of {list(shape)}")
    batch, rows_fit = source.elements // shape[1], source.shape[-1:] == (shape[1],)
    keep = keep and rows_fit
    attrs, product = g.FullyConnectedAttrs(activation, keep), out
    if not keep:
        if not rows_fit or source.nhwc != (1, 1, batch, shape[1]):
            x = _add_flat(view, x, (batch, shape[1]))
            network.ops.append(Op(OpKind.RESHAPE, (view.operand(0),), (x,)))
        if result.elements != batch * shape[0]:
            raise ModelError(f"output shape {list(result.shape)}, expected {[batch, shape[0]]}")
        if result.shape != (batch, shape[0]):
            product = _add_flat(view, out, (batch, shape[0]))
    view.emit(OpKind.FULLY_CONNECTED, (x, weights, bias), attrs, (product,))
    if product != out:
        network.ops.append(Op(OpKind.RESHAPE, (product,), (out,)))


def _add_flat(view: OpView, index: int, shape: Pair) -> int:
    """Adds a tensor like `index` with another shape; returns its number."""
    old = view.network.tensors[index]
    return view.network.add(replace(old, name=f"{old.name}/flat", shape=shape, source=None, data=None))


def decode_pool(view: OpView) -> None:
    """Decodes AVERAGE_POOL_2D and MAX_POOL_2D."""
    options = view.options(tflite.Pool2DOptions)
    _, h, w, _ = view.image_shape(0)
    kernel = (int(options.FilterHeight()), int(options.FilterWidth()))
    view.emit_like_file(view.kind, g.PoolAttrs(kernel, **_read_window(view, options, (h, w), kernel)))


def decode_resize(view: OpView) -> None:
    """Decodes RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR."""
    options = view.op.options(getattr(tflite, option_table(view.kind)))
    size, attrs = view.ints(1), g.ResizeAttrs()
    if len(size) != 2 or size != view.output.shape[1:3]:
        raise ModelError(f"output shape {list(view.output.shape)}, the parameter says {list(size)}")
    if options is not None:
        attrs = g.ResizeAttrs(bool(options.AlignCorners()), bool(options.HalfPixelCenters()))
    if view.kind is OpKind.RESIZE_BILINEAR and attrs.align_corners and attrs.half_pixel_centers:
        raise ModelError("align_corners and half_pixel_centers cannot both be set")
    view.emit_like_file(view.kind, attrs)


# ---- into a file -------------------------------------------------------------------------------


def _present_inputs(op: Op) -> tuple[int, ...]:
    """Returns the inputs. Omits the last one, the bias, if the operator has none."""
    return op.inputs[:-1] if op.inputs[-1] < 0 else op.inputs


def _find_size(tensor: Tensor) -> Pair:
    """Returns the rows and columns of an NHWC tensor or of a filter."""
    return tensor.shape[1], tensor.shape[2]


def _window_options(
    attrs: g.ConvAttrs | g.PoolAttrs, source: Tensor, out: Tensor, kernel: Pair, **more: OptionValue
) -> dict[str, OptionValue]:
    """Returns a window's option fields. Padding is -1 if it is neither VALID nor SAME.

    `kernel` includes the dilation. `more` holds other fields, which follow the stride.
    """
    before, outputs, size = (attrs.pad.top, attrs.pad.left), _find_size(out), _find_size(source)
    windows = list(zip(size, kernel, attrs.stride, strict=True))
    mode = -1
    if before == (0, 0) and outputs == tuple((n - k) // s + 1 for n, k, s in windows):
        mode = int(tflite.Padding.VALID)
    elif [same_padding(*window)[:2] for window in windows] == list(zip(outputs, before, strict=True)):
        mode = int(tflite.Padding.SAME)
    stride: dict[str, OptionValue] = {"StrideH": attrs.stride[0], "StrideW": attrs.stride[1]}
    return {"Padding": mode, **stride, **more, "FusedActivationFunction": attrs.activation}


def _pad_input(low: Lowering, op: Op, pad: Pad, value: int | None = None) -> int:
    """Adds a PAD before an operator. Returns the padded tensor.

    It pads with `value`, or with the zero point.
    """
    source = low.graph.tensors[op.inputs[0]]
    paddings = [[0, 0], [pad.top, pad.bottom], [pad.left, pad.right], [0, 0]]
    shape = tuple(n + sum(p) for n, p in zip(source.shape, paddings, strict=True))
    padded_input = low.tensor(op, "padded", shape, source)
    low.ops.append(add_pad(low, op, paddings, value, padded_input))
    return padded_input


def _least(dtype: DType) -> int:
    """Returns the least value of a type, for float32 the bits of the least finite number."""
    if dtype is DType.FLOAT32:
        return int(np.finfo(np.float32).min.view(np.int32))
    return int(np.iinfo(dtype.value).min)


def write_convolution(low: Lowering, op: Op) -> FileOp:
    """Writes CONV_2D and DEPTHWISE_CONV_2D."""
    attrs, tensors = attributes(op, g.ConvAttrs), low.graph.tensors
    source, weights, out = tensors[op.inputs[0]], tensors[op.inputs[1]], tensors[op.outputs[0]]
    rows, columns = map(dilated_extent, _find_size(weights), attrs.dilation)
    down, across = attrs.dilation
    options = _window_options(
        attrs, source, out, (rows, columns), DilationHFactor=down, DilationWFactor=across
    )
    inputs = _present_inputs(op)
    if options["Padding"] == -1:
        if is_cropped(attrs):
            raise UnsupportedError("in .tflite, a convolution has no negative padding", operator=op.place)
        options["Padding"] = int(tflite.Padding.VALID)
        inputs = (_pad_input(low, op, attrs.pad), *inputs[1:])
    if isinstance(attrs, g.DepthwiseAttrs):
        options["DepthMultiplier"] = attrs.depth_multiplier
        return FileOp("DEPTHWISE_CONV_2D", 3, inputs, op.outputs, "DepthwiseConv2DOptions", options)
    if len(inputs) == 2 and source.dtype is not DType.FLOAT32:  # a quantised CONV_2D must have a bias: zeros
        quant, zeros = None, np.zeros(weights.shape[0], np.int64 if source.dtype is DType.INT16 else np.int32)
        if source.quant is not None and weights.quant is not None:
            factor = np.float32(source.quant.scale)
            scales = tuple(float(factor * np.float32(scale)) for scale in weights.quant.scales)
            quant = Quantization(scales, (0,) * len(scales))
        inputs = (*inputs, low.add(op, "bias", zeros, quant))
    version = 3 if weights.shape[3] == source.shape[3] else 6  # 6: groups of input channels
    return FileOp("CONV_2D", version, inputs, op.outputs, "Conv2DOptions", options)


def write_transpose_convolution(low: Lowering, op: Op) -> FileOp:
    """Writes TRANSPOSE_CONV. Its first input in the file is the shape of the output."""
    attrs, tensors = attributes(op, g.ConvAttrs), low.graph.tensors
    source, weights, out = tensors[op.inputs[0]], tensors[op.inputs[1]], tensors[op.outputs[0]]
    # The padding is that of the convolution from this output to this input.
    options = _window_options(attrs, out, source, _find_size(weights))
    if options["Padding"] == -1 or attrs.dilation != (1, 1):
        text = "in .tflite, TRANSPOSE_CONV has SAME or VALID padding and no dilation"
        raise UnsupportedError(text, operator=op.place)
    x, *parameters = _present_inputs(op)
    shape = low.parameter(op, "output_shape", out.shape)
    version = 4 if attrs.activation is not Activation.NONE else 1 + len(parameters)  # 3: a bias
    inputs = (shape, parameters[0], x, *parameters[1:])
    return FileOp("TRANSPOSE_CONV", version, inputs, op.outputs, "TransposeConvOptions", options)


def write_fully_connected(low: Lowering, op: Op) -> FileOp:
    """Writes FULLY_CONNECTED."""
    attrs, inputs = attributes(op, g.FullyConnectedAttrs), _present_inputs(op)
    quant = low.graph.tensors[op.inputs[1]].quant
    version = 6 if len(inputs) == 2 else 5 if attrs.keep_num_dims else 4
    if quant is not None and len(quant.scales) > 1:
        version = 12
    op, keep = replace(op, inputs=inputs), attrs.keep_num_dims
    return low.file_op(op, version, FusedActivationFunction=attrs.activation, KeepNumDims=keep)


def write_pool(low: Lowering, op: Op) -> FileOp:
    """Writes AVERAGE_POOL_2D and MAX_POOL_2D.

    A PADV2 precedes a MAX_POOL_2D whose padding is neither VALID nor SAME, and a pool with a folded PAD.
    """
    attrs, tensors, inputs = attributes(op, g.PoolAttrs), low.graph.tensors, op.inputs
    source, out, kernel = tensors[op.inputs[0]], tensors[op.outputs[0]], attrs.kernel
    options = _window_options(attrs, source, out, kernel, FilterHeight=kernel[0], FilterWidth=kernel[1])
    if isinstance(attrs, g.FilledPoolAttrs):
        options["Padding"] = int(tflite.Padding.VALID)
        inputs = (_pad_input(low, op, attrs.pad, attrs.value),)
    elif options["Padding"] == -1:
        if op.kind is not OpKind.MAX_POOL_2D:
            raise UnsupportedError("in .tflite, an average pool has SAME or VALID padding", operator=op.place)
        options["Padding"] = int(tflite.Padding.VALID)
        inputs = (_pad_input(low, op, attrs.pad, _least(source.dtype)),)
    return FileOp(op.kind, 2, inputs, op.outputs, "Pool2DOptions", options)


def write_resize(low: Lowering, op: Op) -> FileOp:
    """Writes RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR. The output size is a tensor in the file."""
    attrs = attributes(op, g.ResizeAttrs)
    size = low.parameter(op, "size", _find_size(low.graph.tensors[op.outputs[0]]))
    corners, centers = attrs.align_corners, attrs.half_pixel_centers
    version = 3 if centers or corners else 2
    return low.file_op(op, version, size, AlignCorners=corners, HalfPixelCenters=centers)
