"""Networks of ones, for tests that only plan a network.

net = Net((1, 16, 16, 3))
graph = net.graph(net.dense(net.mean(net.conv(net.inputs[0], 8, (3, 3))), 10))
"""

import functools
import random
from collections.abc import Sequence

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.builder import NO_PAD
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Attrs, DType, Graph, OpKind, Pad, Quantization
from buildtool.zoo.drawn import NetBuilder

SAME_3X3 = Pad(1, 1, 1, 1)
Pair = tuple[int, int]
_QUANT = Quantization((0.5,), (0,))


class Net(NetBuilder):
    """Builds networks of ones: all weights are 1, and all tensors have one quantisation.

    A method adds an operator and returns the index of its output tensor.
    """

    def __init__(self, *input_shapes: Sequence[int], name: str = "net") -> None:
        super().__init__(0, name)
        for shape in input_shapes:
            self.feed(shape, _QUANT)

    def random_quant(self, scale: float | None = None, dtype: DType = DType.INT8) -> Quantization:
        return _QUANT

    def _weights(self, x: int, shape: tuple[int, ...], *_: object) -> tuple[int, int, float]:  # type: ignore[override]
        return self.constant(shape), -1, 1.0

    def constant(self, shape: Sequence[int], dtype: DType = DType.INT8) -> int:
        """A constant of ones. (Channels of zeros would be removed.)"""
        return self.tensor(shape, _QUANT, dtype, np.ones(shape, dtype.value))

    def add_op(
        self, kind: OpKind, inputs: Sequence[int], attrs: Attrs, shape: Sequence[int] | None = None
    ) -> int:
        return self.op(kind, inputs, attrs, _QUANT, shape=shape)

    def conv(  # type: ignore[override]
        self,
        x: int,
        cout: int,
        kernel: Pair = (1, 1),
        stride: Pair = (1, 1),
        pad: Pad = NO_PAD,
        dilation: Pair = (1, 1),
        groups: int = 1,
        multiplier: int = 0,
    ) -> int:
        """CONV_2D, or DEPTHWISE_CONV_2D where `multiplier` is above 0; without biases."""
        more = {"kernel": kernel, "stride": stride, "pad": pad, "dilation": dilation, "groups": groups}
        return super().conv(x, cout, depth_multiplier=multiplier, **more)

    def depthwise(
        self,
        x: int,
        kernel: Pair = (3, 3),
        stride: Pair = (1, 1),
        pad: Pad = SAME_3X3,
        dilation: Pair = (1, 1),
    ) -> int:
        """DEPTHWISE_CONV_2D without biases."""
        return self.conv(x, 0, kernel, stride, pad, dilation, multiplier=1)

    def max_pool(self, x: int, kernel: Pair = (2, 2), stride: Pair = (2, 2), pad: Pad = NO_PAD) -> int:
        return self.add_op(OpKind.MAX_POOL_2D, (x,), g.PoolAttrs(kernel, stride, pad))

    def add(self, a: int, b: int) -> int:
        return self.elementwise(OpKind.ADD, a, b)

    def relu(self, x: int) -> int:
        return self.add_op(OpKind.RELU, (x,), g.ElementwiseAttrs())

    def reshape(self, x: int, shape: Sequence[int]) -> int:
        return self.move(OpKind.RESHAPE, x, shape)

    def slice(self, x: int, first: int, count: int) -> int:
        """SLICE of channels."""
        extent = (*self.shape(x)[:3], count)
        return self.move(OpKind.SLICE, x, attrs=g.SliceAttrs((0, 0, 0, first), (1,) * 4, extent))

    def planes(self, x: int) -> int:
        """TRANSPOSE of an image into planes of its channels."""
        batch, rows, columns, channels = self.shape(x)
        planes = (batch, channels, rows, columns)
        return self.move(OpKind.TRANSPOSE, x, planes, g.TransposeAttrs((0, 3, 1, 2)))

    def shuffle(self, x: int, groups: int) -> int:
        """TRANSPOSE of channels alone."""
        return self.move(OpKind.TRANSPOSE, x, attrs=g.ShuffleAttrs(groups))

    def widened(self, a: int, b: int, before: int) -> int:
        """ADD of `b`, which has fewer channels, as the rewrites make it."""
        filling = self.constant((max(before, self.shape(a)[3] - self.shape(b)[3] - before),))
        return self.add_op(OpKind.ADD, (a, b, filling), g.WidenedAttrs(before=before))

    def graph(self, *outputs: int) -> Graph:  # type: ignore[override]
        return super().graph(outputs)


def joined(branches: int, size: int = 16, *, as_a_tree: bool = False) -> Graph:
    """Branches of three operators that read one tensor, then additions that join them as a chain or a tree.

    All branches run before the first addition.
    """
    net = Net((1, size, size, 4), name="joined")
    x = net.conv(net.inputs[0], 8)
    waiting = [net.conv(net.depthwise(net.conv(x, 8 + 4 * (i % 3))), 8) for i in range(branches)]
    while len(waiting) > 1:
        first, second, *rest = waiting
        waiting = [*rest, net.add(first, second)] if as_a_tree else [net.add(first, second), *rest]
    return net.graph(waiting[0])


def small(channels: int = 8) -> bytes:
    """Returns a file of a convolution, a mean and a dense layer."""
    net = Net((1, 8, 8, 3))
    return write_model(net.graph(net.dense(net.mean(net.conv(net.inputs[0], channels, (3, 3))), 4)))


def watts_strogatz(nodes: int, seed: int) -> list[tuple[int, int]]:
    """Returns edges (low, high) of a small world: a ring of 4 neighbours, rewired with probability 0.75."""
    draw = random.Random(seed)
    ring = [frozenset((i, (i + d) % nodes)) for d in (1, 2) for i in range(nodes)]
    linked = set(ring)
    for number, old in enumerate(ring):
        i = number % nodes
        free = [j for j in range(nodes) if j != i and frozenset((i, j)) not in linked]
        if draw.random() < 0.75 and old in linked and free:
            linked.remove(old)
            linked.add(frozenset((i, draw.choice(free))))
    return sorted((min(edge), max(edge)) for edge in linked)


def wired_net(seed: int, nodes: int = 32, stages: int = 2) -> Graph:
    """RandWire: a strided convolution, stages of WS(nodes, 4, 0.75), channels doubling, a dense layer.

    Each node of a stage adds its inputs, then ReLU, a 3x3 depthwise and a 1x1 convolution; the nodes that
    nothing reads are added.
    """
    net, channels = Net((1, 33, 33, 3)), 16
    x = net.conv(net.inputs[0], channels, (3, 3), (2, 2), NO_PAD)
    for stage in range(stages):
        channels *= 2
        edges = watts_strogatz(nodes, seed * 100 + stage)
        outs: dict[int, int] = {}
        for node in range(nodes):
            sources = [outs[a] for a, b in edges if b == node]
            total = functools.reduce(net.add, sources or [x])
            narrow = net.depthwise(net.relu(total), stride=(1, 1) if sources else (2, 2))
            outs[node] = net.conv(narrow, channels)
        x = functools.reduce(net.add, [outs[i] for i in range(nodes) if all(a != i for a, _ in edges)])
    return net.graph(net.dense(net.mean(x), 10))
