"""The steps of regions and their order, which operators run row by row, and the facts that timelines give."""

from __future__ import annotations

import plan_nets
import pytest
import schedule_twin
from drawnnets import branching_networks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_nets import any_groups, assembled, make_target, plan_steps, residual_net, residual_nets
from widecases import conv
from zeronet import SAME_3X3, Net

from buildtool.base.errors import PlanError, UsageError
from buildtool.graph.types import Pad
from buildtool.plan.schedule.advances import Walk
from buildtool.plan.schedule.overlap import region_distance
from buildtool.plan.schedule.receptive import MOST_ROWS, streams
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import SOURCE, Group, Region, Scheme, Step
from buildtool.target.registry import load_target


def _same(graph, regions, image):
    """The steps of all regions, asserted to be the twin's."""
    for region in regions:
        assert list(plan_steps((region,), graph, image)) == schedule_twin.steps(region, graph, image)
    return [step for region in regions for step in schedule_twin.steps(region, graph, image)]


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=24)
@given(st.data(), st.one_of(residual_nets(), plan_nets.graphs()))
def test_steps_are_those_of_rows_pulled_one_by_one(data, graph):
    plan, _ = assembled(graph, make_target(), any_groups(data.draw, graph))
    steps = _same(graph, plan.regions, plan.image)
    timeline = Timeline.of(graph, plan.regions, plan.image)
    assert [timeline.step(number) for number in range(timeline.starts[-1])] == steps
    schedule_twin.describes(timeline, steps)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.data(), residual_nets())
def test_deliveries_of_a_streamed_image_are_steps(data, graph):
    plan, _ = assembled(graph, make_target(), any_groups(data.draw, graph), image="stream")
    steps = _same(graph, plan.regions, "stream")
    assert sum(step.op == SOURCE for step in steps) <= graph.tensors[graph.inputs[0]].nhwc[1]
    schedule_twin.describes(Timeline.of(graph, plan.regions, "stream"), steps)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))
@given(branching_networks())
def test_branches_advance_as_they_do_one_by_one(graph):
    pareto = front(graph, make_target(), Settings())
    for index in {0, len(pareto.points) // 2}:
        _same(graph, pareto.plan(index).regions, "overwritable")


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.data(), residual_nets())
def test_a_regions_output_may_cover_what_no_later_step_reads(data, graph):
    plan, _ = assembled(graph, make_target(), any_groups(data.draw, graph))
    for run in Timeline.of(graph, plan.regions, plan.image).runs:
        ops = run.region.ops
        steps = schedule_twin.steps(run.region, graph)
        result = graph.ops[ops[-1]].outputs[0]
        for source in {t for p in ops for t in graph.ops[p].inputs if not graph.tensors[t].is_constant}:
            expected = schedule_twin.distance(graph, steps, source, result)
            assert region_distance(graph, run.steps, source, result, ops) == expected


@pytest.mark.parametrize(
    "region",
    [Region(()), Region((Group((0,)), Group((1,)))), Region((Group((0, 1)),)), Region((Group((99,)),))],
)
def test_what_no_scheme_covers_is_refused(region):
    with pytest.raises(PlanError):
        plan_steps((region,), residual_net())


@pytest.mark.parametrize(
    ("image", "kernel", "stride", "around", "reads"),
    [
        ((1, 2), (1, 1), (4, 4), (1, 0), False),  # it reads only the upper one of its three rows
        ((1, 2), (1, 1), (1, 1), (1, 0), True),
        ((2, 1), (1, 1), (4, 4), (0, 1), False),
        ((3, 3), (3, 3), (2, 2), (1, 1), True),
        ((3, 3), (2, 2), (3, 3), (2, 2), True),  # the second window lies in the image
    ],
)
def test_what_reads_no_row_does_not_stream(image, kernel, stride, around, reads):
    """If a window lies entirely in padding, the operator runs whole, not in a streamed region."""
    made = conv(image, 3, 4, kernel, stride=stride, around=around)
    assert streams(made.graph, made.op) is reads


def tall(rows):
    net = Net((1, rows, 1, 1))
    x = net.conv(net.inputs[0], 2, (3, 3), pad=SAME_3X3)
    return net.graph(net.max_pool(x, (2, 1), (2, 1)))


def run_counted(region, graph):
    """The region's run with a streamed image, and how many times a group was asked for rows."""
    asked, pull = [], Walk._pull
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Walk, "_pull", lambda walk, *of: (asked.append(of), pull(walk, *of)))
        return Timeline.of(graph, (region,), "stream").runs[0], len(asked)


@st.composite
def signal_regions(draw):
    """A region of two groups or one, and a function that makes its network for some samples."""
    count = draw(st.integers(2, 5))
    windows = [(draw(st.integers(1, 7)), draw(st.integers(1, 3))) for _ in range(count)]
    pads = [Pad(draw(st.integers(0, k - 1)), draw(st.integers(0, k - 1))) for k, _ in windows]
    cut, step = draw(st.integers(0, count - 1)), draw(st.integers(1, 4))
    schemes = [(draw(st.sampled_from([(Scheme.HALO, 0), (Scheme.EDGES, 1)]))) for _ in range(2)]
    both = zip((range(cut), range(cut, count)), schemes, strict=True)
    groups = (Group(tuple(ops), scheme, step, hand_off) for ops, (scheme, hand_off) in both if ops)
    groups = (g if len(g.ops) > 1 else Group(g.ops, Scheme.OPERATOR, step) for g in groups)

    def network(samples):
        net = Net((1, samples, 1, 1))
        x = net.inputs[0]
        for (kernel, stride), pad in zip(windows, pads, strict=True):
            x = net.conv(x, 1, (kernel, 1), (stride, 1), pad)
        return net.graph(x)

    return Region(tuple(groups)), network


@st.composite
def forked_regions(draw):
    """The same with two branches, and in some cases a convolution before or behind them."""
    strides = [draw(st.integers(1, 2)) for _ in range(3)]
    halves = [draw(st.integers(0, 4)) for _ in range(5)]
    before, behind = draw(st.booleans()), draw(st.booleans())

    def network(samples):
        net = Net((1, samples, 1, 1))

        def conv(x, half, stride=1):
            return net.conv(x, 1, (2 * half + 1, 1), (stride, 1), Pad(half, half))

        x = conv(net.inputs[0], halves[0], strides[0]) if before else net.inputs[0]
        long = conv(conv(x, halves[1], strides[1]), halves[2], strides[2])
        short = conv(x, halves[3], strides[1] * strides[2])
        return net.graph(conv(net.add(long, short), halves[4]))

    places = [[0] * before, range(before, before + 4), [before + 4] * behind]
    schemes = (Scheme.OPERATOR, Scheme.BRANCHES, Scheme.OPERATOR)
    groups = zip(places, schemes, strict=True)
    steps = [draw(st.integers(1, 3)) for _ in places]
    made = (Group(tuple(ops), scheme, step) for (ops, scheme), step in zip(groups, steps, strict=True) if ops)
    return Region(tuple(made)), network


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.one_of(signal_regions(), forked_regions()), st.integers(600, 900))
def test_advances_in_the_middle_of_a_signal_are_repeated(drawn, samples):
    """The steps are the twin's. A signal that is ten times as long takes no more rounds."""
    region, network = drawn
    graph = network(samples)
    made, asked = run_counted(region, graph)
    assert [Step(*line) for line in made.steps.tolist()] == schedule_twin.steps(region, graph, "stream")
    assert run_counted(region, network(10 * samples))[1] < asked + 40 < samples


def test_up_to_the_limit_rows_are_made_one_by_one():
    pareto = front(tall(MOST_ROWS), load_target("cortex-m4"), Settings())
    assert any(region.block_forms for point in pareto.points for region in point.way.regions)


def test_beyond_the_limit_there_is_one_step_an_operator():
    pareto = front(tall(MOST_ROWS + 2), load_target("cortex-m4"), Settings())
    assert [[region.block_forms for region in point.way.regions] for point in pareto.points] == [[(), ()]]
    with pytest.raises(UsageError, match="reads more than 1048576 rows"):
        front(tall(MOST_ROWS + 2), load_target("cortex-m4"), Settings(image="stream"))
