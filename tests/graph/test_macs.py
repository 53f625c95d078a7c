"""MACs: computed outputs x taps x input channels, which the test counts output by output."""

import numpy as np
import plan_nets
import pytest
from zeronet import Net

from buildtool.graph.macs import op_macs, pixel_macs, total_macs
from buildtool.graph.types import ConvAttrs, Op, OpKind, Pad


def test_a_convolution_counts_padded_taps_and_the_channels_of_one_group():
    net = Net((2, 5, 6, 8))
    net.conv(net.inputs[0], 4, (3, 2), (2, 1), Pad(1, 1, 0, 1), groups=2)
    graph = net.graph(2)
    count = sum(3 * 2 * 4 for _ in np.ndindex(graph.tensors[2].shape))
    assert graph.tensors[2].shape == (2, 3, 6, 4)
    assert op_macs(graph, graph.ops[0]) == count == 2 * 3 * 6 * 4 * 24


@pytest.mark.parametrize(
    ("shape", "add", "macs"),
    [
        ((1, 5, 5, 7), lambda net: net.depthwise(0), 5 * 5 * 7 * 9),  # one channel per output
        ((3, 20), lambda net: net.dense(0, 11), 3 * 20 * 11),  # the matrix once per row
    ],
)
def test_depthwise_convolutions_and_dense_layers(shape, add, macs):
    net = Net(shape)
    add(net)
    graph = net.graph(2)
    assert op_macs(graph, graph.ops[0]) == macs


def test_a_transpose_convolution_scatters_every_input_pixel():
    net = Net((1, 4, 5, 6))
    weights = net.constant((3, 2, 2, 6))
    out = net.tensor((1, 8, 10, 3))
    net.ops.append(Op(OpKind.TRANSPOSE_CONV, (net.inputs[0], weights, -1), (out,), ConvAttrs((2, 2))))
    graph = net.graph(out)
    assert op_macs(graph, graph.ops[0]) == 4 * 5 * (2 * 2) * 6 * 3


def test_other_operators_count_nothing():
    net = Net((1, 4, 4, 2))
    x = net.relu(net.max_pool(net.inputs[0]))
    graph = net.graph(net.reshape(x, (1, 8)))
    assert [op_macs(graph, op) for op in graph.ops] == [0, 0, 0]
    assert total_macs(graph) == 0


def test_the_pixels_of_an_operator_share_its_macs_and_the_total_is_the_sum():
    graph = plan_nets.residual_net()
    for op in graph.ops:
        _, rows, columns, _ = graph.tensors[op.outputs[0]].nhwc
        assert pixel_macs(graph, op, rows * columns) == op_macs(graph, op)
        assert pixel_macs(graph, op, 1) * rows * columns == op_macs(graph, op)
    assert total_macs(graph) == sum(op_macs(graph, op) for op in graph.ops) > 0
