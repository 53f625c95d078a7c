"""The forms of blocks agree with the assembler's layout, and depend only on a chain's geometry."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

from disguise import disguised
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import fed_graphs, make_target
from test_front import IMAGES, IN_PLACE, networks, targets
from zeronet import Net

from buildtool.base.errors import UsageError
from buildtool.base.session import Session
from buildtool.graph.numbering import number_tensors
from buildtool.plan.assemble.workspace import workspace
from buildtool.plan.search.forms import FormRow
from buildtool.plan.search.front import Settings, front
from buildtool.plan.search.tables import Tables
from buildtool.plan.types import Region


def _columns(e, block, group):
    """Operator -> the most columns that a call computes; columns that the next element skips do not count."""
    made, pixels = e.widths[block.last], group.hand_off or e.widths[block.last]
    found = {e.positions[block.last]: min(made, pixels)}
    for element in range(block.last, block.first, -1):
        axis = e.axes_of[element][1]
        made, pixels = max(0, min(e.widths[element - 1], axis.high(made))), pixels * axis.stride
        found[e.positions[element - 1]] = min(made, pixels) if group.hand_off else made
    return found


@settings(derandomize=True, deadline=None, max_examples=25)
@given(networks(2, 9), targets, st.sampled_from(IN_PLACE))
def test_a_form_needs_the_workspace_that_is_laid_out(graph, target, in_place):
    pareto = front(graph, target, Settings(in_place))
    e = pareto.space.elements
    for last in range(len(e.positions)):
        for block in pareto.space.blocks.ending_at(last):
            if block.section is not None:
                continue
            for form in pareto.space.blocks.forms(block):
                most = _columns(e, block, form.group)
                region = Region((form.group,))
                laid = workspace(e.graph, region, e.kernels, e.alignment, in_place, most)
                assert form.window == laid.size, (block, form)


@settings(derandomize=True, deadline=None, max_examples=15)
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


@settings(derandomize=True, deadline=None, max_examples=15)
@given(networks(2, 7), targets, st.sampled_from([1, 1 << 20]), st.booleans())
def test_a_price_on_work_takes_no_costs_for_its_own_weights_and_leaves_none(graph, target, price, late):
    shared, alone = (front(graph, target, Settings(), session) for session in (Session(), None))
    dear = Tables(shared.space.boundaries, 1024, price)
    if late:  # costs are there already
        shared.space.cost_tables.spare  # noqa: B018 - makes the rows
    weights = [dear.extra(form, dear.e.heights[form.block.last]) for form in _forms(dear)]
    assert [row.extra for row in _rows(dear)] == weights
    assert _rows(shared.space.cost_tables) == _rows(alone.space.cost_tables)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(networks(2, 7), targets, st.integers(1, 4000))
def test_a_price_on_work_changes_no_bytes_where_constants_are_loaded(graph, target, size):
    loaded = tuple((size + op, size // 2) for op in range(len(graph.ops)))
    own = front(graph, target, Settings(loaded=loaded)).space.cost_tables
    assert _forms(Tables(own.boundaries, 1024, 1)) == _forms(own)


# ---- spaces: networks in other guises share one ------------------------------------------------------


def _chain(wide):
    net = Net((1, 12, 12, 3))
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
