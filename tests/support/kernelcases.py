"""Random graphs of one operator for the kernels' tests, with inputs to run them on.

Each strategy gives a `Case`. Zero points and values reach the extremes, channel counts are odd as often
as not, and requantisation factors are such that outputs use their range and sometimes saturate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from buildtool.graph import types as g
from buildtool.graph.ops import COMPARISONS, DEFS
from buildtool.graph.types import Activation, Attrs, DType, Graph, Op, OpKind, Pad, Quantization, Tensor

Shape = tuple[int, ...]
Draw = st.DrawFn


@dataclass(frozen=True)
class Case:
    """A graph of one operator, and values for its inputs."""

    graph: Graph
    inputs: tuple[np.ndarray, ...]

    @property
    def op(self) -> Op:
        return self.graph.ops[0]

    @property
    def out_shape(self) -> Shape:
        return self.graph.tensors[self.op.outputs[0]].shape

    def __repr__(self) -> str:
        shapes = [t.shape for t in self.graph.tensors]
        return f"Case({self.op.kind}, {self.op.attrs}, {shapes}, {[t.quant for t in self.graph.tensors]})"

    def changed(self, values: np.ndarray | None = None, **tensors: dict[str, object]) -> Case:
        """The same with other values of its input, and other fields of tensors, by their names."""
        made = tuple(replace(t, **tensors.get(t.name, {})) for t in self.graph.tensors)
        return Case(replace(self.graph, tensors=made), self.inputs if values is None else (values,))

    def scale(self, name: str) -> float:
        """The scale of a tensor; layers with weights have "x", "filter", "bias" and "y"."""
        return max(next(t.quant for t in self.graph.tensors if t.name == name).scales)


def quant(scale: float, zero_point: int = 0) -> Quantization:
    """Per tensor, with the scale rounded to float32."""
    return Quantization((float(np.float32(scale)),), (zero_point,))


def case(
    kind: OpKind,
    attrs: Attrs,
    inputs: Sequence[Tensor],
    weights: Sequence[Tensor | None],
    out: Tensor,
    values: Sequence[np.ndarray],
) -> Case:
    """One operator over `inputs`, then `weights` (None: absent)."""
    tensors: list[Tensor] = [*inputs]
    operands = list(range(len(inputs)))
    for weight in weights:
        operands.append(-1 if weight is None else len(tensors))
        if weight is not None:
            tensors.append(weight)
    tensors.append(out)
    op = Op(kind, tuple(operands), (len(tensors) - 1,), attrs, 0)
    graph = Graph("case", tuple(tensors), (op,), tuple(range(len(inputs))), op.outputs)
    return Case(graph, tuple(values))


zero_points = st.one_of(st.sampled_from([-128, 127, 0]), st.integers(-128, 127))
seeds = st.integers(0, 2**32 - 1)
activations = st.sampled_from(
    [Activation.NONE, Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1]
)
channels = st.one_of(st.integers(1, 9), st.sampled_from([12, 16, 17]))
sizes = st.integers(1, 9)


def generator(draw: Draw) -> np.random.Generator:
    """One with a seed that is drawn."""
    return np.random.default_rng(draw(seeds))


def random_int8(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Uniform, or one of the extremes throughout, or nothing but extremes."""
    style = rng.integers(8)
    if style == 0:
        return np.full(shape, rng.choice([-128, 127]), np.int8)
    if style == 1:
        return rng.choice(np.array([-128, 127], np.int8), shape)
    return rng.integers(-128, 128, shape, dtype=np.int8)


def random_scale(rng: np.random.Generator) -> float:
    return float(np.float32(2.0 ** rng.uniform(-9, 0)))


def activation_tensor(name: str, shape: Shape, scale: float, zero_point: int) -> Tensor:
    return Tensor(name, shape, DType.INT8, quant(scale, zero_point))


def constant(name: str, data: np.ndarray, quantization: Quantization | None) -> Tensor:
    return Tensor(name, data.shape, DType(data.dtype.name), quantization, data)


BYTES = np.arange(-128, 128, dtype=np.int8)


def every_pair(
    kind: OpKind,
    scales: Sequence[float],
    points: Sequence[int],
    activation: Activation = Activation.NONE,
    shape: Shape = (1, 16, 128, 32),
    *,
    repeated: bool = False,
) -> Case:
    """Two operands with all pairs of bytes; scales and zero points are theirs and the output's.

    `repeated`: the second one has a single channel.
    """
    first, second = (np.ascontiguousarray(x).reshape(shape) for x in np.meshgrid(BYTES, BYTES))
    second = second[..., :1] if repeated else second
    x, y, z = (
        activation_tensor(name, values.shape, float(scale), int(point))
        for name, values, scale, point in zip("xyz", (first, second, first), scales, points, strict=True)
    )
    return case(kind, g.ElementwiseAttrs(activation), [x, y], [], z, [first, second])


# ---- layers with weights ---------------------------------------------------------------------------


def weighted_case(
    rng: np.random.Generator,
    kind: OpKind,
    attrs: Attrs,
    shape: Shape,
    filter_shape: Shape,
    *,
    points: tuple[int, int],
    per_channel: bool = True,
    bias: bool = True,
    out: Shape = (),
) -> Case:
    """A convolution or dense layer; the sum's spread covers about the output's range.

    `points`: zero points of input and output; `out`: the output's shape where the attributes leave it open.
    """
    axis = 3 if kind is OpKind.DEPTHWISE_CONV_2D else 0
    count = filter_shape[axis]
    scale = random_scale(rng)
    scales = tuple(random_scale(rng) for _ in range(count if per_channel else 1))
    spread = 74.0 * 74.0 * math.sqrt(math.prod(filter_shape) // count)
    out_scale = float(np.float32(scale * max(scales) * spread / 2.0 ** rng.uniform(4, 7)))
    bias_tensor = None
    if bias:
        data = rng.normal(0, spread, count).astype(np.int32)
        bias_scales = tuple(float(np.float32(scale * s)) for s in scales)
        bias_tensor = constant("bias", data, Quantization(bias_scales, (0,) * len(scales)))
    out = out or DEFS[kind].shape(Op(kind, (0, 1, -1), (2,), attrs, 0), [shape, filter_shape, ()], [])
    filter_quant = Quantization(scales, (0,) * len(scales), axis)
    weights = [constant("filter", random_int8(rng, filter_shape), filter_quant), bias_tensor]
    x, y = activation_tensor("x", shape, scale, points[0]), activation_tensor("y", out, out_scale, points[1])
    return case(kind, attrs, [x], weights, y, [random_int8(rng, shape)])


def drawn_layer(
    draw: Draw,
    kind: OpKind,
    attrs: Attrs,
    shape: Shape,
    filter_shape: Shape,
    *,
    bias: bool = True,
    out: Shape = (),
) -> Case:
    """`weighted_case` with any zero points, and with one scale or one a channel."""
    rng, points = generator(draw), (draw(zero_points), draw(zero_points))
    per_channel = draw(st.booleans())
    return weighted_case(
        rng, kind, attrs, shape, filter_shape, points=points, per_channel=per_channel, bias=bias, out=out
    )


def with_constants(
    made: Case, weights: np.ndarray, bias: np.ndarray | None = None, scales: np.ndarray | None = None
) -> Case:
    """A layer with other weights, biases (where it has any), and weight scales per channel."""
    fields: dict[str, object] = {"data": weights}
    if scales is not None:
        values = tuple(float(np.float32(s)) for s in scales)
        axis = 3 if made.op.kind is OpKind.DEPTHWISE_CONV_2D else 0
        fields["quant"] = Quantization(values, (0,) * len(values), axis)
    changed = {} if bias is None else {"bias": {"data": bias.astype(np.int32)}}
    return made.changed(filter=fields, **changed)


class Axis(NamedTuple):
    """How a window moves along rows or columns: `before` and `after` are the padding."""

    size: int
    kernel: int
    stride: int = 1
    before: int = 0
    after: int = 0
    dilation: int = 1

    @property
    def out(self) -> int:
        """How many outputs there are."""
        extent = (self.kernel - 1) * self.dilation + 1
        return (self.size + self.before + self.after - extent) // self.stride + 1


def same_axis(size: int, kernel: int, stride: int = 1, dilation: int = 1) -> Axis:
    """SAME padding."""
    total = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return Axis(size, kernel, stride, total // 2, total - total // 2, dilation)


def axis_padding(rows: Axis, columns: Axis) -> Pad:
    return Pad(rows.before, rows.after, columns.before, columns.after)


def conv_of(draw: Draw, rows: Axis, columns: Axis, inputs: int, outputs: int, *, groups: int = 1) -> Case:
    """CONV_2D with a bias; `inputs` and `outputs`: channels of all groups."""
    strides, dilations = (rows.stride, columns.stride), (rows.dilation, columns.dilation)
    attrs = g.ConvAttrs(strides, dilations, axis_padding(rows, columns), draw(activations))
    filter_shape = (outputs, rows.kernel, columns.kernel, inputs // groups)
    return drawn_layer(draw, OpKind.CONV_2D, attrs, (1, rows.size, columns.size, inputs), filter_shape)


def depthwise_conv_of(
    draw: Draw, rows: Axis, columns: Axis, inputs: int, *, multiplier: int = 1, bias: bool = True
) -> Case:
    """DEPTHWISE_CONV_2D."""
    strides, dilations = (rows.stride, columns.stride), (rows.dilation, columns.dilation)
    pad = axis_padding(rows, columns)
    attrs = g.DepthwiseAttrs(strides, dilations, pad, draw(activations), multiplier)
    shape, filter_shape = (1, rows.size, columns.size, inputs), (1, rows.kernel, columns.kernel)
    kind = OpKind.DEPTHWISE_CONV_2D
    return drawn_layer(draw, kind, attrs, shape, (*filter_shape, inputs * multiplier), bias=bias)


def dense_of(draw: Draw, rows: int, inputs: int, outputs: int, *, bias: bool = True) -> Case:
    """FULLY_CONNECTED of some rows of features."""
    attrs = g.FullyConnectedAttrs(draw(activations))
    return drawn_layer(draw, OpKind.FULLY_CONNECTED, attrs, (rows, inputs), (outputs, inputs), bias=bias)


@st.composite
def any_axis(draw: Draw, longest: int = 9) -> Axis:
    """A kernel of up to five, any padding; dilated only where the stride is 1."""
    size, kernel, stride = draw(st.integers(1, longest)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    dilation = draw(st.integers(1, 2)) if stride == 1 else 1
    extent = (kernel - 1) * dilation + 1
    style = draw(st.sampled_from(["valid", "same", "free"]))
    if style == "valid" and extent <= size:
        return Axis(size, kernel, stride, dilation=dilation)
    if style == "free":
        before, after = draw(st.integers(0, extent + 1)), draw(st.integers(0, extent + 1))
        return Axis(size, kernel, stride, before, max(after, extent - size - before), dilation)
    return same_axis(size, kernel, stride, dilation)


@st.composite
def convolutions(draw: Draw) -> Case:
    """CONV_2D, some of them grouped, of any padding; LiteRT demands a bias."""
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    inputs, outputs = draw(channels), draw(channels)
    if groups > 1:
        inputs, outputs = groups * draw(st.integers(1, 4)), groups * draw(st.integers(1, 6))
    return conv_of(draw, draw(any_axis()), draw(any_axis()), inputs, outputs, groups=groups)


@st.composite
def depthwise(draw: Draw) -> Case:
    """DEPTHWISE_CONV_2D with depth multipliers, of any padding."""
    multiplier, bias = draw(st.sampled_from([1, 1, 1, 2, 3])), draw(st.booleans())
    rows, columns = draw(any_axis()), draw(any_axis())
    return depthwise_conv_of(draw, rows, columns, draw(channels), multiplier=multiplier, bias=bias)


@st.composite
def transpose_convolutions(draw: Draw) -> Case:
    """TRANSPOSE_CONV, SAME or VALID."""
    same, bias = draw(st.booleans()), draw(st.booleans())
    (height, width), kernel = (draw(st.tuples(*[st.integers(1, 5)] * 2)) for _ in range(2))
    stride = draw(st.tuples(*[st.integers(1, 3)] * 2))
    out, pads = [], []
    for size, taps, step in zip((height, width), kernel, stride, strict=True):
        out.append(size * step if same else (size - 1) * step + taps)
        total = max((size - 1) * step + taps - out[-1], 0)
        pads += [total // 2, total - total // 2]
    inputs, outputs = draw(channels), draw(channels)
    attrs = g.ConvAttrs(stride, (1, 1), Pad(*pads), Activation.NONE)
    shape, filter_shape = (1, height, width, inputs), (outputs, *kernel, inputs)
    made = (1, *out, outputs)
    return drawn_layer(draw, OpKind.TRANSPOSE_CONV, attrs, shape, filter_shape, bias=bias, out=made)


@st.composite
def dense(draw: Draw) -> Case:
    """FULLY_CONNECTED of one or more rows of features."""
    bias = draw(st.booleans())
    return dense_of(draw, draw(st.integers(1, 4)), draw(st.integers(1, 40)), draw(channels), bias=bias)


# ---- several operands ------------------------------------------------------------------------------


def sum_of(draw: Draw, first: Shape, second: Shape) -> Case:
    """ADD, SUB or MUL of tensors of these shapes."""
    kind = draw(st.sampled_from([OpKind.ADD, OpKind.SUB, OpKind.MUL]))
    rng = generator(draw)
    scales = [random_scale(rng), random_scale(rng)]
    spread = scales[0] * scales[1] * 74 * 74 if kind is OpKind.MUL else max(scales) * 74
    tensors = [
        activation_tensor(name, shape, scale, draw(zero_points))
        for name, shape, scale in zip("ab", (first, second), scales, strict=True)
    ]
    full = np.broadcast_shapes(first, second)
    out = activation_tensor("y", full, spread / 2.0 ** rng.uniform(4, 7), draw(zero_points))
    values = [random_int8(rng, first), random_int8(rng, second)]
    return case(kind, g.ElementwiseAttrs(draw(activations)), tensors, [], out, values)


def _broadcast(draw: Draw, count: int) -> tuple[Shape, list[Shape]]:
    """A shape, and those of operands that broadcast to it."""
    full = (1, draw(sizes), draw(sizes), draw(channels))
    axes = [draw(st.integers(0, 2 * count)) for _ in range(3)]  # which operand repeats itself, if any
    return full, [
        (1, *(1 if axis == i else n for n, axis in zip(full[1:], axes, strict=True))) for i in range(count)
    ]


@st.composite
def elementwise(draw: Draw) -> Case:
    """ADD, SUB, MUL with broadcasting on either side."""
    return sum_of(draw, *_broadcast(draw, 2)[1])


PAIRED = (
    *(OpKind.MAXIMUM, OpKind.MINIMUM, OpKind.SQUARED_DIFFERENCE, OpKind.DIV, OpKind.SELECT_V2),
    *sorted(COMPARISONS),
)


@st.composite
def pairs(draw: Draw, kinds: Sequence[OpKind] = PAIRED) -> Case:
    """MAXIMUM, MINIMUM, SQUARED_DIFFERENCE, DIV, comparisons and SELECT_V2, with broadcasting on any side."""
    kind = draw(st.sampled_from(kinds))
    full, shapes = _broadcast(draw, 3 if kind is OpKind.SELECT_V2 else 2)
    rng = generator(draw)
    values = [random_int8(rng, shape) for shape in shapes]
    quants = [quant(random_scale(rng) * 0.99, draw(zero_points)) for _ in shapes]
    tensors = [
        Tensor(name, shape, DType.INT8, q) for name, shape, q in zip("abc", shapes, quants, strict=False)
    ]
    first, second = (q.scale for q in quants[:2])
    spread, attrs = first, Attrs()
    if kind is OpKind.SQUARED_DIFFERENCE:
        spread = (max(first, second) * 74) ** 2 / 2.0 ** rng.uniform(4, 7)
    elif kind is OpKind.DIV:
        zero = quants[1].zero_point
        values[1][values[1] == zero] = zero + 1 if zero < 127 else zero - 1
        spread, attrs = first / second / 2.0 ** rng.uniform(0, 7), g.QuotientAttrs(draw(activations))
    elif kind is OpKind.SELECT_V2:
        values[0] = values[0] > 0
        tensors[0] = Tensor("a", shapes[0], DType.BOOL)
    out = activation_tensor("y", full, spread, draw(zero_points))
    if kind in COMPARISONS:
        out = Tensor("y", full, DType.BOOL)
    return case(kind, attrs, tensors, [], out, values)


@st.composite
def prelu(draw: Draw) -> Case:
    """PRELU whose alpha is a channel's, a row's, or everyone's."""
    full = (1, draw(sizes), draw(sizes), draw(channels))
    alpha_shape = tuple(n if draw(st.booleans()) else 1 for n in full[1:])
    rng = generator(draw)
    scale, alpha_scale = random_scale(rng), random_scale(rng)
    alpha = constant("alpha", random_int8(rng, alpha_shape), quant(alpha_scale, draw(zero_points)))
    out_scale = scale * max(1.0, alpha_scale * 74) * 2.0 ** rng.uniform(-1, 1)
    x = activation_tensor("x", full, scale, draw(zero_points))
    out = activation_tensor("y", full, out_scale, draw(zero_points))
    return case(OpKind.PRELU, Attrs(), [x], [alpha], out, [random_int8(rng, full)])


# ---- one operand -----------------------------------------------------------------------------------


@st.composite
def normalisations(draw: Draw) -> Case:
    """L2_NORMALIZATION and LOG_SOFTMAX over few channels and over many."""
    kind = draw(st.sampled_from([OpKind.L2_NORMALIZATION, OpKind.LOG_SOFTMAX]))
    shape = (1, draw(sizes), draw(sizes), draw(st.one_of(channels, st.integers(1, 90))))
    rng = generator(draw)
    x = activation_tensor("x", shape, random_scale(rng) * 2, draw(zero_points))
    out = Tensor("y", shape, DType.INT8, DEFS[kind].output)
    return case(kind, Attrs(), [x], [], out, [random_int8(rng, shape)])


TABLES = (
    *(OpKind.LOGISTIC, OpKind.TANH, OpKind.HARD_SWISH, OpKind.RELU, OpKind.RELU6, OpKind.LEAKY_RELU),
    *(OpKind.ABS, OpKind.EXP, OpKind.LOG, OpKind.GELU, OpKind.QUANTIZE),
)


@st.composite
def tables(draw: Draw) -> Case:
    """The functions of one element; all 256 values occur."""
    kind, rng = draw(st.sampled_from(TABLES)), generator(draw)
    shape, scale = (1, 4, draw(st.integers(1, 5)), 64), random_scale(rng)
    own = quant(scale * 2.0 ** rng.uniform(-1, 1), draw(zero_points))
    out = Tensor("y", shape, DType.INT8, DEFS[kind].output or own)
    attrs = g.LeakyReluAttrs(float(np.float32(rng.uniform(0, 1)))) if kind is OpKind.LEAKY_RELU else Attrs()
    attrs = g.GeluAttrs(draw(st.booleans())) if kind is OpKind.GELU else attrs
    x = activation_tensor("x", shape, scale, draw(zero_points))
    return case(kind, attrs, [x], [], out, [np.resize(BYTES, shape)])


@st.composite
def softmaxes(draw: Draw) -> Case:
    """SOFTMAX over a few or many classes."""
    classes = draw(st.sampled_from([1, 2, 3, 10, 257, 1001]))
    shape = (1, draw(st.integers(1, 3)), draw(st.integers(1, 3)), classes)
    rng = generator(draw)
    # LiteRT aborts on rows so even that every probability vanishes (see test_activations.py).
    scale = 2.0 ** rng.uniform(-5 if classes > 500 else -9, 0)
    x = activation_tensor("x", shape, scale, draw(zero_points))
    attrs = g.SoftmaxAttrs(draw(st.sampled_from([1.0, 1.0, 0.5, 2.0])))
    values = rng.integers(-128, 128, shape, dtype=np.int8)
    return case(OpKind.SOFTMAX, attrs, [x], [], activation_tensor("y", shape, 1 / 256, -128), [values])


def moved(draw: Draw, kind: OpKind, attrs: Attrs, shape: Shape, out: Shape) -> Case:
    """An operator whose output has the quantisation of its only input."""
    rng = generator(draw)
    scale, zero_point = random_scale(rng), draw(zero_points)
    x, y = (activation_tensor(name, of, scale, zero_point) for name, of in (("x", shape), ("y", out)))
    return case(kind, attrs, [x], [], y, [random_int8(rng, shape)])


def pool_of(draw: Draw, rows: Axis, columns: Axis, count: int) -> Case:
    """AVERAGE_POOL_2D or MAX_POOL_2D."""
    kind = draw(st.sampled_from([OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D]))
    pad, strides = axis_padding(rows, columns), (rows.stride, columns.stride)
    attrs = g.PoolAttrs((rows.kernel, columns.kernel), strides, pad, draw(activations))
    return moved(draw, kind, attrs, (1, rows.size, columns.size, count), (1, rows.out, columns.out, count))


@st.composite
def pools(draw: Draw) -> Case:
    """AVERAGE_POOL_2D and MAX_POOL_2D, SAME or VALID."""
    same, axes = draw(st.booleans()), []
    for _ in range(2):
        size, stride = draw(sizes), draw(st.integers(1, 3))
        kernel = draw(st.integers(1, 5 if same else min(5, size)))
        axes.append(same_axis(size, kernel, stride) if same else Axis(size, kernel, stride))
    return pool_of(draw, *axes, draw(channels))


@st.composite
def resizes(draw: Draw) -> Case:
    """RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR, up and down."""
    kind = draw(st.sampled_from([OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR]))
    both = [(True, True)] if kind is OpKind.RESIZE_NEAREST_NEIGHBOR else []
    attrs = g.ResizeAttrs(*draw(st.sampled_from([(False, False), (True, False), (False, True), *both])))
    count = draw(channels)
    out = (1, draw(st.integers(1, 20)), draw(st.integers(1, 20)), count)
    return moved(draw, kind, attrs, (1, draw(sizes), draw(sizes), count), out)


@st.composite
def mirror_pads(draw: Draw) -> Case:
    """MIRROR_PAD, reflecting and symmetric."""
    mode = draw(st.sampled_from([g.PadMode.REFLECT, g.PadMode.SYMMETRIC]))
    edge = 1 if mode is g.PadMode.REFLECT else 0
    shape = (1, draw(sizes), draw(sizes), draw(st.integers(1, 5)))
    paddings = tuple((draw(st.integers(0, n - edge)), draw(st.integers(0, n - edge))) for n in shape)
    out = tuple(n + sum(p) for n, p in zip(shape, paddings, strict=True))
    return moved(draw, OpKind.MIRROR_PAD, g.PadAttrs(paddings, mode), shape, out)


@st.composite
def means(draw: Draw) -> Case:
    """MEAN over any axes."""
    shape = (draw(st.integers(1, 3)), draw(sizes), draw(sizes), draw(channels))
    axes = tuple(sorted(draw(st.sets(st.integers(0, 3), min_size=1, max_size=3))))
    keep = draw(st.booleans())
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    out_shape = kept if keep else tuple(n for i, n in enumerate(shape) if i not in axes)
    rng = generator(draw)
    scale = random_scale(rng)
    x = activation_tensor("x", shape, scale, draw(zero_points))
    out = activation_tensor("y", out_shape, scale * 2.0 ** rng.uniform(-4, 2), draw(zero_points))
    return case(OpKind.MEAN, g.MeanAttrs(axes, keep), [x], [], out, [random_int8(rng, shape)])


# What a kernel computes window by window from views.
windowed = {
    "convolution": convolutions(),
    "depthwise": depthwise(),
    "transpose_convolution": transpose_convolutions(),
    "dense": dense(),
    "elementwise": elementwise(),
    "pairs": pairs(),
    "prelu": prelu(),
    "table": tables(),
    "softmax": softmaxes(),
    "normalisation": normalisations(),
    "pool": pools(),
    "resize": resizes(),
}
