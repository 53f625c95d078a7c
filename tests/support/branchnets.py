"""Random networks of branches: modules that fork and join, one in another, drawn by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st
from netbuilder import NetBuilder

from buildtool.graph.types import Activation, Graph, OpKind

_kernels = st.sampled_from([(1, 1), (3, 3), (3, 3), (5, 3), (1, 3)])
_channels = st.integers(1, 6)


def _link(draw: st.DrawFn, net: NetBuilder, x: int) -> int:
    """One operator that keeps rows and columns."""
    kind = draw(st.sampled_from(["conv", "conv", "depthwise", "pool", "table", "constant"]))
    kernel = draw(_kernels)
    if kind == "pool":
        pool = draw(st.sampled_from([OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D]))
        return net.pool(pool, x, (3, 3), (1, 1), same=True)
    if kind == "table":
        return net.unary(draw(st.sampled_from([OpKind.HARD_SWISH, OpKind.RELU])), x)
    if kind == "constant":
        return net.elementwise(OpKind.MUL, x, net.constant((net.shape(x)[3],)))
    return net.conv(x, draw(_channels), kernel=kernel, same=True, depth_multiplier=int(kind == "depthwise"))


def _path(draw: st.DrawFn, net: NetBuilder, x: int, depth: int) -> int:
    """Operators and modules one after the other; rows and columns stay."""
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.integers(0, 2)) == 0:
            x = draw(st.sampled_from([_concatenated, _summed]))(draw, net, x, depth - 1)
        else:
            x = _link(draw, net, x)
    return x


def _concatenated(draw: st.DrawFn, net: NetBuilder, x: int, depth: int) -> int:
    """Inception, fire: paths side by side; dense: the module's input is a part itself."""
    parts = [_path(draw, net, x, depth) for _ in range(draw(st.integers(2, 3)))]
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), x)
    return net.concat(parts)


def _summed(draw: st.DrawFn, net: NetBuilder, x: int, depth: int) -> int:
    """Paths that are added, each after a projection."""
    channels = draw(_channels)
    kind = draw(st.sampled_from([OpKind.ADD, OpKind.MUL, OpKind.SUB]))
    paths = [net.conv(_path(draw, net, x, depth), channels) for _ in range(2)]
    return net.elementwise(kind, *draw(st.permutations(paths)))


def _shrunk(draw: st.DrawFn, net: NetBuilder, x: int, depth: int) -> int:
    """Two convolutions beside a projection of one stride, with or without zeros around."""
    kernel = min(draw(st.sampled_from([1, 2, 3])), *net.shape(x)[1:3])
    same = draw(st.booleans())
    channels = draw(_channels)
    y = net.conv(x, channels, kernel=(kernel, kernel), stride=(2, 2), same=same)
    z = net.pool(OpKind.MAX_POOL_2D, x, (kernel, kernel), (2, 2), same=same)
    parts = [_path(draw, net, y, 0), net.conv(z, net.shape(z)[3])]
    if depth:
        y = net.conv(_link(draw, net, x), 2, kernel=(kernel, kernel), stride=(2, 2), same=same)
        parts.append(y)
    return net.concat(draw(st.permutations(parts)))


def _deep(draw: st.DrawFn, net: NetBuilder, x: int, _depth: int) -> int:
    """Two paths of convolutions without zeros around them, which see the same."""
    if min(net.shape(x)[1:3]) < 6:
        return _link(draw, net, x)
    long = net.conv(net.conv(x, 3, kernel=(3, 3)), draw(_channels), kernel=(3, 3))
    return net.concat([long, net.conv(x, draw(_channels), kernel=(5, 5))])


def _gated(draw: st.DrawFn, net: NetBuilder, x: int, _depth: int) -> int:
    """Squeeze and excite."""
    y = net.mean(x, keep_dims=draw(st.booleans()))
    y = net.conv(y, 3, activation=Activation.RELU) if len(net.shape(y)) == 4 else net.dense(y, 3)
    channels = net.shape(x)[3]
    y = net.conv(y, channels) if len(net.shape(y)) == 4 else net.dense(y, channels)
    y = net.unary(OpKind.LOGISTIC, y)
    return net.elementwise(OpKind.MUL, *draw(st.permutations([x, y])))


_MODULES = (_concatenated, _concatenated, _summed, _shrunk, _deep, _gated)


@st.composite
def branching_networks(draw: st.DrawFn, modules: int = 3) -> Graph:
    """One image, some modules with operators between them, at the end perhaps a classifier."""
    net = NetBuilder(draw(st.integers(0, 2**31 - 1)))
    side = st.integers(5, 15)
    x = net.input((1, draw(side), draw(side), draw(st.integers(1, 4))))
    x = net.conv(x, draw(_channels), kernel=(3, 3), same=True)
    for _ in range(draw(st.integers(1, modules))):
        x = draw(st.sampled_from(_MODULES))(draw, net, x, 1)
        if draw(st.booleans()):
            x = _link(draw, net, x)
    if draw(st.booleans()):
        x = net.dense(net.mean(x), 4)
    return net.graph([x])
