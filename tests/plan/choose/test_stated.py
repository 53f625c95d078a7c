"""What a plan from elsewhere says of itself: its strategy is known by its groups, its cost by its steps."""

from dataclasses import replace

import pytest
from loaded import load_target
from zeronet import Net

from buildtool.base.errors import PlanError
from buildtool.base.modes import Image, Objective, Strategy
from buildtool.base.session import Session
from buildtool.firmware.bound import firmware
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.choose import choose
from buildtool.plan.choose.problem import prepare_problem
from buildtool.plan.choose.stated import firmware_beside, refuse_another, refuse_wrong_cost


def problem(board="cortex-m4", **options):
    net = Net((1, 24, 24, 3))
    x = net.depthwise(net.conv(net.inputs[0], 16, (3, 3)))
    graph = net.graph(net.dense(net.mean(net.conv(x, 32, (3, 3), (2, 2))), 4))
    return prepare_problem(graph, load_target(board), PlanOptions(**options), Session(), firmware, path="")


def test_a_plan_of_another_strategy_is_known_by_its_groups():
    """The lie names the strategy that was asked for."""
    made = {}
    for strategy in Strategy:
        ram = {"objective": Objective.RAM} if strategy == Strategy.BEST else {}
        prepared = problem(strategy=strategy, **ram)
        made[strategy] = prepared, choose(prepared)
    outcomes = set()
    for asked, (prepared, choice) in made.items():
        graph = prepared.graph_for(choice.index, choice.plan)
        refuse_another(choice.plan, graph, prepared)
        for other, (_, another) in made.items():
            streamed = any(region.is_streamed for region in another.plan.regions)
            if asked not in (Strategy.LAYERWISE, Strategy.XCORE_STRIPS) or other == asked or not streamed:
                continue  # other strategies may make this plan, too
            with pytest.raises(PlanError, match="another strategy"):
                refuse_another(replace(another.plan, strategy=str(asked)), graph, prepared)
            outcomes.add((str(asked), str(other)))
    assert outcomes >= {("layerwise", "best"), ("layerwise", "msf-cnn"), ("xcore-strips", "msf-cnn")}


@pytest.mark.parametrize("board", ["cortex-m4", "xcore"])
def test_cost_and_firmware_of_a_choice_are_found_again(board):
    prepared = problem(board, objective=Objective.RAM, image=Image.STREAM)
    choice = choose(prepared)
    graph = prepared.graph_for(choice.index, choice.plan)
    assert firmware_beside(choice.plan, graph, prepared) == choice.firmware
    refuse_wrong_cost(choice.plan, graph, prepared)
    with pytest.raises(PlanError, match="declares a cost of"):
        refuse_wrong_cost(replace(choice.plan, cost=choice.plan.cost - 1 / 16), graph, prepared)
