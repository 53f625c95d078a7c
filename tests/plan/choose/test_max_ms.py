"""A limit in milliseconds limits the cost in cycles, at the board's clock; other costs have no time."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from buildtool.api import handle
from buildtool.base.errors import PlanError, UsageError
from buildtool.base.modes import CostUnit
from buildtool.base.session import Session
from buildtool.plan.locked import from_text, to_text
from buildtool.target.registry import load_board

NET, BOARD = "ds_cnn", "cortex-m4"
CLOCK_KHZ = load_board(BOARD).clock_hz / 1000
SESSION = Session()


def ask(kind: str, board: str = BOARD, plan: bytes | None = None, **options: object) -> dict[str, Any]:
    request: dict[str, Any] = {"kind": kind, "model": NET, "options": options}
    request |= {"boards": [board]} if kind == "analyze" else {"board": board}
    request |= {"plan": {"name": "net.plan", "data": plan}} if plan else {}
    return handle(request, SESSION)


def test_a_limit_in_milliseconds_is_the_one_on_cycles() -> None:
    points = ask("front")["points"]
    cost = points[len(points) // 2]["cost"]
    limits: tuple[dict[str, object], ...] = ({"max_cost": cost}, {"max_ms": cost / CLOCK_KHZ * (1 + 1e-12)})
    for more in ({"objective": "ram"}, {"ram": points[-1]["arena_bytes"]}):
        by_cost, by_ms = (ask("plan", **more, **limit)["plan"] for limit in limits)
        assert by_cost == by_ms
    by_cost, by_ms = (ask("front", **limit)["points"] for limit in limits)
    assert by_cost == by_ms
    assert by_cost != points and all(point["cost"] <= cost for point in by_cost)


@pytest.mark.parametrize("kind", ["plan", "front", "analyze"])
def test_costs_say_their_unit_and_their_time(kind: str) -> None:
    answer = ask(kind)
    rows = {"plan": [answer], "front": answer.get("points"), "analyze": answer.get("boards")}[kind]
    for row in rows:
        assert row.get("cost_unit", answer.get("cost_unit")) == "cycles"
        assert row["estimated_ms"] == pytest.approx(row["cost"] / CLOCK_KHZ, rel=1e-12)


@pytest.mark.parametrize(("board", "unit"), [("qemu-virt-rv32", "instructions"), ("xcore", "issues")])
def test_a_board_without_cycles_has_no_time(board: str, unit: str) -> None:
    answer = ask("plan", board)
    assert (answer["cost_unit"], answer["estimated_ms"], answer["cost_by_ratio"]) == (unit, None, [])
    words = f"costs on board '{board}' are {unit}, which are not times.*max_cost"
    for kind in ("plan", "front", "analyze"):
        with pytest.raises(UsageError, match=f"(?s){words}"):
            ask(kind, board, max_ms=100)


def test_both_limits_on_the_cost_are_one_too_many() -> None:
    with pytest.raises(UsageError, match="sets the same limit as max_cost"):
        ask("plan", max_ms=100, max_cost=1000)


@pytest.mark.parametrize("strategy", ["best", "layerwise"])
def test_the_time_that_would_do_is_told(strategy: str) -> None:
    with pytest.raises(PlanError, match=r" ms") as told:
        ask("plan", strategy=strategy, max_ms=0.5)
    suggested = [dict(hint.settings) for hint in told.value.hints if "max_ms" in dict(hint.settings)]
    assert suggested
    assert not any("max_cost" in one for one in suggested)
    assert ask("plan", strategy=strategy, **suggested[0])["estimated_ms"] <= suggested[0]["max_ms"]  # type: ignore[operator]


def test_a_given_plan_in_another_unit_is_not_held_against_a_limit() -> None:
    locked = from_text(ask("plan")["locked"])
    generous = 1e9
    plan = dataclasses.replace(locked.plan, cost_unit=CostUnit.INSTRUCTIONS)
    text = to_text(dataclasses.replace(locked, plan=plan))
    for limit in ("max_cost", "max_ms"):
        with pytest.raises(PlanError, match="in instructions, but costs on board 'cortex-m4' are in cycles"):
            ask("plan", plan=text, **{limit: generous})
    answer = ask("plan", plan=text)
    assert answer["cost_unit"] == "cycles"  # by the current formulas, as for its regions
    assert answer["cost"] == sum(region["cost"] for region in answer["regions"]) == locked.plan.cost
    assert ask("plan", plan=to_text(locked), max_ms=generous)["cost"] == locked.plan.cost


@pytest.mark.slow
def test_boards_without_a_time_are_told_apart_where_no_board_is_named() -> None:
    boards = handle({"kind": "analyze", "model": NET, "options": {"max_ms": 1e9}}, SESSION)["boards"]
    refused = {row["board"]: row["error"]["text"] for row in boards if "error" in row}
    assert {"qemu-virt-rv32", "xcore"} <= refused.keys()
    assert all("which are not times" in text for text in refused.values())
    assert {row["cost_unit"] for row in boards if "error" not in row} == {"cycles"}
