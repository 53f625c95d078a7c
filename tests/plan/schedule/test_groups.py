"""Groups of several operators, with residuals or branches: every byte is present when it is read."""

from __future__ import annotations

from dataclasses import replace

import pytest
import window_twin
from bandnets import chains
from branch_twin import BranchTwin
from drawnnets import branching_networks
from front_twin import Space, hold_front
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from namednets import WAYS, enlarged
from plan_nets import any_groups, assembled, make_target, residual_nets
from zeronet import SAME_3X3, Net

from buildtool.base.errors import PlanError
from buildtool.base.session import Session
from buildtool.graph.macs import op_macs
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import OpKind, SliceAttrs
from buildtool.options.values import PlanOptions
from buildtool.plan.check.check import check
from buildtool.plan.check.replay import replay
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.schedule.inner import objection
from buildtool.plan.schedule.overlap import IN_PLACE
from buildtool.plan.schedule.rings import windows
from buildtool.plan.schedule.schedule import run
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import BufferKind, Group, Region, Scheme, Step
from buildtool.zoo.drawn import NetBuilder

_many = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.data(), residual_nets(), st.sampled_from(["rows", "elementwise", "none"]), st.booleans())
def test_groups_of_bottlenecks_read_only_what_is_there(data, graph, in_place, scratch):
    target = make_target(scratch="5 * cin" if scratch else "0")
    plan, _ = assembled(graph, target, any_groups(data.draw, graph), in_place)
    check(plan, graph, target)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.data(), residual_nets())
def test_a_streamed_image_is_delivered_in_time(data, graph):
    target = make_target()
    plan, _ = assembled(graph, target, any_groups(data.draw, graph), image="stream")
    check(plan, graph, target)


def bottlenecks(side=12):
    """Two bottlenecks with their residuals."""
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
    """With a row or column less in any window, the replay finds a missing byte."""
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


@settings(_many, max_examples=40)
@given(st.data(), st.one_of(residual_nets(), chains()))
def test_windows_are_what_the_steps_need(data, graph):
    for group in (g for g in any_groups(data.draw, graph) if len(g.ops) > 1):
        steps = [Step(*line) for line in run(Region((group,)), graph).steps.tolist()]
        needed = window_twin.windows(group, graph, steps)
        assert all(needed[k.tensor] == (k.rows, k.columns) for k in windows(graph, group))


def test_columns_that_a_strided_convolution_skips_are_not_made():
    net = Net((1, 8, 8, 4))
    x = net.conv(net.inputs[0], 8, (3, 3), (1, 1), SAME_3X3)
    graph = net.graph(net.conv(x, 4, (1, 1), (2, 2)))
    best, *others = front(graph, make_target(), Settings()).points
    once, skipping = op_macs(graph, graph.ops[0]), op_macs(graph, graph.ops[1])
    assert best.work == once // 4 + skipping and not others


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


@pytest.mark.slow
@settings(_many, max_examples=8)
@given(branching_networks(), st.sampled_from(["overwritable", "stream"]), st.sampled_from(["rows", "none"]))
def test_every_point_of_the_front_reads_only_what_is_there(graph, image, in_place):
    target = make_target(scratch="5 * cin")
    pareto = front(graph, target, Settings(image=image, in_place=in_place))
    for index, point in enumerate(pareto.points):
        plan = pareto.plan(index)
        check(plan, graph, target)
        assert plan.macs == point.work, (index, plan.regions)
        if in_place == "none":  # otherwise overlaps may push each other up
            assert plan.arena_bound_bytes <= point.live_bytes, (index, plan.regions)


def _fire(net, x):
    """SqueezeNet's module."""
    x = net.conv(x, 4)
    return net.conv(net.concat([net.conv(x, 8), net.conv(x, 8, kernel=(3, 3), same=True)]), 24)


def _projection(net, x):
    """ResNet's strided module."""
    y = net.conv(x, 16, kernel=(3, 3), stride=(2, 2), same=True)
    y = net.conv(y, 16, kernel=(3, 3), same=True)
    return net.conv(net.elementwise(OpKind.ADD, net.conv(x, 16, stride=(2, 2)), y), 24)


def _inception(net, x):
    """Four branches, one of them with a residual."""
    residual = net.conv(x, 6)
    residual = net.elementwise(OpKind.ADD, residual, net.conv(residual, 6, kernel=(3, 3), same=True))
    pooled = net.conv(net.pool(OpKind.MAX_POOL_2D, x, (3, 3), (1, 1), same=True), 4)
    wide = net.conv(net.conv(x, 4), 6, kernel=(5, 5), same=True)
    return net.concat([net.conv(x, 4), wide, residual, pooled])


def _network(module):
    """A module between a convolution of 8 channels and a classifier."""
    net = NetBuilder(1)
    x = net.conv(net.input((1, 24, 24, 3)), 8, kernel=(3, 3), same=True)
    return rewrite(net.graph([net.dense(net.mean(module(net, x)), 4)]))


@pytest.mark.parametrize("module", [_fire, _projection, _inception])
def test_rings_of_branches_are_as_small_as_they_can_be(module):
    """With a row less in any ring, the replay finds a missing byte."""
    graph = _network(module)
    pareto = front(graph, make_target(), Settings(image="stream", in_place="none"))
    plan = pareto.plan(0)
    section = next(s for s in pareto.space.blocks.sections if s)
    inside = {graph.ops[p].outputs[0] for p in section.group.ops[:-1]}
    kernels = pareto.space.elements.kernels
    timeline = Timeline.of(graph, plan.regions, plan.image)
    replay(plan, timeline, kernels)
    rings = [b for b in plan.buffers if b.kind is BufferKind.RING and inside & set(b.tensors)]
    assert {t for b in rings for t in b.tensors} == inside
    assert sum(-(-b.size // plan.alignment) * plan.alignment for b in rings) == section.rings
    for ring in rings:
        if ring.rows > 1:
            less = tuple(replace(b, rows=b.rows - 1) if b is ring else b for b in plan.buffers)
            with pytest.raises(PlanError):
                replay(replace(plan, buffers=less), timeline, kernels)


def _sliced(net, x, first):
    *image, channels = net.shape(x)
    attrs = SliceAttrs((0, 0, 0, first), (1, 1, 1, 1), (*image, channels - first))
    return net.move(OpKind.SLICE, x, (*image, channels - first), attrs)


@st.composite
def _modules(draw):
    """A few modules of two or three short branches, with convolutions between them."""
    net, side, channels = NetBuilder(draw(st.integers(0, 9))), st.integers(4, 9), st.integers(1, 6)
    x = net.conv(net.input((1, draw(side), draw(side), 2)), draw(channels), kernel=(3, 3), same=True)
    for _ in range(draw(st.integers(1, 2))):
        stride = draw(st.sampled_from([(1, 1), (1, 1), (2, 2)]))
        parts = []
        for _ in range(draw(st.integers(2, 3))):
            way, y = draw(st.sampled_from(["same", "projected", "sliced"])), x
            if way == "projected":
                y = net.conv(x, draw(channels))
            elif way == "sliced":
                y = _sliced(net, x, draw(st.integers(0, net.shape(x)[3] - 1)))
            kernel = draw(st.sampled_from([(1, 1), (3, 3)]))
            parts.append(net.conv(y, draw(channels), kernel=kernel, stride=stride, same=True))
        x = net.concat(parts)
        if draw(st.booleans()):
            x = net.conv(x, draw(st.integers(1, 4)), kernel=(3, 3), same=True)
    return net.graph([x])


@st.composite
def _hourglasses(draw):
    """Modules between convolutions, with one branch that goes through a smaller image and back."""
    net = NetBuilder(draw(st.integers(0, 9)))
    side = st.integers(3, 8)
    x = net.conv(net.input((1, draw(side), draw(side), 2)), draw(st.integers(1, 4)), kernel=(3, 3), same=True)
    for _ in range(draw(st.integers(1, 2))):
        way, (rows, columns) = draw(st.sampled_from(WAYS)), net.shape(x)[1:3]
        small = net.conv(x, draw(st.integers(1, 4)), kernel=(3, 3), stride=(2, 2), same=True)
        if draw(st.booleans()):
            small = net.conv(small, 2, kernel=(3, 3), same=True)
        beside = net.conv(x, draw(st.integers(1, 4))) if draw(st.booleans()) else x
        parts = [beside, enlarged(net, small, rows, columns, way)]
        x = net.concat(parts if draw(st.booleans()) else parts[::-1])
        if draw(st.booleans()):
            x = net.conv(x, draw(st.integers(1, 4)), kernel=(3, 3), same=True)
    return net.graph([x])


@st.composite
def _pyramids(draw):
    """Feature pyramids of two or three levels; a level's own convolution runs long after the level."""
    net, side, channels = NetBuilder(draw(st.integers(0, 9))), st.integers(4, 9), st.integers(1, 4)
    levels, way = [net.input((1, draw(side), draw(side), 2))], draw(st.sampled_from(WAYS))
    for stride in (1, *draw(st.sampled_from([(2,), (2, 2)]))):
        kernel = draw(st.sampled_from([(1, 1), (3, 3)]))
        x = net.conv(levels[-1], draw(channels), kernel=kernel, stride=(stride, stride), same=True)
        levels.append(x)
    width = draw(channels)
    x = net.conv(x, width)
    for level in reversed(levels[1:-1]):
        own = net.conv(level, width, kernel=draw(st.sampled_from([(1, 1), (3, 3)])), same=True)
        x = net.elementwise(OpKind.ADD, own, enlarged(net, x, *net.shape(own)[1:3], way))
    return net.graph([net.conv(x, 2, kernel=(3, 3), same=True) if draw(st.booleans()) else x])


def _compare(graph, image, in_place):
    space = Space(steps=(1, 2), hand_offs=(1,))
    hold_front(graph, make_target(scratch="3 * cin"), image, in_place, space, BranchTwin)


_images, _in_place = st.sampled_from(["overwritable", "resident", "stream"]), st.sampled_from(IN_PLACE)


@pytest.mark.slow
@settings(_many, max_examples=2)
@given(_modules(), st.sampled_from(["overwritable", "stream"]), st.sampled_from(["rows", "none"]))
def test_the_front_of_small_networks_of_branches_is_exact(graph, image, in_place):
    _compare(graph, image, in_place)


@pytest.mark.slow
@settings(_many, max_examples=14)
@given(_modules() | _hourglasses() | _pyramids(), _images, _in_place)
def test_the_front_of_networks_of_branches_is_exact(graph, image, in_place):
    _compare(graph, image, in_place)


@pytest.mark.parametrize("objective", ["cost", "ram"])
def test_an_operator_of_which_only_padding_is_read_runs_whole(objective: str) -> None:
    """By rows, no step would ask for its input, which then has no place in the arena."""
    net = NetBuilder(1)
    x = net.conv(net.pad(net.input((1, 3, 22, 3)), ((0, 0), (2, 1), (2, 5), (0, 0))), 7, kernel=(4, 4))
    x = net.pool(OpKind.AVERAGE_POOL_2D, net.unary(OpKind.LOGISTIC, x), kernel=(3, 2), stride=(1, 4))
    x = net.pad(net.unary(OpKind.LOGISTIC, x), ((0, 0), (1, 0), (0, 0), (0, 0)))
    x = net.pad(net.conv(x, 5, kernel=(1, 1)), ((0, 0), (0, 0), (2, 2), (0, 0)))
    graph = rewrite(net.graph([net.conv(x, 1, kernel=(1, 1), stride=(3, 3))]))  # reads the first row alone
    options = PlanOptions(objective=objective, image="stream")
    plan = make_plan(graph, make_target(), options, Session())
    (alone,) = (region for region in plan.regions if len(graph.ops) - 2 in region.ops)
    assert tuple(alone.ops) == (len(graph.ops) - 2,)
