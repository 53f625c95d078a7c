"""The plan for an arena in two memories: it fits both, with the least cost including the memories' waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from buildtool.base.errors import PlanError
from buildtool.base.modes import Objective
from buildtool.plan.choose.limits import merit
from buildtool.plan.summary.fit import holds, rooms
from buildtool.plan.types import Plan
from buildtool.target.speeds import streamed_cycles_per_byte

if TYPE_CHECKING:
    from buildtool.base.session import Session
    from buildtool.graph.types import Graph
    from buildtool.plan.choose.problem import Prepared
    from buildtool.target.types import Board, Target

TRIES = 6  # plans to divide, each for less memory than the one before
_UNITS = 1024  # parts of a cycle: prices are whole numbers, so that sums are exact


def waits(board: Board) -> tuple[float, ...]:
    """Returns for each of the arena's memories the cycles that an access waits per byte; 0 if not known."""
    memories = [board.memory(name) for name in board.holders]
    return tuple(streamed_cycles_per_byte(memory.speed, board.cache_of(memory)) for memory in memories)


def caches(board: Board) -> tuple[int, ...]:
    """Returns for each of the arena's memories the bytes of its data cache; 0 if it has none."""
    before = [board.cache_of(board.memory(name)) for name in board.holders]
    return tuple(cache.data_bytes if cache else 0 for cache in before)


def waiting(plan: Plan, graph: Graph, target: Target, session: Session) -> float:
    """Returns the cycles that a plan's reads and writes wait for memory.

    They are estimated as in `assemble.memories`.
    """
    from buildtool.plan.assemble.memories import count_touched_bytes

    touched = count_touched_bytes(plan, graph, target, caches(target.board), session)
    return sum(size * wait for size, wait in zip(touched, waits(target.board), strict=False))


def spread(prepared: Prepared, planner: Callable[[Prepared], Plan]) -> Plan:
    """Returns the planner's plan, divided over both memories of the board's arena.

    `planner`: makes a plan for one memory as large as both. At first it may use all bytes of both memories,
    then fewer if its plan cannot be divided. If none of its plans can be divided, the result is the last and
    smallest one. Raises PlanError if the planner finds no plan.
    """
    capacities, options = rooms(prepared.target.board, prepared.state_bytes), prepared.options
    divided: list[Plan] = []
    limit, whole = prepared.ram, list[Plan]()
    least = 0  # the largest limit within which no plan was found
    for _ in range(TRIES):
        try:
            undivided = planner(replace(prepared, options=replace(options, ram=limit)))
        except PlanError:
            if not whole or limit is None:
                raise
            least, limit = limit, (limit + whole[-1].arena_bytes) // 2
            continue
        whole.append(undivided)
        divided += _divide(undivided, prepared)
        if divided:
            break
        below = undivided.arena_bytes - prepared.target.board.alignment
        limit = max(*capacities, (least + below) // 2) if len(whole) == 1 else (least + below) // 2
        if below <= least or options.objective == Objective.RAM:
            break
    divided += _in_the_better(prepared, planner, divided)
    if not divided:
        return whole[-1]
    if options.objective == Objective.RAM:
        return min(divided, key=lambda plan: merit(plan, Objective.RAM))
    graph, target, session = prepared.graph, prepared.target, prepared.session
    return min(
        divided, key=lambda plan: (plan.cost + waiting(plan, graph, target, session), plan.arena_bytes)
    )


def _in_the_better(
    prepared: Prepared, planner: Callable[[Prepared], Plan], divided: Sequence[Plan]
) -> list[Plan]:
    """Returns the planner's plan for an arena of the size of the faster memory, divided over both memories.

    The plan's calls may cost more than those of a larger plan, but it may save more cycles of waiting for
    memory. The list is empty if this cannot help, or if there is no such plan. `divided`: the plans found so
    far.
    """
    speeds, options = waits(prepared.target.board), prepared.options
    better = rooms(prepared.target.board, prepared.state_bytes)[speeds.index(min(speeds))]
    waited = bool(divided) and speeds[0] != speeds[1] and divided[0].arena_bytes > better
    if not waited or options.objective == Objective.RAM:
        return []
    try:
        ram = better if options.ram is None else min(better, options.ram)
        return _divide(planner(replace(prepared, options=replace(options, ram=ram))), prepared)
    except PlanError:
        return []


def _divide(plan: Plan, prepared: Prepared) -> list[Plan]:
    """Returns the plan over both memories, and in each memory that has room for all of it.

    Plans beyond the limits are left out.
    """
    from buildtool.plan.assemble.memories import in_one, over_two

    graph, target = prepared.graph, prepared.target
    first, second = rooms(target.board, plan.state_bytes)
    speeds = waits(target.board)
    # If no difference is known, the first memory is the better one.
    prices = (0, 1) if speeds[0] == speeds[1] else (int(speeds[0] * _UNITS), int(speeds[1] * _UNITS))
    first_cache, second_cache = caches(target.board)
    over = [
        over_two(
            *(plan, graph, target, prepared.options.in_place, (first, second), prices, prepared.session),
            caches=(first_cache, second_cache),
            moving=moving,
        )
        for moving in ((False, True) if plan.moves else (False,))
    ]
    alone = [in_one(plan, memory, plan.alignment) for memory in (0, 1) if plan.arena_bytes]
    limits = prepared.limits(prepared.options.ram)
    return [
        plan for plan in filter(None, (*over, *alone)) if holds(target.board, plan) and limits.allow(plan)
    ]
