"""Arena problems that were solved before: kept by the problem itself, whoever asks.

A placement that comes from bytes is validated pair by pair before it is used.
"""

from __future__ import annotations

from typing import Any

import msgpack

from buildtool.base.session import Level, Session
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.arena import Problem, Solution
from buildtool.plan.place.solver import Result, Status, decide, improve, solve

_SCHEMA = 1


def solved(problem: Problem, capacity: int | None, budget: int, session: Session | None = None) -> Result:
    """The lowest placement that `solve` finds; with a capacity in bytes, what `decide` finds."""

    def made() -> Result:
        return solve(problem, budget) if capacity is None else decide(problem, capacity, budget)

    if session is None:
        return made()
    level = Level("arenas", _packed, lambda data: _unpacked(data, problem))
    return session.keep(level, _parts(problem, "solve", budget, capacity), made)


def improved(problem: Problem, budget: int, session: Session | None = None) -> Solution:
    """The lowest placement by greedy orders, lowered by an exact search."""

    def made() -> Result:
        found = improve(problem, greedy.solve(problem), budget)
        return Result(Status.FEASIBLE, found, 0, 0)

    if session is None:
        solution = made().solution
    else:
        level = Level("arenas", _packed, lambda data: _unpacked(data, problem))
        solution = session.keep(level, _parts(problem, "improve", budget, None), made).solution
    assert solution is not None
    return solution


def _parts(problem: Problem, how: str, budget: int, capacity: int | None) -> dict[str, Any]:
    return {
        "schema": _SCHEMA,
        "items": [[i.lower, i.upper, i.size, i.alignment, i.offset] for i in problem.items],
        "permissions": [[p.output, p.input, p.distance] for p in problem.permissions],
        "how": how,
        "budget": budget,
        "capacity": capacity,
    }


def _packed(result: Result) -> bytes:
    offsets = None if result.solution is None else list(result.solution.offsets)
    data: bytes = msgpack.packb([result.status.value, offsets, result.bound, result.nodes])
    return data


def _unpacked(data: bytes, problem: Problem) -> Result:
    """The result in `data`; an exception for what is no legal placement of the problem."""
    status, offsets, bound, nodes = msgpack.unpackb(data)
    solution = None
    if offsets is not None:
        if not all(type(offset) is int for offset in offsets):
            raise ValueError("not a placement")
        arena.validate(problem, offsets)
        solution = Solution(tuple(offsets), arena.height(problem, offsets))
    if type(bound) is not int or type(nodes) is not int or (solution and bound > solution.height):
        raise ValueError("not a result")
    return Result(Status(status), solution, bound, nodes)
