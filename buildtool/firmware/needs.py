"""Lists the bytes of firmware in a board's memories, by part, and compares them with what is available.

Exact figures come from counting.py, upper bounds from bound.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtool.base.errors import Hint, PlanError, suggest
from buildtool.target.choice import copies_weights
from buildtool.target.hardware import MemoryKind
from buildtool.target.partitions import weights_room
from buildtool.target.types import Board, Target

if TYPE_CHECKING:
    from buildtool.options.values import PlanOptions
    from buildtool.plan.types import Plan

ARENA, AROUND, STACK, GUARD = "arena", "guard bytes around the arena", "stack", "stack guard"
WEIGHTS, ALIGNMENT, INITIAL = "weights", "alignment", "initial values of variables"
NETWORK, KERNELS, FIRMWARE = "network", "kernels", "start-up and test firmware"
CODE, VARIABLES = "code and constants", "variables"  # of the network, the kernels, the firmware
RESERVED = "reserved for the application"
STATE = "state of the network"  # it lives between invokes, with the variables


@dataclass(frozen=True)
class Part:
    """A named part of a memory's content, and its size in bytes."""

    name: str
    bytes: int


@dataclass(frozen=True)
class MemoryUse:
    """The bytes that firmware uses in a memory, and their parts.

    `bytes` counts from the memory's base to the end of the last section.
    """

    memory: str
    bytes: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Footprint:
    """The bytes of firmware, compiled by `compiler`, in each memory that it uses.

    If `exact` is true, the figures are those of the linked image. Otherwise they are upper bounds.
    """

    compiler: str
    exact: bool
    uses: tuple[MemoryUse, ...]

    def use(self, memory: str) -> MemoryUse:
        """Returns what firmware uses in a memory, with 0 bytes if it does not use the memory."""
        return next((use for use in self.uses if use.memory == memory), MemoryUse(memory, 0, ()))


def parts_of(sizes: Mapping[str, int], total: int) -> tuple[Part, ...]:
    """Returns the parts with their bytes, the largest first. The rest of `total` is one more part:
    alignment.
    """
    gaps = total - sum(sizes.values())
    every = {**sizes, **({ALIGNMENT: gaps} if gaps else {})}
    return tuple(Part(name, n) for name, n in sorted(every.items(), key=lambda p: (-p[1], p[0])) if n)


# ---- needs of a plan -----------------------------------------------------------------------------


_MORE_FLASH = "take a board with more flash or a narrower network"
_MORE_ROOM = f"{_MORE_FLASH}, or give the weights more room below [image] in the board's file"


@dataclass(frozen=True)
class Need:
    """The bytes that firmware needs in a memory, or within an option's limit, and those that are available.

    `what` is "RAM" or "flash"; it is "arena limit" or "weights limit" for the options `ram` and `max_flash`.
    """

    what: str
    memory: str
    required: int
    available: int
    parts: tuple[Part, ...] = ()

    @property
    def name(self) -> str:
        """The need's name for texts, such as "RAM (psram)"; only "RAM" if the memory itself is called
        "ram".
        """
        same = self.what not in ("RAM", "flash") or self.what.lower() == self.memory
        return self.what if same else f"{self.what} ({self.memory})"

    @property
    def excess(self) -> int:
        """The number of bytes that are missing; 0 if none is."""
        return max(0, self.required - self.available)


def needs(plan: Plan, target: Target, image_bytes: int, options: PlanOptions) -> tuple[Need, ...]:
    """Returns the needs that are known without a compiler: those of arenas and weights, then those of limits.

    `image_bytes` is the size of the weight image.
    """
    board = target.board
    weights = board.memory(board.weights)
    first, *second = (
        _count_arena_need(board, name, size, plan.state_bytes)
        for name, size in zip(board.holders, plan.arenas, strict=False)
    )
    return (
        first,
        Need("flash", weights.name, image_bytes, weights_room(board), (Part(WEIGHTS, image_bytes),)),
        *second,
        *_list_limits(plan, target, image_bytes, options),
    )


def _count_arena_need(board: Board, name: str, size: int, state: int) -> Need:
    """Returns the need of a memory that holds an arena of `size` bytes, and other reserved bytes.

    `state` are the bytes that the network keeps between invokes.
    """
    memory = board.memory(name)
    required = memory.size - board.room(name, state) + size
    around = {ARENA: size, STATE: state if board.data == name else 0}
    if board.describe_other_contents(name):
        around.update({one.what: one.bytes for one in board.firmware if one.memory == name})
    else:
        stack = board.stack_bytes if board.data == name else 0
        around.update({STACK: stack, RESERVED: board.reserved_for_others(name) - stack})
    return Need("RAM", name, required, memory.size, parts_of(around, required))


def needs_of(
    footprint: Footprint, plan: Plan, target: Target, image_bytes: int, options: PlanOptions
) -> tuple[Need, ...]:
    """Returns the needs in every memory that firmware uses, then those of the options' limits.

    The memories of the arena and the weights come first. `image_bytes` is the size of the weight image.
    """
    board = target.board
    arenas = dict(zip(board.holders, plan.arenas, strict=False))
    rows = []
    for name in dict.fromkeys((board.arena, board.weights, *arenas, board.data, board.code, board.kernels)):
        if not name:
            continue
        memory, use = board.memory(name), footprint.use(name)
        required, parts = use.bytes, use.parts
        reserved = arenas[name] + board.reserved_for_others(name, plan.state_bytes) if name in arenas else 0
        if reserved > required:  # bytes for the application besides this firmware
            parts, required = (*parts, Part(RESERVED, reserved - required)), reserved
        kind = "RAM" if memory.kind is MemoryKind.RAM else "flash"
        rows.append(Need(kind, name, required, memory.size, parts))
    return (*rows, *_list_limits(plan, target, image_bytes, options))


def _list_limits(plan: Plan, target: Target, image_bytes: int, options: PlanOptions) -> list[Need]:
    """Returns the needs of the arena and the weight image, compared with the limits that the options give."""
    board, rows = target.board, []
    if options.ram is not None:
        rows.append(Need("arena limit", board.arena, plan.arena_bytes, options.ram))
    if options.max_flash is not None:
        rows.append(Need("weights limit", board.weights, image_bytes, options.max_flash))
    return rows


def refuse_weights(target: Target, options: PlanOptions, image_bytes: int) -> None:
    """Raises PlanError if the weight image does not fit the board, or exceeds the option `max_flash`."""
    board = target.board
    memory, room = board.memory(board.weights), weights_room(board)
    most = room if options.max_flash is None else min(options.max_flash, room)
    if image_bytes <= most:
        return
    where, hint = f"memory '{memory.name}' of {board.name}", Hint(_MORE_FLASH)
    if room < memory.size:  # a partition, or a memory with code in it
        where = f"the weights' {'slot' if board.image.slot_bytes else 'partition'} in {where}"
        hint = Hint(_MORE_ROOM)
    if copies_weights(board):
        hint = suggest(weights_in=board.code)
    limit = f"{where} has {most:,}"
    if most < room:
        limit = f"{most:,} are allowed"
        hint = suggest(max_flash=image_bytes) if image_bytes <= room else hint
    text = f"the weight image requires {image_bytes:,} bytes, {limit}: {image_bytes - most:,} too many"
    raise PlanError(text, hint=hint)
