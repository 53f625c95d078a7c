"""Whether any block costs less than its operators one by one is told without laying out windows."""

from __future__ import annotations

from itertools import pairwise

import pytest

from buildtool.plan.search.front import Settings, front
from buildtool.service.pipeline.prepare import load_network
from buildtool.session import Session
from buildtool.target.registry import load_board, make_target


def _tables(model, board):
    graph = load_network(model, Session()).graph
    return front(graph, make_target(load_board(board)), Settings()).cost_tables


@pytest.mark.parametrize(
    ("model", "board"), [("ds_cnn", "host"), ("ds_cnn", "cortex-m4"), ("resnet8", "cortex-m4")]
)
def test_a_block_that_saves_anything_is_seen(model, board):
    """Each operator's own cost is raised until the first block around it saves; a unit less is too little."""
    tables = _tables(model, board)
    blocks = tables.blocks
    forms = [form for ending in tables.block_forms for form in ending]
    assert blocks.none_saves(tables.before, tables.least_wanted)
    assert tables.nothing_saves
    alone = [after - before for before, after in pairwise(tables.before)]
    for element in range(tables.count):
        around = [f.least_extra for f in forms if f.first <= element <= f.block.last]
        if not around:
            continue  # it does not run row by row
        for more, saved in ((min(around), True), (min(around) + 1, False)):
            raised = [*alone[:element], alone[element] + more, *alone[element + 1 :]]
            before = [sum(raised[:cut]) for cut in range(tables.count + 1)]
            assert blocks.none_saves(before, tables.least_wanted) == saved, (element, more)
