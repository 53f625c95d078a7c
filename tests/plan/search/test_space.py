"""What ways are searched in is a value of the topology: networks in other guises share it."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

from disguise import disguised
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import Net, fed_graphs, make_target

from buildtool.base.session import Session
from buildtool.graph.numbering import numbered
from buildtool.plan.search.front import Settings, front


def _chain(wide):
    net = Net((1, 12, 12, 3))
    return net.graph(net.conv(net.depthwise(net.conv(net.inputs[0], wide)), 4))


@settings(derandomize=True, deadline=None, max_examples=15)
@given(graph=fed_graphs(), seed=st.integers(0, 1 << 30))
def test_networks_in_other_guises_share_one_space(graph, seed):
    target, session = make_target(), Session()
    one = front(graph, target, Settings(), session)
    other = front(numbered(disguised(graph, seed)), target, Settings(), session)
    assert other.space is one.space
    assert other.graph is not one.graph
    assert [point.way for point in other.points] == [point.way for point in one.points]


def test_other_geometry_and_other_settings_have_spaces_of_their_own():
    target, session = make_target(), Session()
    one = front(_chain(12), target, Settings(), session)
    assert front(_chain(13), target, Settings(), session).space is not one.space
    for changed in (Settings("none"), Settings(image="resident"), Settings(hand_off=4)):
        assert front(_chain(12), target, changed, session).space is not one.space
    board = replace(target.board, alignment=2 * target.board.alignment)
    assert front(_chain(12), replace(target, board=board), Settings(), session).space is not one.space


def test_a_space_keeps_no_network_alive():
    """Neither its weights nor its names: the space may outlive the request that it was made for."""
    target, session = make_target(), Session()
    graph = _chain(12)
    found = front(graph, target, Settings(), session)
    space, gone = found.space, weakref.ref(graph)
    assert space.ways(2.0)
    del found, graph
    gc.collect()
    assert gone() is None
    assert all(tensor.name == "" for tensor in space.elements.graph.tensors)
