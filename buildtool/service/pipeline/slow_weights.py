"""Plans for boards whose weights are not read in place: what is loaded counts as memory, too."""

from __future__ import annotations

import math

from buildtool.graph.types import Graph
from buildtool.plan.types import Plan
from buildtool.service.pipeline.options import PlanOptions
from buildtool.session import Session
from buildtool.target.types import Board, Target

ROUNDS = 8  # of asking for less


def loads_weights(board: Board) -> bool:
    """Whether constants have to be brought into the arena before kernels read them."""
    return board.memory(board.weights).bandwidth > 0


def loaded(graph: Graph, target: Target) -> tuple[tuple[int, int], ...]:
    """By operator: bytes of its constants, and the least of them that it needs while it runs alone.

    Empty for boards that read their weights in place.
    """
    from buildtool.plan.assemble.loads import constants
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


def with_least_loads(
    bare: Plan, graph: Graph, target: Target, options: PlanOptions, session: Session
) -> Plan:
    """`bare` with buffers for its constants, in the smallest arena that is found.

    Which constants come in slices depends on the goal, and not always for the better: what came out is
    asked for again with a little less, as long as that helps.
    """
    best = with_loads(bare, graph, target, options, bare.arena_bytes, session)
    for _ in range(ROUNDS if best is not bare else 0):
        goal = best.arena_bytes - target.board.alignment
        made = with_loads(bare, graph, target, options, goal, session)
        if made.arena_bytes >= best.arena_bytes:
            break
        best = made
    return best


def with_loads(
    bare: Plan, graph: Graph, target: Target, options: PlanOptions, goal: int, session: Session
) -> Plan:
    """`bare` with buffers for its constants, within `goal` bytes if that can be.

    It is `bare` itself where nothing is loaded.
    """
    from buildtool.emit.sources import plan_kernels
    from buildtool.plan.assemble.loads import constants
    from buildtool.plan.assemble.loads import with_loads as add_loads

    if not loads_weights(target.board):
        return bare
    kernels = plan_kernels(bare, target)
    blocks = constants(graph, kernels)

    def made(enough: float) -> Plan:
        return add_loads(
            bare, graph, target, kernels, blocks, goal, options.in_place, enough=enough, session=session
        )

    moved = made(0)
    too_dear = options.max_cost is not None and moved.cost > options.max_cost
    return made(math.inf) if moved.moves and too_dear else moved
