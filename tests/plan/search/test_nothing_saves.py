"""A plan without limits costs what the search for the least cost finds."""

from __future__ import annotations

import pytest

from buildtool.base.session import Session
from buildtool.plan.choose.least import best_plan
from buildtool.plan.choose.limits import Limits
from buildtool.plan.models import load_network
from buildtool.plan.search.front import Settings, front
from buildtool.plan.search.paths import Search
from buildtool.target.costs import COST_UNITS
from buildtool.target.registry import load_board, make_target

CASES = [
    ("ds_cnn", "host", "overwritable"),
    ("ds_cnn", "cortex-m4", "overwritable"),
    ("ds_cnn", "cortex-m4", "stream"),
    ("resnet8", "cortex-m4", "overwritable"),
]


def _network(model, board):
    return load_network(model, Session()).graph, make_target(load_board(board))


@pytest.mark.parametrize(("model", "board", "image"), CASES)
def test_without_limits_a_plan_is_as_cheap_as_the_search_finds(model, board, image):
    graph, target = _network(model, board)
    chosen = Settings(image=image)
    plan = best_plan(front(graph, target, chosen), Limits(1 << 40))
    least = Search(front(graph, target, chosen).space.cost_cuts).least(1 << 40)
    assert plan.cost * COST_UNITS == least.weight
