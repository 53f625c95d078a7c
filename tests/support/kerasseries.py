"""Networks over time as Keras exports them: Conv1D reads 1x1xLxC, MaxPooling1D 1xLx1xC, and between is 1xLxC.

graph = speech()              # an M5-like network on 16,000 samples
graph = drawn(seed)           # of random operators, most of which can be turned
"""

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.builder import NO_PAD
from buildtool.graph.geometry import same_pad
from buildtool.graph.types import Activation, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

MOVES = (
    "conv",
    "conv",
    "depthwise",
    "pool",
    "residual",
    "joined",
    "padded",
    "cut",
    "scaled",
    "alpha",
    "resized",
    "odd",
)


class Series(NetBuilder):
    """Builds networks on tensors of shape (1, samples, channels)."""

    def conv1d(
        self, x: int, channels: int, kernel: int, stride: int = 1, *, rows: int = 1, same: bool = True, **more
    ) -> int:
        """Conv1D; `rows` of its filter above 1 meet padding alone."""
        _, length, depth = self.shape(x)
        image = self.move(OpKind.EXPAND_DIMS, x, (1, 1, length, depth))
        pad = same_pad((1, length), (rows, kernel), (1, stride)) if same else NO_PAD
        y = self.conv(image, channels, kernel=(rows, kernel), stride=(1, stride), pad=pad, **more)
        return self.move(OpKind.SQUEEZE, y, (1, *self.shape(y)[2:]))

    def pool1d(self, x: int, size: int, kind: OpKind = OpKind.MAX_POOL_2D) -> int:
        """MaxPooling1D or AveragePooling1D."""
        _, length, depth = self.shape(x)
        y = self.pool(kind, self.move(OpKind.EXPAND_DIMS, x, (1, length, 1, depth)), (size, 1), (size, 1))
        return self.move(OpKind.SQUEEZE, y, (1, self.shape(y)[1], depth))


def speech(samples: int = 16000) -> Graph:
    """Convolutions and poolings over samples, after M5 (Dai et al., 2016)."""
    net = Series(4, "speech")
    x = net.conv1d(net.input((1, samples, 1)), 16, 80, 4, activation=Activation.RELU)
    for channels in (16, 32, 32):
        x = net.conv1d(net.pool1d(x, 4), channels, 3, activation=Activation.RELU)
    return net.graph([net.softmax(net.dense(net.mean(net.pool1d(x, 4), (1,)), 12))])


def drawn(seed: int) -> Graph:
    """A random network on 24 to 60 samples."""
    draw = np.random.default_rng(seed)
    net = Series(seed, "series")
    x = net.input((1, 12 * int(draw.integers(2, 6)), int(draw.integers(1, 5))))
    kernel, stride, rows = (int(draw.integers(1, 4)) for _ in range(3))
    if draw.integers(2):
        x = net.conv1d(x, 4, kernel + 1, rows=rows)
    else:  # rows of some samples have the filter's bytes
        x = net.conv1d(x, 4, 4 * kernel, 2 * stride, same=kernel > 1)
    for _ in range(4):
        _, length, depth = net.shape(x)
        match draw.choice(MOVES):
            case "conv":
                x = net.conv1d(
                    x, int(draw.integers(2, 6)), int(draw.integers(1, 6)), int(draw.integers(1, 3))
                )
            case "depthwise":
                x = net.conv1d(x, 0, 3, depth_multiplier=1)
            case "pool" if length > 4:
                x = net.pool1d(x, 2, draw.choice([OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D]))
            case "residual":
                x = net.elementwise(OpKind.ADD, net.conv1d(x, depth, 3), x, Activation.RELU)
            case "joined":
                image = net.move(OpKind.RESHAPE, x, (1, 1, length, depth))
                image = net.pool(OpKind.MAX_POOL_2D, image, (1, 3), (1, 1), same=True)
                other = net.move(OpKind.RESHAPE, image, (1, length, depth))
                x = net.concat([x, other], int(draw.integers(1, 3)))
            case "padded":
                x = net.pad(x, ((0, 0), (int(draw.integers(0, 3)), 1), (0, int(draw.integers(0, 2)))))
            case "cut":
                first = int(draw.integers(0, depth))
                attrs = g.SliceAttrs((0, 1, first), (1, 2, 1), (1, (length - 1) // 2, depth - first))
                x = net.move(OpKind.STRIDED_SLICE, x, attrs=attrs)
            case "scaled":
                shape = [(depth,), (1, 1, depth), (length, depth), (1, length, 1)][draw.integers(4)]
                x = net.elementwise(OpKind.MUL, x, net.constant(shape))
            case "alpha":
                x = net.prelu(x, (1, depth))
            case "resized":
                image = net.move(OpKind.RESHAPE, x, (1, 1, length, depth))
                image = net.op(
                    OpKind.RESIZE_NEAREST_NEIGHBOR,
                    (image,),
                    g.ResizeAttrs(),
                    net.tensors[x].quant,
                    shape=(1, 1, 2 * length, depth),
                )
                x = net.move(OpKind.RESHAPE, image, (1, 2 * length, depth))
            case "odd":  # it is not turned
                x = net.move(OpKind.TRANSPOSE, x, (1, depth, length), g.TransposeAttrs((0, 2, 1)))
                x = net.move(OpKind.RESHAPE, x, (1, length, depth))
    x = net.conv1d(x, 3, 3)
    return net.graph(
        [net.mean(x, (1,), keep_dims=bool(seed % 2)), x] if seed % 3 else [net.dense(net.flatten(x), 5)]
    )
