"""Groups of several operators, residuals inside or across them: every byte that is read is there."""

from __future__ import annotations

from dataclasses import replace

import plan_nets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import any_groups, assembled, make_target, residual_nets
from zeronet import SAME_3X3, Net

from buildtool.base.errors import PlanError
from buildtool.plan.check.check import check
from buildtool.plan.check.replay import replay
from buildtool.plan.schedule.inner import objection, whole_tensors
from buildtool.plan.schedule.rings import windows
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Scheme


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=70)
@given(st.data(), residual_nets(), st.sampled_from(["rows", "elementwise", "none"]), st.booleans())
def test_groups_of_bottlenecks_read_only_what_is_there(data, graph, in_place, scratch):
    target = make_target(scratch="5 * cin" if scratch else "0")
    plan, _ = assembled(graph, target, any_groups(data.draw, graph), in_place)
    check(plan, graph, target)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data(), plan_nets.graphs())
def test_groups_of_random_networks_read_only_what_is_there(data, graph):
    target = make_target()
    plan, _ = assembled(graph, target, any_groups(data.draw, graph))
    check(plan, graph, target)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=36)
@given(st.data(), residual_nets())
def test_a_streamed_image_is_delivered_in_time(data, graph):
    target = make_target()
    plan, _ = assembled(graph, target, any_groups(data.draw, graph), image="stream")
    check(plan, graph, target)


def bottlenecks(side=12):
    """Two bottlenecks with residuals, both inside."""
    net = Net((1, side, side, 8))
    first = net.conv(net.inputs[0], 4)
    x = first
    for _ in range(2):
        y = net.conv(net.depthwise(net.conv(x, 16)), 4)
        x = net.add(x, y)
    return net.graph(net.conv(x, 8)), first


@pytest.mark.parametrize("hand_off", [0, 1, 4])
@pytest.mark.parametrize("rows", [1, 3])
def test_windows_are_as_small_as_they_can_be(rows, hand_off):
    """A row or column less in any of them, and the replay finds a byte that is gone."""
    graph, _ = bottlenecks()
    target = make_target()
    scheme = Scheme.H_CACHED if hand_off else Scheme.HALO
    group = Group(tuple(range(len(graph.ops))), scheme, rows, hand_off)
    plan, kernels = assembled(graph, target, [group], "none")
    timeline = Timeline.of(graph, plan.regions, plan.image)
    replay(plan, timeline, kernels)
    for kept in windows(graph, group):
        for less_rows, less_columns in ((1, 0), (0, 1)):
            if kept.rows == less_rows:
                continue
            smaller = tuple(
                replace(b, rows=b.rows - less_rows, columns=b.columns - less_columns)
                if b.tensors == (kept.tensor,)
                else b
                for b in plan.buffers
            )
            with pytest.raises(PlanError):
                replay(replace(plan, buffers=smaller), timeline, kernels)


def test_a_tensor_that_is_read_later_stays_whole():
    graph, first = bottlenecks()
    group = Group((0, 1, 2, 3), Scheme.HALO, 2)
    assert whole_tensors(graph, group) == {first}
    assert first not in {kept.tensor for kept in windows(graph, group)}


def test_strips_reuse_what_neighbours_left():
    """Of a strip's windows only neighbours' are live at once, so the arena is far below their sum."""
    graph, _ = bottlenecks()
    target = make_target()
    group = Group(tuple(range(len(graph.ops))), Scheme.HALO, 2)
    plan, _ = assembled(graph, target, [group], "none")
    held = sum(kept.size for kept in windows(graph, group))
    whole = sum(graph.tensors[t].size for t in (*graph.inputs, *graph.outputs))
    assert plan.arena_bytes < whole + held * 0.75


def test_an_operator_that_skips_rows_cannot_leave_a_tensor_to_others():
    net = Net((1, 9, 9, 4))
    x = net.conv(net.inputs[0], 4)
    net.conv(x, 4, (1, 1), (2, 2))
    graph = net.graph(net.tensors.index(net.tensors[-1]), x)
    position, why = objection(graph, (0, 1))
    assert position == 1 and "leaves out rows" in why


def test_ways_of_different_strides_are_no_group():
    net = Net((1, 8, 8, 4))
    x = net.conv(net.inputs[0], 4)
    long = net.conv(net.conv(x, 4, (3, 3), (2, 2), SAME_3X3), 4, (3, 3), (2, 2), SAME_3X3)
    short = net.conv(x, 4, (3, 3), (4, 4), SAME_3X3)
    graph = net.graph(net.add(long, short))
    assert objection(graph, (0, 1, 2, 3, 4)) is None
    net = Net((1, 8, 8, 4))
    x = net.conv(net.inputs[0], 4)
    a = net.max_pool(x, (8, 8), (8, 8))
    b = net.max_pool(x, (8, 8), (4, 4))
    assert net.shape(a) == net.shape(b)
    graph = net.graph(net.add(a, b))
    assert "different strides" in objection(graph, (0, 1, 2, 3))[1]
