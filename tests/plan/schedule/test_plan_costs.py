"""Costs: calls are counted without their steps, and all sums of costs agree."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import graphs, make_target, plan_steps
from zeronet import Net

from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.choose.limits import Limits
from buildtool.plan.choose.selection import best_plan
from buildtool.plan.schedule.costs import Calls, CostModel, region_calls
from buildtool.plan.search.front import Settings, front
from buildtool.plan.summary.summary import summarize
from buildtool.plan.types import SOURCE
from buildtool.target.costs import Pricer, Rings, part
from buildtool.target.registry import load_target
from buildtool.target.variables import Geometry

ONE = dict.fromkeys(Geometry._fields, 1) | {"pt": 0, "pl": 0}


def windows(calls: Calls) -> Counter[tuple[int, ...]]:
    rows = list(zip(*(a.tolist() for a in calls.rows), strict=True))
    columns = list(zip(*(a.tolist() for a in calls.columns), strict=True))
    return Counter((*row, *column) for row in rows for column in columns)


@pytest.mark.slow
@pytest.mark.parametrize("image", ["overwritable", "stream"])
@settings(derandomize=True, deadline=None, max_examples=30)
@given(graphs(most_ops=6))
def test_the_calls_of_a_region_are_those_of_its_steps(image, graph):
    target = make_target()
    try:
        pareto = front(graph, target, Settings(image=image))
    except Exception as error:  # the input image cannot be streamed
        assert "stream" in str(error)
        return
    for index in range(len(pareto.points)):
        for region in pareto.plan(index).regions:
            counted = region_calls(graph, region, image)
            made: dict[int, Counter[tuple[int, ...]]] = {}
            for s in plan_steps((region,), graph, image):
                made.setdefault(s.op, Counter())[s.y0, s.y1, s.x0, s.x1] += 1
            assert counted.delivered == made.pop(SOURCE, Counter()).total()
            assert {p: windows(calls) for p, calls in counted.operators.items()} == made


@settings(derandomize=True, deadline=None, max_examples=15)
@given(graphs(most_ops=6))
def test_search_plan_and_summary_have_the_same_cost(graph):
    target = make_target()
    pareto = front(graph, target, Settings())
    for index, point in enumerate(pareto.points):
        lean = pareto.lean(point.way)
        searched = sum(
            pareto.space.blocks.block_cost(used.block, used.group)
            for region in point.way.regions
            for used in region.block_forms
        )
        alone = sum(
            pareto.space.elements.cost[region.first] for region in point.way.regions if not region.block_forms
        )
        moved = CostModel(graph, pareto.space.elements.kernels, target.costs).pricer.move
        copies = sum(moved(lean.buffers[move.source].size) for move in lean.moves)
        if all(_all_rows(pareto, region) for region in point.way.regions):
            assert lean.cost == searched + alone + copies
        plan = pareto.plan(index)
        summary = summarize(plan, graph, target.kernels_by_name(plan.kernels), target.costs)
        assert plan.cost == sum(region.work.cost for region in summary.regions)
        for region in summary.regions:
            assert sum(work.cost for work in region.groups) == sum(
                work.cost for _, _, work in region.operators
            )


def _all_rows(found, candidate) -> bool:
    """Whether every block of a region computes all rows of its output."""
    return found.space.boundaries.least_wanted[1:] == tuple(found.space.elements.heights)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(0, 9), st.integers(1, 12), st.sampled_from([0, 2, 3, 5]), st.sampled_from([1, 3]))
def test_columns_in_pieces_cost_what_the_pieces_cost(low, size, ring, kernel):
    """The cost is that of one call per piece, without the cost of calls without columns."""
    sizes = {"iw": 30, "ow": 30, "kw": kernel, "pl": kernel // 2}
    of = Geometry(**(ONE | sizes | {"expanded": 0, "stored": 0}))
    target = make_target(cost="200 + 7 * oh + 9 * ceil_div(ow, 4) + 5 * (ow % 4 > 0) + 3 * columns_inside")
    kernel_, pricer = target.kernels[0], Pricer(target.costs)
    row, found = part(of, 0, 0, 1), part(of, 1, low, low + size, Rings(0, ring))
    cuts = [low, *(x for x in range(low + 1, low + size) if ring and x % ring == 0), low + size]
    ends = list(pairwise(cuts))
    alone = sum(pricer.cost(kernel_, of, row, part(of, 1, a, b)) for a, b in ends)
    assert pricer.cost(kernel_, of, row, found) == alone - (len(ends) - 1) * (207 + pricer.call)
    assert sum(piece.size for piece in found.pieces) == size * (len(ends) > 1)


def test_parts_are_taken_where_they_are_cheaper_than_the_whole():
    """One call per operator is not always cheapest: some kernels compute odd widths slowly."""
    net = Net((1, 9, 12, 3))
    graph = net.graph(net.relu(net.conv(net.inputs[0], 4)))
    plain, odd = make_target(), make_target(cost="100 + 40 * outputs * (oh > 1)")
    limits = Limits(1 << 30)
    assert best_plan(front(graph, plain, Settings()), limits).strategy == "layerwise"
    chosen = best_plan(front(graph, odd, Settings()), limits)
    assert chosen.strategy == "best"
    assert chosen.cost < plan_layerwise(graph, odd).cost


@pytest.mark.parametrize(
    "board", ["host", "cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v", "xcore"]
)
def test_every_family_states_what_is_beside_its_kernels(board):
    assert "0" not in vars(load_target(board).costs).values()
