"""Groups in longer steps at the edges: less is made twice, in windows that are no taller."""

from __future__ import annotations

from dataclasses import replace

import pytest
from front_twin import Space, hold_front
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import assembled, make_target
from zeronet import Net

from buildtool.base.errors import PlanError
from buildtool.graph.types import Pad
from buildtool.plan.check.check import check
from buildtool.plan.schedule.pace import Pace
from buildtool.plan.schedule.schedule import run
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import Group, Region, Scheme

TARGET = make_target(scratch="5 * cin")
SMALL = st.integers(1, 9)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(1, 40), SMALL, st.tuples(st.integers(0, 5), st.integers(0, 5)))
def test_steps_follow_each_other_and_end_with_the_output(height, step, more):
    pace, row, ends = Pace.even(height, step, more), 0, []
    while row < height:
        left = height - row
        row += left if left <= pace.last else min(left, pace.step if row else pace.first)
        ends.append(row)
    begins = [0, *ends[:-1]]
    assert [pace.end(begin) for begin in begins] == ends
    for made in (0, *ends):
        low, high = pace.steps(made)
        assert [*zip(low.tolist(), high.tolist(), strict=True)] == [
            pair for pair in zip(begins, ends, strict=True) if pair[1] <= made
        ]
    for needed in range(height + 1):
        assert pace.made(needed) == min(end for end in (0, *ends) if end >= needed)
    for begin in begins[1:-1]:  # a step in the middle is the same if it is shifted by its room
        assert pace.end(begin + pace.room(begin)) == begin + pace.room(begin) + step
    assert not pace.first > pace.step or pace.room(0) < 0


def bottleneck(rows=10, behind=0):
    """A depthwise convolution of 7 x 7 with stride 2 between two of 1 x 1, and some of 3 x 3 behind them."""
    net = Net((1, rows, 12, 4))
    x = net.depthwise(net.conv(net.inputs[0], 16), (7, 7), (2, 2), Pad(3, 2, 3, 2))
    x = net.conv(x, 4)
    for _ in range(behind):
        x = net.depthwise(x)
    return net.graph(x)


def planned(scheme, rows=10):
    graph = bottleneck(rows)
    plan, _ = assembled(graph, TARGET, [Group((0, 1, 2), scheme, 1, 1)], "none")
    check(plan, graph, TARGET)
    (inner, outer) = (next(b for b in plan.buffers if b.tensors == graph.ops[i].outputs) for i in (0, 1))
    steps = run(plan.regions[0], graph).steps.tolist()
    rows_made = [[y0, y1] for op, y0, y1, x0, _ in steps if op == 0 and not x0]
    return graph, plan, (inner.rows, outer.rows), rows_made


def test_the_first_and_the_last_step_make_more_rows_in_the_same_window():
    _, even, windows, rows = planned(Scheme.H_CACHED)
    assert windows == (7, 1)
    assert rows == [[0, 4], [0, 6], [1, 8], [3, 10], [5, 10]]
    graph, plan, windows, rows = planned(Scheme.EDGES)
    assert windows == (7, 2)
    assert rows == [[0, 6], [1, 8], [3, 10]]
    assert even.macs - plan.macs == 9 * 12 * 4 * 16
    for group in (Group((0, 1, 2), Scheme.EDGES, 1, 0), Group((0,), Scheme.EDGES, 1, 1)):
        with pytest.raises(PlanError, match="cannot run under scheme 'edges'"):
            run(Region((group,)), graph)


def test_a_window_that_is_too_small_for_the_steps_at_the_edges_is_refused():
    graph, plan, *_ = planned(Scheme.EDGES)
    for tensor in (op.outputs for op in graph.ops[:2]):
        smaller = (replace(b, rows=b.rows - 1) if b.tensors == tensor else b for b in plan.buffers)
        with pytest.raises(PlanError, match="not in the arena when they are read"):
            check(replace(plan, buffers=tuple(smaller)), graph, TARGET)
    even = replace(plan.regions[0].groups[0], scheme=Scheme.H_CACHED)
    with pytest.raises(PlanError, match="its steps execute"):
        check(replace(plan, regions=(Region((even,)),)), graph, TARGET)


@pytest.mark.parametrize(("image", "behind"), [("overwritable", 0), ("stream", 1)])
def test_the_front_with_such_steps_is_exact(image, behind):
    """A depthwise convolution behind the group reads its rows from a ring, which the first step fills."""
    graph = bottleneck(14, behind)
    hold_front(graph, TARGET, image, "rows", Space((1, 2), (1,)))
    points = front(graph, TARGET, Settings(image=image))
    plans = [points.plan(i) for i in range(len(points.points))]
    assert Scheme.EDGES in {group.scheme for plan in plans for r in plan.regions for group in r.groups}
    for plan in plans:
        check(plan, graph, TARGET)
