"""Random networks of branches: modules that fork and join, one in another, drawn by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from buildtool.graph.types import Activation, Graph, OpKind, SliceAttrs, TransposeAttrs
from buildtool.zoo.drawn import NetBuilder

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


def _halved(draw: st.DrawFn, net: NetBuilder, x: int, depth: int) -> int:
    """ShuffleNet, CSP: channels are split, one part goes on, both are joined, shuffled or not."""
    x = net.conv(x, draw(st.sampled_from([4, 6])))
    parts = list(net.split(x, 2))
    parts[1] = _path(draw, net, parts[1], depth)
    joined = net.concat(draw(st.permutations(parts)))
    channels = net.shape(joined)[3]
    groups = [n for n in (2, 3) if channels % n == 0]
    return shuffled(net, joined, draw(st.sampled_from(groups))) if groups and draw(st.booleans()) else joined


def shuffled(net: NetBuilder, x: int, groups: int) -> int:
    """A shuffle of channels, as RESHAPE, TRANSPOSE and RESHAPE."""
    shape = net.shape(x)
    each = shape[3] // groups
    y = net.move(OpKind.RESHAPE, x, (*shape[:3], groups, each))
    y = net.move(OpKind.TRANSPOSE, y, (*shape[:3], each, groups), TransposeAttrs((0, 1, 2, 4, 3)))
    return net.move(OpKind.RESHAPE, y, shape)


def _widened(draw: st.DrawFn, net: NetBuilder, x: int, depth: int) -> int:
    """BlazeFace: a shortcut that lacks channels is padded before the sum, strided or not."""
    before, behind = draw(st.sampled_from([(0, 1), (0, 3), (2, 0), (1, 2)]))
    side, stride = min(net.shape(x)[1:3]), draw(st.sampled_from([1, 1, 2]))
    stride = stride if side >= 4 else 1
    y = net.conv(x, 0, kernel=(3, 3), stride=(stride, stride), same=True, depth_multiplier=1)
    y = net.conv(y, net.shape(x)[3] + before + behind)
    short = x if stride == 1 else net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2), same=True)
    short = net.pad(short, ((0, 0), (0, 0), (0, 0), (before, behind)))
    kind = draw(st.sampled_from([OpKind.ADD, OpKind.ADD, OpKind.MUL]))  # of which MUL needs the PAD
    return net.elementwise(kind, *draw(st.permutations([short, y])), draw(st.sampled_from(list(Activation))))


def _picked(draw: st.DrawFn, net: NetBuilder, x: int, depth: int) -> int:
    """Every second channel, or the channels backwards, beside all of them."""
    *image, channels = net.shape(x)
    begin, step = draw(st.sampled_from([(0, 2), (channels - 1, -1)]))
    count = -(-channels // abs(step))
    attrs = SliceAttrs((0, 0, 0, begin), (1, 1, 1, step), (*image, count))
    return net.concat([net.move(OpKind.STRIDED_SLICE, x, (*image, count), attrs), x])


_MODULES = (
    _concatenated,
    _concatenated,
    _summed,
    _shrunk,
    _deep,
    _gated,
    _halved,
    _widened,
    _widened,
    _picked,
)


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


def wide_branches() -> Graph:
    """Three wide branches side by side, and reshapes that share their bytes: another order needs less."""
    net = NetBuilder(5)
    x = net.input((1, 12, 12, 8))
    wide = [net.conv(x, 48, kernel=(3, 3), same=True) for _ in range(3)]
    moved = [net.flatten(w) for w in wide]
    joined = net.concat([net.conv(w, 4) for w in wide])
    return net.graph([net.conv(joined, 8), moved[0]])
