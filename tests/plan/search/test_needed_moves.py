"""Plans within a limit copy tensors only where the limit asks for it, and no more than it asks for."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from buildtool.base.session import Session
from buildtool.plan.choose.least import best_plan
from buildtool.plan.choose.limits import Limits
from buildtool.plan.models import load_network
from buildtool.plan.search.front import Settings, front
from buildtool.target.registry import load_board, make_target


def front_of(model, image):
    graph = load_network(model, Session()).graph
    return front(graph, make_target(load_board("host")), Settings(image=image))


@pytest.mark.parametrize(
    ("model", "image", "ram"),
    [
        ("ds_cnn", "overwritable", 8880),
        ("ds_cnn", "overwritable", 11840),
        pytest.param("mcunet_vww5", "stream", 11712, marks=pytest.mark.slow),
        pytest.param("mcunet_vww5", "stream", 28544, marks=pytest.mark.slow),
    ],
)
def test_tensors_move_only_where_the_limit_asks_for_it(model, image, ram):
    plan = best_plan(front_of(model, image), Limits(ram))
    still = front_of(model, image).assemble(plan.regions, enough=math.inf)
    assert not still.moves
    assert plan.arena_bytes <= ram
    assert bool(plan.moves) == (still.arena_bytes > ram)
    assert plan.cost >= still.cost


def test_the_more_memory_there_is_the_less_is_copied():
    found, copied = front_of("ds_cnn", "overwritable"), []
    for ram in (8640, 9200, 9664, 11840):
        plan = best_plan(found, Limits(ram))
        assert max(b.offset + b.size for b in plan.buffers) <= plan.arena_bytes <= ram
        copied.append(sum(plan.buffers[move.source].size for move in plan.moves))
    assert copied[-1] == 0
    assert all(more > less for more, less in pairwise(copied))
