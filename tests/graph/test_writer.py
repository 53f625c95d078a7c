"""Written .tflite files: the same bytes every time, aligned constants; LiteRT and the reader take them."""

import numpy as np
import pytest
import tflite
from drawnnets import small_networks
from graphs import inputs_for
from hypothesis import HealthCheck, given, settings
from litert import check

from buildtool.base.errors import UnsupportedError
from buildtool.graph.tflite.writer import BUFFER_ALIGNMENT, write_model
from buildtool.graph.types import Op, OpKind, Pad, PadAttrs, PoolAttrs
from buildtool.zoo.drawn import NetBuilder

SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


def parsed(graph):
    return tflite.Model.GetRootAs(write_model(graph))


def builtin_names(model):
    names = {v: k for k, v in vars(tflite.BuiltinOperator).items() if isinstance(v, int)}
    subgraph = model.Subgraphs(0)
    ops = [subgraph.Operators(i) for i in range(subgraph.OperatorsLength())]
    return [names[model.OperatorCodes(op.OpcodeIndex()).BuiltinCode()] for op in ops]


def one_conv(**options):
    net = NetBuilder(1)
    return net.graph([net.conv(net.input((1, 7, 8, 2)), 3, **options)])


@settings(SETTINGS, max_examples=30)
@given(graph=small_networks())
def test_the_same_graph_gives_the_same_bytes_with_aligned_constants(graph):
    data = write_model(graph)
    assert data == write_model(graph)
    assert data[4:8] == b"TFL3"
    model, aligned = tflite.Model.GetRootAs(data), 0
    for i in range(1, model.BuffersLength()):
        values = model.Buffers(i).DataAsNumpy()
        if not isinstance(values, int) and values.size:
            offset = values.ctypes.data - np.frombuffer(data, np.uint8).ctypes.data
            assert offset % BUFFER_ALIGNMENT == 0
            aligned += 1
    assert aligned >= sum(t.is_constant for t in graph.tensors)


@pytest.mark.parametrize(
    ("options", "padding"),
    [
        ({"kernel": (3, 3)}, tflite.Padding.VALID),
        ({"kernel": (3, 3), "same": True}, tflite.Padding.SAME),
        ({"kernel": (3, 3), "stride": (2, 2), "same": True}, tflite.Padding.SAME),
        ({"kernel": (2, 2), "stride": (2, 2), "pad": Pad(0, 1, 0, 0)}, tflite.Padding.SAME),
        ({"kernel": (3, 3), "stride": (2, 2), "dilation": (2, 1), "same": True}, tflite.Padding.SAME),
    ],
)
def test_explicit_padding_becomes_same_or_valid_where_it_is_equal(options, padding):
    model = parsed(one_conv(**options))
    assert builtin_names(model) == ["CONV_2D"]
    table = model.Subgraphs(0).Operators(0).BuiltinOptions()
    attrs = tflite.Conv2DOptions()
    attrs.Init(table.Bytes, table.Pos)
    assert attrs.Padding() == padding


def test_a_convolution_without_bias_gets_one_of_zeros_and_padding_may_have_another_value():
    graph = one_conv(bias=False)
    check(graph, inputs_for(graph, 3))
    net = NetBuilder(2)
    x = net.input((1, 3, 3, 2))
    attrs = PadAttrs(((0, 0), (1, 0), (0, 2), (0, 0)), value=77)
    graph = net.graph([net.move(OpKind.PAD, x, (1, 4, 5, 2), attrs)])
    assert builtin_names(parsed(graph)) == ["PADV2"]
    check(graph, inputs_for(graph, 1))


def _padded_all_round(kind):
    net = NetBuilder(3)
    x = net.input((1, 6, 6, 2))
    out = net.tensor((1, 4, 4, 2), net.tensors[x].quant)
    net.ops.append(Op(kind, (x,), (out,), PoolAttrs((2, 2), (2, 2), Pad(1, 1, 1, 1)), 7))
    return net.graph([out])


@pytest.mark.parametrize("pattern", ["random", "least"])
def test_other_padding_is_refused_for_an_average_and_of_least_values_for_a_maximum(pattern):
    with pytest.raises(UnsupportedError) as caught:
        write_model(_padded_all_round(OpKind.AVERAGE_POOL_2D))
    assert caught.value.operator == "#7 AVERAGE_POOL_2D"
    graph = _padded_all_round(OpKind.MAX_POOL_2D)
    assert builtin_names(parsed(graph)) == ["PADV2", "MAX_POOL_2D"]
    check(graph, inputs_for(graph, 1, pattern))
