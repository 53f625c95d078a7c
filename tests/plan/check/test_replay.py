"""The replay in C and its twin in Python take and refuse the same plans, with the same words."""

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from exactlib import compiled
from groupnets import assembled
from loaded import load_target
from plan_nets import make_target, residual_net
from planmutants import KINDS, mutant, shorter
from zeronet import Net

from buildtool.errors import PlanError
from buildtool.plan.assemble.constants import constants
from buildtool.plan.assemble.loads import with_loads
from buildtool.plan.check import native
from buildtool.plan.check.check import check
from buildtool.plan.search.front import Settings, front
from buildtool.target import catalogue

TARGET = make_target(scratch="kh * kw * cin")
SOURCE = Path(native.__file__).with_name("replay.c")


@cache
def plans():
    """(graph, target, plan): rings, blocks with hand-offs, accumulators, moves, a joining, loads."""
    made = []
    graph = residual_net()
    for image in ("stream", "overwritable", "resident"):
        found = front(graph, TARGET, Settings(image=image))
        made += [(graph, TARGET, found.plan(i)) for i in {0, len(found.points) // 2}]
    net = Net((1, 16, 16, 16))
    x = net.inputs[0]
    for _ in range(5):
        x = net.depthwise(x)
    x = net.conv(x, 4, (4, 4), (4, 4))
    graph = net.graph(net.concat([x, net.relu(x)]))
    moving, _ = assembled(graph, TARGET, [])
    assert moving.moves
    made.append((graph, TARGET, moving))
    graph, xcore = residual_net(), load_target("xcore")
    kernels = catalogue.select_all(xcore, graph)
    bare = front(graph, xcore, Settings(image="stream")).plan(0)
    blocks = constants(graph, kernels)
    made += [
        (graph, xcore, with_loads(bare, graph, xcore, kernels, blocks, limit, "rows"))
        for limit in (bare.arena_bytes + 2000, 1 << 20)
    ]
    return made


def _both(monkeypatch, plan, graph, target):
    """What the checker says with the replay in C, which is the same as without."""
    said = []
    for lib in (native.library(compiled(SOURCE)), None):
        with monkeypatch.context() as patch:
            patch.setattr(native, "library", lambda lib=lib: lib)
            said.append(_verdict(plan, graph, target))
    assert said[0] == said[1]
    return said[0]


def _verdict(plan, graph, target):
    try:
        check(plan, graph, target)
    except PlanError as error:
        return str(error)
    return ""


def test_what_the_planner_makes_is_taken(monkeypatch):
    for graph, target, plan in plans():
        assert _both(monkeypatch, plan, graph, target) == ""


def _agree(monkeypatch, numbers):
    """The twins agree on these mutants of each plan; some are refused, some are taken."""
    verdicts = set()
    for place, (graph, target, plan) in enumerate(plans()):
        for kind in KINDS:
            for number in numbers:
                damaged = mutant(plan, kind, random.Random(f"{place} {kind} {number}"))
                if damaged is not None and damaged != plan:
                    verdicts.add(bool(_both(monkeypatch, damaged, graph, target)))
    assert verdicts == {False, True}


def test_damaged_plans_are_taken_or_refused_by_both(monkeypatch):
    _agree(monkeypatch, range(1))


@pytest.mark.slow
def test_many_damaged_plans_are_taken_or_refused_by_both(monkeypatch):
    _agree(monkeypatch, range(1, 6))


@pytest.mark.parametrize("kind", ["ring", "columns"])
def test_no_ring_can_be_shorter(monkeypatch, kind):
    """A planner keeps no more rows than are read: one less, and one is gone when it is read."""
    seen = 0
    for graph, target, plan in plans():
        for index, buffer in enumerate(plan.buffers):
            if buffer.rows > 1 and (kind == "ring" or buffer.columns > 1):
                buffers = list(plan.buffers)
                buffers[index] = shorter(buffer, kind)
                damaged = replace(plan, buffers=tuple(buffers))
                assert "not in the arena" in _both(monkeypatch, damaged, graph, target)
                seen += 1
    assert seen > 3


def test_no_move_can_be_left_out(monkeypatch):
    seen = 0
    for graph, target, plan in plans():
        for move in plan.moves:
            fewer = tuple(other for other in plan.moves if other != move)
            assert _both(monkeypatch, replace(plan, moves=fewer), graph, target)
            seen += 1
    assert seen > 2
