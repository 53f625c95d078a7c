"""Random small networks over time, and the comparison of hops with the network on whole windows."""

from __future__ import annotations

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.hop.build import Built
from buildtool.graph.hop.moments import Analysis
from buildtool.graph.reference import execute, initial_states, next_states
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Activation, DType, Graph, OpKind
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder


def listening_network(seed: int) -> Graph:
    """Returns a rewritten network over 6 to 60 moments: along rows, or along the columns of one row."""
    return rewrite(listening_source(seed))


def listening_source(seed: int) -> Graph:
    """Returns the same network as it is in a file."""
    return _Drawing(np.random.default_rng([seed, 37]), seed).network()


class _Drawing:
    def __init__(self, draw: np.random.Generator, seed: int) -> None:
        self.draw = draw
        wide = draw.integers(8) == 0
        self.net = (WideNetBuilder if wide else NetBuilder)(seed)
        self.turned = bool(draw.integers(3) == 0)
        rows = int(draw.integers(6, 61))
        width = 1 if self.turned else int(draw.choice([1, 1, 2, 3, 5]))
        channels = int(draw.choice([1, 2, 3, 4]))
        shape = (1, 1, rows, channels) if self.turned else (1, rows, width, channels)
        dtype = DType.INT16 if wide else DType.INT8
        if draw.integers(4) == 0:  # a flat input
            flat = self.net.input((1, rows * width * channels), dtype)
            self.x = self.net.move(OpKind.RESHAPE, flat, shape)
        elif width == 1 and draw.integers(3) == 0:
            self.x = self.net.move(OpKind.RESHAPE, self.net.input((1, rows, channels), dtype), shape)
        else:
            self.x = self.net.input(shape, dtype)

    @property
    def rows(self) -> int:
        return self.net.shape(self.x)[2 if self.turned else 1]

    def pair(self, along: int, across: int) -> tuple[int, int]:
        """Numbers along the moments and across them, as (rows, columns)."""
        return (across, along) if self.turned else (along, across)

    def network(self) -> Graph:
        outputs = []
        for _ in range(int(self.draw.integers(1, 7))):
            self.add()
            if self.draw.integers(12) == 0:
                outputs.append(self.x)
        outputs.append(self.end())
        return self.net.graph(list(dict.fromkeys(outputs)))

    def conv(self, x: int, channels: int, stride: int = 1) -> int:
        """A convolution with any padding, depthwise if `channels` is 0."""
        draw, net = self.draw, self.net
        kernel = int(draw.choice([1, 2, 3, 3, 5]))
        dilation = int(draw.choice([1, 1, 1, 2, 4])) if stride == 1 else 1
        shape = net.shape(x)
        rows, width = (shape[2], 1) if self.turned else shape[1:3]
        across = min(int(draw.choice([1, 1, 3])), width)
        extent = (kernel - 1) * dilation + 1
        how = int(draw.integers(4))
        if extent > rows and how == 0:
            how = 1
        side = extent - 1
        before, after = ((0, 0), (side // 2, side - side // 2), (side, 0), (side // 2, side - side // 2))[how]
        if self.turned:
            pad = g.Pad(0, 0, before, after)
        else:
            pad = g.Pad(before, after, across // 2, across - 1 - across // 2)
        return net.conv(
            x,
            channels or 1,
            kernel=self.pair(kernel, across),
            stride=self.pair(stride, stride if not channels else 1) if width > 2 else (stride, stride),
            dilation=self.pair(dilation, 1),
            pad=pad,
            depth_multiplier=0 if channels else 1,
            activation=Activation.RELU if draw.integers(2) else Activation.NONE,
        )

    def add(self) -> None:
        draw, net, x = self.draw, self.net, self.x
        stride = 2 if self.rows > 8 and draw.integers(5) == 0 else 1
        match int(draw.integers(13)):
            case 0 | 1 | 2:
                self.x = self.conv(x, int(draw.choice([2, 3, 4, 6])), stride)
            case 3 | 4:
                self.x = self.conv(x, 0, stride)
            case 5:  # a residual connection
                y = self.same_rows(x)
                if net.shape(y) == net.shape(x):
                    self.x = net.elementwise(OpKind.ADD, x, y)
            case 6:  # branches
                y, z = self.same_rows(x), self.same_rows(x)
                if net.shape(y)[:3] == net.shape(z)[:3]:
                    self.x = net.concat([y, z])
            case 7 if self.rows >= 4:
                kind = OpKind.MAX_POOL_2D if draw.integers(2) else OpKind.AVERAGE_POOL_2D
                side = int(draw.choice([2, 3]))
                self.x = net.pool(kind, x, self.pair(side, 1), self.pair(stride, 1) if stride > 1 else (1, 1),
                                  same=bool(draw.integers(2)))  # fmt: skip
            case 8:
                self.x = net.elementwise(OpKind.MUL, x, net.constant((1, 1, 1, net.shape(x)[3])))
            case 9 if self.rows > 3:  # cuts moments off
                begin = int(draw.integers(0, 3))
                shape = list(net.shape(x))
                dim = 2 if self.turned else 1
                begins = [begin if d == dim else 0 for d in range(4)]
                shape[dim] -= begin + int(draw.integers(0, 2))
                attrs = g.SliceAttrs(tuple(begins), (1,) * 4, tuple(shape))
                self.x = net.move(OpKind.STRIDED_SLICE, x, attrs=attrs)
            case 10:
                sides = [(0, 0)] * 4
                sides[2 if self.turned else 1] = (int(draw.integers(3)), int(draw.integers(2)))
                if net.tensors[x].dtype is DType.INT8:
                    self.x = net.pad(x, sides)
            case 11:
                self.x = net.dense(x, int(draw.choice([2, 5])), keep_num_dims=True)
            case 12 if net.shape(x)[3] % 2 == 0:
                self.x = net.split(x, 2)[int(draw.integers(2))]
            case _:
                self.x = net.unary(OpKind.TANH, x)

    def same_rows(self, x: int) -> int:
        draw, net = self.draw, self.net
        channels = net.shape(x)[3]
        kernel = int(draw.choice([1, 3, 3]))
        dilation = int(draw.choice([1, 2, 3]))
        side = (kernel - 1) * dilation
        before = side if draw.integers(2) else side // 2
        pad = g.Pad(0, 0, before, side - before) if self.turned else g.Pad(before, side - before, 0, 0)
        return net.conv(x, channels, kernel=self.pair(kernel, 1), dilation=self.pair(dilation, 1), pad=pad)

    def end(self) -> int:
        draw, net, x = self.draw, self.net, self.x
        shape = net.shape(x)
        dim = 2 if self.turned else 1
        match int(draw.integers(8)):
            case 0:
                return net.mean(x, (1, 2), bool(draw.integers(2)))
            case 1:
                return net.pool(OpKind.AVERAGE_POOL_2D, x, shape[1:3], (1, 1))
            case 2:
                return net.extreme(OpKind.REDUCE_MAX, x, (1, 2))
            case 3:
                return net.pool(OpKind.MAX_POOL_2D, x, shape[1:3], (1, 1))
            case 4:  # the last moment
                begin = [shape[d] - 1 if d == dim else 0 for d in range(4)]
                extent = [1 if d == dim else n for d, n in enumerate(shape)]
                attrs = g.SliceAttrs(tuple(begin), (1,) * 4, tuple(extent))
                return net.dense(net.flatten(net.move(OpKind.STRIDED_SLICE, x, attrs=attrs)), 3)
            case 5:
                return net.dense(net.flatten(x), 3)
            case 6:
                return net.softmax(x) if net.tensors[x].dtype is DType.INT8 else x
            case _:
                return net.mean(x, (1, 2), False, OpKind.SUM) if net.tensors[x].dtype is DType.INT8 else x


def assert_hops_equal(graph: Graph, analysis: Analysis, built: Built, hops: int, seed: int = 0) -> None:
    """Runs hops of a random signal through both networks: every tensor of each hop is equal."""
    draw, small, states = np.random.default_rng(seed), built.graph, initial_states(built.graph)
    first = graph.tensors[graph.inputs[0]]
    zero_point = first.quant.zero_point if first.quant else 0
    window = np.full(first.elements, zero_point, first.dtype.value)
    for hop in range(hops):
        new = draw.integers(-128, 128, small.tensors[small.inputs[0]].shape).astype(first.dtype.value)
        window = np.concatenate([window, new.reshape(-1)])[new.size :]
        values = execute(small, [new], states)
        states = next_states(small, values)
        whole = execute(graph, [window.reshape(first.shape)])
        for ours, theirs in zip(small.outputs, graph.outputs, strict=True):
            np.testing.assert_array_equal(values[ours], whole[theirs], f"output of hop {hop}")
        for t, tensor in enumerate(small.tensors):
            origin = built.origins.get(tensor.name)
            if origin is None:
                continue
            right = whole[origin.tensor].reshape(-1)
            if origin.rows:
                rows = right.reshape(analysis.moments[origin.tensor].rows, -1)
                right = np.concatenate([rows[low:high] for low, high in origin.rows]).reshape(-1)
            np.testing.assert_array_equal(values[t].reshape(-1), right, f"{small.tensors[t].name}, hop {hop}")
