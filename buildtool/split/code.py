"""What code a network's firmware takes of flash, before it is built: from the sizes recorded for its core."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildtool.base.session import Session
    from buildtool.graph.types import Graph
    from buildtool.plan.types import Plan
    from buildtool.target.types import Board, Target


def code_bytes(graph: Graph, plan: Plan, target: Target, session: Session) -> int | None:
    """Bytes of flash beside the weight image at most: code and constants of network, kernels, test firmware.

    Counted for the newest recorded compiler of the board's first toolchain, whatever is installed: the same
    network has the same figure on every machine. None where nothing is recorded, or code is in no flash.
    """
    from buildtool.emit.sources import emit
    from buildtool.plan.choose.bound import bound

    board = target.board
    if not in_flash(board, board.code):
        return None
    sources = emit(graph, plan, target, "network", session)
    found = bound(sources, plan, target, "")
    if found is None:
        return None
    memories = {name for name in (board.code, board.weights) if in_flash(board, name)}
    weights = len(sources.image.data) if board.weights in memories else 0
    return sum(found.use(name).bytes for name in memories) - weights


def in_flash(board: Board, name: str) -> bool:
    """Whether a memory of a board keeps what is in it without power."""
    from buildtool.target.hardware import MemoryKind

    return board.memory(name).kind is not MemoryKind.RAM


def room(board: Board, weights: int) -> int:
    """Bytes of flash that a board has for code, beside a weight image of so many bytes."""
    whole = board.memory(board.code).size
    return max(0, whole - weights) if board.code == board.weights else whole
