"""The topology is plain data with all that planning needs of a network. The digest depends on it alone."""

from dataclasses import replace

from disguise import disguised
from everyop import every_operator
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import fed_graphs, graphs

from buildtool.graph import types as g
from buildtool.graph.liveness import live_ranges
from buildtool.graph.macs import total_macs
from buildtool.graph.numbering import is_numbered, number_tensors
from buildtool.graph.topology import topology, topology_digest
from buildtool.graph.types import OpKind
from buildtool.target.catalogue import features
from buildtool.zoo.drawn import NetBuilder


def assert_complete(graph):
    """A graph built from the topology has the same topology, and planning gets the same answers from both."""
    graph = number_tensors(graph)
    expected = topology(graph)
    bare = expected.bare_graph()
    assert topology(bare) == expected
    assert is_numbered(bare)
    assert total_macs(bare) == total_macs(graph)
    assert [r.tensors for r in live_ranges(bare)] == [r.tensors for r in live_ranges(graph)]
    assert [features(bare, op) for op in bare.ops] == [features(graph, op) for op in graph.ops]


def assert_plain(value):
    if isinstance(value, tuple):
        for part in value:
            assert_plain(part)
    else:
        assert type(value) in (int, str, bool)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(graph=st.one_of(graphs(most_ops=7), fed_graphs()), seed=st.integers(0, 1 << 30))
def test_planning_needs_no_more_than_the_topology(graph, seed):
    assert_complete(graph)
    assert_plain(topology(graph))
    assert hash(topology(graph)) == hash(topology(disguised(graph, seed)))
    assert topology(graph) == topology(disguised(graph, seed))


def test_every_operator_has_a_topology():
    assert_complete(every_operator())
    assert_plain(topology(every_operator()))


def test_every_part_of_the_topology_matters():
    net = NetBuilder(1)
    x = net.input((1, 6, 6, 4))
    graph = net.graph([net.elementwise(OpKind.ADD, net.conv(x, 4, kernel=(3, 3), same=True), x)])
    conv, add = graph.ops

    def with_op(position, **changes):
        ops = list(graph.ops)
        ops[position] = replace(ops[position], **changes)
        return replace(graph, ops=tuple(ops))

    attrs = conv.attrs
    variants = [
        graph,
        with_op(0, attrs=replace(attrs, stride=(2, 1))),
        with_op(0, attrs=replace(attrs, stride=(1, 2))),
        with_op(0, attrs=replace(attrs, dilation=(1, 2))),
        with_op(0, attrs=replace(attrs, pad=g.Pad(1, 1, 2, 0))),
        with_op(0, attrs=replace(attrs, activation=g.Activation.RELU)),
        with_op(0, inputs=(*conv.inputs[:2], -1)),
        with_op(1, kind=OpKind.SUB),
        with_op(1, inputs=add.inputs[::-1]),
        with_op(1, inputs=(add.inputs[0], add.inputs[0])),
        replace(graph, outputs=(graph.outputs[0], conv.outputs[0])),
        replace(graph, inputs=(*graph.inputs, conv.inputs[2])),
        replace(graph, tensors=tuple(replace(t, shape=(*t.shape, 1)) for t in graph.tensors)),
        replace(graph, tensors=tuple(replace(t, data=None) for t in graph.tensors)),
    ]
    assert len({topology_digest(v) for v in variants}) == len(variants)
