"""A builder of networks whose weights are zeros: for whoever only asks how a network runs.

net = Net((1, 16, 16, 3))
graph = net.graph(net.dense(net.mean(net.conv(net.inputs[0], 8, (3, 3))), 10))
"""

import functools
import random
from collections.abc import Sequence

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.builder import NO_PAD, GraphBuilder
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Attrs, DType, Graph, OpKind, Pad, Quantization

SAME_3X3 = Pad(1, 1, 1, 1)
Pair = tuple[int, int]
_QUANT = Quantization((0.5,), (0,))


class Net(GraphBuilder):
    """Builds a Graph; every method adds an operator and returns the index of its output tensor."""

    def __init__(self, *input_shapes: Sequence[int], name: str = "net") -> None:
        super().__init__(name)
        for shape in input_shapes:
            self.feed(shape, _QUANT)

    def constant(self, shape: Sequence[int], dtype: DType = DType.INT8) -> int:
        """A constant of zeros."""
        return self.tensor(shape, _QUANT, dtype, np.zeros(shape, dtype.value))

    def add_op(
        self, kind: OpKind, inputs: Sequence[int], attrs: Attrs, shape: Sequence[int] | None = None
    ) -> int:
        """An operator whose output has the quantisation that all have."""
        return self.op(kind, inputs, attrs, _QUANT, shape=shape)

    def conv(
        self,
        x: int,
        cout: int,
        kernel: Pair = (1, 1),
        stride: Pair = (1, 1),
        pad: Pad = NO_PAD,
        dilation: Pair = (1, 1),
        groups: int = 1,
    ) -> int:
        """CONV_2D without biases."""
        weights = self.constant((cout, *kernel, self.shape(x)[3] // groups))
        return self.add_op(OpKind.CONV_2D, (x, weights, -1), g.ConvAttrs(stride, dilation, pad))

    def depthwise(
        self,
        x: int,
        kernel: Pair = (3, 3),
        stride: Pair = (1, 1),
        pad: Pad = SAME_3X3,
        dilation: Pair = (1, 1),
    ) -> int:
        """DEPTHWISE_CONV_2D without biases."""
        weights = self.constant((1, *kernel, self.shape(x)[3]))
        return self.add_op(
            OpKind.DEPTHWISE_CONV_2D, (x, weights, -1), g.DepthwiseAttrs(stride, dilation, pad)
        )

    def max_pool(self, x: int, kernel: Pair = (2, 2), stride: Pair = (2, 2), pad: Pad = NO_PAD) -> int:
        """MAX_POOL_2D."""
        return self.add_op(OpKind.MAX_POOL_2D, (x,), g.PoolAttrs(kernel, stride, pad))

    def add(self, a: int, b: int) -> int:
        """ADD, with broadcasting."""
        return self.add_op(OpKind.ADD, (a, b), g.ElementwiseAttrs())

    def relu(self, x: int) -> int:
        """RELU."""
        return self.add_op(OpKind.RELU, (x,), g.ElementwiseAttrs())

    def mean(self, x: int) -> int:
        """MEAN over rows and columns."""
        return self.add_op(OpKind.MEAN, (x,), g.MeanAttrs((1, 2)))

    def dense(self, x: int, outputs: int) -> int:
        """FULLY_CONNECTED without biases."""
        weights = self.constant((outputs, self.shape(x)[1]))
        return self.add_op(OpKind.FULLY_CONNECTED, (x, weights, -1), g.FullyConnectedAttrs())

    def reshape(self, x: int, shape: Sequence[int]) -> int:
        """RESHAPE."""
        return self.add_op(OpKind.RESHAPE, (x,), g.ElementwiseAttrs(), shape)

    def concat(self, parts: Sequence[int]) -> int:
        """CONCATENATION of channels."""
        return self.add_op(OpKind.CONCATENATION, parts, g.AxisAttrs(3))

    def slice(self, x: int, first: int, count: int) -> int:
        """SLICE of channels."""
        extent = (*self.shape(x)[:3], count)
        return self.add_op(OpKind.SLICE, (x,), g.SliceAttrs((0, 0, 0, first), (1,) * 4, extent))

    def shuffle(self, x: int, groups: int) -> int:
        """TRANSPOSE of channels alone."""
        return self.add_op(OpKind.TRANSPOSE, (x,), g.ShuffleAttrs(groups))

    def widened(self, a: int, b: int, before: int) -> int:
        """ADD of `b`, which has fewer channels, as the rewrites make it."""
        filling = self.constant((max(before, self.shape(a)[3] - self.shape(b)[3] - before),))
        return self.add_op(OpKind.ADD, (a, b, filling), g.WidenedAttrs(before=before))

    def graph(self, *outputs: int) -> Graph:  # type: ignore[override]
        """The network that makes these tensors."""
        return super().graph(outputs)


def joined(branches: int, size: int = 16, *, as_a_tree: bool = False) -> Graph:
    """Branches of three operators that read one tensor, all of them made before additions join them.

    The additions are a chain, or a tree.
    """
    net = Net((1, size, size, 4), name="joined")
    x = net.conv(net.inputs[0], 8)
    waiting = [net.conv(net.depthwise(net.conv(x, 8 + 4 * (i % 3))), 8) for i in range(branches)]
    while len(waiting) > 1:
        first, second, *rest = waiting
        waiting = [*rest, net.add(first, second)] if as_a_tree else [net.add(first, second), *rest]
    return net.graph(waiting[0])


def small(channels: int = 8) -> bytes:
    """A convolution, a mean and a dense layer, as a file."""
    net = Net((1, 8, 8, 3))
    return write_model(net.graph(net.dense(net.mean(net.conv(net.inputs[0], channels, (3, 3))), 4)))


def watts_strogatz(nodes: int, neighbours: int, probability: float, seed: int) -> list[tuple[int, int]]:
    """Edges (low, high) of a small world: a ring of `neighbours` each, rewired with `probability`."""
    draw = random.Random(seed)
    linked = {frozenset((i, (i + d) % nodes)) for d in range(1, neighbours // 2 + 1) for i in range(nodes)}
    for d in range(1, neighbours // 2 + 1):
        for i in range(nodes):
            old = frozenset((i, (i + d) % nodes))
            free = [j for j in range(nodes) if j != i and frozenset((i, j)) not in linked]
            if draw.random() < probability and old in linked and free:
                linked.remove(old)
                linked.add(frozenset((i, draw.choice(free))))
    return sorted((min(edge), max(edge)) for edge in linked)


def wired_stage(net: Net, x: int, channels: int, edges: Sequence[tuple[int, int]], nodes: int) -> int:
    """Each node adds what comes in, then ReLU, a 3x3 depthwise and a 1x1 convolution; sinks are added."""
    sources = {i: [a for a, b in edges if b == i] for i in range(nodes)}
    made: dict[int, int] = {}
    for i in range(nodes):
        total = functools.reduce(net.add, [made[a] for a in sources[i]] or [x])
        stride = (1, 1) if sources[i] else (2, 2)
        made[i] = net.conv(net.depthwise(net.relu(total), stride=stride), channels)
    return functools.reduce(net.add, [made[i] for i in range(nodes) if all(a != i for a, _ in edges)])


def wired_net(seed: int, nodes: int = 32, stages: int = 2, channels: int = 16, side: int = 33) -> Graph:
    """RandWire: a strided convolution, stages of WS(nodes, 4, 0.75), channels doubling, a dense layer."""
    net = Net((1, side, side, 3))
    x = net.conv(net.inputs[0], channels, (3, 3), (2, 2), NO_PAD)
    for stage in range(stages):
        channels *= 2
        x = wired_stage(net, x, channels, watts_strogatz(nodes, 4, 0.75, seed * 100 + stage), nodes)
    return net.graph(net.dense(net.mean(x), 10))
