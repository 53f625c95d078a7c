"""Random one-operator graphs for the kernels' tests, with inputs to run them on.

Each strategy gives a `Case`; zero points and values reach the extremes, channel counts are odd as often
as not, and requantisation factors are such that outputs use their range and sometimes saturate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from buildtool.graph.ops import COMPARISONS
from buildtool.graph.types import (
    Activation,
    Attrs,
    ConvAttrs,
    DepthwiseAttrs,
    DType,
    ElementwiseAttrs,
    FullyConnectedAttrs,
    GeluAttrs,
    Graph,
    LeakyReluAttrs,
    MeanAttrs,
    Op,
    OpKind,
    Pad,
    PadAttrs,
    PadMode,
    PoolAttrs,
    Quantization,
    QuotientAttrs,
    ResizeAttrs,
    SoftmaxAttrs,
    Tensor,
)

Shape = tuple[int, ...]


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
    """Of two operands with all pairs of bytes; scales and zero points are theirs and the output's.

    `repeated`: the second one has a single channel.
    """
    first, second = (np.ascontiguousarray(x).reshape(shape) for x in np.meshgrid(BYTES, BYTES))
    second = second[..., :1] if repeated else second
    x, y, z = (
        activation_tensor(name, values.shape, float(scale), int(point))
        for name, values, scale, point in zip("xyz", (first, second, first), scales, points, strict=True)
    )
    return case(kind, ElementwiseAttrs(activation), [x, y], [], z, [first, second])


def _weighted(
    rng: np.random.Generator,
    zps: tuple[int, int],
    per_channel: bool,
    bias: bool,
    in_shape: Shape,
    filter_shape: Shape,
    axis: int,
    out_shape: Shape,
    kind: OpKind,
    attrs: Attrs,
) -> Case:
    """A convolution or dense layer; the sum's spread covers about the output's range."""
    count = filter_shape[axis]
    scale = random_scale(rng)
    scales = tuple(random_scale(rng) for _ in range(count if per_channel else 1))
    taps = int(np.prod(filter_shape)) // count
    spread = 74.0 * 74.0 * np.sqrt(taps)
    out_scale = float(np.float32(scale * max(scales) * spread / 2.0 ** rng.uniform(4, 7)))
    filter_quant = Quantization(scales, (0,) * len(scales), axis % len(filter_shape))
    bias_tensor = None
    if bias:
        data = rng.normal(0, spread, count).astype(np.int32)
        bias_scales = tuple(float(np.float32(scale * s)) for s in scales)
        bias_tensor = constant("bias", data, Quantization(bias_scales, (0,) * len(scales)))
    x = activation_tensor("x", in_shape, scale, zps[0])
    y = activation_tensor("y", out_shape, out_scale, zps[1])
    weights = constant("filter", random_int8(rng, filter_shape), filter_quant)
    return case(kind, attrs, [x], [weights, bias_tensor], y, [random_int8(rng, in_shape)])


@st.composite
def _window(draw, size: int, *, dilate: bool = True) -> tuple[int, int, int, int, int, int]:
    """(kernel, stride, dilation, pad before, pad after, outputs) along one dimension."""
    kernel = draw(st.integers(1, 5))
    stride = draw(st.integers(1, 3))
    dilation = draw(st.integers(1, 2)) if dilate and stride == 1 else 1
    extent = (kernel - 1) * dilation + 1
    style = draw(st.sampled_from(["valid", "same", "free"]))
    if style == "valid" and extent <= size:
        before = after = 0
    elif style == "free":
        before, after = draw(st.integers(0, extent + 1)), draw(st.integers(0, extent + 1))
        after = max(after, extent - size - before)
    else:
        out = -(-size // stride)
        total = max((out - 1) * stride + extent - size, 0)
        before, after = total // 2, total - total // 2
    return kernel, stride, dilation, before, after, (size + before + after - extent) // stride + 1


@st.composite
def convolutions(draw) -> Case:
    """CONV_2D, some of them grouped, of any padding; LiteRT demands a bias."""
    h, w = draw(sizes), draw(sizes)
    rows, cols = draw(_window(h)), draw(_window(w))
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    cin, cout = groups * draw(channels), groups * draw(channels)
    if groups > 1:
        cin, cout = groups * draw(st.integers(1, 4)), groups * draw(st.integers(1, 6))
    attrs = ConvAttrs(
        (rows[1], cols[1]), (rows[2], cols[2]), Pad(rows[3], rows[4], cols[3], cols[4]), draw(activations)
    )
    rng = np.random.default_rng(draw(seeds))
    return _weighted(
        rng,
        (draw(zero_points), draw(zero_points)),
        draw(st.booleans()),
        True,
        (1, h, w, cin),
        (cout, rows[0], cols[0], cin // groups),
        0,
        (1, rows[5], cols[5], cout),
        OpKind.CONV_2D,
        attrs,
    )


@st.composite
def depthwise(draw) -> Case:
    """DEPTHWISE_CONV_2D with depth multipliers, of any padding."""
    h, w = draw(sizes), draw(sizes)
    rows, cols = draw(_window(h)), draw(_window(w))
    multiplier = draw(st.sampled_from([1, 1, 1, 2, 3]))
    cin = draw(channels)
    attrs = DepthwiseAttrs(
        (rows[1], cols[1]),
        (rows[2], cols[2]),
        Pad(rows[3], rows[4], cols[3], cols[4]),
        draw(activations),
        multiplier,
    )
    rng = np.random.default_rng(draw(seeds))
    return _weighted(
        rng,
        (draw(zero_points), draw(zero_points)),
        draw(st.booleans()),
        draw(st.booleans()),
        (1, h, w, cin),
        (1, rows[0], cols[0], cin * multiplier),
        3,
        (1, rows[5], cols[5], cin * multiplier),
        OpKind.DEPTHWISE_CONV_2D,
        attrs,
    )


@st.composite
def transpose_convolutions(draw) -> Case:
    """TRANSPOSE_CONV, SAME or VALID."""
    shape, pads, kernels, strides = [], [], [], []
    same = draw(st.booleans())
    for _ in range(2):
        size, kernel, stride = draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
        out = size * stride if same else (size - 1) * stride + kernel
        total = max((size - 1) * stride + kernel - out, 0) if same else 0
        shape.append((size, out))
        pads += [total // 2, total - total // 2]
        kernels.append(kernel)
        strides.append(stride)
    cin, cout = draw(channels), draw(channels)
    attrs = ConvAttrs((strides[0], strides[1]), (1, 1), Pad(*pads), Activation.NONE)
    rng = np.random.default_rng(draw(seeds))
    return _weighted(
        rng,
        (draw(zero_points), draw(zero_points)),
        draw(st.booleans()),
        draw(st.booleans()),
        (1, shape[0][0], shape[1][0], cin),
        (cout, *kernels, cin),
        0,
        (1, shape[0][1], shape[1][1], cout),
        OpKind.TRANSPOSE_CONV,
        attrs,
    )


@st.composite
def dense(draw) -> Case:
    """FULLY_CONNECTED of one or more rows of features."""
    rows, inputs, outputs = draw(st.integers(1, 4)), draw(st.integers(1, 40)), draw(channels)
    attrs = FullyConnectedAttrs(draw(activations))
    rng = np.random.default_rng(draw(seeds))
    return _weighted(
        rng,
        (draw(zero_points), draw(zero_points)),
        draw(st.booleans()),
        draw(st.booleans()),
        (rows, inputs),
        (outputs, inputs),
        0,
        (rows, outputs),
        OpKind.FULLY_CONNECTED,
        attrs,
    )


@st.composite
def elementwise(draw) -> Case:
    """ADD, SUB, MUL with broadcasting on either side."""
    full = (1, draw(sizes), draw(sizes), draw(channels))
    keep = [
        draw(st.sampled_from([(True, True), (True, True), (True, False), (False, True)])) for _ in range(3)
    ]
    a, b = ((1, *(n if k[i] else 1 for n, k in zip(full[1:], keep, strict=True))) for i in range(2))
    kind = draw(st.sampled_from([OpKind.ADD, OpKind.SUB, OpKind.MUL]))
    rng = np.random.default_rng(draw(seeds))
    scales = [random_scale(rng), random_scale(rng)]
    spread = scales[0] * scales[1] * 74 * 74 if kind is OpKind.MUL else max(scales) * 74
    out_scale = spread / 2.0 ** rng.uniform(4, 7)
    x, y = (
        activation_tensor(n, s, scale, draw(zero_points))
        for n, s, scale in zip("ab", (a, b), scales, strict=True)
    )
    out = activation_tensor("y", full, out_scale, draw(zero_points))
    attrs = ElementwiseAttrs(draw(activations))
    return case(kind, attrs, [x, y], [], out, [random_int8(rng, a), random_int8(rng, b)])


def _broadcast(draw, count: int) -> tuple[Shape, list[Shape]]:
    """A shape, and those of operands that broadcast to it."""
    full = (1, draw(sizes), draw(sizes), draw(channels))
    axes = [draw(st.integers(0, 2 * count)) for _ in range(3)]  # which operand repeats itself, if any
    parts = [
        (1, *(1 if axis == i else n for n, axis in zip(full[1:], axes, strict=True))) for i in range(count)
    ]
    return full, parts


PAIRED = (
    *(OpKind.MAXIMUM, OpKind.MINIMUM, OpKind.SQUARED_DIFFERENCE, OpKind.DIV, OpKind.SELECT_V2),
    *sorted(COMPARISONS),
)


@st.composite
def pairs(draw, kinds: Sequence[OpKind] = PAIRED) -> Case:
    """MAXIMUM, MINIMUM, SQUARED_DIFFERENCE, DIV, comparisons and SELECT_V2, with broadcasting on any side."""
    kind = draw(st.sampled_from(kinds))
    full, shapes = _broadcast(draw, 3 if kind is OpKind.SELECT_V2 else 2)
    rng = np.random.default_rng(draw(seeds))
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
        spread, attrs = first / second / 2.0 ** rng.uniform(0, 7), QuotientAttrs(draw(activations))
    elif kind is OpKind.SELECT_V2:
        values[0] = values[0] > 0
        tensors[0] = Tensor("a", shapes[0], DType.BOOL)
    out = activation_tensor("y", full, spread, draw(zero_points))
    if kind in COMPARISONS:
        out = Tensor("y", full, DType.BOOL)
    return case(kind, attrs, tensors, [], out, values)


@st.composite
def normalisations(draw) -> Case:
    """L2_NORMALIZATION and LOG_SOFTMAX over few channels and over many."""
    kind = draw(st.sampled_from([OpKind.L2_NORMALIZATION, OpKind.LOG_SOFTMAX]))
    shape = (1, draw(sizes), draw(sizes), draw(st.one_of(channels, st.integers(1, 90))))
    rng = np.random.default_rng(draw(seeds))
    x = activation_tensor("x", shape, random_scale(rng) * 2, draw(zero_points))
    fixed = (1 / 128, 0) if kind is OpKind.L2_NORMALIZATION else (1 / 16, 127)
    return case(kind, Attrs(), [x], [], activation_tensor("y", shape, *fixed), [random_int8(rng, shape)])


@st.composite
def prelu(draw) -> Case:
    """PRELU whose alpha is a channel's, a row's, or everyone's."""
    full = (1, draw(sizes), draw(sizes), draw(channels))
    alpha_shape = tuple(n if draw(st.booleans()) else 1 for n in full[1:])
    rng = np.random.default_rng(draw(seeds))
    scale, alpha_scale = random_scale(rng), random_scale(rng)
    alpha = constant("alpha", random_int8(rng, alpha_shape), quant(alpha_scale, draw(zero_points)))
    out_scale = scale * max(1.0, alpha_scale * 74) * 2.0 ** rng.uniform(-1, 1)
    x = activation_tensor("x", full, scale, draw(zero_points))
    out = activation_tensor("y", full, out_scale, draw(zero_points))
    return case(OpKind.PRELU, Attrs(), [x], [alpha], out, [random_int8(rng, full)])


@st.composite
def tables(draw) -> Case:
    """The functions of one element; all 256 values occur."""
    kind = draw(
        st.sampled_from(
            [
                OpKind.LOGISTIC,
                OpKind.TANH,
                OpKind.HARD_SWISH,
                OpKind.RELU,
                OpKind.RELU6,
                OpKind.LEAKY_RELU,
                OpKind.ABS,
                OpKind.EXP,
                OpKind.LOG,
                OpKind.GELU,
                OpKind.QUANTIZE,
            ]
        )
    )
    rng = np.random.default_rng(draw(seeds))
    shape = (1, 4, draw(st.integers(1, 5)), 64)
    scale = random_scale(rng)
    out = activation_tensor("y", shape, scale * 2.0 ** rng.uniform(-1, 1), draw(zero_points))
    if kind in (OpKind.LOGISTIC, OpKind.TANH):
        fixed = {OpKind.LOGISTIC: (1 / 256, -128), OpKind.TANH: (1 / 128, 0)}[kind]
        out = activation_tensor("y", shape, *fixed)
    attrs = LeakyReluAttrs(float(np.float32(rng.uniform(0, 1)))) if kind is OpKind.LEAKY_RELU else Attrs()
    attrs = GeluAttrs(draw(st.booleans())) if kind is OpKind.GELU else attrs
    x = activation_tensor("x", shape, scale, draw(zero_points))
    values = np.resize(np.arange(-128, 128), shape).astype(np.int8)
    return case(kind, attrs, [x], [], out, [values])


@st.composite
def softmaxes(draw) -> Case:
    """SOFTMAX over a few or many classes."""
    classes = draw(st.sampled_from([1, 2, 3, 10, 257, 1001]))
    shape = (1, draw(st.integers(1, 3)), draw(st.integers(1, 3)), classes)
    rng = np.random.default_rng(draw(seeds))
    # LiteRT aborts on rows so even that every probability vanishes (see test_activations.py).
    scale = 2.0 ** rng.uniform(-5 if classes > 500 else -9, 0)
    x = activation_tensor("x", shape, scale, draw(zero_points))
    out = activation_tensor("y", shape, 1 / 256, -128)
    beta = draw(st.sampled_from([1.0, 1.0, 0.5, 2.0]))
    values = rng.integers(-128, 128, shape, dtype=np.int8)
    return case(OpKind.SOFTMAX, SoftmaxAttrs(beta), [x], [], out, [values])


@st.composite
def pools(draw) -> Case:
    """AVERAGE_POOL_2D and MAX_POOL_2D, SAME or VALID."""
    same = draw(st.booleans())
    shape, pads, kernels, strides = [], [], [], []
    for _ in range(2):
        size, stride = draw(sizes), draw(st.integers(1, 3))
        kernel = draw(st.integers(1, 5 if same else min(5, size)))
        out = -(-size // stride) if same else (size - kernel) // stride + 1
        total = max((out - 1) * stride + kernel - size, 0)
        shape.append((size, out))
        pads += [total // 2, total - total // 2]
        kernels.append(kernel)
        strides.append(stride)
    kind = draw(st.sampled_from([OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D]))
    attrs = PoolAttrs((kernels[0], kernels[1]), (strides[0], strides[1]), Pad(*pads), draw(activations))
    rng = np.random.default_rng(draw(seeds))
    scale, zero_point, c = random_scale(rng), draw(zero_points), draw(channels)
    in_shape = (1, shape[0][0], shape[1][0], c)
    x = activation_tensor("x", in_shape, scale, zero_point)
    out = activation_tensor("y", (1, shape[0][1], shape[1][1], c), scale, zero_point)
    return case(kind, attrs, [x], [], out, [random_int8(rng, in_shape)])


@st.composite
def resizes(draw) -> Case:
    """RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR, up and down."""
    kind = draw(st.sampled_from([OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR]))
    both = [(True, True)] if kind is OpKind.RESIZE_NEAREST_NEIGHBOR else []
    corners, centers = draw(st.sampled_from([(False, False), (True, False), (False, True), *both]))
    c = draw(channels)
    in_shape = (1, draw(sizes), draw(sizes), c)
    out_shape = (1, draw(st.integers(1, 20)), draw(st.integers(1, 20)), c)
    rng = np.random.default_rng(draw(seeds))
    scale, zero_point = random_scale(rng), draw(zero_points)
    x = activation_tensor("x", in_shape, scale, zero_point)
    out = activation_tensor("y", out_shape, scale, zero_point)
    return case(kind, ResizeAttrs(corners, centers), [x], [], out, [random_int8(rng, in_shape)])


@st.composite
def means(draw) -> Case:
    """MEAN over any axes."""
    shape = (draw(st.integers(1, 3)), draw(sizes), draw(sizes), draw(channels))
    axes = tuple(sorted(draw(st.sets(st.integers(0, 3), min_size=1, max_size=3))))
    keep = draw(st.booleans())
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    out_shape = kept if keep else tuple(n for i, n in enumerate(shape) if i not in axes)
    rng = np.random.default_rng(draw(seeds))
    scale = random_scale(rng)
    x = activation_tensor("x", shape, scale, draw(zero_points))
    out = activation_tensor("y", out_shape, scale * 2.0 ** rng.uniform(-4, 2), draw(zero_points))
    return case(OpKind.MEAN, MeanAttrs(axes, keep), [x], [], out, [random_int8(rng, shape)])


@st.composite
def mirror_pads(draw) -> Case:
    """MIRROR_PAD, reflecting and symmetric."""
    mode = draw(st.sampled_from([PadMode.REFLECT, PadMode.SYMMETRIC]))
    edge = 1 if mode is PadMode.REFLECT else 0
    shape = (1, draw(sizes), draw(sizes), draw(st.integers(1, 5)))
    paddings = tuple((draw(st.integers(0, n - edge)), draw(st.integers(0, n - edge))) for n in shape)
    rng = np.random.default_rng(draw(seeds))
    scale, zero_point = random_scale(rng), draw(zero_points)
    x = activation_tensor("x", shape, scale, zero_point)
    out_shape = tuple(n + sum(p) for n, p in zip(shape, paddings, strict=True))
    out = activation_tensor("y", out_shape, scale, zero_point)
    return case(OpKind.MIRROR_PAD, PadAttrs(paddings, mode), [x], [], out, [random_int8(rng, shape)])


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
