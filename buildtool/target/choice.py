"""Makes a target with its kernels from the user's choice of board, library, memories and threads.

The user may choose other memories for the arena, the weights and the kernels than the board's file,
and use fewer threads. Memory that the board reserves for the application stays where the file puts it.
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
    """Returns `target` if it is a TargetChoice; otherwise a TargetChoice of that board without other
    settings.
    """
    return target if isinstance(target, TargetChoice) else TargetChoice(target)


def load_board(board: Named) -> Board:
    """Returns the board with a known name, or that of the user's file."""
    from buildtool.target import registry

    file = to_file(board, BOARD_SUFFIXES)
    if isinstance(file, str):
        return registry.load_board(file)
    if file.data is None and not file.exists():
        return registry.load_board(file.path)  # raises the error for a missing file
    return registry.load_board(file.path, file.read("the board's file", MOST_BOARD_BYTES))


def link_of(choice: TargetChoice, board: Board) -> str:
    """Returns the link by which test firmware answers: "serial", "rtt" or "semihosting"; "" if it reads and
    writes files instead.
    """
    if choice.wire != ANY_WIRE:
        return choice.wire
    return "serial" if board.uart is not None else "rtt"


def answers_by_files(choice: TargetChoice, board: Board) -> bool:
    """Whether the test firmware reads and writes files, which an emulator or a debugger provides."""
    return link_of(choice, board) in ("", "semihosting")


def load_target(target: TargetChoice, session: Session | None = None) -> Target:
    """Returns the board with its kernels, best first; those of a chosen library come before all others.

    A session remembers the target, unless a library is chosen: it cannot tell whether a library's files
    changed.
    """
    from buildtool.target.registry import make_target

    with_arena = with_threads(with_arena_in(load_board(target.board), target.arena_in), target.threads)
    board = with_kernels_in(with_weights_in(with_arena, target.weights_in), target.kernels_in)
    libraries = {"cmsis_nn": target.cmsis_nn} if target.cmsis_nn else {}
    if session is None or libraries:
        return make_target(board, libraries, target.requantise)
    key = (board, target.requantise)
    return session.remember("targets", key, lambda: make_target(board, {}, target.requantise))


def holds_arena(board: Board, memory: Memory) -> bool:
    """Whether a memory can hold an arena: programs can write its bytes, and the board's file allows it."""
    writes = memory.kind is MemoryKind.RAM and not memory.bandwidth
    return writes and (not board.arenas or memory.name in board.arenas)


def arena_memories(board: Board) -> list[str]:
    """Returns the names of the memories that can hold an arena, in the order of the board's file."""
    return [memory.name for memory in board.memories if holds_arena(board, memory)]


def with_arena_in(board: Board, names: str | None) -> Board:
    """Returns the board with its arena in one or two memories, whose names are separated by a comma.

    If `names` is None, they are those of the board's file. Raises UsageError for an unknown memory, for one
    that cannot hold an arena, and for two memories if constants are loaded into the arena.
    """
    if names is None:
        return board
    requested = [name.strip() for name in names.split(",")]
    usable = arena_memories(board)
    for name in requested:
        if name in usable:
            continue
        memory = next((memory for memory in board.memories if memory.name == name), None)
        if memory is None:
            why = f"does not exist on board '{board.name}'"
        elif memory.kind is not MemoryKind.RAM:
            why = "cannot hold the arena: programs cannot write it"
        elif memory.bandwidth:
            why = "cannot hold the arena: only a loader can access it"
        else:
            why = "cannot hold the arena: it is not in 'arenas' of the board's file"
        hint = [
            *(suggest(arena_in=other) for other in usable if other != board.arena),
            suggest(arena_in=None),
        ]
        raise UsageError(f"memory '{name}' {why}", option="arena_in", hint=hint)
    if len(requested) > MOST_ARENAS or len(set(requested)) < len(requested):
        what = f"names {len(requested)} memories; it must name one, or two different ones"
        raise UsageError(what, option="arena_in", hint=[suggest(arena_in=None)])
    reserved_in = board.reserved_in or board.arena
    second = requested[1] if len(requested) > 1 else ""
    placed = replace(board, arena=requested[0], second=second, reserved_in=reserved_in)
    placed = board if placed.holders == board.holders else placed
    if placed.second and loads(placed):
        what = "the arena must be in one memory on this board, because its constants are loaded into it"
        raise UsageError(what, option="arena_in", hint=[suggest(arena_in=name) for name in requested])
    return placed


def suggest_larger_memories(board: Board, size: int, state: int = 0) -> list[Hint]:
    """Returns hints with settings that put an arena of `size` bytes into another memory with enough room.
    `state` are the bytes that the network keeps between invokes.
    """
    hints = []
    for placed in (with_arena_in(board, name) for name in arena_memories(board)):
        room = placed.room(placed.arena, state)
        if room >= size and placed.holders != board.holders:
            hints.append(suggest(f"{room:,} bytes are available there", arena_in=placed.arena))
    return hints


def loads(board: Board) -> bool:
    """Whether a loader copies constants into the arena on this board."""
    return board.memory(board.weights).bandwidth > 0


def holds_weights(board: Board, memory: Memory) -> bool:
    """Whether a memory can hold weights: it is ROM, a loader reads it, or start-up code can copy them into
    it. Weights that are updated in a partition of their own are not copied.
    """
    if memory.name in board.holders:
        return False
    if memory.kind is MemoryKind.ROM or memory.bandwidth:
        return True
    apart = board.image.weights_start is not None or board.image.slot_bytes
    return _copies_into_ram(board) and not apart


def copies_weights(board: Board) -> bool:
    """Whether the board's start-up code copies the weights from the code's memory into their RAM."""
    return board.reads_weights_in_ram and _copies_into_ram(board)


def _copies_into_ram(board: Board) -> bool:
    """Whether the board's start-up code copies kernels and weights into RAM."""
    from buildtool.target.registry import plugin

    copies = getattr(plugin(board), "copies_into_ram", False)
    return copies and board.memory(board.code).kind is MemoryKind.ROM


def with_weights_in(board: Board, name: str | None) -> Board:
    """Returns the board with its weights in the memory `name` (None: that of its file). Raises UsageError if
    this memory does not exist or cannot hold weights.
    """
    if name is None or name == board.weights:
        return board
    usable = [memory.name for memory in board.memories if holds_weights(board, memory)]
    if name not in usable:
        exists = any(memory.name == name for memory in board.memories)
        why = "cannot hold the weights" if exists else f"does not exist on board '{board.name}'"
        others = [suggest(weights_in=other) for other in usable if other != board.weights]
        hint = [*others, suggest(weights_in=None)]
        raise UsageError(f"memory '{name}' {why}", option="weights_in", hint=hint)
    return replace(board, weights=name)


def holds_kernels(board: Board, memory: Memory) -> bool:
    """Whether start-up code can copy kernels into a memory: a RAM without arena."""
    writes = memory.kind is MemoryKind.RAM and not memory.bandwidth
    return writes and memory.name not in board.holders


def with_kernels_in(board: Board, name: str | None) -> Board:
    """Returns the board with its kernels in memory `name` (None: its file's choice); raises UsageError."""
    name = board.kernels if name is None else name
    if name in ("", board.code):
        return replace(board, kernels="") if board.kernels else board
    if not _copies_into_ram(board):
        what = f"the start-up code of board '{board.name}' copies no kernels"
        raise UsageError(what, option="kernels_in", hint=suggest(kernels_in=board.code))
    usable = [memory.name for memory in board.memories if holds_kernels(board, memory)]
    if name not in usable:
        exists = any(memory.name == name for memory in board.memories)
        why = "cannot hold the kernels: it must be a RAM without the arena"
        why = why if exists else f"does not exist on board '{board.name}'"
        hint = [suggest(kernels_in=other) for other in (*usable, board.code)]
        raise UsageError(f"memory '{name}' {why}", option="kernels_in", hint=hint)
    return replace(board, kernels=name)


def with_threads(board: Board, threads: int | None) -> Board:
    """Returns the board with `threads` threads of its core in use (None: all). Raises UsageError if the core
    has fewer threads, or only one.
    """
    most = board.core.threads
    if threads is None:
        return board
    if most == 1:
        text = f"this option has no effect on board '{board.name}', whose core has one thread"
        raise UsageError(text, option="threads", hint=suggest(threads=None))
    if threads > most:
        text = f"board '{board.name}' has {most} threads, not {threads}"
        raise UsageError(text, option="threads", hint=suggest(threads=most))
    estimate = board.estimate
    if estimate is not None and threads < most:
        rate = estimate.macs_per_second * threads // most
        source = f"{estimate.source}, {threads} of {most} threads"
        estimate = replace(estimate, macs_per_second=rate, source=source)
    return replace(board, core=board.core.with_threads(threads), estimate=estimate)
