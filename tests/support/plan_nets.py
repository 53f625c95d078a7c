"""Small networks for planning: a builder, and random ones drawn by hypothesis. Weights are zeros."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from buildtool.graph.numbering import graph_of
from buildtool.graph.types import (
    Activation,
    AxisAttrs,
    ConvAttrs,
    DepthwiseAttrs,
    DType,
    ElementwiseAttrs,
    FullyConnectedAttrs,
    MeanAttrs,
    Op,
    OpKind,
    Pad,
    PoolAttrs,
    Quantization,
    Tensor,
)
from buildtool.target.types import Board, Contract, Core, Costs, KernelVariant, Memory, MemoryKind, Target

NO_PAD, SAME_3X3 = Pad(), Pad(1, 1, 1, 1)
_QUANT = Quantization((0.5,), (0,))


class Net:
    """Builds a Graph; every method adds an operator and returns the index of its output tensor."""

    def __init__(self, *input_shapes):
        self.tensors, self.ops = [], []
        self.inputs = [self.tensor(shape) for shape in input_shapes]

    def tensor(self, shape, data=None, dtype=DType.INT8):
        name = f"t{len(self.tensors)}"
        self.tensors.append(Tensor(name, tuple(shape), dtype, _QUANT, data))
        return len(self.tensors) - 1

    def constant(self, shape, dtype=DType.INT8):
        return self.tensor(shape, np.zeros(shape, dtype.value), dtype)

    def shape(self, t):
        return self.tensors[t].shape

    def add_op(self, kind, inputs, out_shape, attrs):
        out = self.tensor(out_shape)
        self.ops.append(Op(kind, tuple(inputs), (out,), attrs, len(self.ops)))
        return out

    def _window(self, x, kernel, stride, pad, dilation=(1, 1)):
        n, h, w, _ = self.shape(x)
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        rows = (h + pad.top + pad.bottom - reach[0]) // stride[0] + 1
        columns = (w + pad.left + pad.right - reach[1]) // stride[1] + 1
        return n, rows, columns

    def conv(self, x, cout, kernel=(1, 1), stride=(1, 1), pad=NO_PAD, dilation=(1, 1), groups=1):
        weights = self.constant((cout, *kernel, self.shape(x)[3] // groups))
        attrs = ConvAttrs(stride, dilation, pad, Activation.NONE)
        shape = (*self._window(x, kernel, stride, pad, dilation), cout)
        return self.add_op(OpKind.CONV_2D, (x, weights, -1), shape, attrs)

    def depthwise(self, x, kernel=(3, 3), stride=(1, 1), pad=SAME_3X3, dilation=(1, 1)):
        channels = self.shape(x)[3]
        weights = self.constant((1, *kernel, channels))
        attrs = DepthwiseAttrs(stride, dilation, pad, Activation.NONE, 1)
        shape = (*self._window(x, kernel, stride, pad, dilation), channels)
        return self.add_op(OpKind.DEPTHWISE_CONV_2D, (x, weights, -1), shape, attrs)

    def max_pool(self, x, kernel=(2, 2), stride=(2, 2), pad=NO_PAD):
        shape = (*self._window(x, kernel, stride, pad), self.shape(x)[3])
        return self.add_op(OpKind.MAX_POOL_2D, (x,), shape, PoolAttrs(kernel, stride, pad))

    def add(self, a, b):
        shape = np.broadcast_shapes(self.shape(a), self.shape(b))
        return self.add_op(OpKind.ADD, (a, b), shape, ElementwiseAttrs())

    def relu(self, x):
        return self.add_op(OpKind.RELU, (x,), self.shape(x), ElementwiseAttrs())

    def mean(self, x):
        n, _, _, c = self.shape(x)
        return self.add_op(OpKind.MEAN, (x,), (n, c), MeanAttrs((1, 2)))

    def dense(self, x, outputs):
        n, features = self.shape(x)
        weights = self.constant((outputs, features))
        attrs = FullyConnectedAttrs()
        return self.add_op(OpKind.FULLY_CONNECTED, (x, weights, -1), (n, outputs), attrs)

    def reshape(self, x, shape):
        return self.add_op(OpKind.RESHAPE, (x,), shape, ElementwiseAttrs())

    def concat(self, parts):
        first = self.shape(parts[0])
        shape = (*first[:3], sum(self.shape(p)[3] for p in parts))
        return self.add_op(OpKind.CONCATENATION, parts, shape, AxisAttrs(3))

    def graph(self, *outputs):
        return graph_of("net", self.tensors, self.ops, self.inputs, outputs)


_CONTRACTS = {
    OpKind.CONV_2D: Contract.ROW,
    OpKind.DEPTHWISE_CONV_2D: Contract.ROW,
    OpKind.MAX_POOL_2D: Contract.ROW,
    OpKind.ADD: Contract.PIXEL,
    OpKind.RELU: Contract.PIXEL,
}


COST = "20 + 10 * outputs + macs + 4 * oh * (ow % 4 > 0) + columns_met - columns_inside"


def make_target(*, scratch="0", ram=1 << 24, reserved=0, alignment=16, cost=COST):
    """A board with one kernel for every operator kind; `scratch` of convolutions, in bytes."""
    kernels = tuple(
        KernelVariant(
            op=str(kind),
            name=f"{kind.lower()}_test",
            symbol="nn_test",
            sources=(),
            scratch=scratch if kind in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D) else "0",
            overlap=_CONTRACTS.get(kind, Contract.NONE),
            cost=cost,
        )
        for kind in OpKind
    )
    board = Board(
        name="bench",
        family="host",
        title="a board for tests",
        core=Core("core", "none", ("reference",)),
        memories=(
            Memory("flash", MemoryKind.ROM, 0, 1 << 24),
            Memory("ram", MemoryKind.RAM, 0x20000000, ram),
            Memory("tcm", MemoryKind.RAM, 0x10000000, 1 << 16),
        ),
        code="flash",
        data="tcm",
        arena="ram",
        weights="flash",
        stack_bytes=4096,
        reserved_bytes=reserved,
        alignment=alignment,
    )
    costs = Costs("100", "9 + bytes", "7 + 0.75 * bytes", "8 + bytes", "11 + 3 * oh * ow * cin", "5 * cin")
    return Target(board, kernels, costs)


def residual_net():
    """An image, an inverted bottleneck with a residual, a strided one, pooling and a dense layer."""
    net = Net((1, 16, 16, 3))
    x = net.conv(net.inputs[0], 16, (3, 3), (2, 2), Pad(0, 1, 0, 1))
    y = net.conv(net.depthwise(net.conv(x, 64)), 16)
    y = net.add(x, y)
    y = net.conv(net.depthwise(net.conv(y, 96), stride=(2, 2), pad=Pad(0, 1, 0, 1)), 24)
    y = net.reshape(net.mean(y), (1, 24))
    return net.graph(net.dense(y, 10))


@st.composite
def graphs(draw, most_ops=12):
    """Chains with branches, aliases, reused tensors, several inputs and outputs, odd sizes, batches."""
    batch = draw(st.sampled_from((1, 1, 1, 2)))
    side = st.integers(1, 9)
    shapes = [
        (batch, draw(side), draw(side), draw(st.integers(1, 20))) for _ in range(draw(st.integers(1, 2)))
    ]
    net = Net(*shapes)
    live = list(net.inputs)
    for _ in range(draw(st.integers(1, most_ops))):
        x = draw(st.sampled_from(live[-3:]))
        live.append(_random_op(draw, net, x, live))
    outputs = {live[-1], *draw(st.lists(st.sampled_from(live), max_size=2))}
    return net.graph(*sorted(outputs))


@st.composite
def fed_graphs(draw, most_ops=7):
    """As `graphs`, with one image that one operator reads and no output is: it can come row by row."""
    net = Net((1, draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(1, 8))))
    live = [net.conv(net.inputs[0], draw(st.integers(1, 20)))]
    for _ in range(draw(st.integers(1, most_ops))):
        live.append(_random_op(draw, net, draw(st.sampled_from(live[-3:])), live))
    return net.graph(*sorted({live[-1], *draw(st.lists(st.sampled_from(live), max_size=2))}))


def _random_op(draw, net, x, live):
    kind = draw(st.sampled_from(("conv", "depthwise", "pool", "relu", "add", "concat", "reshape", "reshape")))
    _, h, w, c = net.shape(x)
    kernel, stride, dilation, pad = draw(_windows(h, w))
    if kind == "conv":
        return net.conv(x, draw(st.integers(1, 24)), kernel, stride, pad, dilation)
    if kind == "depthwise":
        return net.depthwise(x, kernel, stride, pad, dilation)
    if kind == "pool":
        kernel = (min(h, 2), min(w, 2))
        return net.max_pool(x, kernel, stride)
    if kind == "relu":
        return net.relu(x)
    if kind == "add":
        same = [t for t in live if net.shape(t) == net.shape(x)]
        return net.add(x, draw(st.sampled_from(same)))
    if kind == "concat":
        same = [t for t in live if net.shape(t)[:3] == net.shape(x)[:3]]
        return net.concat([x, draw(st.sampled_from(same))])
    return net.reshape(x, (net.shape(x)[0], h * w, 1, c))


@st.composite
def _windows(draw, h, w):
    """(kernel, stride, dilation, pad) with at least one output pixel."""
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    stride = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    dilation = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    top, left = draw(st.integers(0, reach[0])), draw(st.integers(0, reach[1]))
    bottom = max(draw(st.integers(0, reach[0])), reach[0] - h - top)
    right = max(draw(st.integers(0, reach[1])), reach[1] - w - left)
    return kernel, stride, dilation, Pad(top, bottom, left, right)
