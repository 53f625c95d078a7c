"""Schedules: which steps a region has, in which order, and what runs row by row at all."""

import pytest
from plan_nets import plan_steps, residual_net
from widecases import conv
from zeronet import SAME_3X3, Net

from buildtool.base.errors import PlanError, UsageError
from buildtool.plan.schedule.receptive import MOST_ROWS, streams
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import Group, Region, Step
from buildtool.target.registry import load_target


@pytest.mark.parametrize(
    ("groups", "steps"),
    [
        ([Group((0,))], [(0, 0, 8, 0, 8)]),  # one step over the whole output
        ([Group((10,))], [(10, 0, 1, 0, 1)]),  # a vector has one row
        # the last step may be shorter
        ([Group((0,), rows_per_step=3)], [(0, 0, 3, 0, 8), (0, 3, 6, 0, 8), (0, 6, 8, 0, 8)]),
        ([Group((1,)), Group((0,), rows_per_step=4)], [(1, 0, 8, 0, 8), (0, 0, 4, 0, 8), (0, 4, 8, 0, 8)]),
    ],
)
def test_regions_of_one_operator_run_one_after_the_other(groups, steps):
    regions = tuple(Region((group,)) for group in groups)
    assert plan_steps(regions, residual_net()) == tuple(Step(*step) for step in steps)


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
        ((1, 2), (1, 1), (4, 4), (1, 0), False),  # of its three rows it reads the one above
        ((1, 2), (1, 1), (1, 1), (1, 0), True),
        ((2, 1), (1, 1), (4, 4), (0, 1), False),
        ((3, 3), (3, 3), (2, 2), (1, 1), True),
        ((3, 3), (2, 2), (3, 3), (2, 2), True),  # the second window is in the image
    ],
)
def test_what_reads_no_row_does_not_stream(image, kernel, stride, around, reads):
    """A window that lies in padding alone: the operator runs as a whole, and not in a region."""
    made = conv(image, 3, 4, kernel, stride=stride, around=around)
    assert streams(made.graph, made.op) is reads


def tall(rows):
    net = Net((1, rows, 1, 1))
    x = net.conv(net.inputs[0], 2, (3, 3), pad=SAME_3X3)
    return net.graph(net.max_pool(x, (2, 1), (2, 1)))


def test_up_to_the_limit_rows_are_made_one_by_one():
    found = front(tall(MOST_ROWS), load_target("cortex-m4"), Settings())
    assert any(region.block_forms for point in found.points for region in point.way.regions)


def test_beyond_the_limit_there_is_one_step_an_operator():
    found = front(tall(MOST_ROWS + 2), load_target("cortex-m4"), Settings())
    assert [[region.block_forms for region in point.way.regions] for point in found.points] == [[(), ()]]
    with pytest.raises(UsageError, match="not read row by row"):
        front(tall(MOST_ROWS + 2), load_target("cortex-m4"), Settings(image="stream"))
