"""Views of channels: they keep values and tensor numbers, and can be removed again."""

import numpy as np
import pytest
from drawnnets import sliced_networks
from graphs import inputs_for
from hypothesis import given, settings
from namednets import taken

from buildtool.base.errors import PlanError
from buildtool.graph.macs import total_macs
from buildtool.graph.numbering import is_numbered
from buildtool.graph.partviews import (
    Part,
    joins_channels,
    parts,
    takes_channels,
    tensors_with_own_memory,
    views,
    with_views,
)
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Activation, OpKind
from buildtool.zoo.drawn import NetBuilder


def _possible(graph):
    """All operators of this graph that may be views, for any kernels."""
    return [
        position
        for position, op in enumerate(graph.ops)
        if (takes_channels(graph, op) and op.outputs[0] not in tensors_with_own_memory(graph))
        or joins_channels(graph, op)
    ]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(drawn=sliced_networks())
def test_a_network_with_views_computes_the_same(drawn):
    graph = rewrite(drawn)
    viewed = with_views(graph, _possible(graph))
    assert is_numbered(viewed) and views(viewed) == tuple(_possible(graph))
    assert total_macs(viewed) == total_macs(graph)
    inputs = inputs_for(graph, 3)
    before, after = execute(graph, inputs), execute(viewed, inputs)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[t], after[t]) for t in before)


def _nested():
    net = NetBuilder(2)
    x = net.conv(net.input((1, 4, 5, 3)), 12)
    part = taken(net, x, 2, 9)
    inner = taken(net, part, 3, 4)
    joined = net.concat([net.conv(part, 3), net.conv(inner, 5)])
    return rewrite(net.graph([net.concat([joined, net.conv(x, 2)]), taken(net, joined, 0, 2)]))


def test_parts_of_parts_lie_in_the_widest_tensor():
    graph = _nested()
    slices = [p for p, op in enumerate(graph.ops) if takes_channels(graph, op)]
    viewed = with_views(graph, slices[:2])
    (first, second), whole = [graph.ops[p].outputs[0] for p in slices[:2]], graph.ops[slices[0]].inputs[0]
    assert parts(viewed) == {first: Part(whole, 2), second: Part(whole, 5)}
    readers = [op for op in viewed.ops if op.seen]
    assert len(readers) == 2 and all(op.inputs[0] == whole for op in readers)
    assert [op.as_seen.inputs[0] for op in readers] == [first, second]


def test_views_of_a_plan_are_checked_against_the_network():
    graph = _nested()
    kinds = [op.kind for op in graph.ops]
    last = max(p for p, op in enumerate(graph.ops) if takes_channels(graph, op))
    with pytest.raises(PlanError, match="lives to the end"):
        with_views(graph, [last])
    with pytest.raises(PlanError, match="more than channels"):
        with_views(graph, [kinds.index(OpKind.CONV_2D)])
    with pytest.raises(PlanError, match="more than channels"):  # another operator reads one of its parts, too
        with_views(graph, [max(p for p, kind in enumerate(kinds) if kind is OpKind.CONCATENATION)])
    slices = [p for p, op in enumerate(graph.ops) if takes_channels(graph, op)]
    for wrong in ([slices[1], slices[0]], [slices[0], slices[0]], [len(graph.ops)], [-1]):
        with pytest.raises(PlanError, match="a view in the place of operator"):
            with_views(graph, wrong)


def test_moves_of_more_than_channels_are_no_views():
    net = NetBuilder(4)
    x = net.input((1, 6, 6, 4))
    rows = net.concat([net.conv(x, 4), net.conv(x, 4)], axis=1)
    twice = net.conv(x, 3)
    both = net.concat([twice, twice])
    with_image = net.concat([x, net.conv(x, 2)])
    ends = [net.conv(t, 2, activation=Activation.RELU) for t in (rows, both, with_image)]
    graph = rewrite(net.graph(ends))
    assert [op.kind for op in graph.ops].count(OpKind.CONCATENATION) == 3 and not _possible(graph)
