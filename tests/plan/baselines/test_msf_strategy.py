"""msf-CNN's choices as plans: legal, within the limits, and bit-exact."""

from __future__ import annotations

from functools import cache, partial

import pytest
from plan_nets import make_target
from zeronet import Net

from buildtool import api
from buildtool.base.errors import PlanError, UsageError
from buildtool.base.session import Session
from buildtool.graph.types import OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.baselines.msf import chain, layer
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.models import load_model, read_graph
from buildtool.plan.types import Scheme
from buildtool.target.registry import load_target

handle = partial(api.handle, session=Session())  # makes a network's tables once

NETWORK = "mcunet_vww5"

SESSION = Session()  # one search for all requests for a network


def plan_msf(graph, target, **limits):
    return make_plan(graph, target, PlanOptions(strategy="msf-cnn", **limits), SESSION)


@cache
def graph():
    return read_graph(load_model(NETWORK))[1]


@cache
def host():
    return load_target("host")


def fused(plan):
    return [g for region in plan.regions for g in region.groups if g.scheme is Scheme.H_CACHED]


def test_the_chain_of_a_real_network_goes_through_its_residuals():
    positions = chain(graph())
    assert len(positions) == 45
    between = {graph().ops[p].kind for p in range(positions[0], positions[-1]) if p not in positions}
    assert between == {OpKind.ADD}
    layers = [layer(graph(), graph().ops[p]) for p in positions]
    assert (layers[0].rows, layers[0].filters, layers[-1].filters) == (80, 16, 160)


def test_the_first_problem_takes_the_least_arena_within_f():
    smallest = plan_msf(graph(), host())
    limited = plan_msf(graph(), host(), max_f=1.1)
    check(smallest, graph(), host())
    check(limited, graph(), host())
    assert limited.f <= 1.1 < smallest.f
    assert smallest.arena_bytes < limited.arena_bytes < plan_layerwise(graph(), host()).arena_bytes / 2


@pytest.mark.slow
def test_the_second_problem_takes_the_least_work_within_ram():
    smallest = plan_msf(graph(), host())
    tight = plan_msf(graph(), host(), ram=smallest.arena_bytes)
    loose = plan_msf(graph(), host(), ram=60_000)
    check(loose, graph(), host())
    assert tight.arena_bytes <= smallest.arena_bytes
    assert loose.arena_bytes <= 60_000
    assert loose.f < tight.f


def test_a_block_is_one_group_of_single_pixels():
    groups = fused(plan_msf(graph(), host(), max_f=1.3))
    assert groups
    assert {(g.rows_per_step, g.hand_off) for g in groups} == {(1, 1)}


@pytest.mark.slow
def test_limits_that_cannot_be_kept_name_the_nearest():
    smallest = plan_msf(graph(), host())
    with pytest.raises(PlanError) as caught:
        plan_msf(graph(), host(), ram=smallest.arena_bytes - 1)
    assert caught.value.hint.startswith(f"ram={smallest.arena_bytes}")
    assert caught.value.text.endswith("1 too many")
    with pytest.raises(PlanError) as caught:
        plan_msf(graph(), host(), ram=smallest.arena_bytes, max_f=1.0)
    assert "ram=" in caught.value.hint


def test_a_network_without_convolutions_is_refused():
    net = Net((1, 8))
    small = net.graph(net.dense(net.inputs[0], 4))
    with pytest.raises(UsageError, match="chains of convolutions"):
        plan_msf(small, make_target())


def test_blocks_that_cannot_run_are_not_chosen():
    """A later operator reads every row of the first convolution, but the block computes every second row."""
    net = Net((1, 16, 16, 4))
    x = net.conv(net.inputs[0], 8)
    y = net.conv(x, 8, (1, 1), (2, 2))
    z = net.max_pool(x)
    small = net.graph(net.add(y, z))
    plan = plan_msf(small, make_target())
    check(plan, small, make_target())
    assert fused(plan) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "model"),
    [
        ("host", "resnet8"),
        pytest.param("cortex-m4", "mobilenetv2:size=32,alpha=0.35,classes=10", marks=pytest.mark.slow),
    ],
)
def test_choices_run_equal_to_the_bit(board, model):
    answer = handle(
        {
            "kind": "validate",
            "model": model,
            "board": board,
            "tensors": board == "host",
            "inputs": 2,
            "options": {"strategy": "msf-cnn", "max_f": 1.3},
        }
    )
    assert answer["exact"], answer["first_difference"]
    assert answer["strategy"] == "msf-cnn"
    assert answer["arena_high_water"] <= answer["arena_bytes"]
