"""Reads Conv, ConvTranspose, Gemm, MatMul and BatchNormalization.

Their weights are permuted to fit activations in memory, which are not moved.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnx import scales
from buildtool.graph.onnx.context import Context
from buildtool.graph.onnx.file import Array, Node
from buildtool.graph.onnx.folding import broadcast_of
from buildtool.graph.onnx.layout import Layout, canonical, place_in_memory, plain, tail_order
from buildtool.graph.onnx.pairs import sum_or_product
from buildtool.graph.onnx.values import NO_CLAMP, ActivationValue, Constant, Pending, Quantized, Value
from buildtool.graph.onnx.windows import NHWC, as_image, paddings, pair, window
from buildtool.graph.types import (
    WITH_ZERO_POINT,
    Activation,
    Attrs,
    ConvAttrs,
    DepthwiseAttrs,
    FullyConnectedAttrs,
    MatmulAttrs,
    OpKind,
    Pad,
    Quantization,
)


def _read_bias(ctx: Context, node: Node) -> Constant | Quantized | None:
    if not node.input(2):
        return None
    value = ctx.value(node.input(2))
    if not isinstance(value, (Constant, Quantized)):
        raise UnsupportedError("a bias that is not constant", hint="add it with a separate Add operator")
    return value


@dataclass(frozen=True)
class _Layer:
    """An operator with weights.

    `x`: the number of its input.
    `data`, `quant`: its filter. Without `quant` it computes in float32.
    `attrs`: its attributes, without a fused activation.
    `memory`: the result's shape in memory, where channels are last.
    `shape`: the result's shape in the file.
    `layout`: the order of the result's elements in memory; None for the usual order of images or matrices.
    """

    ctx: Context
    kind: OpKind
    x: int
    data: Array
    quant: Quantization | None
    bias: Constant | Quantized | None
    attrs: ConvAttrs | FullyConnectedAttrs
    memory: tuple[int, ...]
    shape: tuple[int, ...]
    layout: Layout | None = None

    def pending(self) -> Pending:
        """Returns the layer as an operator whose output quantisation is not known yet."""
        bias = self.bias
        raw = isinstance(bias, Constant) and bias.data.dtype.kind != "f"
        return Pending(
            self.shape,
            self._make,
            fuses=True,
            add_bias=self._add_bias if bias is None else None,
            scale_channels=None if raw else self._scale_channels,
            channel=-1 if self.kind is OpKind.FULLY_CONNECTED else 1,
        )

    def _make(self, out: Quantization | None, activation: Activation, name: str) -> ActivationValue:
        build, memory = self.ctx.build, self.memory
        weights = build.constant(f"{name}/weights", self.data, self.quant)
        operands = [self.x, weights, -1 if self.bias is None else self._make_bias(self.bias, name)]
        fused: Attrs = replace(self.attrs, activation=activation)
        if self.quant is not None and any(self.quant.zero_points):
            fused = WITH_ZERO_POINT[type(self.attrs)](**vars(fused))
        tensor = build.make(self.kind, operands, name, memory, out, fused)
        dense = self.kind is OpKind.FULLY_CONNECTED
        usual = plain(self.shape) if dense else canonical((memory[0], memory[-1], *memory[1:3]), NHWC)
        return ActivationValue(tensor, self.shape, self.layout or usual, out)

    def _make_bias(self, bias: Constant | Quantized, name: str) -> int:
        """Adds the bias and returns its number.

        It is in steps of input scale times weight scale, or in floats if the layer computes in float32.
        """
        build, channels = self.ctx.build, self.memory[-1]
        if self.quant is None:
            data = scales.to_floats(bias, name).data.reshape(-1)
            if data.size not in (1, channels):
                raise ModelError(f"a bias of {data.size} numbers for {channels} channels")
            return build.constant(f"{name}/bias", np.broadcast_to(data, (channels,)), None)
        source, factors = build.quant(self.x), self.quant.scales
        unit = tuple(float(np.float32(source.scale) * np.float32(s)) for s in factors)
        steps = scales.bias(bias, [source.scale * s for s in factors], channels, name)
        return build.constant(f"{name}/bias", steps, Quantization(unit, (0,) * len(unit)))

    def _add_bias(self, bias: Constant | Quantized) -> Pending:
        return replace(self, bias=bias).pending()

    def _scale_channels(self, factor: Array, shift: Array) -> Pending:
        """Returns the layer with each channel multiplied by `factor`, then increased by `shift`.

        A factor of 0 clears the channel's weights.
        """
        assert self.quant is not None
        data, axis = self.data, 3 if self.kind is OpKind.DEPTHWISE_CONV_2D else 0
        scale = np.broadcast_to(np.array(self.quant.scales), factor.shape)
        products = np.where(factor == 0, scale, scale * factor).astype(np.float32)
        zero = self.quant.zero_points[0]
        kept = (factor != 0).reshape([-1 if d == axis else 1 for d in range(data.ndim)])
        cleared = np.where(kept, data, np.int8(zero))
        quant = Quantization(tuple(float(s) for s in products), (zero,) * len(products), axis)
        real = np.zeros(self.memory[-1]) + (0 if self.bias is None else self.bias.real.reshape(-1))
        bias = Constant(real * factor + shift)
        return replace(self, data=cleared, quant=quant, bias=bias).pending()


def _read_filter(
    ctx: Context, node: Node, text: str
) -> tuple[ActivationValue, int, Quantized | Constant, Array]:
    """Returns (input, number of spatial dimensions in the file, filter, the filter's data).

    The input and the filter's data have 4 dimensions. `text` names the operator in errors.
    """
    x, w = ctx.held(node), ctx.weights(node, 1)
    image, count = as_image(x, text)
    if w.data.ndim != count + 2 or 0 in w.data.shape:
        raise ModelError(f"a filter of shape {list(w.data.shape)} for an input of shape {list(x.shape)}")
    return image, count, w, w.data[:, :, np.newaxis] if count == 1 else w.data


def conv(ctx: Context, node: Node) -> list[Value]:
    """Reads Conv with 1 or 2 spatial dimensions. With one group per channel, it is a DEPTHWISE_CONV_2D."""
    image, count, w, data = _read_filter(ctx, node, "a convolution")
    n, cin, height, width = image.shape
    cout, depth, kh, kw = data.shape
    groups = node.integer("group", 1)
    if groups < 1 or depth * groups != cin or cout % groups:
        raise ModelError(f"a filter of shape {list(w.data.shape)} in {groups} groups for {cin} channels")
    if (node.integers("kernel_shape") or w.data.shape[2:]) != w.data.shape[2:]:
        raise ModelError("kernel_shape differs from the filter's shape")
    win = window(node, (height, width), (kh, kw), count)
    if groups == cin and groups > 1:
        kind, filter_ = OpKind.DEPTHWISE_CONV_2D, (data.transpose(1, 2, 3, 0), _check_axis(w, 0, 3))
        attrs: ConvAttrs = DepthwiseAttrs(win.stride, win.dilation, win.pad, depth_multiplier=cout // cin)
    else:
        kind, filter_ = OpKind.CONV_2D, (data.transpose(NHWC), _check_axis(w, 0, 0))
        attrs = ConvAttrs(win.stride, win.dilation, win.pad)
    shape = (n, cout, *win.out[2 - count :])
    tensor = ctx.build.in_file_order(image, NHWC)
    layer = _Layer(ctx, kind, tensor, *filter_, _read_bias(ctx, node), attrs, (n, *win.out, cout), shape)
    return [layer.pending()]


def _check_axis(w: Quantized | Constant, channels: int, axis: int) -> Quantization | None:
    """Returns the filter's quantisation. Its scales must be per tensor or per output channel.

    The output channels are dimension `channels` in the file's filter and `axis` in the graph's filter.
    """
    quant = w.quant
    if quant is None:
        return None
    if len(quant.scales) > 1 and quant.axis != channels:
        text = f"weights quantised along dimension {quant.axis}, not along the output channels"
        raise UnsupportedError(text, hint=f"quantise them along dimension {channels}, or per tensor")
    return Quantization(quant.scales, quant.zero_points, axis if len(quant.scales) > 1 else 0)


def conv_transpose(ctx: Context, node: Node) -> list[Value]:
    """Reads ConvTranspose without groups and dilations."""
    image, count, w, data = _read_filter(ctx, node, "a transposed convolution")
    fixed = node.text("auto_pad", "NOTSET") == "NOTSET" and node.integers("output_shape") is None
    if node.integer("group", 1) != 1 or pair(node, "dilations", count) != (1, 1) or not fixed:
        text = "a transposed convolution with groups, dilations, auto_pad or output_shape"
        raise UnsupportedError(text, hint="export it with explicit pads, one group and no dilations")
    if w.quant is not None and any(w.quant.zero_points):
        text = (
            "weights of a transposed convolution with a zero point that is not in the middle of their range"
        )
        raise UnsupportedError(text, tensor=node.input(1), hint=scales.SYMMETRIC)
    n, cin, *sizes = image.shape
    if data.shape[0] != cin:
        raise ModelError(f"a filter of shape {list(w.data.shape)} for {cin} channels")
    cout, kernel, stride = data.shape[1], data.shape[2:], pair(node, "strides", count)
    before, after = paddings(node, count)
    padding = node.integers("output_padding") or (0,) * count
    if len(padding) != count or not all(0 <= n <= 1 << 20 for n in padding):
        raise ModelError(f"output_padding {list(padding)} for {count} spatial dimensions")
    extra = padding if count == 2 else (0, padding[0])
    out = [
        s * (size - 1) + k + e - b - a
        for s, size, k, e, b, a in zip(stride, sizes, kernel, extra, before, after, strict=True)
    ]
    ends = [max(0, a - e) for a, e in zip(after, extra, strict=True)]
    attrs = ConvAttrs(stride, pad=Pad(before[0], ends[0], before[1], ends[1]))
    filter_ = data.transpose(1, 2, 3, 0), _check_axis(w, 1, 0)
    tensor, shape = ctx.build.in_file_order(image, NHWC), (n, cout, *out[2 - count :])
    kind, bias = OpKind.TRANSPOSE_CONV, _read_bias(ctx, node)
    return [_Layer(ctx, kind, tensor, *filter_, bias, attrs, (n, *out, cout), shape).pending()]


# ---- dense layers ------------------------------------------------------------------------------------


def gemm(ctx: Context, node: Node) -> list[Value]:
    """Reads Gemm with alpha = beta = 1, whose A is not transposed."""
    if node.integer("transA", 0) or node.number("alpha", 1.0) != 1.0 or node.number("beta", 1.0) != 1.0:
        hint = "fold alpha and beta into weights and bias; transpose A with a separate Transpose operator"
        raise UnsupportedError("a Gemm with transA, alpha or beta", hint=hint)
    x, w = ctx.held(node), ctx.weights(node, 1)
    if w.data.ndim != 2 or len(x.shape) != 2:
        raise ModelError(f"weights of shape {list(w.data.shape)} for an input of shape {list(x.shape)}")
    transposed = bool(node.integer("transB", 0))
    return [_make_dense(ctx, x, w, transposed, _read_bias(ctx, node))]


def matmul(ctx: Context, node: Node) -> list[Value]:
    """Reads MatMul. The product of an activation and a constant matrix becomes a dense layer.

    Any other product becomes a BATCH_MATMUL.
    """
    first, second = (ctx.value(node.input(i)) for i in range(2))
    is_matrix = isinstance(second, (Constant, Quantized)) and second.data.ndim <= 2
    if is_matrix and isinstance(first, (ActivationValue, Pending)):
        held, w = ctx.held(node), ctx.weights(node, 1)
        if w.data.ndim != 2 or not held.shape:
            text = f"a MatMul of shapes {list(held.shape)} and {list(w.data.shape)}"
            raise UnsupportedError(text, hint="weights must be 2-D")
        return [_make_dense(ctx, held, w, False, None)]
    x, y = (ctx.operand(node, i) for i in range(2))
    shapes = [v.shape if isinstance(v, ActivationValue) else v.data.shape for v in (x, y)]
    if min(map(len, shapes)) < 2 or shapes[0][-1] != shapes[1][-2]:
        text = f"a MatMul of shapes {list(shapes[0])} and {list(shapes[1])}"
        raise UnsupportedError(text, hint="reshape vectors to matrices")
    shape = (*broadcast_of(shapes[0][:-2], shapes[1][:-2]), shapes[0][-2], shapes[1][-1])
    if not isinstance(x, ActivationValue) and not isinstance(y, ActivationValue):
        raise UnsupportedError("a product of two constants", hint="fold constants before exporting")
    tensors = [
        ctx.build.in_file_order(v, range(len(v.shape)))
        if isinstance(v, ActivationValue)
        else ctx.build.constant(f"{node.outputs[0]}/constant{i}", v.data, v.quant)
        for i, v in enumerate((x, y))
    ]
    return [
        ctx.pending(
            OpKind.BATCH_MATMUL, tensors, shape, *place_in_memory(shape, range(len(shape))), MatmulAttrs()
        )
    ]


def _make_dense(
    ctx: Context,
    x: ActivationValue,
    w: Quantized | Constant,
    transposed: bool,
    bias: Constant | Quantized | None,
) -> Pending:
    """Returns a FULLY_CONNECTED. The weights are (out, in) if `transposed`, otherwise (in, out).

    A flattened image tensor is not transposed. The columns of the weights are permuted instead.
    """
    data = w.data if transposed else w.data.T
    outputs, inputs = data.shape
    if inputs != x.shape[-1] or not outputs or not inputs:
        raise ModelError(f"weights of shape {list(w.data.shape)} for an input of shape {list(x.shape)}")
    quant = _check_axis(w, 0 if transposed else 1, 0)
    lead = x.shape[:-1]
    rows = math.prod(lead)
    tail = tail_order(x.shape, x.layout)
    if tail is None:
        tensor = ctx.build.in_file_order(x, range(len(x.shape)))
    else:
        factors, perm = tail
        order = (0, *(p + 1 for p in perm))
        data = data.reshape(outputs, *factors).transpose(order).reshape(outputs, inputs)
        tensor = x.tensor
    tensor = ctx.build.view(tensor, (rows, inputs))
    kind, attrs = OpKind.FULLY_CONNECTED, FullyConnectedAttrs()
    return _Layer(ctx, kind, tensor, data, quant, bias, attrs, (rows, outputs), (*lead, outputs)).pending()


def batch_normalization(ctx: Context, node: Node) -> list[Value]:
    """Reads BatchNormalization, which multiplies each channel by a factor and adds an offset."""
    if node.integer("training_mode", 0) or len(node.outputs) != 1:
        hint = "export the network for inference"
        raise UnsupportedError("a BatchNormalization in training mode", hint=hint)
    scale, offset, mean, variance = (_read_floats(ctx, node, i) for i in range(1, 5))
    if len({v.size for v in (scale, offset, mean, variance)}) != 1:
        raise ModelError("parameters of different sizes")
    epsilon = node.number("epsilon", 1e-5)
    if not (variance + epsilon > 0).all():
        raise ModelError("a variance is not positive")
    factor = scale / np.sqrt(variance + epsilon)
    if ctx.floats:
        return [_scale_floats(ctx, node, factor, offset - mean * factor)]
    return [scale_channels(ctx, node, 0, factor, offset - mean * factor)]


def _scale_floats(ctx: Context, node: Node, factor: Array, shift: Array) -> Pending:
    """Returns operand 0 in float32 with each channel multiplied by a factor, then increased by an offset."""
    x = ctx.held(node)
    if len(x.shape) < 2 or factor.size != x.shape[1]:
        raise ModelError(f"{factor.size} factors for a tensor of shape {list(x.shape)}")
    shape = (factor.size, *(1,) * (len(x.shape) - 2))
    factors, shifts = (Constant(v.astype(np.float32).reshape(shape)) for v in (factor, shift))
    product = sum_or_product(ctx, OpKind.MUL, x, factors)
    scaled = product.make(None, Activation.NONE, f"{node.outputs[0]}/product")
    return sum_or_product(ctx, OpKind.ADD, scaled, shifts)


_WEIGHT = 127  # weight of a tap that scales a channel: the larger, the finer are the steps of the bias
_MOST_TAPS = 4096  # most factors of one operator: each needs some 13 bytes of flash


def scale_channels(ctx: Context, node: Node, position: int, factor: Array, shift: Array) -> Pending:
    """Returns an operand with each channel multiplied by a factor, then increased by an offset.

    If an operator with weights precedes it, the factors multiply the scales of the weights, without loss.
    Otherwise it becomes a DEPTHWISE_CONV_2D with one tap per channel.
    """
    name = node.input(position)
    before = ctx.value(name)
    folds = isinstance(before, Pending) and before.clamp == NO_CLAMP and ctx.has_one_reader(name)
    if isinstance(before, Pending) and folds and before.scale_channels is not None:
        if factor.size != before.shape[before.channel]:
            raise ModelError(f"{factor.size} factors for {before.shape[before.channel]} channels")
        return before.scale_channels(factor, shift)
    x = ctx.held(node, position)
    image, _ = as_image(x, f"a {node.kind}")
    n, c, height, width = image.shape
    if factor.size != c or math.prod(image.shape) < 1:
        raise ModelError(f"{factor.size} factors for {c} channels")
    tensor = ctx.build.in_file_order(image, NHWC)
    return _scale(ctx, tensor, (n, height, width, c), factor, shift, x.shape)


def scale_elements(ctx: Context, x: ActivationValue, factor: Array, shift: Array) -> Pending:
    """Returns `x` times `factor` plus `shift`, which broadcast: some of their dimensions may have size 1.

    It becomes a DEPTHWISE_CONV_2D of one tap, whose channels are the dimensions in which the factors differ.
    """
    c = factor.size
    if c > _MOST_TAPS:
        text = f"a constant operand of {c} numbers that are not quantised, more than {_MOST_TAPS}"
        raise UnsupportedError(text, hint=scales.QUANTISE_CONSTANT)
    order = sorted(ctx.build.without_move(x)[1], key=lambda d: factor.shape[d] != 1)
    memory = (1, 1, math.prod(x.shape) // c, c)
    tensor = ctx.build.view(ctx.build.in_file_order(x, order), memory)
    factor, shift = (np.transpose(v, order).reshape(-1) for v in (factor, shift))
    return _scale(ctx, tensor, memory, factor, shift, x.shape, canonical(x.shape, order))


def _scale(
    ctx: Context,
    tensor: int,
    memory: tuple[int, ...],
    factor: Array,
    shift: Array,
    shape: tuple[int, ...],
    layout: Layout | None = None,
) -> Pending:
    """Returns a DEPTHWISE_CONV_2D of one tap: each channel times its `factor`, plus its `shift`.

    It reads `tensor`, which has the shape `memory` in memory. `shape` and `layout`: the result's shape in the
    file, and the order of its elements.
    """
    c = memory[-1]
    weights = (np.sign(factor) * _WEIGHT).astype(np.int8).reshape(1, 1, 1, c)
    steps = np.where(factor == 0, 1.0, np.abs(factor)) / _WEIGHT
    quant = Quantization(tuple(float(np.float32(f)) for f in steps), (0,) * c, 3 if c > 1 else 0)
    kind, bias, attrs = OpKind.DEPTHWISE_CONV_2D, Constant(shift), DepthwiseAttrs()
    return _Layer(ctx, kind, tensor, weights, quant, bias, attrs, memory, shape, layout).pending()


def _read_floats(ctx: Context, node: Node, position: int) -> Array:
    """Returns a parameter as one float per channel, also if the file quantises it like weights."""
    value = ctx.value(node.input(position))
    if isinstance(value, Quantized) and len(value.quant.scales) == 1:
        return value.real.reshape(-1)
    data = ctx.array(node, position, "a parameter")
    if data.dtype.kind != "f" or data.ndim != 1 or not np.isfinite(data).all():
        raise ModelError("a parameter is not a vector of finite numbers")
    return data.astype(np.float64)
