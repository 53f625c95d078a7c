"""Boards that load weights: the least memory counts constants."""

from __future__ import annotations

import functools

import pytest

from buildtool.api import handle
from buildtool.base.modes import Objective
from buildtool.base.session import Session
from buildtool.firmware.planned import plan_model
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble import loads
from buildtool.plan.assemble.arrivals import constants
from buildtool.plan.schedule.timeline import Timeline
from buildtool.target import catalogue

ASKED = Session()  # one search for all requests for a network


@functools.cache
def arena(model="ds_cnn", **options):
    answer = handle({"kind": "plan", "model": model, "board": "xcore", "options": options}, ASKED)
    return answer["arena_bytes"], answer["f"], answer["cost"]


@pytest.mark.slow
def test_the_least_memory_is_refused_where_it_costs_too_much():
    least, _, cost = arena(objective="ram")
    within, _, lower = arena(objective="ram", max_cost=cost - 1)
    assert lower < cost
    assert within >= least


@pytest.mark.parametrize("model", ["ds_cnn", "resnet8"])
def test_the_least_memory_is_what_its_fullest_region_needs(model, monkeypatch):
    """The first goal is exactly that size, so few placements are needed."""
    placed = []

    def counted(*given, **named):
        placed.append(assemble(*given, **named))
        return placed[-1]

    assemble = loads.assemble
    monkeypatch.setattr(loads, "assemble", counted)
    result = plan_model(model, "xcore", PlanOptions(objective=Objective.RAM))
    timeline = Timeline.of(result.graph, result.plan.regions, result.plan.image)
    kernels = catalogue.select_all(result.target, result.graph)
    blocks = constants(result.graph, kernels)
    loading = loads.Loading(timeline, result.target, kernels, blocks, "rows", "best")
    assert result.plan.arena_bytes == loading.least
    assert min(plan.arena_bytes for plan in placed) == loading.least
    assert len(placed) <= 12
    for limit in (0, loading.least - 16, loading.least, loading.least + 512, 2 * loading.least):
        assert loading.plan(limit, 0).arena_bytes >= loading.least
