"""Schedules: which steps a region has, in which order."""

import pytest
from plan_nets import plan_steps, residual_net

from buildtool.base.errors import PlanError
from buildtool.plan.types import Group, Region, Step


def test_an_operator_is_one_step_over_its_whole_output():
    assert plan_steps((Region((Group((0,)),)),), residual_net()) == (Step(0, 0, 8, 0, 8),)


def test_rows_a_step_cut_it_and_the_last_step_may_be_shorter():
    steps = plan_steps((Region((Group((0,), rows_per_step=3),)),), residual_net())
    assert steps == (Step(0, 0, 3, 0, 8), Step(0, 3, 6, 0, 8), Step(0, 6, 8, 0, 8))


def test_a_vector_has_one_row():
    assert plan_steps((Region((Group((10,)),)),), residual_net()) == (Step(10, 0, 1, 0, 1),)


def test_regions_follow_each_other():
    regions = (Region((Group((1,)),)), Region((Group((0,), rows_per_step=4),)))
    assert [(s.op, s.y0) for s in plan_steps(regions, residual_net())] == [(1, 0), (0, 0), (0, 4)]


@pytest.mark.parametrize(
    "region",
    [Region(()), Region((Group((0,)), Group((1,)))), Region((Group((0, 1)),)), Region((Group((99,)),))],
)
def test_what_no_scheme_covers_is_refused(region):
    with pytest.raises(PlanError):
        plan_steps((region,), residual_net())
