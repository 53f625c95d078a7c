"""Plans for boards whose weights are not read in place: what is loaded counts as memory, too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from buildtool.errors import PlanError
from buildtool.graph.types import Graph
from buildtool.plan.types import Plan
from buildtool.service.pipeline.options import PlanOptions
from buildtool.target.types import Board, Target

ATTEMPTS = 8
Planner = Callable[[Graph, Target, PlanOptions], Plan]


def loads_weights(board: Board) -> bool:
    """Whether constants have to be brought into the arena before kernels read them."""
    return board.memory(board.weights).bandwidth > 0


def loaded(graph: Graph, target: Target) -> tuple[tuple[int, int], ...]:
    """By operator: bytes of its constants, and the least of them that it needs while it runs alone."""
    from buildtool.plan.assemble.loads import constants
    from buildtool.plan.place.arena import round_up
    from buildtool.target import catalogue

    kernels = catalogue.select_all(target, graph)
    blocks = constants(graph, kernels)
    alignment = target.board.alignment
    found = []
    for position, op in enumerate(graph.ops):
        block = blocks.get(position)
        whole = round_up(block.size, alignment) if block else 0
        alone = block.least_bytes(graph.tensors[op.outputs[0]].nhwc) if block else 0
        found.append((whole, round_up(alone, alignment)))
    return tuple(found)


def plan_with_loads(planner: Planner, graph: Graph, target: Target, options: PlanOptions) -> Plan:
    """The planner's plan with buffers for constants, within the memory that the options allow.

    A planner that keeps a limit is asked again with a lower one until both fit together. What is least
    without constants may not be with them: with the least memory as the objective, the plan layer by
    layer is looked at as well. The plan may be too large all the same, as the planner's own.
    """
    from buildtool.plan.summary.fit import available_bytes

    limit = min(options.ram or 1 << 40, available_bytes(target.board))
    asked, found, refused = limit, None, None
    for _ in range(ATTEMPTS):
        try:
            bare = planner(graph, target, replace(options, ram=asked) if asked < limit else options)
        except PlanError as error:
            refused = error
            break
        made = _loaded(bare, graph, target, options, limit)
        if found is None or made.arena_bytes < found.arena_bytes:
            found = made
        if made.arena_bytes <= limit or options.strategy != "best":
            break
        asked -= max(target.board.alignment, made.arena_bytes - limit)
        if asked <= 0:
            break
    whole = _layer_by_layer(graph, target, options, limit)
    if whole is not None and (found is None or whole.arena_bytes < found.arena_bytes):
        found = whole
    if found is None:
        assert refused is not None
        raise refused
    if options.ram is not None and found.arena_bytes > options.ram:
        raise PlanError(
            f"with the constants that are loaded into it the arena needs {found.arena_bytes} bytes, "
            f"{options.ram} are allowed: {found.arena_bytes - options.ram} too many",
            hint=f"--ram {found.arena_bytes}",
        )
    return found


def _layer_by_layer(graph: Graph, target: Target, options: PlanOptions, limit: int) -> Plan | None:
    """Where the least memory is asked for: the plan of whole operators, if its cost is allowed."""
    from buildtool.plan.assemble.layerwise import plan

    if (options.strategy, options.objective) != ("best", "ram") or options.image == "stream":
        return None
    bare = plan(graph, target, in_place=options.in_place, image=options.image)
    made = _loaded(bare, graph, target, options, limit)
    return made if options.max_cost is None or made.cost <= options.max_cost else None


def _loaded(bare: Plan, graph: Graph, target: Target, options: PlanOptions, limit: int) -> Plan:
    from buildtool.emit.sources import plan_kernels
    from buildtool.plan.assemble.loads import constants, with_loads

    kernels = plan_kernels(bare, target)
    blocks = constants(graph, kernels)
    goal = bare.arena_bytes if options.objective == "ram" else limit
    made = with_loads(bare, graph, target, kernels, blocks, goal, options.in_place)
    if made.moves and options.max_cost is not None and made.cost > options.max_cost:
        return with_loads(bare, graph, target, kernels, blocks, goal, options.in_place, enough=math.inf)
    return made
