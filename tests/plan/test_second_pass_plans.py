"""Plans with second passes: their bytes and their text, the network that they are for, what is refused."""

from __future__ import annotations

import dataclasses

import pytest
from loaded import load_target
from namednets import efficient_net

from buildtool.base.errors import PlanError
from buildtool.graph.rewrite import rewrite
from buildtool.graph.secondpass import with_second_passes
from buildtool.graph.types import SecondPass
from buildtool.plan.check.check import check
from buildtool.plan.codec import from_bytes, to_bytes
from buildtool.plan.locked import Locked, from_text, operators, to_text
from buildtool.plan.schedule.gates import gates
from buildtool.plan.search.front import Settings, front
from buildtool.plan.summary.view import to_json


@pytest.fixture(scope="module")
def planned():
    once = rewrite(efficient_net(24, blocks=2))
    target = load_target("host")
    twice = with_second_passes(once, [among[0] for among in gates(once, [None] * len(once.ops))])
    return once, twice, front(twice, target, Settings()).plan(0), target


def test_a_plan_says_what_runs_again(planned):
    once, twice, plan, target = planned
    assert plan.second_passes == twice.second_passes != ()
    check(plan, twice, target)
    assert plan.f > 1 and plan.macs_layerwise == front(once, target, Settings()).plan(0).macs_layerwise
    shown = to_json(plan, twice)["second_passes"]
    for one in shown:
        kinds = [[twice.ops[p].kind for p in one[key]] for key in ("operators", "first_run")]
        assert kinds[0] == kinds[1] and one["macs"] > 0
        assert one["operators"][-1] < one["reader"]


def test_its_bytes_are_read_in_their_canonical_form_alone(planned):
    plan = planned[2]
    assert from_bytes(to_bytes(plan)) == plan
    with pytest.raises(PlanError, match="canonical"):
        from_bytes(to_bytes(plan).replace(b"\x93\x00\x03\x08", b"\x93\x00\x03\xcc\x08"))


def test_it_can_be_locked(planned):
    once, twice, plan, _ = planned
    locked = from_text(to_text(Locked(plan, "host", operators(twice))))
    assert locked.plan == plan and locked.operators == operators(once)


def test_the_checker_holds_it_against_the_network(planned):
    once, twice, plan, target = planned
    with pytest.raises(PlanError, match="topology"):
        check(plan, once, target)
    moved = tuple(SecondPass(one.first, one.last, one.reader + 1) for one in plan.second_passes)
    for wrong in (moved, ()):
        with pytest.raises(PlanError, match="second passes"):
            check(dataclasses.replace(plan, second_passes=wrong), twice, target)
    with pytest.raises(PlanError, match="MACs"):
        check(dataclasses.replace(plan, macs_layerwise=plan.macs), twice, target)


def test_swish_in_two_operators_plans_as_hard_swish_in_one():
    target = load_target("cortex-m4")
    graphs = [rewrite(efficient_net(24, blocks=2, swish=swish)) for swish in (False, True)]
    forked = rewrite(efficient_net(24, blocks=2, swish=True), lookups=False)
    hard, soft, fork = (
        [p.live_bytes for p in front(g, target, Settings()).points] for g in (*graphs, forked)
    )
    assert hard == soft
    assert min(fork) > min(soft)
