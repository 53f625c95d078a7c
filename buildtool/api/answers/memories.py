"""What an arena in two memories comes to: what lies and waits in each, and what each could do alone."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from buildtool.base.errors import BuildtoolError
from buildtool.base.modes import CostUnit
from buildtool.graph.partviews import without_views
from buildtool.graph.secondpass import without_second_passes
from buildtool.plan.choose.choose import nearest
from buildtool.plan.choose.limits import estimated_ms
from buildtool.plan.choose.memories import caches, waiting, waits
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.summary.fit import excess_bytes, rooms

if TYPE_CHECKING:
    from buildtool.firmware.planned import Planned
    from buildtool.plan.types import Plan
    from buildtool.schema.plans import AloneView, MemoriesView
    from buildtool.target.types import Board


def wait_cycles(made: Planned) -> float | None:
    """Cycles that the plan waits for its arena's memories, beside its cost; None where that is no time."""
    if made.target.cost_unit is not CostUnit.CYCLES:
        return None
    if not any(waits(made.target.board)):
        return 0.0
    return waiting(made.plan, made.graph, made.target, made.session)


def memories_of(made: Planned) -> MemoriesView | None:
    """The arena by memory; None where it is in one alone."""
    board = made.target.board
    if not board.second:
        return None
    touched, speeds = _touched(made.plan, made, board), waits(board)
    waited = sum(size * wait for size, wait in zip(touched, speeds, strict=False))
    sizes = (*made.plan.arenas, 0)
    alone = [_alone(made, name) for name in board.holders]
    costs = [one["cost"] + one["wait_cycles"] for one in alone if one["missing_bytes"] == 0]
    least = min(costs, default=None)
    return {
        "arenas": [
            {
                "memory": name,
                "room_bytes": room,
                "arena_bytes": sizes[index],
                "touched_bytes": touched[index] if index < len(touched) else 0,
                "wait_cycles": touched[index] * speeds[index] if index < len(touched) else 0.0,
            }
            for index, (name, room) in enumerate(
                zip(board.holders, rooms(board, made.plan.state_bytes), strict=True)
            )
        ],
        "wait_cycles": waited,
        "alone": alone,
        "gain": None if least is None or not least else 1 - (made.plan.cost + waited) / least,
    }


def _touched(plan: Plan, made: Planned, board: Board) -> tuple[int, ...]:
    from buildtool.plan.assemble.memories import touched_bytes

    return touched_bytes(plan, made.graph, made.target, caches(board), made.session)


def _alone(made: Planned, name: str) -> AloneView:
    """The plan that the options ask for with all of the arena in one memory; the least one that there is."""
    board = dataclasses.replace(made.target.board, arena=name, second="")
    target = dataclasses.replace(made.target, board=board)
    once = without_views(without_second_passes(made.graph))
    found: AloneView = {
        "memory": name,
        "missing_bytes": None,
        "arena_bytes": None,
        "f": None,
        "cost": 0.0,
        "wait_cycles": 0.0,
        "estimated_ms": None,
        "error": "",
    }
    try:
        _, plan = nearest(Prepared("", (once,), target, made.options, session=made.session))
    except BuildtoolError as error:
        return {**found, "error": error.text}
    (touched,), (wait,) = _touched(plan, made, board), waits(board)
    found |= {"missing_bytes": excess_bytes(board, plan), "arena_bytes": plan.arena_bytes, "f": plan.f}
    found |= {"cost": plan.cost, "wait_cycles": touched * wait}
    return {**found, "estimated_ms": estimated_ms(plan.cost + touched * wait, target)}
