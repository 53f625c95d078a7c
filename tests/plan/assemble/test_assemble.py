"""The one assembler: equal regions give equal plans, and each schedule is made once for a plan."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import graphs, make_target, residual_net
from zeronet import Net

from buildtool.base.errors import PlanError
from buildtool.base.session import Session
from buildtool.plan.assemble import layerwise
from buildtool.plan.baselines.strips import plan_strips
from buildtool.plan.check.check import check
from buildtool.plan.schedule import timeline as timelines
from buildtool.plan.search.front import Settings, front
from buildtool.plan.summary.summary import binding, peak, summarize
from buildtool.plan.types import BufferKind


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    graphs(),
    st.sampled_from(["rows", "elementwise", "none"]),
    st.sampled_from(["overwritable", "resident"]),
    st.booleans(),
)
def test_equal_regions_give_equal_plans_whoever_asks(graph, in_place, image, scratch):
    target = make_target(scratch="kh * kw * cin + 1" if scratch else "0")
    modes = {"in_place": in_place, "image": image}
    alone = layerwise.plan(graph, target, **modes, enough=0)
    searched = front(graph, target, Settings(**modes)).assemble(alone.regions)
    in_strips = plan_strips(graph, target, (), **modes)
    assert replace(alone, strategy="") == replace(searched, strategy="") == replace(in_strips, strategy="")


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=40)
@given(graphs(), st.sampled_from(["overwritable", "resident"]))
def test_tensors_move_only_where_that_lowers_the_arena(graph, image):
    target = make_target()
    still = layerwise.plan(graph, target, image=image)
    least = layerwise.plan(graph, target, image=image, enough=0)
    check(least, graph, target)
    assert not still.moves
    assert least.arena_bytes < still.arena_bytes if least.moves else least == still
    assert layerwise.plan(graph, target, image=image, enough=still.arena_bytes) == still
    if least.moves:
        assert layerwise.plan(graph, target, image=image, enough=still.arena_bytes - 1) == least


def test_each_schedule_is_made_once_for_a_plan_and_once_for_its_check(monkeypatch):
    made = Counter()
    run = timelines.run

    def counted(region, graph, image):
        made[region] += 1
        return run(region, graph, image)

    monkeypatch.setattr(timelines, "run", counted)
    graph, target, session = residual_net(), make_target(scratch="kh * kw * cin"), Session()
    found = front(graph, target, Settings(image="stream"), session)
    plan = found.assemble(found.plan(0).regions)
    made.clear()
    plan = found.assemble(plan.regions)
    summarize(plan, graph, target.named(plan.kernels), target.costs, session)
    peak(plan, graph, session=session)
    binding(plan, graph, session)
    assert not made  # all of it went by the timeline that was there
    check(plan, graph, target)
    assert made == Counter(plan.regions)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(graphs(), st.sampled_from(["overwritable", "resident"]))
def test_what_is_known_of_regions_changes_no_plan(graph, image):
    """Points of one front, which share their regions, are the plans that each is by itself."""
    target, session = make_target(scratch="kh * kw * cin"), Session()
    points = front(graph, target, Settings(image=image), session)
    for index in reversed(range(len(points.points))):
        plan = points.plan(index)
        assert front(graph, target, Settings(image=image)).plan(index) == plan
        assert front(graph, target, Settings(image=image), session).plan(index) == plan


def test_an_arena_of_strips_holds_scratch_for_the_columns_of_a_call():
    """With calls of two columns a kernel wants less scratch than with calls of whole rows."""
    net = Net((1, 12, 12, 4))
    graph = net.graph(net.conv(net.conv(net.inputs[0], 8, (3, 3)), 4, (3, 3)))
    target = make_target(scratch="64 * ow")
    found = front(graph, target, Settings(image="stream", hand_off=2))
    for point in range(len(found.points)):
        plan = found.plan(point)
        check(plan, graph, target)
        timeline = timelines.Timeline.of(graph, plan.regions, plan.image)
        sizes = {b.op: b.size for b in plan.buffers if b.kind is BufferKind.SCRATCH}
        for op, size in sizes.items():
            width = graph.tensors[graph.ops[op].outputs[0]].nhwc[2]
            assert size == 64 * min(width, timeline.columns[op])


def parts():
    """Convolutions, then their outputs behind each other, every part where it goes to."""
    net = Net((1, 6, 6, 4))
    made = [net.conv(net.inputs[0], 16), net.conv(net.inputs[0], 16)]
    return net.graph(net.relu(net.concat(made))), make_target()


def test_a_streamed_plan_has_parts_in_place_and_the_replay_goes_line_by_line():
    graph, target = parts()
    plan = plan_strips(graph, target, (), image="stream")
    check(plan, graph, target)
    assert plan.arena_bytes < plan_strips(graph, target, (), image="stream", in_place="none").arena_bytes
    on_it = [o for o in plan.overlaps if o.op == 2]
    assert len(on_it) == 2
    first = on_it[0]
    assert plan.buffers[first.input].offset == plan.buffers[first.output].offset + first.distance
    higher = [
        replace(b, offset=b.offset + plan.alignment) if i == first.output else b
        for i, b in enumerate(plan.buffers)
    ]
    wrong = replace(plan, buffers=tuple(higher), arena_bytes=plan.arena_bytes + plan.alignment)
    with pytest.raises(PlanError, match="not in the arena when they are read"):
        check(wrong, graph, target)


def test_no_tensor_moves_where_that_is_not_allowed():
    net = Net((1, 16, 16, 16))
    x = net.inputs[0]
    for _ in range(8):
        x = net.depthwise(x)
    graph, target = net.graph(x), make_target()
    assert layerwise.plan(graph, target, enough=0).moves
    assert not layerwise.plan(graph, target, enough=math.inf).moves
