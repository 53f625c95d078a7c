"""From a user's board and library to a target with its kernels.

The user may name other memories for the arena and the weights than the board's file does, and use fewer
threads. Memory that the board reserves for the application stays where the file puts it.
"""

from __future__ import annotations

from dataclasses import replace

from buildtool.base.errors import Hint, UsageError, suggest
from buildtool.base.files import Named, to_file
from buildtool.base.session import Session
from buildtool.options import BOARD_SUFFIXES
from buildtool.options.values import ANY_WIRE, TargetChoice
from buildtool.target.hardware import Memory, MemoryKind
from buildtool.target.types import Board, Target

MOST_BOARD_BYTES = 1 << 20
MOST_ARENAS = 2


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
    """The board with its kernels, best first, those of a wanted library before them.

    A session keeps the target of a board without a library, whose files it does not compare.
    """
    from buildtool.target.registry import make_target

    placed = with_threads(with_arena_in(load_board(target.board), target.arena_in), target.threads)
    board = with_weights_in(placed, target.weights_in)
    libraries = {"cmsis_nn": target.cmsis_nn} if target.cmsis_nn else {}
    if session is None or libraries:
        return make_target(board, libraries, target.requantise)
    key = (board, target.requantise)
    return session.remember("targets", key, lambda: make_target(board, {}, target.requantise))


def holds_arena(board: Board, memory: Memory) -> bool:
    """Whether an arena can be in a memory: programs write its bytes, and the board's file allows it."""
    writes = memory.kind is MemoryKind.RAM and not memory.bandwidth
    return writes and (not board.arenas or memory.name in board.arenas)


def arena_memories(board: Board) -> list[str]:
    """The memories that can hold an arena, in the order of the board's file."""
    return [memory.name for memory in board.memories if holds_arena(board, memory)]


def with_arena_in(board: Board, names: str | None) -> Board:
    """The board with its arena in the memories of `names`, one or two, separated by a comma.

    None: as its file says. UsageError for what is no memory of the board, or cannot hold an arena.
    """
    if names is None:
        return board
    wanted = [name.strip() for name in names.split(",")]
    able = arena_memories(board)
    for name in wanted:
        if name in able:
            continue
        memory = next((memory for memory in board.memories if memory.name == name), None)
        if memory is None:
            why = f"is none of board '{board.name}'"
        elif memory.kind is not MemoryKind.RAM:
            why = "cannot hold the arena: programs do not write it"
        elif memory.bandwidth:
            why = "cannot hold the arena: it is reached by a loader, and not written in place"
        else:
            why = "cannot hold the arena: the board's file does not name it among its 'arenas'"
        hint = [*(suggest(arena_in=other) for other in able if other != board.arena), suggest(arena_in=None)]
        raise UsageError(f"memory '{name}' {why}", option="arena_in", hint=hint)
    if len(wanted) > MOST_ARENAS or len(set(wanted)) < len(wanted):
        what = f"names {len(wanted)} memories; one, or two that differ, can hold the arena"
        raise UsageError(what, option="arena_in", hint=[suggest(arena_in=None)])
    kept_in = board.reserved_in or board.arena
    second = wanted[1] if len(wanted) > 1 else ""
    placed = replace(board, arena=wanted[0], second=second, reserved_in=kept_in)
    placed = board if placed.holders == board.holders else placed
    if placed.second and loads(placed):
        what = "constants that are loaded have their buffers in one memory; this board's come by a loader"
        raise UsageError(what, option="arena_in", hint=[suggest(arena_in=name) for name in wanted])
    return placed


def roomier(board: Board, size: int, state: int = 0) -> list[Hint]:
    """The settings that put an arena of `size` bytes into another memory with room; see `Board.kept`."""
    hints = []
    for placed in (with_arena_in(board, name) for name in arena_memories(board)):
        room = placed.room(placed.arena, state)
        if room >= size and placed.holders != board.holders:
            hints.append(suggest(f"{room} bytes are available there", arena_in=placed.arena))
    return hints


def loads(board: Board) -> bool:
    """Whether constants are brought into the arena by a loader."""
    return board.memory(board.weights).bandwidth > 0


def holds_weights(board: Board, memory: Memory) -> bool:
    """Whether weights can be in a memory: it keeps its contents, or they are brought from it by a loader."""
    return memory.name not in board.holders and (memory.kind is MemoryKind.ROM or memory.bandwidth > 0)


def with_weights_in(board: Board, name: str | None) -> Board:
    """The board with its weights in another of its memories (None: as its file says); UsageError."""
    if name is None or name == board.weights:
        return board
    known = [memory.name for memory in board.memories if holds_weights(board, memory)]
    if name not in known:
        there = any(memory.name == name for memory in board.memories)
        why = "cannot hold them" if there else f"is none of board '{board.name}'"
        others = [suggest(weights_in=other) for other in known if other != board.weights]
        hint = [*others, suggest(weights_in=None)]
        raise UsageError(f"memory '{name}' {why}", option="weights_in", hint=hint)
    return replace(board, weights=name)


def with_threads(board: Board, threads: int | None) -> Board:
    """The board with `threads` of its threads at work (None: all); UsageError if it has fewer or just one."""
    most = board.core.threads
    if threads is None:
        return board
    if most == 1:
        text = f"it has no effect on board '{board.name}', whose core has one thread"
        raise UsageError(text, option="threads", hint=suggest(threads=None))
    if threads > most:
        text = f"{threads} threads are asked for, and board '{board.name}' has {most}"
        raise UsageError(text, option="threads", hint=suggest(threads=most))
    estimate = board.estimate
    if estimate is not None and threads < most:
        rate = estimate.macs_per_second * threads // most
        source = f"{estimate.source}, {threads} of {most} threads"
        estimate = replace(estimate, macs_per_second=rate, source=source)
    return replace(board, core=board.core.with_threads(threads), estimate=estimate)
