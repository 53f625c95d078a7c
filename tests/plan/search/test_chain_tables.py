"""The forms of blocks agree with the assembler's layout, and depend only on a chain's geometry."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
from disguise import disguised
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import fed_graphs, make_target
from test_front import IMAGES, networks, targets
from zeronet import Net

from buildtool.base.errors import UsageError
from buildtool.base.session import Session
from buildtool.graph.numbering import number_tensors
from buildtool.plan.search.forms import FormRow
from buildtool.plan.search.front import Settings, front
from buildtool.plan.search.tables import Tables


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=8)
@given(st.lists(networks(2, 7), min_size=2, max_size=3), targets, st.sampled_from(IMAGES))
def test_what_another_network_left_in_a_session_is_what_would_be_made(graphs, target, image):
    session = Session()
    for graph in graphs:
        try:
            shared = front(graph, target, Settings(image=image), session)
        except UsageError:  # several operators read the input image
            continue
        alone = front(graph, target, Settings(image=image))
        for tables, own in (
            (shared.space.tables, alone.space.tables),
            (shared.space.cost_tables, alone.space.cost_tables),
        ):
            assert _rows(tables) == _rows(own)
            assert _forms(tables) == _forms(own)
        least = min(row.least_extra for row in _rows(alone.space.cost_tables))
        assert shared.space.cost_tables.nothing_saves == (least >= 0)


def _rows(tables):
    return [FormRow(*row) for last in range(tables.e.count) for row in tables.rows_of(last).tolist()]


def _forms(tables):
    return [tables.form(number) for number in range(tables.starts[-1])]


def test_what_saves_weight_is_looked_at_once_for_networks_with_the_same_chains(monkeypatch):
    looked, extra = [], Tables.extra
    monkeypatch.setattr(Tables, "extra", lambda *about: looked.append(about) or extra(*about))

    def look(outputs, session):
        net = Net((1, 12, 12, 3))
        x = net.conv(net.depthwise(net.conv(net.inputs[0], 12)), 4)
        graph = net.graph(net.dense(net.mean(x), outputs))
        space = front(graph, make_target(), Settings(), session).space
        looked.clear()
        return space, space.cost_tables.nothing_saves, len(looked)

    session = Session()
    (one, verdict, alone), (other, shared_verdict, shared) = look(10, session), look(20, session)
    assert other is not one and shared < alone
    assert shared_verdict == verdict == look(20, Session())[1]


# ---- spaces: networks in other guises share one ------------------------------------------------------


def _chain(wide, channels=3):
    net = Net((1, 12, 12, channels))
    return net.graph(net.conv(net.depthwise(net.conv(net.inputs[0], wide)), 4))


@settings(derandomize=True, deadline=None, max_examples=15)
@given(graph=fed_graphs(), seed=st.integers(0, 1 << 30))
def test_networks_in_other_guises_share_one_space(graph, seed):
    target, session = make_target(), Session()
    one = front(graph, target, Settings(), session)
    other = front(number_tensors(disguised(graph, seed)), target, Settings(), session)
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


@pytest.mark.parametrize(("wide", "channels", "alignment"), [(12, 40, 16), (12, 3, 64), (40, 3, 16)])
def test_one_number_that_differs_needs_tables_of_its_own(wide, channels, alignment):
    target, session = make_target(), Session()
    front(_chain(12), target, Settings(), session).space.ways(2.0)
    other = replace(target, board=replace(target.board, alignment=alignment))
    shared, alone = (front(_chain(wide, channels), other, Settings(), s) for s in (session, None))
    assert _rows(shared.space.cost_tables) == _rows(alone.space.cost_tables)
    assert [(p.live_bytes, p.work) for p in shared.points] == [(p.live_bytes, p.work) for p in alone.points]


@pytest.mark.slow
def test_a_space_keeps_no_network_alive():
    """A space holds neither weights nor names of its network: it may outlive the request that created it."""
    target, session = make_target(), Session()
    graph = _chain(12)
    pareto = front(graph, target, Settings(), session)
    space, gone = pareto.space, weakref.ref(graph)
    assert space.ways(2.0)
    del pareto, graph
    gc.collect()
    assert gone() is None
    assert all(tensor.name == "" for tensor in space.elements.graph.tensors)
