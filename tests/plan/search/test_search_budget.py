"""A search that its budget ends returns ways that run, and an upper bound of their optimality gap.

The budget is enough for networks with branches.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from namednets import blazeface, u_net
from plan_nets import make_target
from test_front import IMAGES, IN_PLACE, networks, targets
from zeronet import Net

from buildtool.api import handle
from buildtool.base.errors import UsageError
from buildtool.base.modes import Objective
from buildtool.base.session import Session
from buildtool.fronts.texts import front as front_report
from buildtool.fronts.texts import plan as plan_report
from buildtool.graph import order
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Pad
from buildtool.options.values import PlanOptions
from buildtool.plan.check.check import check
from buildtool.plan.choose import problem
from buildtool.plan.choose.choose import choose
from buildtool.plan.choose.limits import Limits
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.choose.selection import best_plan, search_factor
from buildtool.plan.models import load_network
from buildtool.plan.search import blocks, paths
from buildtool.plan.search.front import Settings, front
from buildtool.plan.search.paths import MOST_LABELS, Search, over_bound


def dense(layers):
    """Layers of a 1x1 and a 3x3 convolution, each joined to all before it, with a pooling in the middle."""
    net = Net((1, 16, 16, 3))
    x = net.conv(net.inputs[0], 8, (3, 3), pad=Pad(1, 1, 1, 1))
    for layer in range(layers):
        x = net.max_pool(x) if 2 * layer == layers else x
        x = net.concat([x, net.conv(net.conv(x, 16), 4, (3, 3), pad=Pad(1, 1, 1, 1))])
    return net.graph(net.mean(x))


NETWORKS = {
    "dense": lambda: dense(8),
    "detector": lambda: rewrite(blazeface()),
    "nearest": lambda: rewrite(u_net(64, 8, 2, "nearest")),
    "transpose": lambda: rewrite(u_net(64, 8, 2, "transpose")),
    "resnet8": lambda: load_network("resnet8", Session()).graph,
}


@pytest.fixture
def one_label(monkeypatch):
    """Once the budget is spent, each search for a cut ends after its first label."""
    monkeypatch.setattr(paths, "LABELS_BEYOND", 1)


def _front(graph, target, options):
    try:
        return front(graph, target, options)
    except UsageError:  # several operators read the input image
        return None


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=12)
@given(networks(3, 12), targets, st.sampled_from(IMAGES), st.sampled_from(IN_PLACE), st.sampled_from([1, 30]))
def test_a_front_misses_by_no_more_than_its_factor(graph, target, image, in_place, most_labels):
    options = Settings(in_place, image)
    exact, ended = (_front(graph, target, o) for o in (options, replace(options, most_labels=most_labels)))
    if exact is None:
        return
    whole = [(p.live_bytes, p.work) for p in exact.points]
    points = [(p.live_bytes, p.work) for p in ended.points]
    assert exact.factor == 1 and ended.factor >= 1
    assert all(a < c and b > d for (a, b), (c, d) in pairwise(points))
    for size, work in points:
        assert any(b <= size and w <= work for b, w in whole)
    for size, work in whole:
        assert any(b <= ended.factor * size and w <= ended.factor * work for b, w in points)
    if ended.factor == 1:
        assert points == whole
    for size, _ in whole:
        _cost_misses_by_no_more(exact, size, most_labels)


def _cost_misses_by_no_more(found, most_bytes, most_labels):
    least = Search(found.space.cost_tables).least(most_bytes)
    search = Search(found.space.cost_tables, most_labels=most_labels)
    way = search.least(most_bytes)
    if way is None:
        assert not search.exact
        return
    over = over_bound(found.space.cost_tables, way.weight, most_bytes)
    assert least.weight <= way.weight <= over * least.weight
    assert way.bytes <= most_bytes


def _chain():
    net = Net((1, 24, 24, 3))
    x = net.conv(net.inputs[0], 8, (3, 3), (2, 2))
    for _ in range(6):
        x = net.depthwise(net.conv(x, 16))
    return net.graph(net.dense(net.mean(x), 4))


@pytest.mark.parametrize("image", IMAGES)
def test_points_of_an_ended_search_are_plans(image, one_label):
    graph, target = _chain(), make_target()
    pareto = front(graph, target, Settings(image=image, most_labels=1))
    assert pareto.factor > 1
    for index, point in enumerate(pareto.points):
        plan = pareto.plan(index)
        check(plan, graph, target)
        assert plan.macs == point.work


def test_a_plan_of_an_ended_search_says_how_far_off_it_may_be(one_label):
    graph, target, session = dense(5), make_target(), Session()
    options = Settings(image="stream", most_labels=1)
    pareto = front(graph, target, options, session)
    assert search_factor(pareto, Limits(2_000, objective=Objective.RAM)) == pareto.factor > 1
    missed = []
    for point in pareto.points[::2]:
        limits = Limits(point.live_bytes + 200)
        check(best_plan(pareto, limits), graph, target)
        assert search_factor(front(graph, target, Settings(image="stream")), limits) == 1
        missed.append(search_factor(pareto, limits))
    assert max(missed) > 1


def test_how_far_off_a_plan_may_be_does_not_depend_on_what_was_asked_before(monkeypatch, one_label):
    own = problem.settings
    monkeypatch.setattr(problem, "settings", lambda *a: replace(own(*a), most_labels=1))
    graph, target = dense(5), make_target()
    pareto = front(graph, target, Settings(image="stream", most_labels=1))
    sizes = [point.live_bytes + 200 for point in pareto.points[::2]]

    def factors(limits, session=None):
        for ram in limits:
            options = PlanOptions(image="stream", ram=ram)
            problem = Prepared("", (graph,), target, options, bounded=False, session=session or Session())
            yield ram, choose(problem).factor

    alone = dict(factors(sizes))
    assert max(alone.values()) > 1
    assert dict(factors(sizes, Session())) == dict(factors(reversed(sizes), Session())) == alone


def test_answers_say_that_a_budget_ended_the_search(monkeypatch, one_label):
    own = problem.settings
    request = {"model": "resnet8", "board": "cortex-m4"}
    assert handle({"kind": "front", **request})["search_factor"] == 1
    monkeypatch.setattr(problem, "settings", lambda *a: replace(own(*a), most_labels=1))
    answer = handle({"kind": "front", **request})
    assert answer["search_factor"] > 1
    assert f"at most {answer['search_factor']:.2f} times its live bytes" in " ".join(
        front_report.text(answer).split()
    )
    answer = handle({"kind": "plan", "options": {"objective": "ram"}, **request})
    assert answer["search_factor"] > 1
    assert f"at most {answer['search_factor']:.2f} times the minimum" in plan_report.text(answer)


def test_answers_say_that_the_orders_budget_ended_the_search(monkeypatch):
    least = order.least_peak_order
    request = {"model": "resnet8", "board": "cortex-m4", "options": {"order": "best"}}
    assert handle({"kind": "plan", **request})["order_status"] == "optimal"
    monkeypatch.setattr(
        order, "least_peak_order", lambda flow, budget: replace(least(flow), status="feasible")
    )
    for kind, text in (("front", front_report.text), ("plan", plan_report.text)):
        answer = handle({"kind": kind, **request})
        assert answer["order_status"] == "feasible"
        assert "budget for orders" in text(answer)


# ---- the search in C (labels.c) ---------------------------------------------------------------------------


@pytest.mark.parametrize(("network", "image"), [*zip(NETWORKS, cycle(IMAGES), strict=False)])
def test_a_third_of_the_budget_suffices_for_the_least_cost_and_every_bound_holds(network, image):
    tables = front(NETWORKS[network](), make_target(), Settings(image=image)).space.cost_tables
    search, ended = (Search(tables, most_labels=most) for most in (MOST_LABELS // 3, 1))
    bounds = Search(tables, relaxed=True)
    ways = list(search.falling())
    assert search.exact and len(ways) > 10
    assert all(a.bytes > b.bytes and a.weight < b.weight for a, b in pairwise(ways))
    for way in ended.falling():
        assert any(best.bytes <= way.bytes and best.weight <= way.weight for best in ways)
    for way in ways:
        assert bounds.lower_bound(way.bytes) <= way.weight
    assert bounds.lower_bound(ways[-1].bytes // 16) is None


def test_an_error_in_a_table_ends_the_search(monkeypatch):
    net = Net((1, 9, 9, 2))
    graph = net.graph(
        net.conv(net.depthwise(net.inputs[0]), 4, (2, 2), (2, 2))
    )  # no operator reads the last row
    monkeypatch.setattr(blocks, "MOST_OPERATORS", 1)
    pareto = front(graph, make_target(), Settings())

    def fails(*_):
        raise ZeroDivisionError

    pareto.space.tables.starts  # noqa: B018 - made before
    monkeypatch.setattr(type(pareto.space.tables), "extra", fails)
    with pytest.raises(ZeroDivisionError):
        list(Search(pareto.space.tables).falling())
