"""Random one-operator graphs with inputs, for the kernels' tests. Many come from `graphs`.

Each strategy draws a `Case`. Zero points and values reach the extremes, half of the channel counts are odd,
and requantisation factors let outputs use their range and sometimes saturate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from graphs import graphs_of_one_of, inputs_for, patterns
from hypothesis import strategies as st

from buildtool.graph import types as g
from buildtool.graph.ops import COMPARISONS
from buildtool.graph.types import Activation, Attrs, DType, Graph, Op, OpKind, Pad, Quantization, Tensor
from buildtool.zoo.drawn import NetBuilder

CONV, DEPTHWISE, DENSE = OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.FULLY_CONNECTED
BYTES = np.arange(-128, 128, dtype=np.int8)
Shape = tuple[int, ...]
Pair = tuple[int, int]


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


# ---- one operator ------------------------------------------------------------------------------


def quant(scale: float, zero_point: int = 0) -> Quantization:
    """Returns a per-tensor quantisation with the scale rounded to float32."""
    return Quantization((float(np.float32(scale)),), (int(zero_point),))


def activation_tensor(name: str, shape: Shape, scale: float, zero_point: int) -> Tensor:
    return Tensor(name, shape, DType.INT8, quant(scale, zero_point))


def constant(name: str, data: np.ndarray, quantization: Quantization | None) -> Tensor:
    return Tensor(name, data.shape, DType(data.dtype.name), quantization, data)


def case(
    kind: OpKind,
    attrs: Attrs,
    inputs: Sequence[Tensor],
    weights: Sequence[Tensor | None],
    out: Tensor,
    values: Sequence[np.ndarray],
) -> Case:
    """Returns a case of one operator over `inputs`, then `weights` (None: absent)."""
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


def random_int8(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Draws uniform values; sometimes one extreme throughout, or both extremes."""
    style = rng.integers(8)
    if style == 0:
        return np.full(shape, rng.choice([-128, 127]), np.int8)
    if style == 1:
        return rng.choice(np.array([-128, 127], np.int8), shape)
    return rng.integers(-128, 128, shape, dtype=np.int8)


def random_scale(rng: np.random.Generator) -> float:
    return float(np.float32(2.0 ** rng.uniform(-9, 0)))


def unary(
    kind: OpKind,
    attrs: Attrs,
    shape: Shape,
    values: object,
    *,
    out: Shape = (),
    scales: tuple[float, float] = (1.0, 1.0),
    points: Pair = (0, 0),
    dtype: DType = DType.INT8,
    made: DType | None = None,
) -> Case:
    """Returns a case with one input. `values`: broadcast to its shape, or a generator that draws int8.

    `out`, `made`: shape and type of the output. Default: the input's.
    """
    x = Tensor("x", shape, dtype, quant(scales[0], points[0]))
    y = Tensor("y", out or shape, made or dtype, quant(scales[1], points[1]))
    if isinstance(values, np.random.Generator):
        values = random_int8(values, shape)
    return case(kind, attrs, [x], [], y, [np.broadcast_to(np.asarray(values, dtype.value), shape)])


def binary(
    kind: OpKind,
    activation: Activation,
    scales: Sequence[float],
    points: Sequence[int],
    values: Sequence[np.ndarray],
) -> Case:
    """Returns a case with two operands that broadcast. The last scale and zero point are the output's."""
    shapes = [value.shape for value in values]
    shapes.append(np.broadcast_shapes(*shapes))
    *inputs, out = map(activation_tensor, "aby", shapes, scales, points)
    return case(kind, g.ElementwiseAttrs(activation), inputs, [], out, values)


def every_pair(
    kind: OpKind,
    scales: Sequence[float],
    points: Sequence[int],
    activation: Activation = Activation.NONE,
    shape: Shape = (1, 16, 128, 32),
    *,
    repeated: bool = False,
) -> Case:
    """Returns a case with all pairs of bytes. `repeated`: the second operand has one channel."""
    first, second = (np.ascontiguousarray(x).reshape(shape) for x in np.meshgrid(BYTES, BYTES))
    return binary(kind, activation, scales, points, [first, second[..., :1] if repeated else second])


# ---- convolutions and dense layers -----------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """A window along rows or columns. `before` and `after` are padding."""

    size: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0

    @classmethod
    def same(cls, size: int, kernel: int, stride: int, dilation: int = 1) -> Axis:
        total = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
        return cls(size, kernel, stride, dilation, total // 2, total - total // 2)

    @property
    def outputs(self) -> int:
        extent = (self.kernel - 1) * self.dilation + 1
        return (self.size + self.before + self.after - extent) // self.stride + 1


def padding(rows: Axis, columns: Axis) -> Pad:
    return Pad(rows.before, rows.after, columns.before, columns.after)


def layer(
    rng: np.random.Generator,
    kind: OpKind,
    rows: Axis,
    columns: Axis,
    cin: int,
    cout: int,
    activation: Activation = Activation.NONE,
    *,
    points: Pair = (0, 0),
    per_channel: bool = True,
    bias: bool = True,
    groups: int = 1,
) -> Case:
    """A convolution, or a dense layer of `rows.size` rows. `points`: zero points of input and output."""
    net = NetBuilder(0)
    net.rng = rng
    shape = (rows.size, cin) if kind is DENSE else (1, rows.size, columns.size, cin)
    x = net.input(shape, q=quant(random_scale(rng), points[0]))
    more = {"activation": activation, "per_channel": per_channel, "bias": bias}
    if kind is DENSE:
        y = net.dense(x, cout, **more)
    else:
        kernel, stride = (rows.kernel, columns.kernel), (rows.stride, columns.stride)
        more |= {
            "dilation": (rows.dilation, columns.dilation),
            "pad": padding(rows, columns),
            "groups": groups,
        }
        multiplier = cout // cin if kind is DEPTHWISE else 0
        y = net.conv(x, cout, kernel=kernel, stride=stride, depth_multiplier=multiplier, **more)
    tensor = net.tensors[y]
    net.tensors[y] = dataclasses.replace(tensor, quant=quant(tensor.quant.scale, points[1]))
    return Case(net.graph([y]), (random_int8(rng, shape),))


def changed(
    made: Case,
    weights: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    scales: np.ndarray | None = None,
    *,
    steps: tuple[float, float] | None = None,
    values: np.ndarray | None = None,
) -> Case:
    """Changes a layer's weights, biases, scales by channel, scales of input and output (`steps`), inputs."""
    tensors, op = list(made.graph.tensors), made.op
    index, place = op.inputs[1], op.inputs[2] if len(op.inputs) > 2 else -1
    if weights is not None:
        tensors[index] = dataclasses.replace(tensors[index], data=weights, shape=weights.shape)
    if scales is not None:
        each = tuple(float(np.float32(s)) for s in scales)
        axis = tensors[index].quant.axis
        tensors[index] = dataclasses.replace(tensors[index], quant=Quantization(each, (0,) * len(each), axis))
    if bias is not None and place >= 0:
        tensors[place] = dataclasses.replace(tensors[place], data=bias.astype(np.int32))
    for end, scale in zip((op.inputs[0], op.outputs[0]), steps or (), strict=False):
        tensors[end] = dataclasses.replace(
            tensors[end], quant=quant(scale, tensors[end].quant.zero_points[0])
        )
    inputs = made.inputs if values is None else (values,)
    return Case(dataclasses.replace(made.graph, tensors=tuple(tensors)), inputs)


# ---- strategies --------------------------------------------------------------------------------


zero_points = st.one_of(st.sampled_from([-128, 127, 0]), st.integers(-128, 127))
seeds = st.integers(0, 2**32 - 1)
activations = st.sampled_from(
    [Activation.NONE, Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1]
)
channels = st.one_of(st.integers(1, 9), st.sampled_from([12, 16, 17]))
sizes = st.integers(1, 9)


def draw_layer(draw, kind: OpKind, rows: Axis, columns: Axis, cin: int, cout: int, **more) -> Case:
    """A layer with drawn numbers. `more` may fix the activation."""
    rng, points = np.random.default_rng(draw(seeds)), (draw(zero_points), draw(zero_points))
    activation = more.pop("activation", None) or draw(activations)
    per_channel = draw(st.booleans())
    return layer(
        rng, kind, rows, columns, cin, cout, activation, points=points, per_channel=per_channel, **more
    )


@st.composite
def windows(draw, size: int) -> Axis:
    """Any window along `size` rows or columns, with any padding."""
    kernel, stride = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    dilation = draw(st.integers(1, 2)) if stride == 1 else 1
    extent = (kernel - 1) * dilation + 1
    style = draw(st.sampled_from(["valid", "same", "free"]))
    if style == "valid" and extent <= size:
        return Axis(size, kernel, stride, dilation)
    if style != "free":
        return Axis.same(size, kernel, stride, dilation)
    before, after = draw(st.integers(0, extent + 1)), draw(st.integers(0, extent + 1))
    return Axis(size, kernel, stride, dilation, before, max(after, extent - size - before))


@st.composite
def convolutions(draw) -> Case:
    """CONV_2D of any padding, sometimes grouped. LiteRT demands a bias."""
    rows, columns = (draw(windows(draw(sizes))) for _ in range(2))
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    cin, cout = draw(channels), draw(channels)
    if groups > 1:
        cin, cout = groups * draw(st.integers(1, 4)), groups * draw(st.integers(1, 6))
    return draw_layer(draw, CONV, rows, columns, cin, cout, groups=groups)


@st.composite
def depthwise(draw) -> Case:
    """DEPTHWISE_CONV_2D with depth multipliers, of any padding."""
    rows, columns = (draw(windows(draw(sizes))) for _ in range(2))
    multiplier, cin = draw(st.sampled_from([1, 1, 1, 2, 3])), draw(channels)
    return draw_layer(draw, DEPTHWISE, rows, columns, cin, cin * multiplier, bias=draw(st.booleans()))


@st.composite
def dense(draw) -> Case:
    """FULLY_CONNECTED of one or more rows of features."""
    rows, inputs = Axis(draw(st.integers(1, 4))), draw(st.integers(1, 40))
    return draw_layer(draw, DENSE, rows, Axis(1), inputs, draw(channels), bias=draw(st.booleans()))


@st.composite
def alone(draw, *kinds: OpKind) -> Case:
    """An operator of one of these kinds, with batch 1 and int8 inputs that are each used once."""

    def is_plain(graph: Graph) -> bool:
        (op, *others), ends = graph.ops, [graph.tensors[t] for t in (*graph.inputs, *graph.outputs)]
        used = tuple(op.inputs) if isinstance(op.attrs, g.ElementwiseAttrs) else op.inputs[:1]
        batched = [t for t in ends if len(t.shape) >= 4]
        is_one_batch = all(t.shape[0] == 1 for t in batched[:1])
        return (
            not others and used == graph.inputs and is_one_batch and {t.dtype for t in ends} == {DType.INT8}
        )

    graph = draw(graphs_of_one_of(kinds).filter(is_plain))
    return Case(graph, tuple(inputs_for(graph, draw(seeds), draw(patterns))))


def draw_pair(draw, shapes: Sequence[Shape]) -> Case:
    net, kind = NetBuilder(draw(seeds)), draw(st.sampled_from([OpKind.ADD, OpKind.SUB, OpKind.MUL]))
    y = net.elementwise(kind, *map(net.input, shapes), draw(activations))
    return Case(net.graph([y]), tuple(random_int8(net.rng, shape) for shape in shapes))


PAIRED = (
    *(OpKind.MAXIMUM, OpKind.MINIMUM, OpKind.SQUARED_DIFFERENCE, OpKind.DIV, OpKind.SELECT_V2),
    *sorted(COMPARISONS),
)


@st.composite
def pairs(draw, kinds: Sequence[OpKind] = PAIRED) -> Case:
    """MAXIMUM, MINIMUM, SQUARED_DIFFERENCE, DIV, comparisons and SELECT_V2, with broadcasting on any side."""
    kind = draw(st.sampled_from(kinds))
    full, count = (draw(sizes), draw(sizes), draw(channels)), 3 if kind is OpKind.SELECT_V2 else 2
    repeated = [draw(st.integers(0, 2 * count)) for _ in full]  # the operand, if any, that is broadcast
    shapes = [
        (1, *(1 if i == axis else n for n, axis in zip(full, repeated, strict=True))) for i in range(count)
    ]
    net = NetBuilder(draw(seeds))
    values = [random_int8(net.rng, shape) for shape in shapes]
    if kind is OpKind.SELECT_V2:
        values[0] = values[0] > 0
        y = net.select(net.feed(shapes[0], None, DType.BOOL), *map(net.input, shapes[1:]))
        return Case(net.graph([y]), tuple(values))
    a, b = map(net.input, shapes)
    if kind is OpKind.DIV:
        zero = net.tensors[b].quant.zero_point
        values[1][values[1] == zero] = zero + 1 if zero < 127 else zero - 1
        q = net.random_quant(net.scale(a) / net.scale(b) / 2.0 ** net.rng.uniform(0, 7))
        y = net.op(kind, (a, b), g.QuotientAttrs(draw(activations)), q)
    else:
        y = net.pair(kind, a, b)
    return Case(net.graph([y]), tuple(values))


TABLES = (
    *(OpKind.LOGISTIC, OpKind.TANH, OpKind.HARD_SWISH, OpKind.RELU, OpKind.RELU6, OpKind.LEAKY_RELU),
    *(OpKind.ABS, OpKind.EXP, OpKind.LOG, OpKind.GELU),
)


def draw_pool(draw, rows: Axis, columns: Axis, count: int, value: int | None = None) -> Case:
    """AVERAGE_POOL_2D or MAX_POOL_2D of `count` channels. With `value`, an average whose padding counts."""
    window = (rows.kernel, columns.kernel), (rows.stride, columns.stride), padding(rows, columns)
    if value is None:
        kind = draw(st.sampled_from([OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D]))
        attrs = g.PoolAttrs(*window, draw(activations))
    else:
        kind, attrs = OpKind.AVERAGE_POOL_2D, g.FilledPoolAttrs(*window, draw(activations), value)
    out = (1, rows.outputs, columns.outputs, count)
    rng, point = np.random.default_rng(draw(seeds)), draw(zero_points)
    scales, shape = (random_scale(rng),) * 2, (1, rows.size, columns.size, count)
    return unary(kind, attrs, shape, rng, out=out, scales=scales, points=(point, point))


def means() -> st.SearchStrategy[Case]:
    return alone(OpKind.MEAN)


# Operators that kernels compute window by window from views.
windowed = {
    "convolution": convolutions(),
    "depthwise": depthwise(),
    "transpose_convolution": alone(OpKind.TRANSPOSE_CONV),
    "dense": dense(),
    "elementwise": alone(OpKind.ADD, OpKind.SUB, OpKind.MUL),
    "pairs": pairs(),
    "prelu": alone(OpKind.PRELU),
    "table": alone(*TABLES),
    "softmax": alone(OpKind.SOFTMAX),
    "normalisation": alone(OpKind.L2_NORMALIZATION, OpKind.LOG_SOFTMAX),
    "pool": alone(OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D),
    "resize": alone(OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR),
}
