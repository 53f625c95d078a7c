"""Networks with float islands: float32 operators between a DEQUANTIZE and a QUANTIZE, and all such operators.

net = Islands(seed)
x = net.input((1, 8, 8, 4))                    # int8
y = net.quantize(net.layer_norm(net.floats(x)), 0.03)
graph = net.graph([y])
"""

from collections.abc import Callable, Sequence

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.ops import DEFS
from buildtool.graph.types import Activation, Attrs, DType, Graph, Op, OpKind, Pad, Quantization, Tensor

Shape = tuple[int, ...]
SPECIAL = (
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e38,
    -3e38,
    3.4e38,
    1e-40,
    -1e-45,
    1.0,
    6.0,
    88.8,
    -104.0,
    16.7,
    -9.1,
)
_PLAIN = g.ElementwiseAttrs()


def scale(value: float, zero_point: int = 0) -> Quantization:
    """A quantisation whose scale is a float32."""
    return Quantization((float(np.float32(value)),), (zero_point,))


class Islands:
    """Builds a graph, operator by operator. A tensor is its number."""

    def __init__(self, seed: int = 0, name: str = "islands") -> None:
        self.rng, self.name = np.random.default_rng(seed), name
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self.inputs: list[int] = []

    def add(self, shape: Shape, dtype: DType = DType.FLOAT32, quant=None, data=None) -> int:
        """Adds a tensor."""
        self.tensors.append(Tensor(f"t{len(self.tensors)}", tuple(shape), dtype, quant, data))
        return len(self.tensors) - 1

    def input(self, shape: Shape, dtype: DType = DType.INT8) -> int:
        """Adds a network input."""
        self.inputs.append(self.add(shape, dtype, None if dtype is DType.FLOAT32 else scale(0.03, 2)))
        return self.inputs[-1]

    def constant(self, values: object) -> int:
        """Adds a float32 constant."""
        data = np.asarray(values, np.float32)
        return self.add(data.shape, data=data)

    def normal(self, *shape: int) -> int:
        """Adds a float32 constant with normally distributed values."""
        return self.constant(self.rng.normal(size=shape))

    def shape(self, t: int) -> Shape:
        """The shape of a tensor."""
        return self.tensors[t].shape

    def op(
        self, kind: OpKind, operands: Sequence[int], shape: Shape, attrs: Attrs | None = None, **kind_of
    ) -> int:
        """Adds an operator of one output, of float32 unless `dtype` and `quant` say something else."""
        out = self.add(shape, **kind_of)
        self.ops.append(Op(kind, tuple(operands), (out,), attrs or Attrs(), len(self.ops)))
        return out

    def unary(self, kind: OpKind, x: int, attrs: Attrs = Attrs()) -> int:  # noqa: B008
        """Adds a function of one number."""
        return self.op(kind, [x], self.shape(x), attrs)

    def pair(self, kind: OpKind, a: int, b: int, attrs: Attrs | None = None, **kind_of) -> int:
        """Adds a function of two numbers."""
        if attrs is None:
            attrs = g.QuotientAttrs() if kind is OpKind.DIV else _PLAIN if kind in _CLAMPED else Attrs()
        shape = np.broadcast_shapes(self.shape(a), self.shape(b))
        return self.op(kind, [a, b], shape, attrs, **kind_of)

    def floats(self, x: int) -> int:
        """Adds a DEQUANTIZE."""
        return self.unary(OpKind.DEQUANTIZE, x)

    def quantize(self, x: int, step: float, zero_point: int = 0, dtype: DType = DType.INT8) -> int:
        """Adds a QUANTIZE."""
        return self.op(OpKind.QUANTIZE, [x], self.shape(x), dtype=dtype, quant=scale(step, zero_point))

    def reduced(self, kind: OpKind, x: int, axes: Sequence[int], keep: bool = True) -> int:
        """Adds a reduction."""
        shape = [1 if d in axes else n for d, n in enumerate(self.shape(x)) if keep or d not in axes]
        return self.op(kind, [x], tuple(shape), g.MeanAttrs(tuple(axes), keep))

    def conv(self, x: int, channels: int) -> int:
        """Adds an int8 convolution of 3 x 3 pixels."""
        (n, h, w, cin), of = self.shape(x), self.tensors[x].quant
        weights = self.rng.integers(-127, 128, (channels, 3, 3, cin)).astype(np.int8)
        step = scale(0.01 / np.sqrt(cin))
        filters = self.add(weights.shape, DType.INT8, step, weights)
        biases = self.rng.integers(-900, 900, channels).astype(np.int32)
        bias = self.add((channels,), DType.INT32, scale(of.scale * step.scale), biases)
        attrs = g.ConvAttrs((1, 1), (1, 1), Pad(1, 1, 1, 1))
        quant = scale(0.04, -3)
        return self.op(
            OpKind.CONV_2D, [x, filters, bias], (n, h, w, channels), attrs, dtype=DType.INT8, quant=quant
        )

    def layer_norm(self, x: int) -> int:
        """Adds Keras's LayerNormalization of float32, as TFLite's converter writes it."""
        last, c = [len(self.shape(x)) - 1], self.shape(x)[-1]
        mean = self.reduced(OpKind.MEAN, x, last)
        variance = self.reduced(OpKind.MEAN, self.pair(OpKind.SQUARED_DIFFERENCE, x, mean), last)
        root = self.unary(OpKind.RSQRT, self.pair(OpKind.ADD, variance, self.constant([1e-3])))
        gamma = self.pair(OpKind.MUL, root, self.constant(self.rng.uniform(0.5, 1.5, c)))
        offset = self.unary(OpKind.NEG, self.pair(OpKind.MUL, mean, gamma))
        moved = self.pair(OpKind.ADD, offset, self.normal(c))
        return self.pair(OpKind.ADD, self.pair(OpKind.MUL, x, gamma), moved)

    def graph(self, outputs: Sequence[int]) -> Graph:
        """The network with these outputs."""
        return Graph(self.name, tuple(self.tensors), tuple(self.ops), tuple(self.inputs), tuple(outputs))


_CLAMPED = (OpKind.ADD, OpKind.SUB, OpKind.MUL)
_POSITIVE = (OpKind.SQRT, OpKind.RSQRT, OpKind.LOG)
COMPARED = (
    *(OpKind.EQUAL, OpKind.NOT_EQUAL, OpKind.LESS, OpKind.LESS_EQUAL, OpKind.GREATER, OpKind.GREATER_EQUAL),
)
UNARY = (
    *(OpKind.ABS, OpKind.NEG, OpKind.SQUARE, OpKind.SQRT, OpKind.RSQRT, OpKind.EXP, OpKind.LOG, OpKind.TANH),
    *(OpKind.LOGISTIC, OpKind.HARD_SWISH, OpKind.RELU, OpKind.RELU6, OpKind.RELU_N1_TO_1),
    OpKind.RELU_0_TO_1,
)
PAIRS = (*_CLAMPED, OpKind.DIV, OpKind.MAXIMUM, OpKind.MINIMUM, OpKind.SQUARED_DIFFERENCE, OpKind.POW)
REDUCTIONS = (OpKind.SUM, OpKind.MEAN, OpKind.REDUCE_PROD, OpKind.REDUCE_MAX, OpKind.REDUCE_MIN)


def _functions(net: Islands, x: int, y: int) -> list[int]:
    """Functions of one and of two numbers, broadcast and not."""
    positive = net.unary(OpKind.ABS, x)
    made = [net.unary(kind, positive if kind in _POSITIVE else x) for kind in UNARY]
    made.append(net.unary(OpKind.LEAKY_RELU, x, g.LeakyReluAttrs(0.3)))
    made += [net.unary(OpKind.GELU, x, g.GeluAttrs(approximate)) for approximate in (False, True)]
    for dtype in (DType.INT8, DType.INT16, DType.INT32, DType.BOOL):
        cast = net.op(OpKind.CAST, [x], net.shape(x), dtype=dtype)
        made += [cast, net.unary(OpKind.CAST, cast)]
    made.append(net.op(OpKind.PRELU, [x, net.normal(1, 1, net.shape(x)[-1])], net.shape(x)))
    row, one = net.normal(net.shape(x)[-1]), net.constant([0.7])
    made += [net.pair(kind, x, other) for kind in PAIRS for other in (y, row, one)]
    made += [net.pair(OpKind.MUL, x, y, g.ElementwiseAttrs(activation)) for activation in Activation]
    for kind in COMPARED:
        truth = net.pair(kind, x, y, Attrs(), dtype=DType.BOOL)
        made.append(net.op(OpKind.SELECT_V2, [truth, x, y], net.shape(x)))
    return made


def _sums(net: Islands, x: int, y: int) -> list[int]:
    """Reductions, normalisations, products with weights, pools."""
    n, h, w, c = net.shape(x)
    made = [net.reduced(kind, x, axes) for kind in REDUCTIONS for axes in ((3,), (1, 2), (0, 2))]
    made += [net.reduced(OpKind.SUM, x, (0, 1, 2, 3), False), net.reduced(OpKind.MEAN, x, (1, 3), False)]
    made += [net.unary(OpKind.SOFTMAX, x, g.SoftmaxAttrs(0.5)), net.unary(OpKind.L2_NORMALIZATION, x)]
    made.append(net.unary(OpKind.LOG_SOFTMAX, x))
    flat = net.op(OpKind.RESHAPE, [x], (n * h * w, c))
    for activation in (Activation.NONE, Activation.RELU6):
        dense = [flat, net.normal(5, c), net.normal(5)]
        made.append(net.op(OpKind.FULLY_CONNECTED, dense, (n * h * w, 5), g.FullyConnectedAttrs(activation)))
    conv = [x, net.normal(6, 3, 3, c), net.normal(6)]
    made.append(net.op(OpKind.CONV_2D, conv, (n, h, w, 6), g.ConvAttrs((1, 1), (1, 1), Pad(1, 1, 1, 1))))
    deep = [x, net.normal(1, 3, 3, 2 * c), net.normal(2 * c)]
    attrs = g.DepthwiseAttrs((1, 1), (1, 1), Pad(), Activation.RELU, 2)
    made.append(net.op(OpKind.DEPTHWISE_CONV_2D, deep, (n, h - 2, w - 2, 2 * c), attrs))
    window = g.PoolAttrs((3, 2), (1, 1), Pad(1, 1, 0, 1))
    made += [net.op(kind, [x], (n, h, w, c), window) for kind in (OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D)]
    made += [
        net.op(OpKind.RESIZE_BILINEAR, [x], (n, h + 3, 2 * w, c), g.ResizeAttrs(*flags))
        for flags in ((False, False), (True, False), (False, True))
    ]
    made.append(net.op(OpKind.BATCH_MATMUL, [x, y], (n, h, w, w), g.MatmulAttrs(False, True)))
    return made


def _moves(net: Islands, x: int, y: int) -> list[int]:
    """Operators that move elements."""
    n, h, w, c = net.shape(x)
    half = net.add((n, h, w, c // 2)), net.add((n, h, w, c // 2))
    net.ops.append(Op(OpKind.SPLIT, (x,), half, g.AxisAttrs(3), len(net.ops)))
    bits = int(np.float32(-2.5).view(np.int32))
    pads, mirror = ((0, 0), (1, 0), (0, 2), (1, 1)), ((0, 0), (1, 1), (1, 0), (0, 0))
    return [
        *half,
        net.op(OpKind.CONCATENATION, [x, y], (n, h, w, 2 * c), g.AxisAttrs(3)),
        net.op(OpKind.CONCATENATION, [x, y], (n, 2 * h, w, c), g.AxisAttrs(1)),
        net.op(OpKind.TRANSPOSE, [x], (n, c, h, w), g.TransposeAttrs((0, 3, 1, 2))),
        net.op(OpKind.SLICE, [x], (n, 1, 2, c), g.SliceAttrs((0, 1, 1, 0), (1,) * 4, (n, 1, 2, c))),
        net.op(
            OpKind.STRIDED_SLICE, [x], (n, h, 2, c), g.SliceAttrs((0, 0, 0, 0), (1, 1, 2, 1), (n, h, 2, c))
        ),
        net.op(OpKind.TILE, [x], (n, h, 2 * w, c), g.TileAttrs((1, 1, 2, 1))),
        net.op(OpKind.GATHER, [x], (n, 2, w, c), g.GatherAttrs(1, (2, 0))),
        net.op(OpKind.PAD, [x], (n, h + 1, w + 2, c + 2), g.PadAttrs(pads)),
        net.op(OpKind.PAD, [x], (n, h + 1, w + 2, c + 2), g.PadAttrs(pads, value=bits)),
        net.op(OpKind.RESIZE_NEAREST_NEIGHBOR, [x], (n, h + 3, 2 * w, c), g.ResizeAttrs(False, True)),
        net.op(OpKind.MIRROR_PAD, [x], (n, h + 2, w + 1, c), g.PadAttrs(mirror, g.PadMode.REFLECT)),
    ]


def _elu(net: Islands, x: int, y: int) -> list[int]:
    """ELU, of which LiteRT has no reference kernel."""
    return [net.unary(OpKind.ELU, y)]


FAMILIES: dict[str, Callable[[Islands, int, int], list[int]]] = {
    "functions": _functions,
    "sums": _sums,
    "moves": _moves,
    "elu": _elu,
}
# Operators of float32 that have no kernel.
ALIASES = frozenset({OpKind.RESHAPE, OpKind.SQUEEZE, OpKind.EXPAND_DIMS, OpKind.VIEW, OpKind.JOINED})


def every_operator(*families: str, shape: Shape = (1, 4, 3, 6), seed: int = 0) -> Graph:
    """A network of a float32 input; every operator of some families reads it, and makes an output.

    Operators of two numbers get the input and its reversed pixels.
    """
    net = Islands(seed, "_".join(families))
    x = net.input(shape, DType.FLOAT32)
    backwards = g.SliceAttrs((0, 0, shape[2] - 1, 0), (1, 1, -1, 1), shape)
    y = net.op(OpKind.STRIDED_SLICE, [x], shape, backwards)
    return net.graph([t for family in families for t in FAMILIES[family](net, x, y)])


def kinds_of(graph: Graph) -> set[OpKind]:
    """The kinds of a graph's operators."""
    return {op.kind for op in graph.ops}


def with_float_form() -> set[OpKind]:
    """The kinds that have a float32 form and a kernel."""
    return {kind for kind, definition in DEFS.items() if definition.floats} - ALIASES


def values(shape: Shape, seed: int, special: float = 0.0) -> np.ndarray:
    """Random float32; `special` is the share of zeros, infinite numbers, NaN and others of `SPECIAL`."""
    rng = np.random.default_rng(seed)
    drawn = (rng.normal(size=shape) * np.exp2(rng.integers(-3, 4, shape))).astype(np.float32)
    chosen = rng.choice(np.array(SPECIAL, np.float32), shape)
    return np.where(rng.random(shape) < special, chosen, drawn)
