"""The front's first point is the plan of `plan --objective ram`, also with a limit on work."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from drawnnets import branching_networks
from hypothesis import HealthCheck, given, settings

from buildtool.base.modes import Objective
from buildtool.base.session import Session
from buildtool.firmware.planned import prepare
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions
from buildtool.plan.choose import choose
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.models import Model, Network, load_network
from buildtool.target.registry import load_target


def least(prepared: Prepared) -> int:
    """The arena of the plan with the least memory."""
    options = replace(prepared.options, objective=Objective.RAM)
    return choose.choose(replace(prepared, options=options)).plan.arena_bytes


def hold_against_the_front(graph: Graph) -> None:
    network = Network(Model("drawn", "drawn", b""), graph, rewrite(graph))
    for options in (PlanOptions(), PlanOptions(max_f=1.1)):
        prepared = prepare(network, load_target("cortex-m4"), options, Session())
        points, _ = choose.front(prepared, None)
        assert points[0].plan.arena_bytes == least(prepared)
        assert all(one.plan.macs > other.plan.macs for one, other in pairwise(points))


@pytest.mark.slow
@given(branching_networks(modules=2))
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_least_of_the_front_is_the_plan_of_least_memory(graph: Graph) -> None:
    hold_against_the_front(graph)


def test_the_front_has_the_plan_of_least_memory_that_no_placed_way_reaches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If every way needs more than its live bytes when placed, the planner searches plans in between."""
    session = Session()
    prepared = prepare(load_network("ds_cnn", session), load_target("cortex-m4"), PlanOptions(), session)
    every = choose.points(prepared, None)
    monkeypatch.setattr(choose, "points", lambda *_: every[1:])
    assert len(every) > 1
    assert [one.plan for one in choose.front(prepared, None)[0]] == [one.plan for one in every]
