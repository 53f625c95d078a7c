"""What a network's firmware takes of each memory of a board, and what it consists of.

Names and types only: see `linked` for exact figures, `bound` for those from recorded sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ARENA, AROUND, STACK, GUARD = "arena", "around the arena", "stack", "stack guard"
WEIGHTS, ALIGNMENT, INITIAL = "weights", "alignment", "initial values of variables"
NETWORK, KERNELS, FIRMWARE = "network", "kernels", "start-up and test firmware"
CODE, VARIABLES = (
    "code and constants",
    "variables",
)  # of the network, the kernels, or the firmware around them
RESERVED = "reserved for the application"
STATE = "state of the network"  # kept between invokes, with the variables


@dataclass(frozen=True)
class Part:
    """A part of what lies in a memory, in bytes."""

    name: str
    bytes: int


@dataclass(frozen=True)
class MemoryUse:
    """What firmware takes of a memory, from its base to the end of the last section, and of what parts."""

    memory: str
    bytes: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Footprint:
    """What firmware takes of the memories that it uses.

    `compiler`: what it is compiled by. `exact`: these are the figures of the linked image; otherwise none is
    below its figure there.
    """

    compiler: str
    exact: bool
    uses: tuple[MemoryUse, ...]

    def use(self, memory: str) -> MemoryUse:
        """What is taken of a memory; nothing where it is not used."""
        return next((use for use in self.uses if use.memory == memory), MemoryUse(memory, 0, ()))


def parts_of(sizes: Mapping[str, int], total: int) -> tuple[Part, ...]:
    """Parts by size, the largest first; what is missing to `total` are gaps between them."""
    rest = total - sum(sizes.values())
    every = {**sizes, **({ALIGNMENT: rest} if rest else {})}
    return tuple(
        Part(name, size) for name, size in sorted(every.items(), key=lambda p: (-p[1], p[0])) if size
    )
