"""In which of a board's memories the arena is: the one that its file names, another, or two of them.

What the board reserves for the application stays in the memory that the board's file names.
"""

from __future__ import annotations

import dataclasses

from buildtool.base.errors import Hint, UsageError, suggest
from buildtool.target.types import Board, Memory, MemoryKind

MOST_ARENAS = 2


def holds_arena(board: Board, memory: Memory) -> bool:
    """Whether an arena can be in a memory: programs write it, byte by byte, as the board's file knows it."""
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
    for name in wanted:
        _refuse_unable(board, name)
    if len(wanted) > MOST_ARENAS or len(set(wanted)) < len(wanted):
        what = f"names {len(wanted)} memories; one, or two that differ, can hold the arena"
        raise UsageError(what, option="arena_in", hint=[suggest(arena_in=None)])
    kept_in = board.reserved_in or board.arena
    second = wanted[1] if len(wanted) > 1 else ""
    placed = dataclasses.replace(board, arena=wanted[0], second=second, reserved_in=kept_in)
    placed = board if placed.holders == board.holders else placed
    if placed.second and loads(placed):
        what = "constants that are loaded have their buffers in one memory; this board's come by a loader"
        raise UsageError(what, option="arena_in", hint=[suggest(arena_in=name) for name in wanted])
    return placed


def roomier(board: Board, size: int, state: int = 0) -> list[Hint]:
    """The settings that put an arena of so many bytes into another memory, which has room for it.

    `state`: bytes of the network's state, which does not move with it.
    """
    found = []
    for placed in (with_arena_in(board, name) for name in arena_memories(board)):
        room = placed.room(placed.arena, state)
        if room >= size and placed.holders != board.holders:
            found.append(suggest(f"{room} bytes are available there", arena_in=placed.arena))
    return found


def loads(board: Board) -> bool:
    """Whether constants are brought into the arena by a loader."""
    return board.memory(board.weights).bandwidth > 0


def _refuse_unable(board: Board, name: str) -> None:
    """UsageError unless the board has the memory, and an arena can be in it."""
    known = arena_memories(board)
    if name in known:
        return
    memory = next((memory for memory in board.memories if memory.name == name), None)
    if memory is None:
        why = f"is none of board '{board.name}'"
    elif memory.kind is not MemoryKind.RAM:
        why = "cannot hold the arena: programs do not write it"
    elif memory.bandwidth:
        why = "cannot hold the arena: it is reached by a loader, and not written in place"
    else:
        why = "cannot hold the arena: the board's file does not name it among its 'arenas'"
    hint = [*(suggest(arena_in=other) for other in known if other != board.arena), suggest(arena_in=None)]
    raise UsageError(f"memory '{name}' {why}", option="arena_in", hint=hint)
