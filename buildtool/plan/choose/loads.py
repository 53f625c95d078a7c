"""Plans for boards that do not read weights in place: constants are loaded, and take arena memory as well."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from buildtool.graph.types import Graph
from buildtool.plan.choose.problem import Prepared
from buildtool.plan.types import Plan
from buildtool.target.choice import loads
from buildtool.target.types import Target

if TYPE_CHECKING:
    from buildtool.plan.assemble.loads import Loading

ROUNDS = 8  # attempts with a slightly smaller goal
BETWEEN = 8  # the parts into which the range between lower bound and first result is divided


def least_loading_cost(graph: Graph, target: Target) -> float:
    """Returns the least cost of loading all constants of a network once.

    Each operator's constants are loaded at once or in slices, whichever costs less.
    """
    from buildtool.plan.assemble.arrivals import Constants, constants
    from buildtool.plan.place.arena import round_up
    from buildtool.plan.schedule.costs import CostModel
    from buildtool.plan.types import Load
    from buildtool.target import catalogue

    if not loads(target.board):
        return 0.0
    kernels = catalogue.select_all(target, graph)
    model = CostModel(graph, kernels, target.costs)

    def least(op: int, block: Constants) -> float:
        evenly = (-(-block.channels // slices) for slices in range(2, block.channels + 1))
        widths = {0} | {round_up(width, block.step) for width in evenly}  # 0: all channels at once
        return min(model.loading(Load(op, 0, block.size, width, 1)) for width in widths)

    return sum(least(op, block) for op, block in constants(graph, kernels).items())


def least_arena(bare: Plan, prepared: Prepared) -> int:
    """Returns a lower bound in bytes for the arena of `bare`, however its constants are loaded."""
    return _loading(bare, prepared).least if loads(prepared.target.board) else bare.arena_bytes


def with_loads_at_once(bare: Plan, prepared: Prepared) -> Plan:
    """Returns the plan `bare` with buffers for its constants, placed in one attempt to find a small arena."""
    loading = _loading(bare, prepared, narrow=False)
    return loading.plan(loading.least, 0, attempts=1)


def with_loads(bare: Plan, prepared: Prepared, room: float | None) -> Plan:
    """Returns the plan `bare` with buffers for its constants, within `room` bytes if possible.

    If `room` is None, the arena is the smallest one that is found. If the board loads nothing, the result is
    `bare`.
    """
    if not loads(prepared.target.board):
        return bare
    goal, best = 0 if room is None else room, bare
    for narrow in (False, True):
        loading = _loading(bare, prepared, narrow)
        if narrow and (best.arena_bytes <= max(goal, loading.least) or not _are_narrower(loading)):
            break
        fit = _smallest if room is None else partial(_load_within, goal=room, enough=room)
        plan = fit(loading, prepared)
        if not narrow or plan.arena_bytes < best.arena_bytes:
            best = plan
    return best


def _are_narrower(loading: Loading) -> bool:
    """Returns whether any slices of constants may be narrower than usual."""
    return any(0 < block.step < min(block.usual, block.channels) for block in loading.constants.values())


def _smallest(loading: Loading, prepared: Prepared) -> Plan:
    """Returns the plan in the smallest arena that is found.

    No arena is smaller than `Loading.least`, so that is the first goal in bytes. The goal decides which
    constants are loaded in slices. If the result is larger than the goal, goals between the two are tried,
    the largest one first, since it takes the least work. Then the goal falls in small steps as long as the
    arena shrinks.
    """
    alignment, work = prepared.target.board.alignment, prepared.session.work
    best = _load_within(loading, prepared, loading.least)
    excess = best.arena_bytes - loading.least
    for part in range(BETWEEN - 1, 0, -1) if excess >= BETWEEN * alignment else ():
        goal = loading.least + excess * part // BETWEEN
        if goal < best.arena_bytes and work.goes_on():
            best = min(best, _load_within(loading, prepared, goal), key=lambda plan: plan.arena_bytes)
    for _ in range(ROUNDS):
        if best.arena_bytes <= loading.least or not work.goes_on():
            break
        smaller = _load_within(loading, prepared, best.arena_bytes - alignment)
        if smaller.arena_bytes >= best.arena_bytes:
            break
        best = smaller
    return best


def _loading(bare: Plan, prepared: Prepared, narrow: bool = True) -> Loading:
    from buildtool.plan.assemble.arrivals import constants
    from buildtool.plan.assemble.loads import Loading
    from buildtool.plan.schedule.timeline import Timeline

    graph, target, session = prepared.graph, prepared.target, prepared.session
    kernels = target.kernels_by_name(bare.kernels)
    timeline = Timeline.of(graph, bare.regions, bare.image, session)
    blocks, in_place = constants(graph, kernels), prepared.options.in_place
    return Loading(timeline, target, tuple(kernels), blocks, in_place, bare.strategy, session, narrow)


def _load_within(loading: Loading, prepared: Prepared, goal: float, enough: float = 0) -> Plan:
    """Returns the plan with its constants, within `goal` bytes if possible.

    Tensors move only if the arena is larger than `enough`.
    """
    plan = loading.plan(goal, enough)
    is_too_costly = not prepared.limits(None).allow_cost(plan.cost)
    return loading.plan(goal, math.inf) if plan.moves and is_too_costly else plan
