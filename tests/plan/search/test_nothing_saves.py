"""Whether any block costs less than its operators one by one is told without laying out windows."""

from __future__ import annotations

from itertools import pairwise

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


@pytest.mark.parametrize(("model", "board", "image"), CASES)
def test_a_block_that_saves_anything_is_seen(model, board, image):
    """Each operator's own cost is raised until the first block around it saves; a unit less is too little."""
    graph, target = _network(model, board)
    tables = front(graph, target, Settings(image=image)).space.cost_tables
    blocks = tables.blocks
    forms = [form for ending in tables.block_forms for form in ending]
    assert blocks.none_saves(tables.before, tables.least_wanted, range(tables.count))
    assert tables.nothing_saves
    alone = [after - before for before, after in pairwise(tables.before)]
    for element in range(tables.count):
        around = [f.least_extra for f in forms if f.first <= element <= f.block.last]
        if not around:
            continue  # it does not run row by row
        for more, saved in ((min(around), True), (min(around) + 1, False)):
            raised = [*alone[:element], alone[element] + more, *alone[element + 1 :]]
            before = [sum(raised[:cut]) for cut in range(tables.count + 1)]
            assert blocks.none_saves(before, tables.least_wanted, range(tables.count)) == saved, (
                element,
                more,
            )
