"""Plans within a limit copy tensors only where the limit asks for it, and no more than it asks for."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from buildtool.base.session import Session
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.choose.least import best_plan
from buildtool.plan.choose.limits import Limits
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.search.front import Settings, front
from buildtool.target import catalogue
from buildtool.target.registry import load_board, make_target


class Case:
    """A network on a board, asked about under several limits."""

    def __init__(self, model, board, image):
        self.graph, self.target = _rewritten(model), make_target(load_board(board))
        self.settings, self.session = Settings(image=image), Session()

    def plan(self, ram):
        return best_plan(front(self.graph, self.target, self.settings, self.session), Limits(ram))

    def without_moves(self, plan):
        """The same regions, tensors kept where they are."""
        timeline = Timeline.of(self.graph, plan.regions, plan.image, self.session)
        kernels = catalogue.select_all(self.target, self.graph)
        return assemble(timeline, self.target, kernels, strategy="best", in_place="rows", enough=math.inf)


def _rewritten(model):
    from buildtool.plan.models import load_network

    return load_network(model, Session()).graph


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
    case = Case(model, "host", image)
    plan = case.plan(ram)
    still = case.without_moves(plan)
    assert plan.arena_bytes <= ram
    assert bool(plan.moves) == (still.arena_bytes > ram)
    assert plan.cost >= still.cost


def test_the_more_memory_there_is_the_less_is_copied():
    case = Case("ds_cnn", "host", "overwritable")
    copied = []
    for ram in (8640, 9200, 9664, 11840):
        plan = case.plan(ram)
        assert max(b.offset + b.size for b in plan.buffers) <= plan.arena_bytes <= ram
        copied.append(sum(plan.buffers[move.source].size for move in plan.moves))
    assert copied[-1] == 0
    assert all(more > less for more, less in pairwise(copied))
