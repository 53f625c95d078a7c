"""What a function's machine code says about its use of the stack; readers of instruction sets fill it in."""

from __future__ import annotations

from dataclasses import dataclass, field

MASK = 0xFFFFFFFF  # of an address


@dataclass
class Body:
    """How one function moves the stack pointer, and which addresses it calls.

    `frame`: the sum of all subtractions from the stack pointer, in bytes.
    `calls`: addresses of functions that run while the frame is on the stack.
    `tails`: targets of jumps into other functions, which run without the frame.
    `taken`: the addresses that it computes, for example to call them later.
    `is_indirect`: whether it calls a computed address.
    `unknown`: whether it moves the stack pointer by a number that is not known.
    """

    frame: int = 0
    calls: set[int] = field(default_factory=set)
    tails: set[int] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)
    is_indirect: bool = False
    unknown: bool = False


@dataclass(frozen=True)
class Code:
    """A function's bytes and their address. `literals` are ranges [low, high) of addresses that hold data."""

    address: int
    data: bytes
    literals: tuple[tuple[int, int], ...] = ()

    @property
    def end(self) -> int:
        """The first address after the function."""
        return self.address + len(self.data)

    def bits(self, address: int, count: int) -> int:
        """Returns the little-endian number in the `count` bytes at an address. Bytes after the function's end
        are left out.
        """
        at = address - self.address
        return int.from_bytes(self.data[at : at + count], "little")

    def __contains__(self, address: int) -> bool:
        return self.address <= address < self.end


class Reader:
    """The state while a function's instructions are read. `known` has the constants in registers, by
    register.
    """

    def __init__(self, code: Code) -> None:
        self.code, self.body = code, Body()
        self.known: dict[int, int] = {}

    def move_stack(self, by: int | None) -> None:
        """Records that `by` bytes are added to the stack pointer (None: not known). A positive number frees
        stack.
        """
        if by is None:
            self.body.unknown = True
        else:
            self.body.frame += max(0, -by)

    def jump(self, target: int) -> None:
        """Records a jump to `target`, which is a tail call if it leaves the function."""
        if target not in self.code:
            self.body.tails.add(target & MASK)

    def constant(self, register: int, sign: int = 1) -> int | None:
        """Returns the constant in a register as a signed number, times `sign`; None if it is not known."""
        value = self.known.get(register)
        return None if value is None else sign * signed(value, 32)

    def sum(self, register: int, number: int | None) -> int | None:
        """Returns the sum of the constant in a register and `number`; None if either is not known."""
        value = self.known.get(register)
        return None if value is None or number is None else value + number


def signed(value: int, bits: int) -> int:
    """Returns the value of a two's complement number of `bits` bits."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
