"""Builds random networks operator by operator, with random weights and quantisation.

    net = NetBuilder(seed)
    x = net.input((1, 8, 9, 3))
    x = net.conv(x, 5, kernel=(3, 3), stride=(2, 2), same=True)
    graph = net.graph([net.softmax(net.flatten(x))])

Every method returns the index of the tensor that it adds. Scales are such that outputs use most of their
range and sometimes saturate. The same calls with the same seed give the same graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.builder import NO_ATTRS, NO_PAD, GraphBuilder
from buildtool.graph.geometry import same_pad
from buildtool.graph.ops import DEFS
from buildtool.graph.reference.detection import output_shapes
from buildtool.graph.types import Activation, DType, Op, OpKind, Quantization


def quant(scale: float, zero_point: int = 0) -> Quantization:
    """Returns a per-tensor quantisation. Its scale is rounded to float32."""
    return Quantization((float(np.float32(scale)),), (zero_point,))


class NetBuilder(GraphBuilder):
    """A builder that draws weights and quantisations at random.

    `typical`: the usual standard deviation of an activation, in quantisation steps.
    `levels`: a result's standard deviation is 2^x steps, where x is drawn from this range.
    `raised`: a usual value of an operand whose negative values were raised to zero.
    `coarser`: a factor by which the scales of quotients are multiplied.
    """

    typical = 74.0
    raised = 100.0
    coarser = 1.0
    levels = (4.0, 7.0)

    def __init__(self, seed: int, name: str = "net") -> None:
        super().__init__(name)
        self.rng = np.random.default_rng(seed)

    # ---- tensors ---------------------------------------------------------------------------------

    def input(self, shape: Sequence[int], dtype: DType = DType.INT8, q: Quantization | None = None) -> int:
        """Adds a network input."""
        if q is None and dtype is not DType.FLOAT32:
            q = self.random_quant(dtype=dtype)
        return self.feed(shape, q, dtype)

    def random_quant(self, scale: float | None = None, dtype: DType = DType.INT8) -> Quantization:
        """Draws a quantisation. The zero point is sometimes an end of the range.

        `scale` is log-uniform by default.
        """
        if scale is None:
            scale = float(np.exp(self.rng.uniform(-5.5, 0)))
        low, high = (0, 255) if dtype is DType.UINT8 else (-128, 127)
        choices = [low, high, (low + high + 1) // 2, int(self.rng.integers(low, high + 1))]
        return quant(scale, choices[int(self.rng.integers(4))])

    def scale(self, tensor: int) -> float:
        """Returns the scale of a tensor."""
        q = self.tensors[tensor].quant
        assert q is not None
        return q.scale

    # ---- weights ---------------------------------------------------------------------------------

    def _weights(
        self, x: int, shape: tuple[int, ...], axis: int, per_channel: bool, bias: bool
    ) -> tuple[int, int, float]:
        """Draws weights of `shape` for the input `x`; dimension `axis` is the output channels.

        Returns (filter, bias or -1, standard deviation of the real-valued sums).
        """
        channels = shape[axis]
        taps = math.prod(shape) // channels
        count = channels if per_channel else 1
        # Keeps outputs near one, however deep the network is.
        typical = np.exp(self.rng.uniform(-1.5, 1.5)) / (self.scale(x) * self.typical * 74 * math.sqrt(taps))
        scales = np.asarray(typical * np.exp(self.rng.uniform(0, 1.5, count)), np.float32)
        low = -128 if self.rng.integers(8) == 0 else -127
        data = self.rng.integers(low, 128, shape).astype(np.int8)
        q = Quantization(tuple(float(s) for s in scales), (0,) * count, axis)
        weights = self.tensor(shape, q, data=data)
        products = np.float32(self.scale(x)) * scales
        spread = float(products.mean()) * self.typical * 74 * math.sqrt(taps)
        index = -1
        if bias:
            bias_q = Quantization(tuple(float(s) for s in products), (0,) * count, 0)
            limit = int(self.typical * 74 * math.sqrt(taps)) + 1
            values = self.rng.integers(-limit, limit + 1, channels).astype(np.int32)
            index = self.tensor((channels,), bias_q, DType.INT32, values)
        return weights, index, spread

    def _out_quant(self, spread: float) -> Quantization:
        """Draws the quantisation of an output whose real values have the standard deviation `spread`."""
        return self.random_quant(spread / float(2 ** self.rng.uniform(*self.levels)))

    def conv(
        self,
        x: int,
        channels: int,
        *,
        kernel: tuple[int, int] = (1, 1),
        stride: tuple[int, int] = (1, 1),
        dilation: tuple[int, int] = (1, 1),
        same: bool = False,
        pad: g.Pad | None = None,
        groups: int = 1,
        depth_multiplier: int = 0,
        activation: Activation = Activation.NONE,
        per_channel: bool = True,
        bias: bool = True,
    ) -> int:
        """Adds a CONV_2D, or a DEPTHWISE_CONV_2D if depth_multiplier > 0. `pad` overrides `same`."""
        _, height, width, depth = self.shape(x)
        if pad is None:
            pad = same_pad((height, width), kernel, stride, dilation) if same else NO_PAD
        if depth_multiplier:
            channels = depth * depth_multiplier
            weights = self._weights(x, (1, *kernel, channels), 3, per_channel, bias)
            attrs: g.ConvAttrs = g.DepthwiseAttrs(stride, dilation, pad, activation, depth_multiplier)
            kind = OpKind.DEPTHWISE_CONV_2D
        else:
            weights = self._weights(x, (channels, *kernel, depth // groups), 0, per_channel, bias)
            attrs = g.ConvAttrs(stride, dilation, pad, activation)
            kind = OpKind.CONV_2D
        return self.op(kind, (x, *weights[:2]), attrs, self._out_quant(weights[2]))

    def transpose_conv(
        self,
        x: int,
        channels: int,
        *,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        same: bool,
        out: tuple[int, int] | None = None,
        per_channel: bool = True,
        bias: bool = True,
    ) -> int:
        """Adds a TRANSPOSE_CONV. `out`: the output's (rows, columns), by default the largest possible."""
        batch, height, width, depth = self.shape(x)
        sizes, pads = [], []
        for i, n in enumerate((height, width)):
            size = out[i] if out else (n * stride[i] if same else (n - 1) * stride[i] + kernel[i])
            total = max((n - 1) * stride[i] + kernel[i] - size, 0)
            sizes.append(size)
            pads += [total // 2, total - total // 2]
        weights = self._weights(x, (channels, *kernel, depth), 0, per_channel, bias)
        attrs = g.ConvAttrs(stride, (1, 1), g.Pad(*pads))
        shape = (batch, *sizes, channels)
        q = self._out_quant(weights[2])
        return self.op(OpKind.TRANSPOSE_CONV, (x, *weights[:2]), attrs, q, shape=shape)

    def dense(
        self,
        x: int,
        outputs: int,
        *,
        activation: Activation = Activation.NONE,
        per_channel: bool = False,
        bias: bool = True,
        keep_num_dims: bool = False,
    ) -> int:
        """Adds a FULLY_CONNECTED over all dimensions but the first, or over the last if `keep_num_dims`."""
        shape = self.shape(x)
        features = shape[-1] if keep_num_dims else math.prod(shape[1:])
        weights = self._weights(x, (outputs, features), 0, per_channel, bias)
        out = (*shape[:-1], outputs) if keep_num_dims else (math.prod(shape) // features, outputs)
        attrs, q = g.FullyConnectedAttrs(activation, keep_num_dims), self._out_quant(weights[2])
        return self.op(OpKind.FULLY_CONNECTED, (x, *weights[:2]), attrs, q, shape=out)

    # ---- elementwise -----------------------------------------------------------------------------

    def constant(self, shape: Sequence[int]) -> int:
        """Adds an int8 constant."""
        q = NetBuilder.random_quant(self, dtype=DType.INT8)
        return self.tensor(shape, q, data=self.rng.integers(-128, 128, shape).astype(np.int8))

    def elementwise(self, kind: OpKind, a: int, b: int, activation: Activation = Activation.NONE) -> int:
        """Adds ADD, SUB, MUL or DIV, with broadcasting. The values of a divisor are first raised above 0."""
        if kind is OpKind.DIV:
            b = self.positive(b)
            ratio = self.coarser * self.scale(a) / self.scale(b)
            q = self._out_quant(ratio * float(np.exp(self.rng.uniform(-2, 2))))
            return self.op(kind, (a, b), g.QuotientAttrs(activation), q)
        sa, sb = self.scale(a), self.scale(b)
        spread = math.hypot(sa, sb) * self.typical
        if kind is OpKind.MUL:
            spread = sa * sb * self.typical * self.typical
        return self.op(kind, (a, b), g.ElementwiseAttrs(activation), self._out_quant(spread))

    def _clamp_below(self, x: int, least: int) -> int:
        """Adds a MAXIMUM of a tensor and the quantised value `least`."""
        q, dtype = self.tensors[x].quant, self.tensors[x].dtype
        bound = self.tensor((1,), q, dtype, np.full((1,), least, dtype.value))
        return self.op(OpKind.MAXIMUM, (x, bound), NO_ATTRS, q)

    def positive(self, x: int) -> int:
        """Adds a MAXIMUM that raises a tensor's values above zero.

        If its zero point is 127, a QUANTIZE changes it first.
        """
        q = self.tensors[x].quant
        assert q is not None
        if q.zero_point == 127:
            x = self.op(OpKind.QUANTIZE, (x,), NO_ATTRS, quant(q.scale, 0))
        return self._clamp_below(x, (0 if q.zero_point == 127 else q.zero_point) + 1)

    def pair(self, kind: OpKind, a: int, b: int) -> int:
        """Adds a MAXIMUM, MINIMUM, SQUARED_DIFFERENCE, comparison, LOGICAL_AND or LOGICAL_OR."""
        if kind is OpKind.SQUARED_DIFFERENCE:
            larger = max(self.scale(a), self.scale(b)) * self.typical
            return self.op(kind, (a, b), NO_ATTRS, self._out_quant(larger * larger))
        if kind in (OpKind.MAXIMUM, OpKind.MINIMUM):
            return self.op(kind, (a, b), NO_ATTRS, self.tensors[a].quant)
        return self.op(kind, (a, b), dtype=DType.BOOL)

    def select(self, condition: int, a: int, b: int) -> int:
        """Adds a SELECT_V2 of `a` and `b`, with the quantisation of `a`."""
        operand = self.tensors[a]
        return self.op(OpKind.SELECT_V2, (condition, a, b), NO_ATTRS, operand.quant, operand.dtype)

    def normalise(self, kind: OpKind, x: int) -> int:
        """Adds an L2_NORMALIZATION or LOG_SOFTMAX over the last dimension."""
        return self.op(kind, (x,), NO_ATTRS, DEFS[kind].output)

    def prelu(self, x: int, alpha_shape: Sequence[int]) -> int:
        """Adds a PRELU with a constant alpha."""
        alpha = NetBuilder.constant(self, alpha_shape)  # int8 also beside int16
        return self.op(OpKind.PRELU, (x, alpha), NO_ATTRS, self._out_quant(self.scale(x) * self.typical))

    def unary(self, kind: OpKind, x: int) -> int:
        """Adds a function of one byte (TABLE_KINDS except QUANTIZE)."""
        if kind is OpKind.LOGICAL_NOT:
            return self.op(kind, (x,), dtype=DType.BOOL)
        q = DEFS[kind].output
        if q is None:
            q = self.random_quant(self.scale(x) * float(np.exp(self.rng.uniform(-0.7, 0.7))))
        if kind in (OpKind.SQRT, OpKind.RSQRT):
            return self._root(kind, x)
        attrs: g.Attrs = NO_ATTRS
        if kind is OpKind.LEAKY_RELU:
            attrs = g.LeakyReluAttrs(float(np.float32(self.rng.uniform(0.01, 0.9))))
        if kind is OpKind.GELU:
            attrs = g.GeluAttrs(len(self.ops) % 2 == 1)  # not drawn: it belongs to the topology
        return self.op(kind, (x,), attrs, q)

    def _root(self, kind: OpKind, x: int) -> int:
        """Adds SQRT or RSQRT, after a MAXIMUM that raises negative values to zero.

        The outputs of RSQRT are mostly within the range of the quantisation.
        """
        q = self.tensors[x].quant
        assert q is not None
        root = math.sqrt(q.scale * self.raised)
        spread = 2 * root if kind is OpKind.SQRT else 8 / root
        least = self._clamp_below(x, q.zero_point)
        return self.op(kind, (least,), NO_ATTRS, self._out_quant(spread))

    def requantize(self, x: int, dtype: DType = DType.INT8) -> int:
        """Adds a QUANTIZE."""
        scale = 0.05
        if self.tensors[x].dtype is not DType.FLOAT32:
            scale = self.scale(x) * float(np.exp(self.rng.uniform(-0.7, 0.7)))
        return self.op(OpKind.QUANTIZE, (x,), NO_ATTRS, self.random_quant(scale, dtype), dtype)

    def cast(self, x: int, dtype: DType) -> int:
        """Adds a CAST to another integer type, with the same scale."""
        return self.op(OpKind.CAST, (x,), NO_ATTRS, quant(self.scale(x)), dtype)

    def dequantize(self, x: int) -> int:
        """Adds a DEQUANTIZE."""
        return self.op(OpKind.DEQUANTIZE, (x,), dtype=DType.FLOAT32)

    def softmax(self, x: int, beta: float = 1.0) -> int:
        """Adds a SOFTMAX."""
        return self.op(OpKind.SOFTMAX, (x,), g.SoftmaxAttrs(beta), quant(1 / 256, -128))

    # ---- pooling, reductions, shapes -------------------------------------------------------------

    def pool(
        self,
        kind: OpKind,
        x: int,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        same: bool = False,
        activation: Activation = Activation.NONE,
    ) -> int:
        """Adds an AVERAGE_POOL_2D or MAX_POOL_2D."""
        pad = same_pad(self.shape(x)[1:3], kernel, stride) if same else NO_PAD
        attrs = g.PoolAttrs(kernel, stride, pad, activation)
        return self.op(kind, (x,), attrs, self.tensors[x].quant)

    def mean(
        self,
        x: int,
        axes: tuple[int, ...] = (1, 2),
        keep_dims: bool = False,
        kind: OpKind = OpKind.MEAN,
    ) -> int:
        """Adds a MEAN or SUM."""
        count = math.prod(self.shape(x)[a] for a in axes)
        scale = self.scale(x) * (count if kind is OpKind.SUM else 1)
        q = self.random_quant(scale * float(2 ** self.rng.uniform(-1, 1)) / math.sqrt(count))
        return self.op(kind, (x,), g.MeanAttrs(axes, keep_dims), q)

    def extreme(self, kind: OpKind, x: int, axes: tuple[int, ...], keep_dims: bool = False) -> int:
        """Adds a REDUCE_MAX or REDUCE_MIN."""
        return self.op(kind, (x,), g.MeanAttrs(axes, keep_dims), self.tensors[x].quant)

    def arg(self, kind: OpKind, x: int, axis: int, dtype: DType = DType.INT32) -> int:
        """Adds an ARG_MAX or ARG_MIN."""
        return self.op(kind, (x,), g.AxisAttrs(axis), dtype=dtype)

    def matmul(self, x: int, y: int, adj_x: bool = False, adj_y: bool = False) -> int:
        """Adds a BATCH_MATMUL."""
        inner = self.shape(x)[-2 if adj_x else -1]
        spread = self.scale(x) * self.scale(y) * self.typical * self.typical * math.sqrt(inner)
        return self.op(OpKind.BATCH_MATMUL, (x, y), g.MatmulAttrs(adj_x, adj_y), self._out_quant(spread))

    def move(
        self, kind: OpKind, x: int, shape: Sequence[int] | None = None, attrs: g.Attrs = NO_ATTRS
    ) -> int:
        """Adds an operator with the input's quantisation: RESHAPE, TRANSPOSE, PAD, SLICE, RESIZE_*, ..."""
        tensor = self.tensors[x]
        return self.op(kind, (x,), attrs, tensor.quant, tensor.dtype, shape=shape)

    def flatten(self, x: int) -> int:
        """Adds a RESHAPE to (batch, features)."""
        shape = self.shape(x)
        return self.move(OpKind.RESHAPE, x, (shape[0], math.prod(shape[1:])))

    def pad(self, x: int, paddings: Sequence[tuple[int, int]], mode: g.PadMode = g.PadMode.CONSTANT) -> int:
        """Adds a PAD with the zero point, or a MIRROR_PAD."""
        q = self.tensors[x].quant
        assert q is not None
        value = q.zero_point if mode is g.PadMode.CONSTANT else 0
        kind = OpKind.PAD if mode is g.PadMode.CONSTANT else OpKind.MIRROR_PAD
        return self.move(kind, x, attrs=g.PadAttrs(tuple(paddings), mode, value))

    def concat(self, parts: Sequence[int], axis: int = 3) -> int:
        """Adds a CONCATENATION. Parts with another quantisation than the first one are requantised before."""
        q = self.tensors[parts[0]].quant
        joined = [
            p if self.tensors[p].quant == q else self.op(OpKind.QUANTIZE, (p,), NO_ATTRS, q) for p in parts
        ]
        return self.op(OpKind.CONCATENATION, joined, g.AxisAttrs(axis), q)

    def split(self, x: int, count: int, axis: int = 3) -> tuple[int, ...]:
        """Adds a SPLIT into equal parts."""
        shape = list(self.shape(x))
        shape[axis] //= count
        source = self.tensors[x]
        outs = tuple(self.tensor(shape, source.quant, source.dtype) for _ in range(count))
        self.ops.append(Op(OpKind.SPLIT, (x,), outs, g.AxisAttrs(axis), len(self.ops)))
        return outs

    def detections(self, boxes: int, scores: int, attrs: g.DetectionAttrs) -> tuple[int, ...]:
        """Adds a DETECTION_POSTPROCESS with random anchors."""
        count = self.shape(boxes)[1]
        sides = np.exp(self.rng.uniform(-3, 0, (count, 2)))
        places = np.concatenate([self.rng.uniform(0, 1, (count, 2)), sides], axis=1).astype(np.float32)
        anchors = self.tensor(places.shape, None, DType.FLOAT32, places)
        outs = tuple(self.tensor(shape, None, DType.FLOAT32) for shape in output_shapes(attrs))
        kind = OpKind.DETECTION_POSTPROCESS
        self.ops.append(Op(kind, (boxes, scores, anchors), outs, attrs, len(self.ops)))
        return outs


class WideNetBuilder(NetBuilder):
    """A builder with int16 activations, whose zero point is 0, and int64 biases."""

    typical = 18900.0
    raised = 25600.0
    coarser = 8.0
    levels = (11.0, 15.0)

    def input(self, shape: Sequence[int], dtype: DType = DType.INT16, q: Quantization | None = None) -> int:
        """Adds a network input."""
        return super().input(shape, dtype, q)

    def op(
        self,
        kind: OpKind,
        inputs: Sequence[int],
        attrs: g.Attrs = NO_ATTRS,
        quant: Quantization | None = None,
        dtype: DType = DType.INT16,
        name: str = "",
        shape: Sequence[int] | None = None,
    ) -> int:
        """Adds an operator with one output."""
        return super().op(kind, inputs, attrs, quant, dtype, name, shape)

    def random_quant(self, scale: float | None = None, dtype: DType = DType.INT16) -> Quantization:
        """Draws a scale (log-uniform) unless it is given, and a zero point for 8-bit types."""
        if dtype in (DType.INT8, DType.UINT8):
            return super().random_quant(scale, dtype)
        if scale is None:
            scale = float(np.exp(self.rng.uniform(-11, -5)))
        return quant(scale)

    def _weights(
        self, x: int, shape: tuple[int, ...], axis: int, per_channel: bool, bias: bool
    ) -> tuple[int, int, float]:
        weights, index, spread = super()._weights(x, shape, axis, per_channel, bias)
        if index >= 0:
            narrow = self.tensors[index]
            assert narrow.data is not None
            data = narrow.data.astype(np.int64)
            self.tensors[index] = replace(narrow, dtype=DType.INT64, data=data)
        return weights, index, spread

    def constant(self, shape: Sequence[int]) -> int:
        """Adds an int16 constant."""
        data = self.rng.integers(-32768, 32768, shape).astype(np.int16)
        return self.tensor(shape, self.random_quant(), DType.INT16, data)

    def unary(self, kind: OpKind, x: int) -> int:
        """Adds a LOGISTIC, a TANH, or a function that changes the scale."""
        if kind not in (OpKind.LOGISTIC, OpKind.TANH):
            return super().unary(kind, x)
        return self.op(kind, (x,), NO_ATTRS, quant(1 / 32768))

    def softmax(self, x: int, beta: float = 1.0) -> int:
        """Adds a SOFTMAX."""
        return self.op(OpKind.SOFTMAX, (x,), g.SoftmaxAttrs(beta), quant(1 / 32768))

    def requantize(self, x: int, dtype: DType = DType.INT16) -> int:
        """Adds a QUANTIZE to int16 or int8."""
        if self.tensors[x].dtype is DType.FLOAT32:
            q = self.random_quant(2e-4 if dtype is DType.INT16 else 0.05, dtype)
        else:
            steps = {DType.INT8: 8, DType.INT16: 16}
            between = 2.0 ** (steps[self.tensors[x].dtype] - steps[dtype])
            q = self.random_quant(self.scale(x) * between * float(np.exp(self.rng.uniform(-0.7, 0.7))), dtype)
        return self.op(OpKind.QUANTIZE, (x,), NO_ATTRS, q, dtype)
