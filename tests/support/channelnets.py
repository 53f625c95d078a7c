"""Networks that move channels: detectors with widened shortcuts, split and shuffled channels."""

from __future__ import annotations

from branchnets import shuffled

from buildtool.graph.types import Activation, Graph, OpKind, SliceAttrs, TransposeAttrs
from buildtool.zoo.drawn import NetBuilder

_WIDTHS = ((24, 1), (28, 1), (32, 2), (36, 1), (42, 1), (48, 2), (56, 1), (64, 1), (72, 1), (80, 1), (88, 1))


def blaze_block(
    net: NetBuilder, x: int, channels: int, stride: int = 1, kernel: int = 5, before: int = 0
) -> int:
    """Depthwise and 1x1 convolutions beside a shortcut, pooled if strided, padded if it lacks channels."""
    window = (kernel, kernel)
    y = net.conv(x, 0, kernel=window, stride=(stride, stride), same=True, depth_multiplier=1)
    y = net.conv(y, channels)
    if stride > 1:
        x = net.pool(OpKind.MAX_POOL_2D, x, (stride, stride), (stride, stride), same=True)
    behind = channels - net.shape(x)[3] - before
    if before or behind:
        x = net.pad(x, ((0, 0), (0, 0), (0, 0), (before, behind)))
    return net.elementwise(OpKind.ADD, y, x, Activation.RELU)


def blazeface(size: int = 128) -> Graph:
    """As the face detector of Bazarevsky et al. (2019): boxes and scores at two resolutions."""
    net = NetBuilder(1, "blazeface")
    x = net.input((1, size, size, 3))
    x = net.conv(x, 24, kernel=(5, 5), stride=(2, 2), same=True, activation=Activation.RELU)
    for channels, stride in _WIDTHS:
        x = blaze_block(net, x, channels, stride)
    heads = [(x, 2)]
    for stride in (2, 1, 1, 1, 1):
        x = blaze_block(net, x, 96, stride)
    return net.graph([net.conv(t, count * n) for t, n in (*heads, (x, 6)) for count in (1, 16)])


def channel_moves() -> Graph:
    """All of it in a small network: an input in another order, and every move of channels there is."""
    net = NetBuilder(3, "moves")
    x = net.input((1, 3, 19, 17))
    x = net.move(OpKind.TRANSPOSE, x, (1, 19, 17, 3), TransposeAttrs((0, 2, 3, 1)))
    x = net.conv(x, 6, kernel=(3, 3), same=True)
    x = blaze_block(net, x, 11, kernel=3, before=2)
    x = blaze_block(net, x, 12, stride=2, kernel=3)
    for _ in range(2):
        first, second = net.split(x, 2)
        second = net.conv(second, 0, kernel=(3, 3), same=True, depth_multiplier=1)
        x = shuffled(net, net.concat([first, net.conv(second, 6)]), 3)
    wide = net.pad(x, ((0, 0), (0, 0), (0, 0), (1, 2)))
    x = net.elementwise(OpKind.MUL, net.conv(x, 15), wide)
    *image, _ = net.shape(x)
    picked = SliceAttrs((0, 0, 0, 13), (1, 1, 1, -3), (*image, 5))
    x = net.move(OpKind.STRIDED_SLICE, x, (*image, 5), picked)
    x = net.conv(x, 4, kernel=(3, 3), same=True)
    return net.graph([net.dense(net.mean(x), 5)])
