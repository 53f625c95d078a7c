"""Operators at the limits of kernels and just beyond them: wide layers, long sums, large steps.

All values of some are extreme, so that a sum that does not fit its type shows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from kernelcases import Case, activation_tensor, case, random_int8, weighted_case, with_constants

from buildtool.graph import types as g
from buildtool.graph.types import OpKind, Pad

Pair = tuple[int, int]


def layer(kind: OpKind, attrs: g.Attrs, shape: tuple, filter_shape: tuple, out: tuple = ()) -> Case:
    """A layer with weights, with one scale where factors would take long to find."""
    rng = np.random.default_rng(sum(filter_shape))
    per_channel = kind is not OpKind.FULLY_CONNECTED
    return weighted_case(
        rng, kind, attrs, shape, filter_shape, points=(3, -5), per_channel=per_channel, out=out
    )


def conv(
    image: Pair,
    cin: int,
    cout: int,
    kernel: Pair = (1, 1),
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    groups: int = 1,
    right: int = 0,
    around: Pair = (0, 0),
) -> Case:
    """CONV_2D without padding but `right`, and `around` above and below, left and right."""
    rows, columns = around
    attrs = g.ConvAttrs(stride, dilation, Pad(rows, rows, columns, columns + right))
    return layer(OpKind.CONV_2D, attrs, (1, *image, cin), (cout, *kernel, cin // groups))


def depthwise(
    image: Pair, channels: int, kernel: Pair, stride: Pair = (1, 1), dilation: Pair = (1, 1), pad: int = 0
) -> Case:
    """DEPTHWISE_CONV_2D with as much padding on the left as on the right."""
    attrs = g.DepthwiseAttrs(stride, dilation, Pad(0, 0, pad, pad))
    return layer(OpKind.DEPTHWISE_CONV_2D, attrs, (1, *image, channels), (1, *kernel, channels))


def dense(inputs: int, outputs: int) -> Case:
    """FULLY_CONNECTED of one row."""
    return layer(OpKind.FULLY_CONNECTED, g.FullyConnectedAttrs(), (1, inputs), (outputs, inputs))


def pool(kind: OpKind, image: Pair, channels: int, value: int | None = None) -> Case:
    """A pooling of the whole image, which holds `value` everywhere."""
    x = activation_tensor("x", (1, *image, channels), 0.5, 7)
    y = activation_tensor("y", (1, 1, 1, channels), 0.5, 7)
    values = random_int8(np.random.default_rng(channels), x.shape)
    if value is not None:
        values = np.full(x.shape, value, np.int8)
    return case(kind, g.PoolAttrs(image, (1, 1)), [x], [], y, [values])


def elementwise(kind: OpKind, image: Pair, channels: int, second: int) -> Case:
    """ADD or MUL; the second operand has `second` channels: as many, or 1."""
    rng = np.random.default_rng(channels)
    a = activation_tensor("a", (1, *image, channels), 0.5, 7)
    b = activation_tensor("b", (1, *image, second), 0.25, -9)
    y = activation_tensor("y", a.shape, 0.5 if kind is OpKind.ADD else 9.0, 1)
    return case(kind, g.ElementwiseAttrs(), [a, b], [], y, [random_int8(rng, t.shape) for t in (a, b)])


def softmax(image: Pair, classes: int, scale: float = 0.1) -> Case:
    """SOFTMAX; a small scale makes probabilities even."""
    shape = (1, *image, classes)
    x, y = activation_tensor("x", shape, scale, 7), activation_tensor("y", shape, 1 / 256, -128)
    values = random_int8(np.random.default_rng(classes), shape)
    return case(OpKind.SOFTMAX, g.SoftmaxAttrs(1.0), [x], [], y, [values])


def extreme(made: Case, weight: int, value: int) -> Case:
    """A layer with all weights and all inputs the same, without a bias.

    Its outputs are about -100, 50, 127: neither all saturated nor all zero.
    """
    _, weights, bias, y = made.graph.tensors
    taps = weights.elements // weights.shape[3 if made.op.kind is OpKind.DEPTHWISE_CONV_2D else 0]
    scale = float(np.float32(made.scale("x") * made.scale("filter") * taps * 200.0))
    same = with_constants(made, np.full(weights.shape, weight, np.int8), np.zeros(bias.shape))
    values = np.full(made.inputs[0].shape, value, np.int8)
    return same.changed(values, y={"quant": g.Quantization((scale,), y.quant.zero_points)})


WIDE: dict[str, Callable[[], Case]] = {
    # Offsets of 16 bits: 3 more channels, and 7 columns.
    **{f"conv {n} outputs": lambda n=n: conv((1, 3), 2, n) for n in (65532, 65533, 65544)},
    "conv 65544 outputs, 1 x 2": lambda: conv((2, 4), 1, 65544, (1, 2)),
    **{f"depthwise {n}": lambda n=n: depthwise((1, 9), n, (1, 3), pad=1) for n in (9362, 9363, 16400)},
    "depthwise 9363 by 2": lambda: depthwise((3, 9), 9363, (3, 3), (2, 2), pad=1),
    "depthwise 21848 x 5": lambda: depthwise((1, 5), 21848, (1, 5), pad=2),
    "depthwise 65543": lambda: depthwise((1, 3), 65543, (1, 2)),
    "dense 65543 outputs": lambda: dense(2, 65543),
    "add 65543": lambda: elementwise(OpKind.ADD, (1, 2), 65543, 65543),
    "add 65543 to 1": lambda: elementwise(OpKind.ADD, (1, 2), 65543, 1),
    "mul 65543": lambda: elementwise(OpKind.MUL, (1, 2), 65543, 65543),
    "mul 65543 by 1": lambda: elementwise(OpKind.MUL, (1, 2), 65543, 1),
    "average 65543": lambda: pool(OpKind.AVERAGE_POOL_2D, (1, 2), 65543),
    "max 65543": lambda: pool(OpKind.MAX_POOL_2D, (1, 2), 65543),
}
_PRODUCTS = 131071
LONG: dict[str, Callable[[], Case]] = {
    # Sums of an int16 take 255 values, a reciprocal divides by up to 4096, and nothing is lost beyond.
    **{
        f"average of {rows * columns} times {value}": lambda rows=rows, columns=columns, value=value: pool(
            OpKind.AVERAGE_POOL_2D, (rows, columns), 5, value
        )
        for rows, columns in ((15, 17), (16, 16), (257, 1), (64, 64), (17, 241), (300, 300))
        for value in (-128, 127)
    },
    # 256 times a sum fits int32 up to 511 products of -128 and -128.
    **{
        f"conv of {n} products, {weight}": lambda n=n, weight=weight: extreme(
            conv((1, 4), n, 4), weight, -128
        )
        for n in (508, 511, 512, 516, 520)
        for weight in (-128, 127)
    },
    "dense of 512 products": lambda: extreme(dense(512, 5), -128, -128),
    "conv of all products": lambda: extreme(conv((1, 2), _PRODUCTS, 3), -128, -128),
    "dense of all products": lambda: extreme(dense(_PRODUCTS, 5), -128, -128),
    "conv of 16 rows": lambda: conv((18, 3), 2, 3, (16, 2)),
    "conv of 17 rows": lambda: conv((18, 3), 2, 3, (17, 2)),
    "depthwise of 8 x 8": lambda: depthwise((9, 11), 17, (8, 8)),
    "depthwise of 4 x 16": lambda: depthwise((5, 19), 17, (4, 16)),
    "depthwise of a stride of 40": lambda: depthwise((1, 200), 5, (1, 3), (1, 40)),
    "depthwise of a tap that a long dilation has no second of": lambda: depthwise(
        (2, 3), 5, (2, 1), dilation=(1, 32767)
    ),
    "conv of a tap that a long dilation has no second of": lambda: conv(
        (2, 3), 5, 4, (2, 1), dilation=(1, 32767)
    ),
}
