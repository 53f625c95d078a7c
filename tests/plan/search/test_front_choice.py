"""The choice under limits on memory, work and cost, compared with every sequence of regions.

Within a limit on memory, no more tensors are copied than the limit requires.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from front_twin import COST_UNITS, Space, Twin
from plan_nets import make_target
from zeronet import Net

from buildtool.graph.types import Pad
from buildtool.plan.check.check import check
from buildtool.plan.choose.limits import Limits
from buildtool.plan.choose.selection import best_plan, cheapest
from buildtool.plan.search import blocks
from buildtool.plan.search.front import Settings, front
from buildtool.target import registry

SPACE = Space(steps=(1, 2, 3), hand_offs=(1, 4))
SAME = Pad(1, 1, 1, 1)


def _bottleneck(height, width, wide):
    net = Net((1, height, width, 2))
    x = net.depthwise(net.conv(net.inputs[0], wide))
    return net.graph(net.conv(net.conv(x, 3), 5, (3, 3), (2, 2), SAME))


NETS = {"square": (9, 9, 12), "oblong": (7, 10, 12)}


@pytest.fixture(scope="module", params=sorted(NETS))
def case(request):
    """A graph, its target, its front, and the Pareto front (bytes, work, cost) over all sequences."""
    graph, target = _bottleneck(*NETS[request.param]), make_target()
    twin = Twin(graph, target, "overwritable", "none", SPACE)
    with SPACE.searched():
        yield graph, target, front(graph, target, Settings("none", max_f=6.0)), _sequences(twin)


def _sequences(twin):
    best = [[(0, 0, 0)]]
    for end in range(1, len(twin.running) + 1):
        sequences = set()
        for first in range(end):
            own = _unbeaten(
                {
                    (twin.bytes(r, first), twin.work(r, first), twin.cost(r, first))
                    for r in twin.regions(first, end, False)
                }
            )
            sequences |= {(max(a, x), b + y, c + z) for a, b, c in best[first] for x, y, z in own}
        best.append(_unbeaten(sequences))
    return best[-1]


def _unbeaten(points):
    front_points = []
    for point in sorted(points):
        if not any(all(x <= y for x, y in zip(other, point, strict=True)) for other in front_points):
            front_points.append(point)
    return front_points


def _hull(points, most):
    """The least cost of a vertex of the lower convex hull of cost over work, within a limit on work."""
    vertices = []
    for x, y in sorted(points):
        while len(vertices) > 1 and _above(vertices[-2], vertices[-1], (x, y)):
            vertices.pop()
        vertices.append((x, y))
    return min((y for x, y in vertices if x <= most), default=None)


def _above(a, b, c):
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


@pytest.mark.slow
def test_the_least_cost_under_limits_on_memory_and_work(case):
    _, _, found, sequences = case
    limited = 0
    for ram in sorted({size for size, _, _ in sequences}):
        within = [(work, cost) for size, work, cost in sequences if size <= ram]
        free = min(cost for _, cost in within)
        for most in sorted({work for work, _ in within}):
            limits = Limits(ram, f=most / found.space.tables.before[-1])
            plans = [plan for plan in cheapest(found, limits) if limits.allow(plan)]
            assert plans, (ram, most)
            cost = round(min(plan.cost for plan in plans) * COST_UNITS)
            exact = min(cost for work, cost in within if work <= most)
            assert exact - COST_UNITS <= cost <= _hull(within, most) + COST_UNITS, (ram, most)
            limited += exact > free
    assert limited  # otherwise the limits on work had no effect


@pytest.mark.slow
def test_the_least_memory_under_limits_on_cost_and_work(case):
    graph, target, found, sequences = case
    total = found.space.tables.before[-1]
    for _, work, cost in sequences:
        limits = Limits(1 << 30, f=work / total, cost=cost / COST_UNITS + 1, objective="ram")
        plan = best_plan(found, limits)
        check(plan, graph, target)
        assert limits.allow(plan)
        exact = min(s for s, w, c in sequences if w <= work and c <= cost)
        assert plan.arena_bytes >= exact


def test_the_least_memory_under_a_limit_on_cost_is_exact(case):
    _, _, found, sequences = case
    for _, _, cost in sequences:
        limits = Limits(1 << 30, cost=cost / COST_UNITS + 1, objective="ram")
        plan = best_plan(found, limits)
        assert plan.arena_bytes == min(s for s, _, c in sequences if c <= cost + COST_UNITS)


def test_a_limit_on_cost_below_that_of_all_operators_alone_is_kept_by_what_leaves_rows_out():
    net = Net((1, 12, 12, 2))
    wide = net.conv(net.inputs[0], 16, (3, 3), (1, 1), SAME)
    graph, target = net.graph(net.depthwise(wide, (1, 1), (4, 4), Pad())), make_target()
    pareto = front(graph, target, Settings())
    plan = pareto.plan(0)
    assert plan.cost < pareto.space.cost_tables.before[-1] / COST_UNITS
    limits = Limits(1 << 30, cost=plan.cost, objective="ram")
    assert best_plan(pareto, limits).arena_bytes == plan.arena_bytes


def test_a_plan_of_a_tied_way_is_not_left_out(monkeypatch):
    """Here steps of four rows do the same work as steps of three, and let more of the output lie over the
    input: the point with three is placed below its live bytes. (In cycles, three rows would cost less.)
    Groups of bands, which are smaller still, and longer steps at the edges are left out.
    """
    monkeypatch.setattr(blocks, "bands_objection", lambda graph, ops: "left out")
    monkeypatch.setattr(blocks, "edge_rows", lambda axis, height, size: (0, 0))
    net = Net((1, 9, 9, 8))
    graph = net.graph(net.depthwise(net.conv(net.inputs[0], 40), (3, 3), (1, 1), SAME))
    target = registry.make_target(replace(registry.load_board("cortex-m4"), pipeline=None))
    with Space().searched():  # `case` may have another one
        pareto = front(graph, target, Settings())
        plan = pareto.plan(2)
    check(plan, graph, target)
    steps = [group.rows_per_step for region in plan.regions for group in region.groups]
    assert plan.arena_bytes < pareto.points[2].live_bytes and steps == [4]
    assert pareto.may_fit(2, plan.arena_bytes) and not pareto.may_fit(2, plan.arena_bytes - 1)


# ---- copies of tensors ----------------------------------------------------------------------------------
