"""The work budget of a request: where it ends, the messages, and that it ends equally in all sessions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zeronet import joined

from buildtool.api import handle
from buildtool.base.errors import PlanError
from buildtool.base.modes import Objective
from buildtool.base.session import Session
from buildtool.fronts.texts import front as front_report
from buildtool.fronts.texts import plan as plan_report
from buildtool.fronts.texts import regions as words
from buildtool.graph.tflite.writer import write_model
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble import moves
from buildtool.plan.check import states
from buildtool.plan.check.check import check
from buildtool.plan.choose import choose
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.codec import to_bytes
from buildtool.plan.types import Buffer, BufferKind
from buildtool.target.registry import load_target

LITTLE = 100_000  # units: less than it takes to place the plans of some branches


def problem(graph, board, session, **options):
    """The problem of the least memory for a graph on a board."""
    asked = PlanOptions(**{"objective": Objective.RAM, **options})
    return Prepared("", (graph,), load_target(board), asked, session=session)


def outcome(prepared, budget):
    """The plan's bytes (or the error), whether the budget has ended, and the remaining work."""
    with prepared.session.budget(budget) as work:
        try:
            data = to_bytes(choose._choose_best(prepared).plan)
        except PlanError as error:
            data = error.text
        return data, work.ended, work.left


@pytest.mark.slow
def test_a_budget_that_ends_leaves_a_plan_that_is_not_proven_least(monkeypatch):
    graph = joined(24)
    prepared = problem(graph, "cortex-m4", Session())
    whole = choose.choose(prepared)
    assert not whole.ended
    monkeypatch.setattr(choose, "PLANNING", LITTLE)
    prepared = problem(graph, "cortex-m4", Session())
    choice = choose.choose(prepared)
    assert choice.ended
    assert choice.plan.arena_bytes >= whole.plan.arena_bytes
    check(choice.plan, prepared.graph_for(choice.index, choice.plan), prepared.target)


@pytest.mark.slow
def test_answers_say_that_the_budget_has_ended(monkeypatch):
    model = write_model(joined(10))
    request = {"model": {"name": "joined", "data": model}, "board": "cortex-m4"}
    plan = {"kind": "plan", **request, "options": {"objective": "ram"}}
    answer = handle(plan)
    assert not answer["placing_ended"]
    assert "not proven to be the smallest" not in plan_report.text(answer)
    assert not handle({"kind": "front", **request})["placing_ended"]
    monkeypatch.setattr(choose, "PLANNING", LITTLE // 4)
    answer = handle(plan)
    assert answer["placing_ended"]
    assert "ended by its budget: the plan is not proven to be the smallest" in plan_report.text(answer)
    answer = handle({"kind": "front", **request})
    assert answer["placing_ended"]
    assert "these plans are not proven to be the smallest" in " ".join(front_report.text(answer).split())


@pytest.mark.slow
@pytest.mark.parametrize("board", ["cortex-m4", "xcore"])
def test_a_budget_ends_at_the_same_place_whatever_the_session_remembers(board):
    graph = joined(6)
    warm = Session()
    fresh = Session()
    whole = outcome(problem(graph, board, fresh), 1 << 40)
    assert not whole[1]
    took = (1 << 40) - whole[2]
    outcome(problem(graph, board, warm, objective=Objective.COST), 1 << 40)
    outcome(problem(graph, board, warm, ram=whole_arena(graph, board) + 64), 1 << 40)
    choose.front(problem(graph, board, warm), None)
    for part in (1, 3, 5):
        budget = took * part // 7
        assert outcome(problem(graph, board, Session()), budget) == outcome(
            problem(graph, board, warm), budget
        )
    assert outcome(problem(graph, board, warm), 1 << 40) == whole


def whole_arena(graph, board):
    """Bytes of the smallest arena."""
    return choose.choose(problem(graph, board, Session())).plan.arena_bytes


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20)), min_size=1, max_size=12), st.integers(1, 100)
)
def test_what_is_remembered_counts_as_what_is_made(asked, most):
    """Values that need others leave the same budget in a new session and in one that has cached them all."""

    def value(session, number, own):
        def make():
            inner = value(session, number - 1, own) if number else 0
            if not session.work.goes_on():
                return inner, "cut"
            session.work.spend(own + number)
            return inner, own

        return session.remember("values", (number, own), make)

    def run(session):
        with session.budget(most) as work:
            return [(value(session, *one), work.left, work.denied) for one in asked]

    warm = Session()
    for one in asked:
        value(warm, *one)
    assert run(warm) == run(Session())


def test_reports_and_checks_do_not_ask_again_for_each_operator(monkeypatch):
    calls = []

    def counted(owner, name):
        inner = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: calls.append(name) or inner(*args))

    counted(words, "short_names")
    counted(states, "alias_groups")
    counts = []
    for branches in (4, 16):
        calls.clear()
        model = {"name": "joined", "data": write_model(joined(branches))}
        request = {"kind": "plan", "model": model, "board": "cortex-m4", "options": {"order": "given"}}
        plan_report.text(handle(request))
        counts.append(sorted(calls))
    assert counts[0] == counts[1] and counts[0]


def test_tensors_that_cannot_lie_where_they_are_wished_are_not_tried_one_by_one(monkeypatch):
    buffers = [Buffer(BufferKind.TENSOR, f"t{i}", (i,), 16, 0, 1) for i in range(60)]
    whole = moves._Problem(buffers, [], 16, [1], ())
    segment = whole.segment(0, whole.segments)
    attempts = []
    monkeypatch.setattr(moves, "_place_pinned", lambda *args: attempts.append(args))
    offsets = {i: 16 * i for i in range(60)}
    assert moves._keep_offsets(whole, segment, offsets, 960, {i: 16 * i + 16 for i in range(60)}) == offsets
    assert len(attempts) == moves.MOST_FAILED
