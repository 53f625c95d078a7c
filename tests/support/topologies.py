"""Networks of the topologies that users bring, of any size: what is drawn depends on the seed alone.

graph = drawn("u_net", 7)                # one of TOPOLOGIES or OTHERS
write_model(graph)
"""

from __future__ import annotations

import random
from collections.abc import Callable

import recurrentnets
import statenets
import widenets
from wired import watts_strogatz

from buildtool.graph.types import Activation, Graph, OpKind, PoolAttrs, ResizeAttrs, TransposeAttrs
from buildtool.zoo.drawn import NetBuilder

_RELU = Activation.RELU


class _Net(NetBuilder):
    """A builder with choices of its own."""

    def __init__(self, seed: int, name: str) -> None:
        super().__init__(seed, name)
        self.choose = random.Random(seed)

    def image(self, least: int, most: int, multiple: int = 1, channels: tuple[int, ...] = (1, 3)) -> int:
        """An input of a picture, rows and columns multiples of a number."""
        rows, columns = (multiple * self.choose.randint(least, most) for _ in range(2))
        return self.input((1, rows, columns, self.choose.choice(channels)))

    def block(self, x: int, channels: int, stride: int = 1) -> int:
        """Depthwise and 1x1, or a whole 3x3."""
        if self.choose.randrange(2):
            x = self.conv(x, 0, kernel=(3, 3), stride=(stride, stride), same=True, depth_multiplier=1)
            return self.conv(x, channels, activation=_RELU)
        return self.conv(x, channels, kernel=(3, 3), stride=(stride, stride), same=True, activation=_RELU)

    def enlarged(self, x: int, channels: int) -> int:
        """Twice the rows and columns, in one of the ways that decoders have."""
        batch, rows, columns, depth = self.shape(x)
        if self.choose.randrange(3) == 0:
            size = self.choose.choice([2, 3, 4])
            return self.transpose_conv(x, channels, kernel=(size, size), stride=(2, 2), same=True)
        kind = self.choose.choice([OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR])
        modes = [ResizeAttrs(), ResizeAttrs(align_corners=True), ResizeAttrs(half_pixel_centers=True)]
        x = self.move(kind, x, (batch, 2 * rows, 2 * columns, depth), self.choose.choice(modes))
        return self.conv(x, channels, kernel=(3, 3), same=True, activation=_RELU)


def _u_net(net: _Net) -> list[int]:
    """An encoder of two or three levels, and a decoder that joins or adds what each level had."""
    levels, channels = net.choose.randint(2, 3), net.choose.choice([4, 6, 8])
    x = net.block(net.image(2, 4, 2**levels), channels)
    kept = []
    for level in range(levels):
        kept.append(x)
        x = net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2))
        x = net.block(x, channels * (level + 2))
    for level in reversed(range(levels)):
        skip = kept[level]
        x = net.enlarged(x, net.shape(skip)[3])
        x = net.concat([x, skip]) if net.choose.randrange(2) else net.elementwise(OpKind.ADD, x, skip)
        x = net.block(x, channels * (level + 1))
    return [net.conv(x, net.choose.randint(1, 4))]


def _detector(net: _Net) -> list[int]:
    """A trunk with shortcuts whose channels are padded, and heads at two sizes: boxes and scores."""
    channels, heads = net.choose.choice([4, 8]), []
    x = net.conv(
        net.image(6, 9, 4, (3,)), channels, kernel=(5, 5), stride=(2, 2), same=True, activation=_RELU
    )
    for stride, wider in ((1, 0), (2, 4), (1, 4), (2, 8), (1, 0)):
        y = net.conv(x, 0, kernel=(3, 3), stride=(stride, stride), same=True, depth_multiplier=1)
        y = net.conv(y, net.shape(x)[3] + wider)
        side = x if stride == 1 else net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2), same=True)
        if wider:
            side = net.pad(side, [(0, 0), (0, 0), (0, 0), (0, wider)])
        x = net.elementwise(OpKind.ADD, y, side, _RELU)
        if (stride, wider) in ((1, 4), (1, 0)) and net.shape(x)[1] < net.shape(net.inputs[0])[1] // 2:
            heads.append(x)
    found = []
    for head in heads[-2:]:
        for values in (4, 2):
            _, rows, columns, _ = net.shape(head)
            y = net.conv(head, values * 2)
            found.append(net.move(OpKind.RESHAPE, y, (1, rows * columns * 2, values)))
    if net.choose.randrange(2) and len(found) == 4:
        return [net.concat([found[0], found[2]], 1), net.unary(OpKind.LOGISTIC, net.concat(found[1::2], 1))]
    return found


def _squeezed(net: _Net) -> list[int]:
    """EfficientNet's blocks: wide, depthwise, a gate from the mean of all, narrow, a shortcut."""
    x = net.conv(net.image(8, 14), 6, kernel=(3, 3), stride=(2, 2), same=True)
    for _ in range(net.choose.randint(2, 3)):
        stride, channels = net.choose.choice([1, 2]), net.choose.choice([6, 8, 10])
        y = net.unary(OpKind.HARD_SWISH, net.conv(x, net.shape(x)[3] * 4))
        size = net.choose.choice([3, 5])
        y = net.conv(y, 0, kernel=(size, size), stride=(stride, stride), same=True, depth_multiplier=1)
        gate = net.conv(net.mean(y, keep_dims=True), 4, activation=_RELU)
        gate = net.unary(OpKind.LOGISTIC, net.conv(gate, net.shape(y)[3]))
        y = net.conv(net.elementwise(OpKind.MUL, y, gate), channels)
        x = net.elementwise(OpKind.ADD, x, y) if net.shape(x) == net.shape(y) else y
    return [net.softmax(net.dense(net.mean(x), 5))]


def _dense(net: _Net) -> list[int]:
    """Blocks whose layers see all before them, with transitions between."""
    x = net.conv(net.image(8, 14), 8, kernel=(3, 3), same=True)
    for _ in range(2):
        parts = [x]
        for _ in range(net.choose.randint(2, 4)):
            y = net.concat(parts) if len(parts) > 1 else parts[0]
            parts.append(net.block(net.conv(y, 8, activation=_RELU), 4))
        x = net.pool(OpKind.AVERAGE_POOL_2D, net.conv(net.concat(parts), 8), (2, 2), (2, 2))
    return [net.dense(net.mean(x), 4)]


def _wired(net: _Net) -> list[int]:
    """Nodes of a small world: sums of what comes in, depthwise and 1x1; then a dense layer."""
    nodes = net.choose.randint(6, 9)
    x = net.conv(net.image(8, 12), 8, kernel=(3, 3), stride=(2, 2), same=True)
    edges = watts_strogatz(nodes, 4, 0.75, net.choose.randrange(1000))
    made: list[int] = []
    for node in range(nodes):
        sources = [made[a] for a, b in edges if b == node] or [x]
        total = sources[0]
        for other in sources[1:]:
            total = net.elementwise(OpKind.ADD, total, other)
        y = net.conv(net.unary(OpKind.RELU, total), 0, kernel=(3, 3), same=True, depth_multiplier=1)
        made.append(net.conv(y, 8))
    ends = [made[i] for i in range(nodes) if all(a != i for a, _ in edges)]
    total = ends[0]
    for end in ends[1:]:
        total = net.elementwise(OpKind.ADD, total, end)
    return [net.dense(net.mean(total), 4)]


def _shuffled(net: _Net) -> list[int]:
    """ShuffleNet: half of the channels go by, half through a block; then both are interleaved."""
    x = net.conv(net.image(8, 14), 16, kernel=(3, 3), stride=(2, 2), same=True, activation=_RELU)
    for _ in range(net.choose.randint(2, 3)):
        by, through = net.split(x, 2)
        y = net.concat([by, net.block(net.conv(through, 8, activation=_RELU), 8)])
        batch, rows, columns, channels = net.shape(y)
        y = net.move(OpKind.RESHAPE, y, (batch, rows, columns, 2, channels // 2))
        y = net.move(
            OpKind.TRANSPOSE, y, (batch, rows, columns, channels // 2, 2), TransposeAttrs((0, 1, 2, 4, 3))
        )
        x = net.move(OpKind.RESHAPE, y, (batch, rows, columns, channels))
    return [net.dense(net.mean(x), 4)]


def _audio(net: _Net) -> list[int]:
    """A vector of samples that is a spectrogram, separable layers along time, several answers."""
    steps, bins = net.choose.randint(20, 40), net.choose.choice([10, 16])
    x = net.move(OpKind.RESHAPE, net.input((1, steps * bins)), (1, steps, bins, 1))
    x = net.conv(x, 8, kernel=(8, bins // 2), stride=(2, 2), same=True, activation=_RELU)
    for _ in range(net.choose.randint(2, 3)):
        x = net.conv(x, 0, kernel=(3, 3), same=True, depth_multiplier=1)
        x = net.conv(x, 8, activation=_RELU)
    window = PoolAttrs(net.shape(x)[1:3], net.shape(x)[1:3])
    pooled = net.op(OpKind.AVERAGE_POOL_2D, (x,), window, net.tensors[x].quant)
    flat = net.flatten(pooled)
    return [net.softmax(net.dense(flat, 6)), net.dense(flat, 2), x]


TOPOLOGIES: dict[str, Callable[[_Net], list[int]]] = {
    "audio": _audio,
    "dense": _dense,
    "detector": _detector,
    "shuffled": _shuffled,
    "squeezed": _squeezed,
    "u_net": _u_net,
    "wired": _wired,
}


# With state, and of int16: see test_state_networks.py, test_operators_on_boards.py.
OTHERS: dict[str, Callable[[int], Graph]] = {
    "audio_int16": widenets.audio,
    "keyword_stream": statenets.keyword_stream,
    "keyword_svdf": recurrentnets.keyword_svdf,
}


def drawn(topology: str, seed: int) -> Graph:
    """The network of a topology and a seed."""
    if topology in OTHERS:
        return OTHERS[topology](seed)
    net = _Net(seed, topology)
    return net.graph(TOPOLOGIES[topology](net))
