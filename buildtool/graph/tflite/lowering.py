"""Operators as a .tflite file holds them: parameter tensors, option tables, versions, padding modes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from buildtool.errors import UnsupportedError
from buildtool.graph import types as g

# A field of an option table: a scalar, or a vector of 32-bit integers.
OptionValue = int | float | bool | tuple[int, ...]

_SAME, _VALID = 0, 1  # the schema's Padding
_ACTIVATIONS = {
    g.Activation.NONE: 0,
    g.Activation.RELU: 1,
    g.Activation.RELU_N1_TO_1: 2,
    g.Activation.RELU6: 3,
}


@dataclass(frozen=True)
class FileOp:
    """An operator of the file; `options` are the fields of its `table`, those with defaults left out."""

    builtin: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: str = ""
    options: Mapping[str, OptionValue] = field(default_factory=dict)


@dataclass
class Lowering:
    """A graph on its way to a file: its tensors keep their indices, new ones follow."""

    graph: g.Graph
    tensors: list[g.Tensor]
    ops: list[FileOp]

    def parameter(self, op: g.Op, role: str, values: npt.ArrayLike) -> int:
        """A new int32 constant; its index."""
        data = np.asarray(values, np.int32)
        return self.add(op, role, data, g.DType.INT32, None)

    def add(
        self,
        op: g.Op,
        role: str,
        data: npt.NDArray[np.generic],
        dtype: g.DType,
        quant: g.Quantization | None,
    ) -> int:
        """A new constant named after the operator's output and its role; its index."""
        name = f"{self.graph.tensors[op.outputs[0]].name}/{role}"
        self.tensors.append(g.Tensor(name, data.shape, dtype, quant, data))
        return len(self.tensors) - 1


def lower(graph: g.Graph) -> Lowering:
    """All operators as the file has them; UnsupportedError for what .tflite cannot express."""
    low = Lowering(graph, list(graph.tensors), [])
    for op in graph.ops:
        low.ops.append(_RULES[op.kind](low, op))
    return low


def _weights(op: g.Op) -> tuple[int, ...]:
    """The inputs without an absent last operand (a bias)."""
    return op.inputs[:-1] if op.inputs[-1] < 0 else op.inputs


# ---- padding -----------------------------------------------------------------------------------


def _same_before(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """(output size, padding before) of SAME; `kernel` is dilated."""
    out = -(-size // stride)
    return out, max((out - 1) * stride + kernel - size, 0) // 2


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
    same = [_same_before(n, k, s) for n, k, s in zip(size, kernel, stride, strict=True)]
    if all(same[i] == (out[i], before[i]) for i in range(2)):
        return _SAME
    return None


def _dilated(kernel: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int]:
    return (kernel[0] - 1) * dilation[0] + 1, (kernel[1] - 1) * dilation[1] + 1


def _rows_columns(tensor: g.Tensor) -> tuple[int, int]:
    return tensor.shape[1], tensor.shape[2]


def _padded_input(low: Lowering, op: g.Op, attrs: g.ConvAttrs) -> int:
    """Puts a PAD operator before a convolution whose padding is neither SAME nor VALID."""
    source = low.graph.tensors[op.inputs[0]]
    pad = attrs.pad
    paddings = [[0, 0], [pad.top, pad.bottom], [pad.left, pad.right], [0, 0]]
    shape = tuple(n + sum(p) for n, p in zip(source.shape, paddings, strict=True))
    role = f"{low.graph.tensors[op.outputs[0]].name}/padded"
    low.tensors.append(g.Tensor(role, shape, source.dtype, source.quant))
    padded = len(low.tensors) - 1
    operand = low.parameter(op, "paddings", paddings)
    low.ops.append(FileOp("PAD", 2, (op.inputs[0], operand), (padded,), "PadOptions"))
    return padded


# ---- convolutions ------------------------------------------------------------------------------


def _convolution(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.ConvAttrs)
    tensors = low.graph.tensors
    source, weights, out = tensors[op.inputs[0]], tensors[op.inputs[1]], tensors[op.outputs[0]]
    kernel = _dilated(_rows_columns(weights), attrs.dilation)
    before = (attrs.pad.top, attrs.pad.left)
    mode = _padding_mode(before, _rows_columns(out), _rows_columns(source), kernel, attrs.stride)
    inputs = _weights(op)
    if mode is None:
        mode = _VALID
        inputs = (_padded_input(low, op, attrs), *inputs[1:])
    options: dict[str, OptionValue] = {
        "Padding": mode,
        "StrideH": attrs.stride[0],
        "StrideW": attrs.stride[1],
        "DilationHFactor": attrs.dilation[0],
        "DilationWFactor": attrs.dilation[1],
        "FusedActivationFunction": _ACTIVATIONS[attrs.activation],
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
    return low.add(op, "bias", np.zeros(weights.shape[0], np.int32), g.DType.INT32, quant)


def _transpose_convolution(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.ConvAttrs)
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
        "FusedActivationFunction": _ACTIVATIONS[attrs.activation],
    }
    x, *parameters = _weights(op)
    shape = low.parameter(op, "output_shape", out.shape)
    version = 2 if len(parameters) == 1 else 3  # 3: a bias
    if attrs.activation is not g.Activation.NONE:
        version = 4
    inputs = (shape, parameters[0], x, *parameters[1:])
    return FileOp("TRANSPOSE_CONV", version, inputs, op.outputs, "TransposeConvOptions", options)


def _fully_connected(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.FullyConnectedAttrs)
    options: dict[str, OptionValue] = {
        "FusedActivationFunction": _ACTIVATIONS[attrs.activation],
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


def _pool(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.PoolAttrs)
    tensors = low.graph.tensors
    out, size = _rows_columns(tensors[op.outputs[0]]), _rows_columns(tensors[op.inputs[0]])
    mode = _padding_mode((attrs.pad.top, attrs.pad.left), out, size, attrs.kernel, attrs.stride)
    if mode is None:
        raise UnsupportedError("a .tflite pooling pads as SAME or VALID", operator=op.place)
    options: dict[str, OptionValue] = {
        "Padding": mode,
        "StrideH": attrs.stride[0],
        "StrideW": attrs.stride[1],
        "FilterHeight": attrs.kernel[0],
        "FilterWidth": attrs.kernel[1],
        "FusedActivationFunction": _ACTIVATIONS[attrs.activation],
    }
    return FileOp(op.kind, 2, op.inputs, op.outputs, "Pool2DOptions", options)


# ---- elementwise and padding ---------------------------------------------------------------------


def _elementwise(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.ElementwiseAttrs)
    options: dict[str, OptionValue] = {"FusedActivationFunction": _ACTIVATIONS[attrs.activation]}
    table = {g.OpKind.ADD: "AddOptions", g.OpKind.SUB: "SubOptions", g.OpKind.MUL: "MulOptions"}[op.kind]
    return FileOp(op.kind, 2, op.inputs, op.outputs, table, options)


def _pad(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.PadAttrs)
    operand = low.parameter(op, "paddings", attrs.paddings)
    if attrs.mode is not g.PadMode.CONSTANT:
        mode = 0 if attrs.mode is g.PadMode.REFLECT else 1
        inputs = (*op.inputs, operand)
        return FileOp("MIRROR_PAD", 2, inputs, op.outputs, "MirrorPadOptions", {"Mode": mode})
    source = low.graph.tensors[op.inputs[0]]
    if source.quant is None or attrs.value == source.quant.zero_point:
        return FileOp("PAD", 2, (*op.inputs, operand), op.outputs, "PadOptions")
    data = np.array([attrs.value], source.dtype.value)
    value = low.add(op, "padding_value", data, source.dtype, source.quant)
    return FileOp("PADV2", 2, (*op.inputs, operand, value), op.outputs, "PadV2Options")


def _leaky_relu(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.LeakyReluAttrs)
    return FileOp("LEAKY_RELU", 2, op.inputs, op.outputs, "LeakyReluOptions", {"Alpha": attrs.alpha})


def _softmax(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.SoftmaxAttrs)
    return FileOp("SOFTMAX", 2, op.inputs, op.outputs, "SoftmaxOptions", {"Beta": attrs.beta})


def _plain(version: int, table: str = "") -> Callable[[Lowering, g.Op], FileOp]:
    """The rule of operators without parameters."""
    return lambda low, op: FileOp(op.kind, version, op.inputs, op.outputs, table)


# ---- shapes --------------------------------------------------------------------------------------


def _mean(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.MeanAttrs)
    axes = low.parameter(op, "axes", attrs.axes)
    options: dict[str, OptionValue] = {"KeepDims": attrs.keep_dims}
    return FileOp("MEAN", 2, (*op.inputs, axes), op.outputs, "ReducerOptions", options)


def _reshape(low: Lowering, op: g.Op) -> FileOp:
    shape = low.graph.tensors[op.outputs[0]].shape
    operand = low.parameter(op, "shape", shape)
    return FileOp("RESHAPE", 1, (*op.inputs, operand), op.outputs, "ReshapeOptions", {"NewShape": shape})


def _dropped_ones(full: tuple[int, ...], left: tuple[int, ...], op: g.Op) -> tuple[int, ...]:
    """The dimensions of size 1 whose removal from `full` gives `left`."""
    ones = [i for i, n in enumerate(full) if n == 1]
    for dropped in itertools.combinations(ones, max(len(full) - len(left), 0)):
        if tuple(n for i, n in enumerate(full) if i not in dropped) == left:
            return dropped
    raise UnsupportedError(f"shape {full} does not become {left} by dropping ones", operator=op.place)


def _squeeze(low: Lowering, op: g.Op) -> FileOp:
    tensors = low.graph.tensors
    dims = _dropped_ones(tensors[op.inputs[0]].shape, tensors[op.outputs[0]].shape, op)
    if not dims:  # no dimensions named would mean all of them
        return _reshape(low, op)
    return FileOp("SQUEEZE", 1, op.inputs, op.outputs, "SqueezeOptions", {"SqueezeDims": dims})


def _expand_dims(low: Lowering, op: g.Op) -> FileOp:
    tensors = low.graph.tensors
    dims = _dropped_ones(tensors[op.outputs[0]].shape, tensors[op.inputs[0]].shape, op)
    if len(dims) != 1:
        raise UnsupportedError("EXPAND_DIMS adds exactly one dimension", operator=op.place)
    axis = low.parameter(op, "axis", dims[0])
    return FileOp("EXPAND_DIMS", 1, (*op.inputs, axis), op.outputs, "ExpandDimsOptions")


def _transpose(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.TransposeAttrs)
    perm = low.parameter(op, "perm", attrs.perm)
    return FileOp("TRANSPOSE", 2, (*op.inputs, perm), op.outputs, "TransposeOptions")


def _concatenation(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.AxisAttrs)
    return FileOp("CONCATENATION", 2, op.inputs, op.outputs, "ConcatenationOptions", {"Axis": attrs.axis})


def _split(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.AxisAttrs)
    axis = low.parameter(op, "axis", attrs.axis)
    options: dict[str, OptionValue] = {"NumSplits": len(op.outputs)}
    return FileOp("SPLIT", 2, (axis, *op.inputs), op.outputs, "SplitOptions", options)


def _slice(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.SliceAttrs)
    if any(step != 1 for step in attrs.stride):
        raise UnsupportedError("SLICE has no strides", operator=op.place, hint="use STRIDED_SLICE")
    begin = low.parameter(op, "begin", attrs.begin)
    size = low.parameter(op, "size", attrs.extent)
    return FileOp("SLICE", 2, (*op.inputs, begin, size), op.outputs, "SliceOptions")


def _strided_slice(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.SliceAttrs)
    shrunk = _dropped_ones(attrs.extent, low.graph.tensors[op.outputs[0]].shape, op)
    strides = [1 if i in shrunk else step for i, step in enumerate(attrs.stride)]
    ends, end_mask = [], 0
    for i, (first, step, extent) in enumerate(zip(attrs.begin, strides, attrs.extent, strict=True)):
        end = first + step * (extent - 1) + (1 if step > 0 else -1)
        if end < 0:  # a negative end would count from the back: the mask says "to the very end"
            end_mask |= 1 << i
        ends.append(end)
    operands = (
        low.parameter(op, "begin", attrs.begin),
        low.parameter(op, "end", ends),
        low.parameter(op, "strides", strides),
    )
    options: dict[str, OptionValue] = {
        "EndMask": end_mask,
        "ShrinkAxisMask": sum(1 << i for i in shrunk),
    }
    return FileOp("STRIDED_SLICE", 2, (*op.inputs, *operands), op.outputs, "StridedSliceOptions", options)


def _resize(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.ResizeAttrs)
    size = low.parameter(op, "size", _rows_columns(low.graph.tensors[op.outputs[0]]))
    options: dict[str, OptionValue] = {
        "AlignCorners": attrs.align_corners,
        "HalfPixelCenters": attrs.half_pixel_centers,
    }
    nearest = op.kind is g.OpKind.RESIZE_NEAREST_NEIGHBOR
    table = "ResizeNearestNeighborOptions" if nearest else "ResizeBilinearOptions"
    version = 3 if attrs.half_pixel_centers or attrs.align_corners else 2
    return FileOp(op.kind, version, (*op.inputs, size), op.outputs, table, options)


_RULES: dict[g.OpKind, Callable[[Lowering, g.Op], FileOp]] = {
    g.OpKind.CONV_2D: _convolution,
    g.OpKind.DEPTHWISE_CONV_2D: _convolution,
    g.OpKind.TRANSPOSE_CONV: _transpose_convolution,
    g.OpKind.FULLY_CONNECTED: _fully_connected,
    g.OpKind.ADD: _elementwise,
    g.OpKind.SUB: _elementwise,
    g.OpKind.MUL: _elementwise,
    g.OpKind.PAD: _pad,
    g.OpKind.MIRROR_PAD: _pad,
    g.OpKind.AVERAGE_POOL_2D: _pool,
    g.OpKind.MAX_POOL_2D: _pool,
    g.OpKind.MEAN: _mean,
    g.OpKind.SOFTMAX: _softmax,
    g.OpKind.LOGISTIC: _plain(2),
    g.OpKind.TANH: _plain(2),
    g.OpKind.HARD_SWISH: _plain(1, "HardSwishOptions"),
    g.OpKind.RELU: _plain(2),
    g.OpKind.RELU6: _plain(2),
    g.OpKind.LEAKY_RELU: _leaky_relu,
    g.OpKind.PRELU: _plain(1),
    g.OpKind.RESHAPE: _reshape,
    g.OpKind.SQUEEZE: _squeeze,
    g.OpKind.EXPAND_DIMS: _expand_dims,
    g.OpKind.TRANSPOSE: _transpose,
    g.OpKind.CONCATENATION: _concatenation,
    g.OpKind.SPLIT: _split,
    g.OpKind.STRIDED_SLICE: _strided_slice,
    g.OpKind.SLICE: _slice,
    g.OpKind.RESIZE_NEAREST_NEIGHBOR: _resize,
    g.OpKind.RESIZE_BILINEAR: _resize,
    g.OpKind.QUANTIZE: _plain(1, "QuantizeOptions"),
    g.OpKind.DEQUANTIZE: _plain(2, "DequantizeOptions"),
}
