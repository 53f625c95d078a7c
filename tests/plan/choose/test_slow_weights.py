"""Boards that load weights: the least memory counts constants."""

from __future__ import annotations

import functools

import pytest
from loaded import load_target

from buildtool.api import handle
from buildtool.base.modes import Objective
from buildtool.base.session import Session
from buildtool.firmware.planned import plan_model
from buildtool.graph.types import OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble import loads
from buildtool.plan.assemble.arrivals import constants
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.schedule.timeline import Timeline
from buildtool.target import catalogue
from buildtool.zoo.drawn import NetBuilder

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


@pytest.mark.parametrize(
    ("filters", "outputs", "most"), [((32, 64), 128, 62_544), ((16, 32), 32, 35_840)], ids=["wide", "small"]
)
def test_dense_layers_with_long_inputs_come_in_narrow_slices(filters, outputs, most):
    """XMOS's compiler, which loads four outputs at a time, takes 358,912 and 180,816 bytes here."""
    net, target = NetBuilder(1), load_target("xcore")
    x = net.input((1, 96, 96, 3))
    for channels in filters:
        x = net.conv(x, channels, kernel=(3, 3))
        x = net.pool(OpKind.MAX_POOL_2D, x, kernel=(2, 2), stride=(2, 2))
    graph = net.graph([net.dense(net.dense(net.flatten(x), outputs), 10)])
    plan = make_plan(graph, target, PlanOptions(objective=Objective.RAM), Session())
    check(plan, graph, target)
    assert plan.arena_bytes <= most
    assert any(0 < load.channels < 4 for load in plan.loads)
