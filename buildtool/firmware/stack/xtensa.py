"""Reads Xtensa code with the call0 ABI for what moves the stack pointer, calls or jumps."""

from __future__ import annotations

from collections.abc import Callable

from buildtool.firmware.stack.body import MASK, Body, Code, Reader, signed

SP = 1
_NARROW = 8  # the smallest value of the lowest four bits of an instruction of 16 bits

# Three-register instructions with the destination in bits 12-15: value of bits 16-19 -> values of bits 20-23.
_TO_R = {
    0: {1, 2, 3, 6, *range(8, 16)},  # and, or, xor, neg, add, sub and similar
    1: set(range(15)) - {6},  # shifts, 16-bit products
    2: set(range(16)),  # products, quotients
    3: set(range(2, 12)),  # minima, conditional moves
    4: set(range(16)),  # extui
    5: set(range(16)),
}
_TO_T = {(3, 0), (1, 6), (0, 4)}  # rsr, xsr, nsau and similar
_TO_SHIFT = range(5)  # values of bits 12-15 among those of (0, 4): ssr, ssl, ssai set the shift amount
_LOADS = {0, 1, 2, 9, 11}  # in the group of loads, stores, movi, addi and addmi
_MOVI, _ADDI, _ADDMI = 10, 12, 13


def read_body(code: Code, word: Callable[[int], int | None]) -> Body:
    """Returns a function's use of the stack pointer, and its calls.

    Instructions are read along branches and jumps, because bytes after a jump may be padding. `word` returns
    the 32-bit word at an address of the image. For functions of the windowed ABI the use is unknown.
    """
    reader = _Reader(code, word)
    seen: set[int] = set()
    while reader.waiting:
        at = reader.waiting.pop()
        reader.known.clear()
        while at in code and at not in seen:
            seen.add(at)
            at = reader.read(at)
    return reader.body


class _Reader(Reader):
    def __init__(self, code: Code, word: Callable[[int], int | None]) -> None:
        super().__init__(code)
        self.word = word
        self.frames: set[int] = set()  # registers that hold a copy of the stack pointer
        self.waiting = [code.address]  # addresses of instructions

    def read(self, at: int) -> int:
        """Reads the instruction at `at`. Returns the address of the next one; -1 if the code does not go on
        there.
        """
        bits = self.code.bits(at, 3)
        if bits & 15 >= _NARROW:
            self._read_narrow(at, bits & 0xFFFF)
            return -1 if bits & 0xFFFF == 0xF00D else at + 2  # ret.n
        self._read_full(at, bits)
        ends = bits & 0x3F == 6 or (bits & 0xFFF00F == 0 and bits >> 4 & 15 in (8, 10))  # j; ret, jx
        return -1 if ends else at + 3

    def jump(self, target: int) -> None:
        """Records a jump. If its target is in the function, the instructions there will be read, too."""
        super().jump(target)
        if target in self.code:
            self.waiting.append(target)

    def _set(self, register: int, value: int | None = None) -> None:
        """Records that a register gets a value (None: not known). If it is the stack pointer, the function's
        use of stack is unknown.
        """
        if register == SP:
            self.body.unknown = True
        self.known.pop(register, None)
        if value is not None:
            self.known[register] = value & MASK

    def _move(self, to: int, source: int) -> None:
        if to == SP:
            self.body.unknown |= source not in self.frames and source != SP
        else:
            self._set(to, self.known.get(source))
            if source == SP:
                self.frames.add(to)

    def _add(self, to: int, source: int, number: int | None) -> None:
        """Records an instruction that computes `to` = `source` + `number` (None: not known)."""
        if to == source == SP:
            self.move_stack(number)
        else:
            self._set(to, self.sum(source, number))

    def _read_narrow(self, at: int, bits: int) -> None:
        """Reads an instruction of 16 bits."""
        group, t, s, r = bits & 15, bits >> 4 & 15, bits >> 8 & 15, bits >> 12
        if group == 8:  # l32i.n
            self._set(t)
        elif group == 10:  # add.n
            first, second = (t, s) if t == SP else (s, t)
            self._add(r, first, self.constant(second))
        elif group == 11:  # addi.n
            self._add(r, s, t or -1)
        elif group == 12 and t < 8:  # movi.n
            number = (t & 7) << 4 | r
            self._set(s, number - 128 if number >= 96 else number)
        elif group == 12:  # beqz.n, bnez.n
            self.jump(at + 4 + ((t & 3) << 4 | r))
        elif group == 13 and r == 0:  # mov.n
            self._move(t, s)

    def _read_full(self, at: int, bits: int) -> None:
        """Reads an instruction of 24 bits."""
        group, t, s, r = bits & 15, bits >> 4 & 15, bits >> 8 & 15, bits >> 12 & 15
        if group == 0:
            self._read_registers(bits, t, s, r)
        elif group == 1:  # l32r
            value = self.word((at + 3 & ~3) + signed(bits >> 8 | 0xFFFF0000, 32) * 4 & MASK)
            self._set(t, value)
            self.body.taken |= {value} if value is not None else set()
        elif group == 2 and r == _MOVI:
            self._set(t, signed(bits >> 16 | s << 8, 12))
        elif group == 2 and r in (_ADDI, _ADDMI):
            self._add(t, s, signed(bits >> 16, 8) * (256 if r == _ADDMI else 1))
        elif group == 2 and r in _LOADS:
            self._set(t)
        elif group == 5:  # call0, or a call of the windowed ABI
            self.body.unknown |= t & 3 != 0
            self.body.calls.add((at & ~3) + 4 * signed(bits >> 6, 18) + 4 & MASK)
        elif group == 6 and t & 3 == 0:  # j
            self.jump(at + 4 + signed(bits >> 6, 18))
        elif group == 6 and t & 3 == 1:  # a branch by a comparison with zero
            self.jump(at + 4 + signed(bits >> 12, 12))
        elif group == 6 and t == 3:  # entry
            self.body.unknown = True
        elif group in (6, 7):  # other branches
            self.jump(at + 4 + signed(bits >> 16, 8))

    def _read_registers(self, bits: int, t: int, s: int, r: int) -> None:
        first, second = bits >> 16 & 15, bits >> 20
        if bits >> 12 == 0:  # ret, jx, callx
            self.body.is_indirect |= t in (10, 12)
            self.body.unknown |= t >> 2 == 3 and t != 12
        elif (first, second) == (0, 2) and s == t:  # mov
            self._move(r, s)
        elif first == 0 and second in (8, 12) and r == s:  # add, sub
            self._add(r, s, self.constant(t, 1 if second == 8 else -1))
        elif first == 3 and second in (8, 9) and r == s:
            pass  # a marker: a conditional move to itself
        elif second in _TO_R.get(first, ()):
            self._set(r)
        elif (first, second) in _TO_T and not ((first, second) == (0, 4) and r in _TO_SHIFT):
            self._set(t)
