"""Networks of int16 activations and int8 weights (16x8 quantisation)."""

from __future__ import annotations

import functools

from buildtool.graph import types as g
from buildtool.graph.types import Activation, DType, Graph, OpKind
from buildtool.zoo.drawn import WideNetBuilder


@functools.cache
def every_wide_operator(seed: int = 3, batch: int = 1) -> Graph:
    """Every operator that int16 activations may go through, from an int8 image and an int16 operand.

    The trunk is 5 x 4 x 6. An output is int8, one int32 (of a CAST and of a QUANTIZE), the others int16.
    """
    net = WideNetBuilder(seed)
    image = net.requantize(net.input((batch, 9, 7, 3), DType.INT8, net.random_quant(0.02, DType.INT8)))
    side = net.input((batch, 5, 4, 6))
    x = net.conv(image, 6, kernel=(3, 3), stride=(2, 2), same=True, activation=Activation.RELU6)
    x = net.elementwise(OpKind.ADD, x, side)
    x = net.conv(x, 0, kernel=(3, 2), same=True, depth_multiplier=2)
    x = net.conv(x, 0, kernel=(2, 3), dilation=(2, 1), same=True, depth_multiplier=1)
    x = net.conv(x, 6, kernel=(2, 3), same=True, groups=2, activation=Activation.RELU_N1_TO_1)
    x = net.conv(x, 6, kernel=(1, 1), bias=False)
    return net.graph([*_arithmetic(net, x, side), _moved(net, x), _pooled(net, x), _classified(net, x)])


def _arithmetic(net: WideNetBuilder, x: int, side: int) -> list[int]:
    """Elementwise operators, and each conversion."""
    y = net.elementwise(OpKind.SUB, x, side, Activation.RELU6)
    y = net.elementwise(OpKind.MUL, y, net.constant((6,)))
    for kind in (OpKind.RELU, OpKind.LEAKY_RELU, OpKind.RELU6, OpKind.TANH):
        y = net.unary(kind, net.elementwise(OpKind.ADD, y, x))
    gate = net.unary(OpKind.LOGISTIC, net.conv(net.mean(y, keep_dims=True), 6))
    y = net.elementwise(OpKind.MUL, net.requantize(y), gate)
    byte = net.cast(net.requantize(y, DType.INT8), DType.INT16)
    wide = net.op(OpKind.QUANTIZE, (y,), g.Attrs(), net.random_quant(net.scale(y)), DType.INT32)
    again = net.op(OpKind.QUANTIZE, (wide,), g.Attrs(), net.random_quant(net.scale(y) * 1.5))
    small = net.cast(net.cast(again, DType.INT32), DType.INT8)
    return [net.elementwise(OpKind.ADD, byte, again), small, net.cast(y, DType.INT32)]


def _moved(net: WideNetBuilder, x: int) -> int:
    """Operators that move data: 5 x 4 x 6 -> 6 x 8 x 11."""
    batch = net.shape(x)[0]
    first, second = net.split(x, 2, 3)
    wide = net.concat([first, net.unary(OpKind.TANH, second), second], 2)  # 5 x 12 x 3
    back = g.SliceAttrs((0, 4, 1, 0), (1, -1, 2, 1), (batch, 5, 5, 3))
    y = net.move(OpKind.STRIDED_SLICE, wide, (batch, 5, 5, 3), back)
    y = net.pad(y, ((0, 0), (1, 1), (0, 2), (0, 1)), g.PadMode.REFLECT)  # 7 x 7 x 4
    cut = g.SliceAttrs((0, 1, 0, 1), (1, 1, 1, 1), (batch, 6, 7, 3))
    y = net.move(OpKind.SLICE, y, (batch, 6, 7, 3), cut)
    y = net.move(OpKind.TRANSPOSE, y, (batch, 3, 6, 7), g.TransposeAttrs((0, 3, 1, 2)))
    y = net.move(OpKind.RESIZE_NEAREST_NEIGHBOR, y, (batch, 6, 5, 7), g.ResizeAttrs(False, True))
    y = net.move(OpKind.RESIZE_BILINEAR, y, (batch, 4, 8, 7), g.ResizeAttrs(True, False))
    return net.pad(y, ((0, 0), (2, 0), (0, 0), (1, 3)))


def _pooled(net: WideNetBuilder, x: int) -> int:
    """Pooling: 5 x 4 x 6 -> 3 x 2 x 6."""
    y = net.pool(OpKind.MAX_POOL_2D, x, (3, 2), (2, 1), same=True)
    return net.pool(OpKind.AVERAGE_POOL_2D, y, (2, 3), (1, 2), same=True, activation=Activation.RELU6)


def _classified(net: WideNetBuilder, x: int) -> int:
    """Dense layers and softmax; the shapes change without code."""
    batch = net.shape(x)[0]
    y = net.move(OpKind.EXPAND_DIMS, net.flatten(x), (batch, 1, 120))
    y = net.move(OpKind.SQUEEZE, net.dense(y, 9, keep_num_dims=True, per_channel=True), (batch, 9))
    return net.softmax(net.dense(y, 5, activation=Activation.RELU))


def audio(seed: int = 5) -> Graph:
    """A keyword network: 49 frames of 10 features, convolutions over time, a global mean, 12 classes.

    The second layer, and a dense layer for a second output, sum more than an int32 holds at worst.
    """
    net = WideNetBuilder(seed, "audio16")
    x = net.input((1, 49, 1, 10))
    x = net.conv(x, 64, kernel=(10, 1), stride=(2, 1), same=True, activation=Activation.RELU)
    heard = net.dense(net.flatten(x), 3)
    x = net.conv(x, 24, kernel=(19, 1), same=True, activation=Activation.RELU)
    for _ in range(2):
        x = net.conv(x, 0, kernel=(9, 1), same=True, depth_multiplier=1, activation=Activation.RELU)
        x = net.conv(x, 24, activation=Activation.RELU)
    x = net.mean(x)
    return net.graph([net.softmax(net.dense(x, 12)), heard])


def image(seed: int = 6) -> Graph:
    """An image network with a residual: 24 x 20 x 3 to 10 classes, from int8 pixels."""
    net = WideNetBuilder(seed, "image16")
    x = net.requantize(net.input((1, 24, 20, 3), DType.INT8, net.random_quant(0.02, DType.INT8)))
    x = net.conv(x, 8, kernel=(3, 3), stride=(2, 2), same=True, activation=Activation.RELU6)
    wide = net.conv(x, 24, activation=Activation.RELU6)
    wide = net.conv(wide, 0, kernel=(3, 3), same=True, depth_multiplier=1, activation=Activation.RELU6)
    x = net.elementwise(OpKind.ADD, x, net.conv(wide, 8))
    x = net.conv(x, 0, kernel=(5, 5), stride=(2, 2), same=True, depth_multiplier=1)
    x = net.unary(OpKind.TANH, net.conv(x, 19, kernel=(1, 1)))
    x = net.pool(OpKind.AVERAGE_POOL_2D, x, net.shape(x)[1:3], (1, 1))
    return net.graph([net.softmax(net.dense(net.flatten(x), 10))])
