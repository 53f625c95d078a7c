"""The lower bound on memory, compared with one over elements, and with the plans that need the least."""

from __future__ import annotations

import itertools
import sys

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import ROOT
from plan_nets import make_target
from zeronet import SAME_3X3, Net

sys.path.insert(0, str(ROOT))

from benchmarks.lower_bounds import Rows, lower_bound
from buildtool.graph.types import ConvAttrs, Graph, OpKind, Pad, PoolAttrs
from buildtool.plan.search.front import Settings, front

HALF = Pad(0, 1, 0, 1)  # as TFLite pads even sizes with stride 2


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    """Chains with residuals, small enough for a graph of their elements."""
    height, width, channels = draw(st.integers(4, 7)), draw(st.integers(2, 5)), draw(st.integers(1, 3))
    net = Net((1, height, width, channels))
    x = net.inputs[0]
    for _ in range(draw(st.integers(2, 5))):
        kind = draw(st.sampled_from(["conv", "point", "skip", "depthwise", "pool", "residual"]))
        tall, wide = net.shape(x)[1:3]
        if kind == "conv":
            x = net.conv(x, draw(st.integers(1, 4)), (3, 3), (1, 1), SAME_3X3)
        elif kind == "point":
            x = net.conv(x, draw(st.integers(1, 4)))
        elif kind == "skip" and min(tall, wide) > 1:
            x = net.conv(x, draw(st.integers(1, 4)), (1, 1), (2, 2))
        elif kind == "depthwise" and tall % 2 == 0 and wide % 2 == 0:
            x = net.depthwise(x, (3, 3), (2, 2), HALF)
        elif kind == "pool" and min(tall, wide) > 1:
            x = net.max_pool(x)
        else:
            x = net.add(net.depthwise(x), x)
    if draw(st.booleans()):
        x = net.dense(net.mean(x), 2)
    return net.graph(x)


def _window(graph: Graph, op, along: int, at: int, size: int) -> range:
    """What an output row or column reads, from the operator's attributes alone."""
    kernel, stride, pad = 1, 1, 0
    if isinstance(op.attrs, PoolAttrs):
        kernel, stride = op.attrs.kernel[along], op.attrs.stride[along]
        pad = (op.attrs.pad.top, op.attrs.pad.left)[along]
    elif isinstance(op.attrs, ConvAttrs):
        kernel, stride = graph.tensors[op.inputs[1]].shape[1 + along], op.attrs.stride[along]
        pad = (op.attrs.pad.top, op.attrs.pad.left)[along]
    return range(max(0, at * stride - pad), min(size, at * stride - pad + kernel))


def _reads(graph: Graph) -> dict:
    """Element (tensor, y, x, channel) that an output depends on -> the elements that it is computed from."""
    found = {}
    needed = {element for t in graph.outputs for element in _elements(graph, t)}
    for op in reversed(graph.ops):
        mixes = op.kind in (OpKind.CONV_2D, OpKind.FULLY_CONNECTED)
        for element in needed.intersection(_elements(graph, op.outputs[0])):
            _, y, x, c = element
            found[element] = read = []
            for t in op.inputs:
                if t < 0 or graph.tensors[t].data is not None:
                    continue
                _, tall, wide, deep = graph.tensors[t].nhwc
                every = op.kind in (OpKind.MEAN, OpKind.FULLY_CONNECTED)
                ys = range(tall) if every else _window(graph, op, 0, y, tall)
                xs = range(wide) if every else _window(graph, op, 1, x, wide)
                read += itertools.product([t], ys, xs, range(deep) if mixes else [c])
            needed.update(read)
    return dict(reversed(found.items()))


def _elements(graph: Graph, tensor: int):
    _, tall, wide, deep = graph.tensors[tensor].nhwc
    return itertools.product([tensor], range(tall), range(wide), range(deep))


def _least(graph: Graph, delivered: int) -> int:
    """The minimum cut of `Rows.cut`, over elements."""
    reads, image, flow = _reads(graph), graph.inputs[0], networkx.DiGraph()
    known = {e for e in _elements(graph, image) if e[1] <= delivered}
    for element, read in reads.items():  # in the graph's order
        if all(one in known for one in read):
            known.add(element)
    flow.add_nodes_from(["delivered", "to come"])
    means = {op.outputs[0] for op in graph.ops if op.kind is OpKind.MEAN}
    for element in known:
        flow.add_edge(("in", element), ("out", element), capacity=1)
        if element[0] == image:
            flow.add_edge("delivered", ("in", element))
        if element[0] in graph.outputs:
            flow.add_edge(("out", element), "to come")
    for element, read in reads.items():
        to = ("in", element) if element in known else "to come"
        if to == "to come" and element[0] in means:
            to = ("sum", element)
            flow.add_edge(to, "to come", capacity=4)
        flow.add_edges_from((("out", one), to) for one in read if one in known)
    return networkx.maximum_flow_value(flow, "delivered", "to come")


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=25)
@given(networks())
def test_rows_give_the_cut_that_elements_give(graph):
    rows = Rows(graph)
    for delivered in range(rows.count(rows.image)):
        assert rows.cut(delivered) == _least(graph, delivered)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=25)
@given(networks())
def test_no_plan_needs_less(graph):
    found = front(graph, make_target(alignment=1), Settings(image="stream"))
    assert lower_bound(graph)[0] <= min(point.live_bytes for point in found.points)


def test_what_is_not_proven_is_refused():
    net = Net((1, 8, 8, 4))
    joined = net.concat([net.conv(net.inputs[0], 2), net.inputs[0]])
    with pytest.raises(ValueError, match="CONCATENATION"):
        lower_bound(net.graph(net.depthwise(joined)))
    net = Net((1, 8, 8, 4))
    wide = net.widened(net.inputs[0], net.conv(net.inputs[0], 2), 0)
    with pytest.raises(ValueError, match="lacks channels"):
        lower_bound(net.graph(net.depthwise(wide)))
    net = Net((1, 8, 8, 2))
    with pytest.raises(ValueError, match="gaps"):
        lower_bound(net.graph(net.conv(net.inputs[0], 2, (3, 3), (1, 1), Pad(2, 2, 2, 2), (2, 2))))
