"""Fronts, limits and refusals over placed arenas, compared with every placed plan of small networks."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
from front_twin import Space, Twin, undominated
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import make_target
from test_front import IMAGES, IN_PLACE, networks, targets
from zeronet import Net

from buildtool.base.errors import PlanError, UsageError
from buildtool.base.modes import Image, InPlace, Objective
from buildtool.base.session import Session
from buildtool.graph.types import Pad
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.choose.choose import choose_plan
from buildtool.plan.choose.fronts import points
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.timeline import Timeline

FEW = Space(steps=(1, 2), hand_offs=(1,))


class Placed(NamedTuple):
    """One sequence of regions: its smallest arena, its work, and the cost of its calls without copies."""

    arena: int
    work: int
    calls: float


def _all_placed(twin, session):
    """Every plan of the space."""
    sequences = [[()]]
    for end in range(1, len(twin.running) + 1):
        made = (
            (before, r) for i in range(end) for before in sequences[i] for r in twin.regions(i, end, False)
        )
        sequences.append([(*before, region) for before, region in made])
    model, options = _model(twin), {"strategy": "test", "in_place": twin.in_place, "session": session}
    plans = []
    for regions in sequences[-1]:
        timeline = Timeline.of(twin.graph, regions, twin.image)
        plan = assemble(timeline, twin.target, twin.kernels, **options)
        plans.append(Placed(plan.arena_bytes, plan.macs, _calls(model, regions, twin.image)))
    return plans


def _calls(model, regions, image):
    """The cost of regions without moves and loads."""
    return sum(model.region(region, image) for region in regions)


def _model(twin):
    """The cost model of the calls of regions."""
    return CostModel(twin.graph, twin.kernels, twin.target.costs)


def _compare(graph, target, image, in_place):
    session = Session()

    def prepared(**limits):
        options = PlanOptions(image=Image(image), in_place=InPlace(in_place), **limits)
        # Views of channels would need less memory than every plan of this space.
        return Prepared("", (graph,), target, options, bounded=False, session=session, varied=False)

    with FEW.searched():
        try:
            front = points(prepared(), None)
        except UsageError:  # several operators read the input image
            return
        twin = Twin(graph, target, image, in_place, FEW)
        every, model = _all_placed(twin, session), _model(twin)
        listed = [(p.plan.arena_bytes, p.plan.macs) for p in front]
        assert listed == undominated((p.arena, p.work) for p in every)
        for point in front:
            alike = (p for p in every if p.work <= point.plan.macs and p.arena <= point.plan.arena_bytes)
            assert _calls(model, point.plan.regions, image) <= min(p.calls for p in alike)
        least = min(p.arena for p in every)
        assert choose_plan(prepared(objective=Objective.RAM))[1].arena_bytes == least
        sizes = {p.arena + more for p in every for more in (-1, 0, 1)}
        for ram in sorted(size for size in sizes if size > 0):
            if ram < least:
                with pytest.raises(PlanError, match=rf"requires {least:,} bytes.* {least - ram:,} too many"):
                    choose_plan(prepared(ram=ram))
                continue
            plan = choose_plan(prepared(ram=ram))[1]
            assert plan.arena_bytes <= ram
            assert _calls(model, plan.regions, image) <= min(p.calls for p in every if p.arena <= ram)
            assert plan.cost <= min(
                (p.plan.cost for p in front if p.plan.arena_bytes <= ram), default=math.inf
            )


@settings(derandomize=True, deadline=None, max_examples=3)
@given(networks(2, 3), targets, st.sampled_from(IMAGES), st.sampled_from(IN_PLACE))
def test_limits_and_fronts_of_small_networks_are_those_of_all_their_placed_plans(
    graph, target, image, in_place
):
    _compare(graph, target, image, in_place)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=5)
@given(networks(3, 3), targets, st.sampled_from(IMAGES), st.sampled_from(IN_PLACE))
def test_limits_and_fronts_of_networks_are_those_of_all_their_placed_plans(graph, target, image, in_place):
    _compare(graph, target, image, in_place)


def _chain():
    """Each output may lie over its input, a little lower. A resident input image cannot move."""
    net = Net((1, 8, 8, 4))
    x = net.inputs[0]
    for _ in range(3):
        x = net.depthwise(x)
    return net.graph(x)


def _left_out():
    """A strip omits the last column of the first convolution, and so needs less scratch."""
    net = Net((1, 6, 6, 2))
    x = net.conv(net.inputs[0], 4)
    return net.graph(net.depthwise(x, (3, 3), (2, 2), Pad()))


def _repeated():
    """The plan with the least memory does more than twice the work."""
    net = Net((1, 9, 9, 2))
    x = net.conv(net.inputs[0], 24, (5, 5), (1, 1), Pad(2, 2, 2, 2))
    return net.graph(net.conv(x, 1, (5, 5), (1, 1), Pad(2, 2, 2, 2)))


@pytest.mark.parametrize(
    ("make", "image"), [(_chain, "resident"), (_left_out, "stream"), (_repeated, "stream")]
)
def test_limits_and_fronts_where_placing_repeating_or_leaving_out_decides(make, image):
    _compare(make(), make_target(scratch="40 * ow"), image, "rows")
