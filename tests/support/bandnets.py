"""Chains of convolutions and poolings that run as one group of bands."""

from __future__ import annotations

from hypothesis import strategies as st

from buildtool.graph.types import OpKind
from buildtool.plan.schedule.bands import bands_objection, swaps_objection
from buildtool.plan.types import Group, Scheme
from buildtool.zoo.drawn import NetBuilder


@st.composite
def chains(draw, builders=(NetBuilder,)):
    """A network of two to six operators in a row: any windows, strides, and paddings on either side.

    Some end with a global pooling.
    """
    net = draw(st.sampled_from(builders))(draw(st.integers(0, 99)))
    x = net.input((1, draw(st.integers(5, 13)), draw(st.integers(5, 13)), draw(st.integers(1, 5))))
    for _ in range(draw(st.integers(2, 5))):
        kernel = draw(st.sampled_from([(1, 1), (3, 3), (3, 1), (2, 3), (5, 3)]))
        stride = draw(st.sampled_from([(1, 1), (1, 1), (2, 2), (1, 2)]))
        kind, same = draw(st.sampled_from(["conv", "depthwise", "pool"])), draw(st.booleans())
        if not same and (net.shape(x)[1] < kernel[0] or net.shape(x)[2] < kernel[1]):
            same = True
        if kind == "pool":
            x = net.pool(OpKind.MAX_POOL_2D, x, kernel, stride, same=same)
        else:
            one = 1 if kind == "depthwise" else 0
            channels = net.shape(x)[3] if one else draw(st.integers(1, 9))
            x = net.conv(x, channels, kernel=kernel, stride=stride, same=same, depth_multiplier=one)
    height, width = net.shape(x)[1:3]
    return net.graph([net.mean(x) if height * width > 1 and draw(st.booleans()) else x])


def bands(draw, graph) -> Group:
    """Draws a group of bands of all operators, which copies or swaps."""
    ops = tuple(range(len(graph.ops)))
    assert not bands_objection(graph, ops)
    schemes = [Scheme.BANDS] if swaps_objection(graph, ops) else [Scheme.SWAPS, Scheme.BANDS]
    return Group(
        ops, draw(st.sampled_from(schemes)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 4]))
    )
