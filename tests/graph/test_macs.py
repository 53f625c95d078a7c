"""MACs: computed outputs x taps x input channels."""

import pytest
from zeronet import Net

from buildtool.graph.macs import op_macs, total_macs
from buildtool.graph.types import ConvAttrs, OpKind, Pad


def scattered(net, x):
    return net.add_op(
        OpKind.TRANSPOSE_CONV, (x, net.constant((3, 2, 2, 6)), -1), ConvAttrs((2, 2)), (1, 8, 10, 3)
    )


@pytest.mark.parametrize(
    ("shape", "add", "macs"),
    [
        # padded taps count, and the channels of one group
        (
            (2, 5, 6, 8),
            lambda net, x: net.conv(x, 4, (3, 2), (2, 1), Pad(1, 1, 0, 1), groups=2),
            36 * 4 * 3 * 2 * 4,
        ),
        (
            (1, 5, 5, 7),
            lambda net, x: net.depthwise(x, (3, 2), pad=Pad(1, 1, 0, 1)),
            5 * 5 * 7 * 6,
        ),  # one channel
        ((3, 20), lambda net, x: net.dense(x, 11), 3 * 20 * 11),  # the matrix once per row
        ((1, 4, 5, 6), scattered, 4 * 5 * (2 * 2) * 6 * 3),  # every input pixel is scattered
        ((1, 4, 4, 2), Net.relu, 0),
        ((1, 4, 4, 2), Net.max_pool, 0),
    ],
)
def test_an_operators_macs(shape, add, macs):
    net = Net(shape)
    graph = net.graph(add(net, 0))
    assert op_macs(graph, graph.ops[0]) == total_macs(graph) == macs
