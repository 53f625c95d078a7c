"""Limits on plans, and the settings that would allow a plan beyond them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from buildtool.firmware.planned import plan_model
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.limits import Limits
from buildtool.plan.types import Plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_model("ds_cnn", "cortex-m4", PlanOptions(objective="ram", max_f=1.1)).plan


def test_a_plan_keeps_the_limits_that_are_its_own_figures(plan: Plan) -> None:
    own = Limits(plan.arena_bytes, round(plan.f, 12), plan.cost)
    assert own.allow(plan) and own.first_missed(plan) == ""
    assert Limits(float("inf")).allow(plan)


@pytest.mark.parametrize(
    ("changed", "option"), [({"ram": -1}, "ram"), ({"f": -1e-3}, "max_f"), ({"cost": -1}, "max_cost")]
)
def test_of_a_limit_that_is_missed_the_option_is_named_and_a_setting_that_does(
    plan: Plan, changed: dict[str, float], option: str
) -> None:
    own = Limits(plan.arena_bytes, plan.f, plan.cost)
    less = replace(own, **{name: getattr(own, name) + by for name, by in changed.items()})
    assert not less.allow(plan)
    assert less.allow_work(plan) == (option == "ram")
    assert less.first_missed(plan) == option
    settings = dict(less.wider(plan).settings)
    assert settings.keys() == {option}
    options = replace(PlanOptions(ram=plan.arena_bytes, max_f=plan.f, max_cost=plan.cost), **settings)
    assert Limits(options.ram, options.max_f, options.max_cost).allow(plan)


def test_the_first_limit_that_is_missed_is_named(plan: Plan) -> None:
    assert Limits(plan.arena_bytes - 1, 0.5, 1.0).first_missed(plan) == "ram"
    assert Limits(plan.arena_bytes, 0.5, 1.0).first_missed(plan) == "max_f"


def test_a_limit_of_milliseconds_is_widened_in_milliseconds(plan: Plan) -> None:
    limits = Limits(plan.arena_bytes, None, 1.0, in_ms=1e-3)
    ((name, value),) = limits.wider(plan).settings
    assert name == "max_ms"
    assert value >= plan.cost * 1e-3
