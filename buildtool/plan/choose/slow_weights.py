"""Plans for boards whose weights are not read in place: what is loaded counts as memory, too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from buildtool.base.session import Session
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions
from buildtool.plan.types import Plan
from buildtool.target.types import Board, Target

if TYPE_CHECKING:
    from buildtool.plan.assemble.loads import Loading

ROUNDS = 8  # of asking for less
BETWEEN = 8  # goals between the least and what it came to


def loads_weights(board: Board) -> bool:
    """Whether constants have to be brought into the arena before kernels read them."""
    return board.memory(board.weights).bandwidth > 0


def loaded(graph: Graph, target: Target) -> tuple[tuple[int, int], ...]:
    """By operator: bytes of its constants, and the least of them that it needs while it runs alone.

    Empty for boards that read their weights in place.
    """
    from buildtool.plan.assemble.constants import constants
    from buildtool.plan.place.arena import round_up
    from buildtool.target import catalogue

    if not loads_weights(target.board):
        return ()
    kernels = catalogue.select_all(target, graph)
    blocks = constants(graph, kernels)
    alignment = target.board.alignment
    found = []
    for position in range(len(graph.ops)):
        block = blocks.get(position)
        whole = round_up(block.size, alignment) if block else 0
        alone = block.least_bytes() if block else 0
        found.append((whole, round_up(alone, alignment)))
    return tuple(found)


def least_loading_cost(graph: Graph, target: Target) -> float:
    """What bringing all constants into the arena adds to the cost of any plan, at the least."""
    from buildtool.plan.assemble.constants import Constants, constants
    from buildtool.plan.place.arena import round_up
    from buildtool.plan.schedule.costs import CostModel
    from buildtool.plan.types import Load
    from buildtool.target import catalogue

    if not loads_weights(target.board):
        return 0.0
    kernels = catalogue.select_all(target, graph)
    model = CostModel(graph, kernels, target.costs)

    def least(op: int, block: Constants) -> float:
        evenly = (-(-block.channels // slices) for slices in range(2, block.channels + 1))
        widths = {0} | {round_up(width, block.step) for width in evenly}  # 0: all at once
        return min(model.loading(Load(op, 0, block.size, width, 1)) for width in widths)

    return sum(least(op, block) for op, block in constants(graph, kernels).items())


def least_arena(bare: Plan, graph: Graph, target: Target, options: PlanOptions, session: Session) -> int:
    """Bytes that no arena of `bare` with its constants is below, however they come."""
    loads = loads_weights(target.board)
    return _loading(bare, graph, target, options, session).least if loads else bare.arena_bytes


def with_loads_at_once(
    bare: Plan, graph: Graph, target: Target, options: PlanOptions, session: Session
) -> Plan:
    """`bare` with buffers for its constants, in the smallest arena that a first attempt finds."""
    loading = _loading(bare, graph, target, options, session)
    return loading.plan(loading.least, 0, attempts=1)


def with_least_loads(
    bare: Plan, graph: Graph, target: Target, options: PlanOptions, session: Session
) -> Plan:
    """`bare` with buffers for its constants, in the smallest arena that is found.

    No arena is lower than `Loading.least`, so that is asked for first. Which constants come in slices depends
    on the goal: where what comes out is larger, goals between the two are tried, the largest first, which
    takes the least work; then a little less is asked for as long as that helps.
    """
    if not loads_weights(target.board):
        return bare
    loading = _loading(bare, graph, target, options, session)
    best = _within(loading, options, loading.least)
    missed = best.arena_bytes - loading.least
    for part in range(BETWEEN - 1, 0, -1) if missed >= BETWEEN * target.board.alignment else ():
        goal = loading.least + missed * part // BETWEEN
        if goal < best.arena_bytes and session.work.goes_on():
            best = min(best, _within(loading, options, goal), key=lambda plan: plan.arena_bytes)
    for _ in range(ROUNDS):
        if best.arena_bytes <= loading.least or not session.work.goes_on():
            break
        made = _within(loading, options, best.arena_bytes - target.board.alignment)
        if made.arena_bytes >= best.arena_bytes:
            break
        best = made
    return best


def with_loads(
    bare: Plan, graph: Graph, target: Target, options: PlanOptions, goal: float, session: Session
) -> Plan:
    """`bare` with buffers for its constants, within `goal` bytes if that can be.

    It is `bare` itself where nothing is loaded.
    """
    if not loads_weights(target.board):
        return bare
    return _within(_loading(bare, graph, target, options, session), options, goal, goal)


def _loading(bare: Plan, graph: Graph, target: Target, options: PlanOptions, session: Session) -> Loading:
    from buildtool.plan.assemble.constants import constants
    from buildtool.plan.assemble.loads import Loading
    from buildtool.plan.schedule.timeline import Timeline

    kernels = target.named(bare.kernels)
    timeline = Timeline.of(graph, bare.regions, bare.image, session)
    return Loading(
        timeline, target, tuple(kernels), constants(graph, kernels), options.in_place, bare.strategy, session
    )


def _within(loading: Loading, options: PlanOptions, goal: float, enough: float = 0) -> Plan:
    """Within `goal` bytes if that can be; tensors move where that makes the arena lower than `enough`."""
    moved = loading.plan(goal, enough)
    too_dear = options.max_cost is not None and moved.cost > options.max_cost
    return loading.plan(goal, math.inf) if moved.moves and too_dear else moved
