"""Whether a plan's arena fits the board. If not, the operator that needs the most memory, and remedies."""

from __future__ import annotations

from buildtool.base.errors import Hint, PlanError, TargetError, suggest
from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Session
from buildtool.graph.secondpass import without_second_passes
from buildtool.graph.types import Graph
from buildtool.plan.assemble.layerwise import IMAGES
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.summary.summary import binding
from buildtool.plan.types import Plan
from buildtool.target.choice import suggest_larger_memories
from buildtool.target.types import Board, Target


def available_bytes(board: Board, state: int = 0) -> int:
    """Returns the bytes available to the arena in all of its memories.

    They are what the memories have besides reserved bytes, stack and state. `state`: bytes that the network
    keeps between invokes.
    """
    return sum(rooms(board, state))


def rooms(board: Board, state: int = 0) -> tuple[int, ...]:
    """Returns the bytes available to the arena in each of its memories.

    `state`: bytes that the network keeps between invokes. Raises TargetError if the board has no such memory.
    """
    try:
        return tuple(board.room(name, state) for name in board.holders)
    except KeyError:
        raise TargetError(f"board '{board.name}' has no memory '{board.arena}' for the arena") from None


def check_state_fits(board: Board, state: int) -> None:
    """Raises PlanError if the memory of globals is too small for a network's state, even without an arena.

    `state`: its bytes.
    """
    memory = board.memory(board.data)
    room = board.room(board.data)
    if state > room:
        raise PlanError(
            f"the network keeps {state} bytes between invokes, but memory '{memory.name}' of board "
            f"'{board.name}' has only {room} for them, {state - room} too many",
            hint="a board with more RAM, or a network that keeps less",
        )


def excess_bytes(board: Board, plan: Plan) -> int:
    """Returns the bytes by which a plan's arenas exceed their memories, summed over the memories."""
    return sum(
        max(0, size - room) for size, room in zip(plan.arenas, rooms(board, plan.state_bytes), strict=False)
    )


def holds(board: Board, plan: Plan) -> bool:
    """Returns whether each of the arena's memories has room for what the plan places in it."""
    return not excess_bytes(board, plan)


def fit(plan: Plan, target: Target, graph: Graph, session: Session | None = None) -> None:
    """Raises PlanError if the plan's arena does not fit into the board's memory.

    The error gives required, available and excess bytes, the operator with the most live bytes, and the
    nearest settings that would fit. `session`: it may already have the plan's timeline.
    """
    board = target.board
    available = rooms(board, plan.state_bytes)[0]
    excess = excess_bytes(board, plan)
    if excess <= 0:
        return
    check_state_fits(board, plan.state_bytes)
    at = binding(plan, graph, session)
    second_note = f" (and no way was found to divide it with '{board.second}')" if board.second else ""
    raise PlanError(
        f"the arena requires {plan.arena_bytes} bytes, but memory '{board.arena}' of board "
        f"'{board.name}' has only {available} available{board.describe_other_contents(board.arena)}, "
        f"{excess} too many{second_note}; "
        f"{at.live_bytes} bytes are in use while this operator runs",
        operator=at.operator,
        hint=_remedies(plan, target, graph, excess),
    )


def _remedies(plan: Plan, target: Target, graph: Graph, excess: int) -> list[Hint]:
    """Returns hints for settings with which the plan fits, the cheapest one for the user first.

    `excess`: by how many bytes the arena is too large.
    """
    board, hints = target.board, list[Hint]()
    better = _smaller_images(plan, target, graph)
    room = plan.arena_bytes - excess
    hints += [
        suggest(f"{size} bytes", in_place=InPlace.ROWS, image=image) for size, image in better if size <= room
    ][:1]
    hints += suggest_larger_memories(board, plan.arena_bytes, plan.state_bytes)
    if board.reserved_bytes >= excess and not board.describe_other_contents(board.arena):
        hints.append(Hint(f"reserved_bytes = {board.reserved_bytes - excess} or less in the board's file"))
    hints.append(Hint(f"a memory '{board.arena}' of {board.memory(board.arena).size + excess} bytes or more"))
    return hints


def _smaller_images(plan: Plan, target: Target, graph: Graph) -> list[tuple[int, str]]:
    """Returns (bytes, image mode) of layerwise plans with fewer bytes than `plan`, ascending."""
    options = []
    for image in IMAGES if plan.image != Image.STREAM else ():
        other = plan_layerwise(without_second_passes(graph), target, in_place=InPlace.ROWS, image=image)
        if other.arena_bytes < plan.arena_bytes:
            options.append((other.arena_bytes, str(image)))
    return sorted(options)
