"""Networks with float islands: float32 operators between a DEQUANTIZE and a QUANTIZE, and all such operators.

net = Islands(seed)
x = net.input((1, 8, 8, 4))                    # int8
y = net.quantize(net.layer_norm(net.dequantize(x)), 0.03)
graph = net.graph([y])
"""

from collections.abc import Callable, Sequence

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.builder import NO_ATTRS
from buildtool.graph.ops import COMPARISONS, DEFS
from buildtool.graph.types import Activation, Attrs, DType, Graph, OpKind, Pad, Quantization
from buildtool.zoo.drawn import NetBuilder, quant

Shape = tuple[int, ...]
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, -3e38, 3.4e38, 1e-40, -1e-45, 1.0, 6.0, 88.8, -104.0)
SPECIAL += (16.7, -9.1)


class Islands(NetBuilder):
    """A builder whose operators without a quantisation are of float32."""

    def input(self, shape: Sequence[int], dtype: DType = DType.INT8, q: Quantization | None = None) -> int:
        return super().input(shape, dtype, q or (quant(0.03, 2) if dtype is not DType.FLOAT32 else None))

    def op(  # type: ignore[override]
        self,
        kind: OpKind,
        inputs: Sequence[int],
        attrs: Attrs = NO_ATTRS,
        quant: Quantization | None = None,
        dtype: DType | None = None,
        name: str = "",
        shape: Sequence[int] | None = None,
    ) -> int:
        own = dtype or (DType.FLOAT32 if quant is None else DType.INT8)
        return super().op(kind, inputs, attrs, quant, own, name, shape)

    def floats(self, values: object) -> int:
        """Adds a float32 constant."""
        data = np.asarray(values, np.float32)
        return self.tensor(data.shape, None, DType.FLOAT32, data)

    def normal(self, *shape: int) -> int:
        return self.floats(self.rng.normal(size=shape))

    def unary(self, kind: OpKind, x: int, attrs: Attrs = NO_ATTRS) -> int:
        return self.op(kind, [x], attrs)

    def pair(self, kind: OpKind, a: int, b: int, attrs: Attrs | None = None) -> int:
        """Adds a function of two numbers, or a comparison."""
        if attrs is None:
            clamped = g.ElementwiseAttrs() if kind in _CLAMPED else NO_ATTRS
            attrs = g.QuotientAttrs() if kind is OpKind.DIV else clamped
        return self.op(kind, [a, b], attrs, dtype=DType.BOOL if kind in COMPARISONS else None)

    def quantize(self, x: int, step: float, zero_point: int = 0, dtype: DType = DType.INT8) -> int:
        return self.op(OpKind.QUANTIZE, [x], quant=quant(step, zero_point), dtype=dtype)

    def reduced(self, kind: OpKind, x: int, axes: Sequence[int], keep: bool = True) -> int:
        return self.op(kind, [x], g.MeanAttrs(tuple(axes), keep))

    def layer_norm(self, x: int) -> int:
        """Adds Keras's LayerNormalization of float32, as TFLite's converter writes it."""
        last, c = [len(self.shape(x)) - 1], self.shape(x)[-1]
        mean = self.reduced(OpKind.MEAN, x, last)
        variance = self.reduced(OpKind.MEAN, self.pair(OpKind.SQUARED_DIFFERENCE, x, mean), last)
        root = self.unary(OpKind.RSQRT, self.pair(OpKind.ADD, variance, self.floats([1e-3])))
        gamma = self.pair(OpKind.MUL, root, self.floats(self.rng.uniform(0.5, 1.5, c)))
        offset = self.unary(OpKind.NEG, self.pair(OpKind.MUL, mean, gamma))
        moved = self.pair(OpKind.ADD, offset, self.normal(c))
        return self.pair(OpKind.ADD, self.pair(OpKind.MUL, x, gamma), moved)


_CLAMPED = (OpKind.ADD, OpKind.SUB, OpKind.MUL)
_POSITIVE = (OpKind.SQRT, OpKind.RSQRT, OpKind.LOG)
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
        cast = net.op(OpKind.CAST, [x], dtype=dtype)
        made += [cast, net.unary(OpKind.CAST, cast)]
    made.append(net.op(OpKind.PRELU, [x, net.normal(1, 1, net.shape(x)[-1])]))
    row, one = net.normal(net.shape(x)[-1]), net.floats([0.7])
    made += [net.pair(kind, x, other) for kind in PAIRS for other in (y, row, one)]
    made += [net.pair(OpKind.MUL, x, y, g.ElementwiseAttrs(activation)) for activation in Activation]
    return made + [net.op(OpKind.SELECT_V2, [net.pair(kind, x, y), x, y]) for kind in sorted(COMPARISONS)]


def _sums(net: Islands, x: int, y: int) -> list[int]:
    """Reductions, normalisations, products with weights, pools."""
    n, h, w, c = net.shape(x)
    made = [net.reduced(kind, x, axes) for kind in REDUCTIONS for axes in ((3,), (1, 2), (0, 2))]
    made += [net.reduced(OpKind.SUM, x, (0, 1, 2, 3), False), net.reduced(OpKind.MEAN, x, (1, 3), False)]
    made += [net.unary(OpKind.SOFTMAX, x, g.SoftmaxAttrs(0.5)), net.unary(OpKind.L2_NORMALIZATION, x)]
    made.append(net.unary(OpKind.LOG_SOFTMAX, x))
    flat = net.move(OpKind.RESHAPE, x, (n * h * w, c))
    for activation in (Activation.NONE, Activation.RELU6):
        dense = [flat, net.normal(5, c), net.normal(5)]
        made.append(net.op(OpKind.FULLY_CONNECTED, dense, g.FullyConnectedAttrs(activation)))
    conv, deep = [net.normal(6, 3, 3, c), net.normal(6)], [net.normal(1, 3, 3, 2 * c), net.normal(2 * c)]
    made.append(net.op(OpKind.CONV_2D, [x, *conv], g.ConvAttrs((1, 1), (1, 1), Pad(1, 1, 1, 1))))
    attrs = g.DepthwiseAttrs((1, 1), (1, 1), Pad(), Activation.RELU, 2)
    made.append(net.op(OpKind.DEPTHWISE_CONV_2D, [x, *deep], attrs))
    window = g.PoolAttrs((3, 2), (1, 1), Pad(1, 1, 0, 1))
    made += [net.unary(kind, x, window) for kind in (OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D)]
    for flags in ((False, False), (True, False), (False, True)):
        made.append(net.move(OpKind.RESIZE_BILINEAR, x, (n, h + 3, 2 * w, c), g.ResizeAttrs(*flags)))
    return [*made, net.op(OpKind.BATCH_MATMUL, [x, y], g.MatmulAttrs(False, True))]


def _moves(net: Islands, x: int, y: int) -> list[int]:
    """Operators that move elements."""
    n, h, w, c = net.shape(x)
    bits = int(np.float32(-2.5).view(np.int32))
    pads, mirror = ((0, 0), (1, 0), (0, 2), (1, 1)), ((0, 0), (1, 1), (1, 0), (0, 0))
    return [
        *net.split(x, 2),
        net.concat([x, y]),
        net.concat([x, y], 1),
        net.move(OpKind.TRANSPOSE, x, attrs=g.TransposeAttrs((0, 3, 1, 2))),
        net.move(OpKind.SLICE, x, attrs=g.SliceAttrs((0, 1, 1, 0), (1,) * 4, (n, 1, 2, c))),
        net.move(OpKind.STRIDED_SLICE, x, attrs=g.SliceAttrs((0, 0, 0, 0), (1, 1, 2, 1), (n, h, 2, c))),
        net.move(OpKind.TILE, x, attrs=g.TileAttrs((1, 1, 2, 1))),
        net.move(OpKind.GATHER, x, attrs=g.GatherAttrs(1, (2, 0))),
        net.move(OpKind.PAD, x, attrs=g.PadAttrs(pads)),
        net.move(OpKind.PAD, x, attrs=g.PadAttrs(pads, value=bits)),
        net.move(OpKind.RESIZE_NEAREST_NEIGHBOR, x, (n, h + 3, 2 * w, c), g.ResizeAttrs(False, True)),
        net.move(OpKind.MIRROR_PAD, x, attrs=g.PadAttrs(mirror, g.PadMode.REFLECT)),
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
    y = net.move(OpKind.STRIDED_SLICE, x, attrs=backwards)
    return net.graph([t for family in families for t in FAMILIES[family](net, x, y)])


def kinds_of(graph: Graph) -> set[OpKind]:
    return {op.kind for op in graph.ops}


def with_float_form() -> set[OpKind]:
    return {kind for kind, definition in DEFS.items() if definition.floats} - ALIASES


def values(shape: Shape, seed: int, special: float = 0.0) -> np.ndarray:
    """Random float32; `special` is the share of zeros, infinite numbers, NaN and others of `SPECIAL`."""
    rng = np.random.default_rng(seed)
    drawn = (rng.normal(size=shape) * np.exp2(rng.integers(-3, 4, shape))).astype(np.float32)
    chosen = rng.choice(np.array(SPECIAL, np.float32), shape)
    return np.where(rng.random(shape) < special, chosen, drawn)
