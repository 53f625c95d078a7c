"""A function's machine code, and what it says about the stack."""

from __future__ import annotations

from dataclasses import dataclass, field

MASK = 0xFFFFFFFF  # of an address


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

    def bits(self, address: int, count: int) -> int:
        """The number in `count` bytes at an address of the function; bytes behind its end are missing."""
        at = address - self.address
        return int.from_bytes(self.data[at : at + count], "little")

    def __contains__(self, address: int) -> bool:
        return self.address <= address < self.end


class Reader:
    """What the instructions of one function did so far; `known`: the constants in registers."""

    def __init__(self, code: Code) -> None:
        self.code, self.body = code, Body()
        self.known: dict[int, int] = {}

    def move_stack(self, by: int | None) -> None:
        """The stack pointer is moved by so many bytes, None: not known; upwards is the way out."""
        if by is None:
            self.body.unknown = True
        else:
            self.body.frame += max(0, -by)

    def jump(self, target: int) -> None:
        """A jump, which is a tail call where it leaves the function."""
        if target not in self.code:
            self.body.tails.add(target & MASK)

    def constant(self, register: int, sign: int = 1) -> int | None:
        """A register's constant as a signed number, times `sign`; None if it is not known."""
        known = self.known.get(register)
        return None if known is None else sign * signed(known, 32)

    def sum(self, register: int, number: int | None) -> int | None:
        """A register's constant and a number; None if either is not known."""
        known = self.known.get(register)
        return None if known is None or number is None else known + number


def signed(value: int, bits: int) -> int:
    """A two's complement number of so many bits."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
