"""One network with every operator kind in it: few builds and emulator runs cover them all."""

from __future__ import annotations

import functools

from netbuilder import NetBuilder
from spread import spread

from buildtool.graph import types as g
from buildtool.graph.types import Activation, DType, Graph, OpKind


@functools.cache
def every_operator(seed: int = 20, batch: int = 1) -> Graph:
    """Every OpKind, most of them in an odd geometry; a float and an int8 input, several outputs.

    The trunk is 5 x 4 x 6. Operators stand where no rewrite removes them: what is left is all but
    the kinds that run no code (the aliases, and DEQUANTIZE and float QUANTIZE at the network's edges).
    Made once a process: spreading its values takes a third of a second.
    """
    net = NetBuilder(seed)
    image = net.requantize(net.input((batch, 9, 7, 3), DType.FLOAT32))
    side = net.input((batch, 5, 4, 6))
    x = net.conv(image, 6, kernel=(3, 3), stride=(2, 2), same=True, activation=Activation.RELU6)
    x = net.elementwise(OpKind.ADD, x, side)
    trunk = _weighted(net, x)
    outputs = [_arithmetic(net, trunk, side), _moved(net, trunk), _small(net, trunk)]
    return spread(net.graph([*outputs, net.dequantize(_classified(net, trunk))]), seed)


def _weighted(net: NetBuilder, x: int) -> int:
    """Convolutions of each sort: 5 x 4 x 6 -> 5 x 4 x 6."""
    y = net.conv(x, 0, kernel=(3, 2), same=True, depth_multiplier=2, activation=Activation.RELU)
    y = net.conv(y, 6, kernel=(2, 3), dilation=(2, 1), same=True, groups=2)
    up = net.transpose_conv(y, 3, kernel=(3, 2), stride=(2, 2), same=True)  # 10 x 8 x 3
    return net.conv(up, 6, kernel=(2, 2), stride=(2, 2))


def _arithmetic(net: NetBuilder, x: int, side: int) -> int:
    """Elementwise operators and functions of one byte."""
    y = net.elementwise(OpKind.SUB, x, side, Activation.RELU_N1_TO_1)
    y = net.elementwise(OpKind.MUL, y, net.constant((6,)))
    for kind in (OpKind.HARD_SWISH, OpKind.RELU, OpKind.LEAKY_RELU, OpKind.RELU6, OpKind.TANH):
        y = net.unary(kind, net.elementwise(OpKind.ADD, y, x))
    y = net.prelu(net.requantize(y), (1, 1, 6))
    gate = net.unary(OpKind.LOGISTIC, net.conv(net.mean(y, keep_dims=True), 6))
    return net.elementwise(OpKind.MUL, y, gate)


def _moved(net: NetBuilder, x: int) -> int:
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


def _small(net: NetBuilder, x: int) -> int:
    """Pooling, one output."""
    y = net.pool(OpKind.MAX_POOL_2D, x, (3, 2), (2, 1), same=True)
    return net.pool(OpKind.AVERAGE_POOL_2D, y, (2, 3), (1, 2), same=True, activation=Activation.RELU6)


def _classified(net: NetBuilder, x: int) -> int:
    """Dense layers and softmax; the shapes change without code."""
    batch = net.shape(x)[0]
    y = net.move(OpKind.EXPAND_DIMS, net.flatten(x), (batch, 1, 120))
    y = net.move(OpKind.SQUEEZE, net.dense(y, 9, keep_num_dims=True), (batch, 9))
    return net.softmax(net.dense(y, 5, activation=Activation.RELU))
