"""Random networks that slice and join channels: parts of parts, parts read twice, odd widths."""

from __future__ import annotations

from branchnets import shuffled
from hypothesis import strategies as st

from buildtool.graph.types import Activation, Graph, OpKind, SliceAttrs
from buildtool.zoo.drawn import NetBuilder

_kernels = st.sampled_from([(1, 1), (3, 3), (3, 3), (1, 3)])


def taken(net: NetBuilder, x: int, first: int, channels: int) -> int:
    """Some neighbouring channels of every pixel."""
    *image, _ = net.shape(x)
    begin = (*(0 for _ in image), first)
    attrs = SliceAttrs(begin, (1,) * len(begin), (*image, channels))
    return net.move(OpKind.STRIDED_SLICE, x, (*image, channels), attrs)


def _some(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """A part of the channels, or a part of a part."""
    wide = net.shape(x)[3]
    channels = draw(st.integers(1, wide))
    part = taken(net, x, draw(st.integers(0, wide - channels)), channels) if channels < wide else x
    return _some(draw, net, part) if channels > 2 and draw(st.integers(0, 3)) == 0 else part


def _read(draw: st.DrawFn, net: NetBuilder, x: int, channels: int) -> int:
    """An operator of each kind that can read a part; the result has so many channels."""
    kind = draw(st.sampled_from(["conv", "conv", "depthwise", "pool", "table", "sum", "constant", "gate"]))
    kernel = draw(_kernels)
    if kind == "depthwise":
        x = net.conv(x, 0, kernel=kernel, same=True, depth_multiplier=draw(st.integers(1, 2)))
    elif kind == "pool":
        pool = draw(st.sampled_from([OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D]))
        x = net.pool(pool, x, (3, 3), (1, 1), same=True)
    elif kind == "table":
        x = net.unary(draw(st.sampled_from([OpKind.HARD_SWISH, OpKind.RELU, OpKind.LOGISTIC])), x)
    elif kind == "sum":
        x = net.elementwise(OpKind.ADD, x, net.conv(x, net.shape(x)[3]), Activation.RELU)
    elif kind == "constant":
        x = net.elementwise(OpKind.MUL, x, net.constant((net.shape(x)[3],)))
    elif kind == "gate":
        gate = net.unary(OpKind.LOGISTIC, net.conv(net.mean(x, keep_dims=True), net.shape(x)[3]))
        x = net.elementwise(OpKind.MUL, x, gate)
    return x if net.shape(x)[3] == channels else net.conv(x, channels, kernel=kernel, same=True)


def _branched(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """Parts of odd widths, each read by operators of its own, and joined."""
    parts = [_some(draw, net, x) for _ in range(draw(st.integers(2, 3)))]
    ends = [_read(draw, net, part, draw(st.integers(1, 7))) for part in parts]
    if draw(st.booleans()):
        ends.append(draw(st.sampled_from([x, *parts])))
    joined = net.concat(draw(st.permutations(ends)))
    return net.concat([joined, _read(draw, net, x, 3)]) if draw(st.booleans()) else joined


def _halves(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """Halves of the channels that meet again: gated linear units, ShuffleNet's blocks."""
    half = draw(st.integers(1, 5))
    first, second = net.split(net.conv(x, 2 * half, kernel=draw(_kernels), same=True), 2)
    if draw(st.booleans()):
        kind = draw(st.sampled_from([OpKind.ADD, OpKind.MUL, OpKind.MAXIMUM, OpKind.SUB]))
        same = net.unary(OpKind.LOGISTIC, second) if kind is OpKind.MUL else second
        return net.elementwise(kind, first, same)
    joined = net.concat([first, _read(draw, net, second, half)])
    return shuffled(net, joined, 2) if draw(st.booleans()) else joined


def _chained(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """Branches that are joined one after the other, as split networks have them."""
    joined = _read(draw, net, _some(draw, net, x), draw(st.integers(1, 6)))
    for _ in range(draw(st.integers(1, 3))):
        joined = net.concat([joined, _read(draw, net, _some(draw, net, x), draw(st.integers(1, 6)))])
    return net.conv(joined, draw(st.integers(1, 8)))


def _fire(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """Operators of one tensor side by side, joined at once or in two steps: SqueezeNet, Inception."""
    widths = draw(st.sampled_from([(4, 4), (3, 5, 1), (8, 4), (5, 7), (2, 2, 4), (1, 1, 1, 1)]))
    ends = [net.conv(x, n, kernel=draw(_kernels), same=True) for n in widths]
    ends[0] = net.unary(OpKind.HARD_SWISH, ends[0]) if draw(st.booleans()) else ends[0]
    if draw(st.booleans()):
        ends[-1] = net.pool(OpKind.MAX_POOL_2D, ends[-1], (3, 3), (1, 1), same=True)
    return net.concat([net.concat(ends[:2]), *ends[2:]] if draw(st.booleans()) else ends)


_MODULES = (_branched, _fire, _halves, _chained)


@st.composite
def sliced_networks(draw: st.DrawFn, modules: int = 3, batch: int = 1) -> Graph:
    """One image, some modules, at the end perhaps a classifier, or a part that is an output."""
    net = NetBuilder(draw(st.integers(0, 2**31 - 1)))
    side = st.integers(4, 11)
    x = net.input((batch, draw(side), draw(side), draw(st.integers(1, 4))))
    if draw(st.integers(0, 3)) < 3:  # else parts of the image
        x = net.conv(x, draw(st.integers(4, 11)), kernel=(3, 3), same=True)
    outputs = []
    for _ in range(draw(st.integers(1, modules))):
        x = draw(st.sampled_from(_MODULES))(draw, net, x)
        if net.shape(x)[3] > 1 and draw(st.integers(0, 4)) == 0:
            outputs.append(taken(net, x, 1, net.shape(x)[3] - 1))
    if draw(st.booleans()):
        x = net.dense(net.mean(x), 4)
    return net.graph([x, *outputs])


def every_view() -> Graph:
    """Parts of all kinds in a small network: halves, odd widths, a part of a part, parts that meet again."""
    net = NetBuilder(5, "views")
    x = net.input((1, 24, 22, 3))
    x = net.conv(x, 24, kernel=(3, 3), same=True, activation=Activation.RELU)  # the fullest: views are free
    x = net.conv(net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2)), 16)
    first, second = net.split(x, 2)
    ends = [
        net.conv(first, 8, kernel=(3, 3), same=True),
        net.conv(second, 0, kernel=(3, 3), same=True, depth_multiplier=1),
        net.elementwise(OpKind.ADD, first, second),
        net.conv(first, 8),
    ]
    x = net.concat(ends)
    odd = [taken(net, x, *of) for of in ((0, 5), (5, 7), (12, 3), (15, 17))]
    ends = [
        net.pool(OpKind.AVERAGE_POOL_2D, net.conv(odd[0], 4), (2, 2), (2, 2)),
        net.conv(odd[1], 6, kernel=(3, 3), stride=(2, 2), same=True),
        net.pool(OpKind.MAX_POOL_2D, odd[2], (3, 3), (2, 2), same=True),
        net.conv(taken(net, odd[3], 1, 12), 0, kernel=(3, 3), stride=(2, 2), same=True, depth_multiplier=1),
    ]
    ends[0] = net.pad(ends[0], ((0, 0), (0, 0), (0, 1), (0, 0)))
    x = net.concat(ends)
    gate = net.unary(OpKind.HARD_SWISH, taken(net, x, 4, 16))
    x = net.conv(net.elementwise(OpKind.MUL, taken(net, x, 0, 16), gate), 10)
    return net.graph([net.dense(net.mean(x), 5), taken(net, x, 2, 3)])


def gated_halves(size: int = 20) -> Graph:
    """Gated linear units one after the other: streamed, each reads both halves of a ring's rows."""
    net = NetBuilder(3, "halves")
    x = net.conv(net.input((1, size, size, 3)), 8, kernel=(3, 3), same=True)
    for _ in range(3):
        first, second = net.split(net.conv(x, 16, kernel=(3, 3), same=True), 2)
        x = net.elementwise(OpKind.MUL, first, net.unary(OpKind.LOGISTIC, second))
    return net.graph([net.dense(net.mean(x), 10)])
