"""A function's machine code, and what it says about the stack."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Body:
    """How far one function moves the stack pointer, in bytes, and the addresses that it calls.

    `frame`: the sum of all subtractions from the stack pointer. `calls` run on top of the frame, `tails`
    (jumps into other functions) in place of it. `is_indirect`: it calls an address that it computed; `taken`:
    addresses that it computes. `unknown`: it moves the stack pointer by an unknown number.
    """

    frame: int = 0
    calls: set[int] = field(default_factory=set)
    tails: set[int] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)
    is_indirect: bool = False
    unknown: bool = False


@dataclass(frozen=True)
class Code:
    """A function's bytes at their address; `literals`: ranges [low, high) of addresses that hold data."""

    address: int
    data: bytes
    literals: tuple[tuple[int, int], ...] = ()

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + len(self.data)

    def half(self, address: int) -> int:
        """The 16 bits at an even address of the function; 0 behind its end."""
        at = address - self.address
        return int.from_bytes(self.data[at : at + 2], "little")

    def word(self, address: int) -> int:
        """The 32 bits at an address of the function."""
        at = address - self.address
        return int.from_bytes(self.data[at : at + 4], "little")

    def __contains__(self, address: int) -> bool:
        return self.address <= address < self.end


def signed(value: int, bits: int) -> int:
    """A two's complement number of this many bits."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
