"""Groups of bands: nothing is made twice, and every kept row is there when it is read again."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
import replay_twin
from bandnets import bands, chains
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import assembled, make_target
from schedule_twin import describes, steps
from zeronet import SAME_3X3, Net

from buildtool.base.errors import PlanError
from buildtool.graph.types import Pad
from buildtool.plan.check import replay as replaying
from buildtool.plan.check.check import check
from buildtool.plan.check.replay import replay
from buildtool.plan.schedule import schedule
from buildtool.plan.schedule.bands import bands_objection
from buildtool.plan.schedule.rings import windows
from buildtool.plan.schedule.schedule import run
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.search.front import Settings, front
from buildtool.plan.search.paths import Search
from buildtool.plan.types import BufferKind, Group, Region, Scheme, Step

TARGET = make_target(scratch="5 * cin")
IMAGES = ("overwritable", "stream")


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.data(), chains(), st.sampled_from(IMAGES), st.sampled_from([5, schedule.MOST_AT_ONCE]))
def test_nothing_is_made_twice_and_every_byte_is_there(data, graph, image, portion):
    group = bands(data.draw, graph)
    with patch.object(schedule, "MOST_AT_ONCE", portion):  # steps whose numbers are computed together
        _is_exact(graph, group, image)


def _is_exact(graph, group, image):
    plan, kernels = assembled(graph, TARGET, [group], image=image)
    check(plan, graph, TARGET)
    timeline = Timeline.of(graph, plan.regions, plan.image)
    describes(timeline, steps(plan.regions[0], graph, image))
    assert replay(plan, timeline, kernels) == replay_twin.replay(plan, timeline, kernels)
    assert plan.macs <= plan.macs_layerwise
    assert [Step(*line) for line in timeline.steps.tolist()] == steps(plan.regions[0], graph, image)


def bottleneck(stride=1):
    """A convolution, then a depthwise one between two of 1 x 1."""
    net = Net((1, 24, 24, 3))
    x = net.conv(net.conv(net.inputs[0], 4, (3, 3), (2, 2), SAME_3X3), 16)
    pad = Pad(2, 2, 2, 2)
    return net.graph(net.conv(net.depthwise(x, (5, 5), (stride, stride), pad), 4))


def planned(stride=1, scheme=Scheme.BANDS):
    graph = bottleneck(stride)
    plan, kernels = assembled(graph, TARGET, [Group((0, 1, 2, 3), scheme, 1, 2)], "none")
    return graph, plan, kernels, Timeline.of(graph, plan.regions, plan.image)


@pytest.mark.parametrize("scheme", [Scheme.BANDS, Scheme.SWAPS])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_and_lines_are_as_small_as_they_can_be(stride, scheme, monkeypatch):
    """With a row or a column less in any window, or a row less that is kept, the replay misses a byte."""
    graph, plan, kernels, timeline = planned(stride, scheme)
    replay(plan, timeline, kernels)
    (lines,) = (b for b in plan.buffers if b.kind is BufferKind.LINES)
    (window,) = (b for b in plan.buffers if b.tensors == (graph.ops[1].outputs[0],))
    columns = 12 - (window.columns if scheme is Scheme.SWAPS else 0)
    assert lines.size == (5 - stride) * columns * 16
    for window in windows(graph, plan.regions[0].groups[0]):
        for rows, columns in ((1, 0), (0, 1)):
            smaller = tuple(
                replace(b, rows=b.rows - rows, columns=b.columns - columns)
                if b.tensors == (window.tensor,)
                else b
                for b in plan.buffers
            )
            if window.rows > rows and window.columns > columns:
                with pytest.raises(PlanError, match="not in the arena when they are read"):
                    replay(replace(plan, buffers=smaller), timeline, kernels)
    monkeypatch.setattr(replaying, "kept_rows", lambda graph, regions: {1: 4 - stride})
    with pytest.raises(PlanError, match="not in the arena when they are read"):
        replay(plan, timeline, kernels)


def lost(plan, change):
    return replace(plan, buffers=tuple(b for old in plan.buffers for b in change(old)))


def test_pixels_that_swap_are_one_window_smaller_than_those_that_are_copied():
    (graph, copying, *_), (_, swapping, *_) = (planned(scheme=one) for one in (Scheme.BANDS, Scheme.SWAPS))
    copied, swapped = (sum(b.size for b in plan.buffers) for plan in (copying, swapping))
    (window,) = (b for b in copying.buffers if b.tensors == (graph.ops[1].outputs[0],))
    assert copied - swapped == 4 * window.columns * 16


def test_a_swap_with_other_columns_is_refused():
    """Where the columns of an operator do not follow each other from 0 on, another column's rows come in."""
    _, plan, kernels, timeline = planned(scheme=Scheme.SWAPS)
    (lines,) = (b for b in plan.buffers if b.kind is BufferKind.LINES)
    for columns in (lines.columns - 1, lines.columns + 1):
        other = tuple(replace(b, columns=columns) if b == lines else b for b in plan.buffers)
        with pytest.raises(PlanError, match=r"not in the arena when|lies outside"):
            replay(replace(plan, buffers=other), timeline, kernels)


def test_a_plan_without_lines_or_with_others_bytes_in_them_is_refused():
    graph, plan, *_ = planned()
    is_lines = [b.kind is BufferKind.LINES for b in plan.buffers]
    at = plan.buffers[is_lines.index(True)]
    (window,) = (b for b in plan.buffers if b.tensors == (graph.ops[1].outputs[0],))
    for change, text in (
        (lambda b: () if b == at else (b,), "has no lines"),
        (lambda b: (b, b) if b == at else (b,), "lines twice"),
        (lambda b: (replace(b, size=b.size - 1),) if b == at else (b,), "bytes of lines, it has"),
        (lambda b: (replace(b, rows=3),) if b == at else (b,), "needs 4 rows"),
        (lambda b: (replace(b, op=2),) if b == at else (b,), "which are not read again"),
        (lambda b: (replace(b, offset=at.offset),) if b == window else (b,), "not in the arena when"),
        (lambda b: (replace(b, offset=plan.arena_bytes),) if b == at else (b,), "its buffers end at"),
    ):
        with pytest.raises(PlanError, match=text):
            check(lost(plan, change), graph, TARGET)


def test_what_is_no_chain_is_no_group_of_bands():
    net = Net((1, 8, 8, 4))
    x = net.conv(net.inputs[0], 4)
    graph = net.graph(net.add(x, net.depthwise(x)))
    assert bands_objection(graph, (0, 1, 2)) == "it is not a chain"
    for ops, hand_off, why in (
        ((0, 1, 2), 1, "not a chain"),
        ((0, 1), 1, "outside"),
        ((1, 2), 0, "whole rows"),
    ):
        with pytest.raises(PlanError, match=why):
            run(Region((Group(ops, Scheme.BANDS, 1, hand_off),)), graph)


@pytest.mark.parametrize("image", IMAGES)
def test_bands_need_less_memory_than_rings_without_more_work(image):
    net = Net((1, 20, 40, 3))
    x = net.conv(net.depthwise(net.conv(net.inputs[0], 16)), 4)
    points = front(net.graph(x), TARGET, Settings(image=image))
    *_, rings = Search(points.space.plain_tables, 0).falling()
    plan = points.plan(len(points.points) - 1)
    check(plan, points.graph, TARGET)
    assert plan.macs == plan.macs_layerwise
    assert [group.scheme for group in plan.regions[0].groups] == [Scheme.SWAPS]
    assert plan.arena_bytes <= rings.bytes - 256
