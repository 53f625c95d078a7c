"""Signals of one row that become signals of one column: no byte of a result changes."""

import litert
import numpy as np
import pytest
import zeronet
from hypothesis import given, settings
from hypothesis import strategies as st
from kerasseries import Series, drawn, speech

from buildtool.graph import types as g
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.rewrite.turns import turn_signals
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph, OpKind
from buildtool.zoo.drawn import NetBuilder


def turned(source: Graph, seed: int = 0) -> Graph:
    """Returns the turned network. Its outputs and shared tensors equal LiteRT's of the file."""
    data = write_model(source)
    graph = turn_signals(rewrite(read_model(data)))
    draw = np.random.default_rng(seed)
    inputs = [draw.integers(-128, 128, source.tensors[t].shape).astype(np.int8) for t in source.inputs]
    expected, compared = litert.run(data, inputs), 0
    own = [v.reshape(graph.tensors[t].shape) for v, t in zip(inputs, graph.inputs, strict=True)]
    for t, value in execute(graph, own).items():
        origin = graph.tensors[t].source
        if origin is not None and origin.index in expected:
            np.testing.assert_array_equal(value.ravel(), expected[origin.index].ravel())
            compared += 1
    assert compared > len(graph.outputs)
    shapes = [graph.tensors[t].shape for t in graph.outputs]
    assert shapes == [source.tensors[t].shape for t in source.outputs]
    return graph


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 9999))
def test_turned_networks_equal_litert(seed):
    graph = turned(drawn(seed), seed)
    windows = [op for op in graph.ops if op.kind in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)]
    assert windows and all(graph.tensors[op.outputs[0]].shape[2] == 1 for op in windows)


def test_no_reshape_is_left_between_convolutions_and_poolings():
    graph = turned(speech(2000))
    assert [op.kind for op in graph.ops if op.kind in ALIAS_KINDS] == []
    assert graph.tensors[graph.inputs[0]].shape == (1, 1000, 1, 2)  # the stride is 4, but the padding 38
    assert all(op.attrs.pad.left == 0 for op in graph.ops if isinstance(op.attrs, g.ConvAttrs))


def test_filters_of_several_rows_are_turned_too():
    """Two of the three rows meet padding alone, and go."""
    net = NetBuilder(3)
    x = net.conv(net.input((1, 1, 12, 2)), 3, kernel=(3, 5), pad=g.Pad(1, 1, 2, 2))
    graph = turned(net.graph([net.conv(x, 2, kernel=(1, 3), stride=(1, 2))]))
    assert [graph.tensors[op.inputs[1]].shape[1:3] for op in graph.ops[:2]] == [(5, 1), (3, 1)]


@pytest.mark.parametrize("case", ["image", "pixels", "column", "state", "widened"])
def test_what_gains_nothing_stays(case):
    net = Series(5)
    if case == "image":
        x = net.conv(net.input((1, 2, 16, 3)), 4, kernel=(1, 3))
    elif case == "pixels":  # no window moves along it
        x = net.conv(net.input((1, 1, 16, 3)), 4)
    elif case == "column":
        x = net.conv(net.input((1, 16, 1, 3)), 4, kernel=(3, 1))
    elif case == "widened":  # its second operand has fewer channels
        x = zeronet.Net((1, 1, 1, 8), (1, 1, 1, 5))
        graph = x.graph(x.widened(*x.inputs, 2))
        assert turn_signals(graph) is graph
        return
    else:
        before = net.state(
            (1, 1, 4, 3), net.tensors[net.input((1, 1, 4, 3))].quant, np.zeros((1, 1, 4, 3), np.int8)
        )
        x = net.conv(before, 3, kernel=(1, 3))
        net.keep(before, net.input((1, 1, 4, 3)))
    graph = net.graph([x])
    assert turn_signals(graph) is graph
