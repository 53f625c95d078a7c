"""Fusions in slices run by rows: the memory of their plans, and that they read only present data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from namednets import split_network
from plan_nets import make_target

from buildtool.base.errors import PlanError
from buildtool.base.modes import Objective
from buildtool.graph.fusions import fusions, with_sliced_fusions
from buildtool.options.values import PlanOptions
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import choose_plan
from buildtool.plan.choose.fronts import points
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import Scheme


def _prepared(graph, **options):
    graphs = (graph, with_sliced_fusions(graph))
    return Prepared("", graphs, make_target(), PlanOptions(**options), bounded=False, sliced=True)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("image", ["overwritable", "resident"])
def test_every_point_is_what_its_plan_comes_to(count, image):
    graph, target = with_sliced_fusions(split_network(count)), make_target(scratch="5 * cin")
    pareto = front(graph, target, Settings(image=image))
    assert pareto.factor == 1.0
    for index, point in enumerate(pareto.points):
        plan = pareto.plan(index)
        check(plan, graph, target)
        assert plan.macs == point.work
        assert plan.arena_bound_bytes <= point.live_bytes
        for one in fusions(graph):
            (region,) = (r for r in plan.regions if one.first in r.ops)
            assert region.ops == tuple(range(one.first, one.last + 1))
            assert [group.scheme for group in region.groups] == [Scheme.BRANCHES]


@pytest.mark.parametrize("residual", [False, True])
def test_branches_ends_and_one_row_are_all_that_a_fusion_needs(residual):
    """Otherwise the map before a block and the ends of its branches are in memory at the same time."""
    graph = split_network(4, residual=residual)
    whole = 16 * 16 * 16
    least = [
        front(one, make_target(), Settings()).points[0].live_bytes
        for one in (graph, with_sliced_fusions(graph))
    ]
    assert least[0] > 1.5 * whole
    assert least[1] < 1.4 * whole


@pytest.mark.slow
def test_both_forms_of_a_network_are_planned_and_the_better_one_is_taken():
    prepared = _prepared(split_network(3, channels=12), objective=Objective.RAM)
    graph, plan = choose_plan(prepared)
    assert graph is prepared.graphs[1]
    listed = points(prepared, None)
    alone = points(replace(prepared, graphs=prepared.unsliced, sliced=False), None)
    assert listed[0].graph is graph
    assert plan.arena_bytes <= listed[0].plan.arena_bytes < alone[0].plan.arena_bytes


@pytest.mark.slow
def test_a_point_that_only_the_other_form_has_is_listed():
    """If a network's fusions are far from its peak, both forms have points."""
    prepared = _prepared(split_network(2))
    listed = points(prepared, None)
    for graph in prepared.graphs:
        for point in points(replace(prepared, graphs=(graph,), sliced=False), None):
            beaten = [
                one
                for one in listed
                if one.plan.arena_bytes <= point.plan.arena_bytes and one.plan.macs <= point.plan.macs
            ]
            assert beaten


def _plan_of(count=3):
    graph, target = with_sliced_fusions(split_network(count, blocks=1, channels=12)), make_target()
    return graph, target, front(graph, target, Settings()).plan(0)


def test_the_checker_sees_a_slice_in_the_place_of_another_branches_end():
    graph, target, plan = _plan_of()
    (one,) = fusions(graph)
    at = {b.tensors[0]: i for i, b in enumerate(plan.buffers) if b.tensors and not b.rows}
    first, second = (at[t] for t in one.results[:2])
    buffers = list(plan.buffers)
    buffers[first] = replace(plan.buffers[first], offset=plan.buffers[second].offset)
    buffers[second] = replace(plan.buffers[second], offset=plan.buffers[first].offset)
    with pytest.raises(PlanError):
        check(replace(plan, buffers=tuple(buffers)), graph, target)
