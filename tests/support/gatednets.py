"""Networks with gates (squeeze and excite): EfficientNet, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st

from buildtool.graph.types import Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

# EfficientNet-B0: kernel, expansion, channels, stride of the first of so many blocks
_STAGES = ((3, 1, 16, 1, 1), (3, 6, 24, 2, 2), (5, 6, 40, 2, 2), (3, 6, 80, 2, 3), (5, 6, 112, 1, 3))
_STAGES += ((5, 6, 192, 2, 4), (3, 6, 320, 1, 1))
BLOCKS = [(*one[:3], one[3] if i == 0 else 1) for one in _STAGES for i in range(one[4])]


def efficient_net(size: int, blocks: int = len(BLOCKS), *, swish: bool = False) -> Graph:
    """The first blocks of EfficientNet-B0, with hard swish in the place of swish, or with swish."""
    net = NetBuilder(5, "gated")

    def curve(x: int) -> int:
        return _swish(net, x) if swish else net.unary(OpKind.HARD_SWISH, x)

    x = net.conv(net.input((1, size, size, 3)), 32, kernel=(3, 3), stride=(2, 2), same=True)
    x = curve(x)
    for kernel, expansion, channels, stride in BLOCKS[:blocks]:
        before, wide = x, net.shape(x)[3] * expansion
        if expansion > 1:
            x = curve(net.conv(x, wide))
        x = net.conv(x, wide, kernel=(kernel, kernel), stride=(stride, stride), same=True, depth_multiplier=1)
        x = net.conv(gated(net, curve(x)), channels)
        if net.shape(x) == net.shape(before):
            x = net.elementwise(OpKind.ADD, x, before)
    return net.graph([net.dense(net.mean(x), 10)])


def _swish(net: NetBuilder, x: int) -> int:
    return net.elementwise(OpKind.MUL, x, net.unary(OpKind.LOGISTIC, x))


def gated(net: NetBuilder, x: int, kind: OpKind = OpKind.MUL) -> int:
    """Squeeze and excite."""
    channels = net.shape(x)[3]
    pooled = net.mean(x, keep_dims=True)
    gate = net.conv(net.conv(pooled, max(1, channels // 4)), channels)
    return net.elementwise(kind, x, net.unary(OpKind.LOGISTIC, gate))


@st.composite
def gated_networks(draw: st.DrawFn) -> Graph:
    """One to three gates, each behind operators that widen, fork or shrink; residuals around some."""
    net = NetBuilder(draw(st.integers(0, 1000)))
    side = st.integers(5, 14)
    x = net.input((1, draw(side), draw(side), draw(st.integers(1, 4))))
    if draw(st.booleans()):
        x = net.conv(x, draw(st.integers(1, 4)), kernel=(3, 3), same=True)
    for _ in range(draw(st.integers(1, 3))):
        before = x
        x = net.conv(x, draw(st.integers(6, 12)), kernel=draw(st.sampled_from([(1, 1), (3, 3)])), same=True)
        for kind in draw(st.lists(st.sampled_from(["depthwise", "strided", "swish", "pool"]), max_size=3)):
            x = _changed(net, kind, x)
        x = gated(net, x, draw(st.sampled_from([OpKind.MUL, OpKind.MUL, OpKind.ADD])))
        if draw(st.booleans()):
            x = net.conv(x, net.shape(before)[3])
        if net.shape(x) == net.shape(before):
            x = net.elementwise(OpKind.ADD, x, before)
    return net.graph([x])


def _changed(net: NetBuilder, kind: str, x: int) -> int:
    if kind == "swish":
        return _swish(net, x)
    if kind == "pool":
        return net.pool(OpKind.MAX_POOL_2D, x, (3, 3), (1, 1), same=True)
    stride = (2, 2) if kind == "strided" and min(net.shape(x)[1:3]) > 4 else (1, 1)
    return net.conv(x, net.shape(x)[3], kernel=(3, 3), stride=stride, same=True, depth_multiplier=1)
