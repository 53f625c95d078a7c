"""The front is exact: no plan in its space beats a point in memory and work."""

from __future__ import annotations

import contextlib

import pytest
from front_twin import ENLARGING, Space, hold_front
from hypothesis import given, settings
from hypothesis import strategies as st
from namednets import u_net
from plan_nets import make_target
from zeronet import Net

from buildtool.base.errors import UsageError
from buildtool.graph.macs import total_macs
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import ConvAttrs, OpKind, Pad, ResizeAttrs
from buildtool.plan.assemble.layerwise import plan as layerwise
from buildtool.plan.check.check import check
from buildtool.plan.search.front import Settings, front
from buildtool.target.costs import COST_UNITS
from buildtool.target.registry import load_target

IMAGES = ("overwritable", "resident", "stream")
IN_PLACE = ("rows", "rows", "elementwise", "none")
FEWER = Space(steps=(1, 2, 3), hand_offs=(1, 4))  # fewer forms of groups, for networks with more operators


@st.composite
def networks(draw, least, most, enlarging=False):
    """Chains of convolutions, poolings, concatenations, slices and residuals on small images.

    Residuals may be nested, and may have fewer channels than their sum. Some networks end with a mean and a
    dense layer or with planes, some have a second output. `enlarging`: some operators enlarge their image.
    """
    side = st.integers(2, 9)
    net = Net((1, draw(side), draw(side), draw(st.integers(1, 6))))
    tensors = [net.inputs[0]]
    count = draw(st.integers(least, most))
    while len(net.ops) < count:
        x = tensors[-1]
        others = [t for t in tensors[:-1] if net.shape(t) == net.shape(x)]
        beside = [t for t in tensors[:-1] if net.shape(t)[:3] == net.shape(x)[:3]]
        kinds = ["conv", "conv", "depthwise", "depthwise", "pool", "relu"]
        narrower = [t for t in beside if net.shape(t)[3] < net.shape(x)[3]]
        kinds += [*(["add"] * 3 if others else []), *(["concat"] if beside else [])]
        kinds += ["enlarge"] * 4 if enlarging else []
        kinds += [*(["widened"] * 2 if narrower else []), *(["slice"] if net.shape(x)[3] > 1 else [])]
        kind = draw(st.sampled_from(kinds))
        if kind == "enlarge":
            tensors.append(_enlarged(draw, net, x, tensors))
        elif kind in ("conv", "depthwise"):
            tensors.append(_convolution(draw, net, x, kind))
        elif kind == "add":
            tensors.append(net.add(x, draw(st.sampled_from(others))))
        elif kind == "concat":
            tensors.append(net.concat([x, draw(st.sampled_from(beside))]))
        elif kind == "widened":
            y = draw(st.sampled_from(narrower))
            before = draw(st.integers(0, net.shape(x)[3] - net.shape(y)[3]))
            tensors.append(net.widened(x, y, before))
        elif kind == "slice":
            first = draw(st.integers(0, net.shape(x)[3] - 1))
            tensors.append(net.slice(x, first, draw(st.integers(1, net.shape(x)[3] - first))))
        elif kind == "pool" and min(net.shape(x)[1:3]) > 1:
            tensors.append(net.max_pool(x))
        else:
            tensors.append(net.relu(x))
    tail = draw(st.sampled_from(["", "", "mean", "dense", "planes"]))
    last = net.mean(tensors[-1]) if tail in ("mean", "dense") else tensors[-1]
    last = net.dense(last, 3) if tail == "dense" else net.planes(last) if tail == "planes" else last
    also = draw(st.sets(st.sampled_from(tensors[1:]), max_size=1)) if draw(st.integers(0, 7)) == 0 else set()
    return net.graph(last, *sorted(also - {last}))


def _enlarged(draw, net, x, made):
    """An operator that resizes the image, mostly to the size of an earlier tensor."""
    batch, height, width, channels = net.shape(x)
    size = draw(
        st.sampled_from([*(net.shape(t)[1:3] for t in made), (2 * height, 2 * width), (height + 1, 3)])
    )
    kind = draw(st.sampled_from(ENLARGING))
    if kind is not OpKind.TRANSPOSE_CONV:
        attrs = ResizeAttrs(*draw(st.sampled_from([(False, False), (True, False), (False, True)])))
        return net.add_op(kind, [x], attrs, (batch, *size, channels))
    kernel, stride = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    over = [(n - 1) * stride + kernel - m for n, m in zip((height, width), size, strict=True)]
    pad = [min(kernel - 1, max(0, n) // 2) for n in over]
    weights = net.constant((draw(st.integers(1, 6)), kernel, kernel, channels))
    shape = (batch, *size, net.shape(weights)[0])
    attrs = ConvAttrs((stride, stride), (1, 1), Pad(pad[0], 0, pad[1], 0))
    return net.add_op(kind, [x, weights], attrs, shape)


def _convolution(draw, net, x, kind):
    _, height, width, _ = net.shape(x)
    kernel = draw(st.sampled_from([1, 3, 3, 5]))
    stride = draw(st.sampled_from([1, 1, 1, 2]))
    pads = [Pad(*[kernel // 2] * 4), Pad(0, kernel - 1, 0, kernel - 1), Pad()]
    wide = Pad(
        *draw(st.lists(st.integers(0, kernel + 1), min_size=4, max_size=4))
    )  # some windows read only it
    pad = draw(st.sampled_from([*pads, *pads, wide]))
    if kernel > min(height + pad.top + pad.bottom, width + pad.left + pad.right):
        pad = Pad(*[kernel // 2] * 4)
        kernel = kernel if kernel <= 2 * (kernel // 2) + min(height, width) else 1
    window = ((kernel, kernel), (stride, stride), pad)
    return net.conv(x, draw(st.integers(1, 12)), *window) if kind == "conv" else net.depthwise(x, *window)


targets = st.builds(
    make_target, scratch=st.sampled_from(["0", "5 * cin", "40 * ow"]), alignment=st.sampled_from([1, 4, 16])
)


def _compare(graph, target, image, in_place, space):
    with contextlib.suppress(UsageError):  # an image that several operators read
        hold_front(graph, target, image, in_place, space)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=14)
@given(networks(2, 3), targets, st.sampled_from(IMAGES), st.sampled_from(IN_PLACE))
def test_the_front_of_small_networks_is_exact(graph, target, image, in_place):
    _compare(graph, target, image, in_place, Space())


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=6)
@given(networks(2, 4, enlarging=True), targets, st.sampled_from(IMAGES), st.sampled_from(IN_PLACE))
def test_the_front_of_networks_that_enlarge_is_exact(graph, target, image, in_place):
    _compare(graph, target, image, in_place, FEWER)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=14)
@given(networks(3, 5), targets, st.sampled_from(IMAGES), st.sampled_from(IN_PLACE))
def test_the_front_of_networks_is_exact(graph, target, image, in_place):
    _compare(graph, target, image, in_place, FEWER)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=4)
@given(networks(6, 7), targets, st.sampled_from(IMAGES), st.sampled_from(IN_PLACE))
def test_the_front_of_longer_networks_is_exact(graph, target, image, in_place):
    _compare(graph, target, image, in_place, Space(steps=(1, 2), hand_offs=(1,)))


def _compare_falling(graph, target, image="overwritable", in_place="rows"):
    found = front(graph, target, Settings(in_place, image))
    sizes = sorted({point.live_bytes for point in found.points})
    for limit in (size + more for size in sizes for more in (-1, 0, 5)):
        numbers = (n for n in reversed(range(len(sizes))) if found.may_fit(n, limit))
        expected = [(found.points[n].live_bytes, found.points[n].way.weight) for n in numbers]
        assert [(way.bytes, way.weight) for way in found.fitting(limit)] == expected


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=100)
@given(networks(3, 9), targets, st.sampled_from(IMAGES), st.sampled_from(IN_PLACE))
def test_the_search_from_a_limit_downwards_finds_the_points_that_may_fit(graph, target, image, in_place):
    with contextlib.suppress(UsageError):  # an image that several operators read
        _compare_falling(graph, target, image, in_place)


def test_the_search_from_a_limit_downwards_begins_where_outputs_may_lie_over_other_tensors():
    """The ADD's output may lie over the pooling's, which dies there but does not feed the ADD's region.

    So the point of 16 live bytes may fit into 15.
    """
    net = Net((1, 2, 4, 1))
    pooled = net.max_pool(net.inputs[0])
    point = ((1, 1), (1, 1), Pad())
    wide = net.conv(net.depthwise(pooled, *point), 4, *point)
    graph = net.graph(net.depthwise(net.widened(wide, pooled, 0), *point))
    _compare_falling(graph, make_target(alignment=1))


@settings(derandomize=True, deadline=None, max_examples=15)
@given(networks(2, 6), targets, st.sampled_from(IN_PLACE))
def test_a_block_s_cheapest_form_is_the_same_by_the_tables(graph, target, in_place):
    space = front(graph, target, Settings(in_place)).space
    assert space.cost_tables.starts[-1] >= 0  # all rows are known now
    for block in (block for last in range(space.elements.count) for block in space.blocks.ending_at(last)):
        _check_cheapest(space, block)


def test_a_dearer_form_is_not_the_cheapest_because_it_is_done_earlier_with_its_input():
    """Whole rows need more memory, cost more, and are the only form with no late operator."""
    net = Net((1, 4, 9, 2))
    graph = net.graph(net.conv(net.conv(net.inputs[0], 4), 8))
    target = make_target(cost="20 + 1000 * (ow > 1)")
    space = front(graph, target, Settings()).space
    forms = {block: space.blocks.forms(block) for block in space.blocks.ending_at(1) if not block.bands}
    costs = [[space.blocks.block_cost(block, form.group) for form in own] for block, own in forms.items()]
    assert any(min(own) < own[-1] for own in costs)
    for tables_known in (False, True):
        assert not tables_known or space.cost_tables.starts[-1]
        for block in forms:
            _check_cheapest(space, block)


def _check_cheapest(space, block):
    """Holds the cheapest form within each size of window against all of the block's groups."""
    blocks = space.blocks
    every = [
        (blocks._form(block, group).window, blocks.block_cost(block, group)) for group in blocks.groups(block)
    ]
    for window, _ in every:
        for most in (window - 1, window):
            found = space.cost_tables.cheapest(block, most)
            assert found == blocks.cheapest(block, most)
            least = min((cost for size, cost in every if size <= most), default=None)
            cost = found and blocks.block_cost(block, found.group)
            assert (found is None) == (least is None)
            assert found is None or cost <= least + 1 / COST_UNITS


@pytest.mark.parametrize("alignment", [1, 16])
def test_parts_of_a_concatenation_may_lie_in_it(alignment):
    net = Net((1, 6, 6, 2))
    wide = net.conv(net.inputs[0], 24)
    graph = net.graph(net.concat([net.conv(wide, 9), wide]))
    _compare(graph, make_target(alignment=alignment), "overwritable", "rows", FEWER)


@pytest.mark.parametrize("way", ["nearest", "half", "transpose"])
def test_a_u_net_streams_with_nothing_computed_twice(way):
    """Its 64x64 tensors are rings, also the skips of both levels. Layer by layer it needs 131,072 bytes
    (98,304 with transpose convolutions, whose outputs have fewer channels)."""
    graph = rewrite(u_net(64, 8, 2, way))
    target = load_target("cortex-m4")
    pareto = front(graph, target, Settings())
    plan = pareto.plan(next(i for i, point in enumerate(pareto.points) if point.f <= 1.0))
    check(plan, graph, target)
    assert plan.f == 1.0 and plan.macs == total_macs(graph)
    assert len(plan.regions) == 1
    assert plan.arena_bytes < 41_000 < layerwise(graph, target).arena_bytes / 2
