"""From what a user names (a board, a library) to a target with its kernels, and its compiler."""

from __future__ import annotations

from buildtool.base.files import Named, to_file
from buildtool.base.session import Session
from buildtool.options import BOARD_SUFFIXES
from buildtool.options.values import ANY_WIRE, TargetChoice
from buildtool.target.types import Board, Target

MOST_BOARD_BYTES = 1 << 20


def choice(target: TargetChoice | Named) -> TargetChoice:
    """The choice itself; of a board alone: without more."""
    return target if isinstance(target, TargetChoice) else TargetChoice(target)


def load_board(board: Named) -> Board:
    """A board by its name, or from a file of the user's."""
    from buildtool.target import registry

    found = to_file(board, BOARD_SUFFIXES)
    if isinstance(found, str):
        return registry.load_board(found)
    if found.data is None and not found.exists():
        return registry.load_board(found.path)  # says that there is no such file
    return registry.load_board(found.path, found.read("the board's file", MOST_BOARD_BYTES))


def wire_of(choice: TargetChoice, board: Board) -> str:
    """How the test firmware of a choice answers: "serial", "rtt", or "" for by files."""
    if choice.wire != ANY_WIRE:
        return choice.wire
    return "serial" if board.uart is not None else "rtt"


def answers_by_files(choice: TargetChoice, board: Board) -> bool:
    """Whether the test firmware of a choice reads and writes files, through an emulator or debugger."""
    return wire_of(choice, board) in ("", "semihosting")


def load_target(target: TargetChoice, session: Session | None = None) -> Target:
    """The board with its kernels, best first; those of CMSIS-NN before them where that is asked for.

    Made once in a session for the same board: its files are compared, a library's are not.
    """
    if session is None or target.cmsis_nn:
        return _made(target)
    board = _board(target)
    return session.remember("targets", (board, target.requantise), lambda: _made(target, board))


def _board(target: TargetChoice) -> Board:
    from buildtool.target.arena_in import with_arena_in
    from buildtool.target.threads import with_threads
    from buildtool.target.weights_in import with_weights_in

    placed = with_arena_in(load_board(target.board), target.arena_in)
    return with_weights_in(with_threads(placed, target.threads), target.weights_in)


def _made(target: TargetChoice, board: Board | None = None) -> Target:
    from buildtool.target.registry import make_target

    board = board or _board(target)
    libraries = {"cmsis_nn": target.cmsis_nn} if target.cmsis_nn else {}
    return make_target(board, libraries, target.requantise)
