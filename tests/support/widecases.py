"""Operators at and just beyond the limits of kernels: wide layers, long sums, large strides.

Some have only extreme values, so that a sum that overflows its type is noticed.
"""

from collections.abc import Callable
from functools import partial

import kernelcases as small
import numpy as np
from kernelcases import CONV, DENSE, DEPTHWISE, Axis, Case, Pair, changed, unary

from buildtool.graph.types import Activation, FilledPoolAttrs, OpKind, Pad, PoolAttrs, SoftmaxAttrs
from buildtool.zoo.drawn import NetBuilder

NONE = Activation.NONE
DIFFERENT = 251  # scales of a wide layer's channels: packing looks at each once
AVERAGE, MAX = OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D


def layer(kind: OpKind, rows: Axis, columns: Axis, cin: int, cout: int, groups: int = 1) -> Case:
    rng = np.random.default_rng(cout + cin // groups + rows.kernel + columns.kernel)
    per_channel = kind is not DENSE  # a dense layer's factors take long to find
    more = {"points": (3, -5), "per_channel": per_channel, "groups": groups}
    made = small.layer(rng, kind, rows, columns, cin, cout, NONE, **more)
    scales = made.graph.tensors[made.op.inputs[1]].quant.scales
    if len(scales) <= DIFFERENT:
        return made
    return changed(made, scales=np.resize(scales[:DIFFERENT], len(scales)))


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
    """CONV_2D. Padding: `around` is (above and below, left and right), `right` is added on the right."""
    pads = (around[0], around[0]), (around[1], around[1] + right)
    rows, columns = (
        Axis(*sizes, *pad) for *sizes, pad in zip(image, kernel, stride, dilation, pads, strict=True)
    )
    return layer(CONV, rows, columns, cin, cout, groups)


def depthwise(
    image: Pair,
    channels: int,
    kernel: Pair,
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    pad: int = 0,
    multiplier: int = 1,
) -> Case:
    """DEPTHWISE_CONV_2D with padding `pad` on the left and the right."""
    rows, columns = (
        Axis(*sizes) for sizes in zip(image, kernel, stride, dilation, (0, pad), (0, pad), strict=True)
    )
    return layer(DEPTHWISE, rows, columns, channels, multiplier * channels)


def transposed(image: Pair, cin: int, cout: int, kernel: Pair, stride: Pair) -> Case:
    net = NetBuilder(cin + cout)
    y = net.transpose_conv(net.input((1, *image, cin)), cout, kernel=kernel, stride=stride, same=True)
    return Case(net.graph([y]), (small.random_int8(net.rng, (1, *image, cin)),))


def dense(inputs: int, outputs: int) -> Case:
    return layer(DENSE, Axis(1), Axis(1), inputs, outputs)


def pool(kind: OpKind, image: Pair, channels: int, value: int | None = None) -> Case:
    """A pooling of the whole image. Its values are all `value`; None: drawn."""
    values = np.random.default_rng(channels) if value is None else value
    shape, attrs = (1, *image, channels), PoolAttrs(image, (1, 1), Pad(), NONE)
    return unary(kind, attrs, shape, values, out=(1, 1, 1, channels), scales=(0.5, 0.5), points=(7, 7))


def filled_pool(kernel: Pair, channels: int) -> Case:
    """An average whose padding counts: one element at the top and one on the left."""
    shape, attrs = (1, *kernel, channels), FilledPoolAttrs(kernel, (1, 1), Pad(1, 0, 1, 0), NONE, 7)
    values, more = np.random.default_rng(channels), {"scales": (0.5, 0.5), "points": (7, 7)}
    return unary(AVERAGE, attrs, shape, values, out=(1, 2, 2, channels), **more)


def elementwise(kind: OpKind, image: Pair, channels: int, second: int) -> Case:
    """ADD or MUL. The second operand has `second` channels: `channels` or 1."""
    rng, scales = np.random.default_rng(channels), (0.5, 0.25, 0.5 if kind is OpKind.ADD else 9.0)
    values = [small.random_int8(rng, (1, *image, count)) for count in (channels, second)]
    return small.binary(kind, NONE, scales, (7, -9, 1), values)


def softmax(image: Pair, classes: int, scale: float = 0.1) -> Case:
    """SOFTMAX. A small scale makes probabilities even."""
    rng, scales = np.random.default_rng(classes), (scale, 1 / 256)
    return unary(
        OpKind.SOFTMAX, SoftmaxAttrs(1.0), (1, *image, classes), rng, scales=scales, points=(7, -128)
    )


def extreme(case: Case, weight: int, value: int) -> Case:
    """Makes all weights and all inputs of a layer the same, and its biases 0."""
    x, weights, bias, _ = case.graph.tensors
    taps = weights.elements // bias.elements
    # Outputs of about -100, 50, 127: neither all saturated nor all zero.
    scale = x.quant.scale * max(weights.quant.scales) * taps * 200.0
    data, values = np.full(weights.shape, weight, np.int8), np.full(x.shape, value, np.int8)
    return changed(case, data, np.zeros(bias.shape), steps=(x.quant.scale, scale), values=values)


def extreme_layer(make: Callable[..., Case], *sizes: object, weight: int) -> Case:
    return extreme(make(*sizes), weight, -128)


WIDE: dict[str, Callable[[], Case]] = {
    # Offsets of 16 bits: 3 more channels, and 7 columns.
    **{f"conv {n} outputs": partial(conv, (1, 3), 2, n) for n in (65532, 65533, 65544)},
    "conv 65544 outputs, 1 x 2": partial(conv, (2, 4), 1, 65544, (1, 2)),
    **{f"depthwise {n}": partial(depthwise, (1, 9), n, (1, 3), pad=1) for n in (9362, 9363, 16400)},
    "depthwise 9363 by 2": partial(depthwise, (3, 9), 9363, (3, 3), (2, 2), pad=1),
    "depthwise 21848 x 5": partial(depthwise, (1, 5), 21848, (1, 5), pad=2),
    "depthwise 65543": partial(depthwise, (1, 3), 65543, (1, 2)),
    "transposed 32767 by 2": partial(transposed, (1, 3), 3, 32767, (1, 2), (1, 2)),
    "dense 65543 outputs": partial(dense, 2, 65543),
    "add 65543": partial(elementwise, OpKind.ADD, (1, 2), 65543, 65543),
    "add 65543 to 1": partial(elementwise, OpKind.ADD, (1, 2), 65543, 1),
    "mul 65543": partial(elementwise, OpKind.MUL, (1, 2), 65543, 65543),
    "mul 65543 by 1": partial(elementwise, OpKind.MUL, (1, 2), 65543, 1),
    "average 65543": partial(pool, AVERAGE, (1, 2), 65543),
    "max 65543": partial(pool, MAX, (1, 2), 65543),
}
_PRODUCTS = 131071
LONG: dict[str, Callable[[], Case]] = {
    # Sums of an int16 take 255 values, a reciprocal divides by up to 4096, and nothing is lost beyond.
    **{
        f"average of {rows * columns} times {value}": partial(pool, AVERAGE, (rows, columns), 5, value)
        for rows, columns in ((15, 17), (16, 16), (257, 1), (64, 64), (17, 241), (300, 300))
        for value in (-128, 127)
    },
    # 256 times a sum fits int32 up to 511 products of -128 and -128.
    **{
        f"conv of {n} products, {weight}": partial(extreme_layer, conv, (1, 4), n, 4, weight=weight)
        for n in (508, 511, 512, 516, 520)
        for weight in (-128, 127)
    },
    "dense of 512 products": partial(extreme_layer, dense, 512, 5, weight=-128),
    "conv of all products": partial(extreme_layer, conv, (1, 2), _PRODUCTS, 3, weight=-128),
    "dense of all products": partial(extreme_layer, dense, _PRODUCTS, 5, weight=-128),
    "conv of 16 rows": partial(conv, (18, 3), 2, 3, (16, 2)),
    "conv of 17 rows": partial(conv, (18, 3), 2, 3, (17, 2)),
    "depthwise of 8 x 8": partial(depthwise, (9, 11), 17, (8, 8)),
    "depthwise of 4 x 16": partial(depthwise, (5, 19), 17, (4, 16)),
    "depthwise of a stride of 40": partial(depthwise, (1, 200), 5, (1, 3), (1, 40)),
    "depthwise of a tap that a long dilation has no second of": partial(
        depthwise, (2, 3), 5, (2, 1), dilation=(1, 32767)
    ),
    "conv of a tap that a long dilation has no second of": partial(
        conv, (2, 3), 5, 4, (2, 1), dilation=(1, 32767)
    ),
}
