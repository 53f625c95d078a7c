"""Whether a plan's arena fits the board; if not, what binds and what would help."""

from __future__ import annotations

from buildtool.errors import Hint, PlanError, TargetError, suggest
from buildtool.graph.types import Graph
from buildtool.modes import Image, InPlace
from buildtool.plan.assemble.layerwise import IMAGES
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.summary.binding import binding
from buildtool.plan.types import Plan
from buildtool.session import Session
from buildtool.target.types import Board, Target


def available_bytes(board: Board) -> int:
    """Bytes the arena may have: its memory less what is reserved, and less the stack if that is there."""
    try:
        memory = board.memory(board.arena)
    except KeyError:
        raise TargetError(f"board '{board.name}' has no memory '{board.arena}' for the arena") from None
    stack = board.stack_bytes if board.data == board.arena else 0
    return max(0, memory.size - board.reserved_bytes - stack)


def fit(plan: Plan, target: Target, graph: Graph, session: Session | None = None) -> None:
    """Raises PlanError if the arena is larger than the board leaves room for.

    The error gives required, available and excess bytes, the operator that binds, and the nearest
    settings that would do. `session`: what may know the plan's timeline already.
    """
    board = target.board
    available = available_bytes(board)
    excess = plan.arena_bytes - available
    if excess <= 0:
        return
    at = binding(plan, graph, session)
    raise PlanError(
        f"the arena requires {plan.arena_bytes} bytes, but memory '{board.arena}' of board "
        f"'{board.name}' has only {available} available, {excess} too many; "
        f"{at.live_bytes} bytes are in use while this operator runs",
        operator=at.place or f"step {at.step}",
        hint=_remedies(plan, target, graph, excess),
    )


def _remedies(plan: Plan, target: Target, graph: Graph, excess: int) -> list[Hint]:
    """Settings that would make it fit, the cheapest for the user first; the nearest miss if none does."""
    board, found = target.board, list[Hint]()
    better = _smaller_images(plan, target, graph)
    room = plan.arena_bytes - excess
    found += [_modes(image, f"{size} bytes") for size, image in better if size <= room][:1] or [
        _modes(image, f"{size} bytes, still {size - room} too many") for size, image in better[:1]
    ]
    if board.reserved_bytes >= excess:
        found.append(Hint(f"reserved_bytes = {board.reserved_bytes - excess} or less in the board's file"))
    found.append(Hint(f"a memory '{board.arena}' of {board.memory(board.arena).size + excess} bytes or more"))
    return found


def _modes(image: str, text: str) -> Hint:
    return suggest(text, in_place=InPlace.ROWS, image=image)


def _smaller_images(plan: Plan, target: Target, graph: Graph) -> list[tuple[int, str]]:
    """Image modes with which the plan layer by layer is smaller than `plan`: (bytes, mode), ascending."""
    options = []
    for image in IMAGES if plan.image != Image.STREAM else ():
        other = plan_layerwise(graph, target, in_place=InPlace.ROWS, image=image)
        if other.arena_bytes < plan.arena_bytes:
            options.append((other.arena_bytes, str(image)))
    return sorted(options)
