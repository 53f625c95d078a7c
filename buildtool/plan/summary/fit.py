"""Whether a plan's arena fits the board; if not, what binds and what would help."""

from __future__ import annotations

from buildtool.errors import PlanError, TargetError
from buildtool.graph.types import Graph
from buildtool.plan.assemble.layerwise import IMAGES
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.summary.binding import binding
from buildtool.plan.types import Plan
from buildtool.target.types import Board, Target


def available_bytes(board: Board) -> int:
    """Bytes the arena may have: its memory less what is reserved, and less the stack if that is there."""
    try:
        memory = board.memory(board.arena)
    except KeyError:
        raise TargetError(f"board '{board.name}' has no memory '{board.arena}' for the arena") from None
    stack = board.stack_bytes if board.data == board.arena else 0
    return max(0, memory.size - board.reserved_bytes - stack)


def fit(plan: Plan, target: Target, graph: Graph | None = None) -> None:
    """Raises PlanError if the arena is larger than the board leaves room for.

    The error gives required, available and excess bytes, the operator that binds, and the nearest
    settings that would do (with the graph: also the planner's own).
    """
    board = target.board
    available = available_bytes(board)
    excess = plan.arena_bytes - available
    if excess <= 0:
        return
    at = binding(plan, graph)
    raise PlanError(
        f"the arena requires {plan.arena_bytes} bytes, memory '{board.arena}' of board '{board.name}' has "
        f"{available} available: {excess} too many; {at.live_bytes} are live in this operator",
        operator=at.place or f"step {at.step}",
        hint="; ".join(_remedies(plan, target, graph, excess)),
    )


def _remedies(plan: Plan, target: Target, graph: Graph | None, excess: int) -> list[str]:
    """Settings that would make it fit, the cheapest for the user first; the nearest miss if none does."""
    board, found = target.board, []
    if graph is not None:
        better = _planner_settings(plan, target, graph)
        found += [text for size, text in better if size <= plan.arena_bytes - excess][:1] or [
            f"{text} (still {size - plan.arena_bytes + excess} too many)" for size, text in better[:1]
        ]
    if board.reserved_bytes >= excess:
        found.append(f"reserved_bytes = {board.reserved_bytes - excess} or less in the board's file")
    found.append(f"a memory '{board.arena}' of {board.memory(board.arena).size + excess} bytes or more")
    return found


def _planner_settings(plan: Plan, target: Target, graph: Graph) -> list[tuple[int, str]]:
    """Settings of the layer-by-layer planner with smaller arenas, as (bytes, words), smallest first."""
    options = []
    for image in IMAGES if plan.image != "stream" else ():
        other = plan_layerwise(graph, target, in_place="rows", image=image)
        if other.arena_bytes < plan.arena_bytes:
            words = f"in_place = rows, image = {image}: {other.arena_bytes} bytes"
            options.append((other.arena_bytes, words))
    return sorted(options)
