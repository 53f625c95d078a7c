"""Reads RV32 and RV64 code, with compressed instructions, for what moves the stack pointer, calls or
jumps.
"""

from __future__ import annotations

from buildtool.firmware.stack.body import MASK, Body, Code, Reader, signed

RA, SP = 1, 2
_VLENB = 0xC22  # the CSR with the size of a vector register in bytes
_STACK_ALIGNMENT = 16


def read_body(code: Code, vector_bytes: int, is_64: bool = False) -> Body:
    """Returns a function's use of the stack pointer, and its calls.

    `vector_bytes` is the size of a vector register; frames for such registers are multiples of it. `is_64`
    says that it is code for RV64, whose addresses are below 2^32.
    """
    reader, at = _Reader(code), code.address
    reader.vector_bytes, reader.is_64, reader.known = vector_bytes, is_64, {0: 0}
    while at < code.end:
        half = code.bits(at, 2)
        if half & 3 == 3:
            reader.full(at, code.bits(at, 4))
            at += 4
        else:
            reader.read_compressed(at, half)
            at += 2
    return reader.body


class _Reader(Reader):
    vector_bytes: int
    is_64: bool

    def _set(self, register: int, value: int | None) -> None:
        if register == 0:
            return
        if value is None:
            self.known.pop(register, None)
        else:
            self.known[register] = value & MASK
            self.body.taken.add(value & MASK)

    def _jump(self, link: int, target: int) -> None:
        if link:
            self.body.calls.add(target)
        else:
            self.jump(target)

    def _jump_to_register(self, link: int, register: int, offset: int = 0) -> None:
        target = self.sum(register, offset)
        if not link and register == RA:
            return  # a return
        if target is None:
            self.body.is_indirect = True
        else:
            self._jump(link, target & MASK)

    def read_compressed(self, at: int, code: int) -> None:
        """Reads the instruction of 16 bits `code` at the address `at`."""
        group, register, other = code >> 13 << 2 | code & 3, code >> 7 & 31, code >> 2 & 31
        number = signed((code >> 12 & 1) << 5 | other, 6)
        if group == 0b01101 and register == SP:  # c.addi16sp
            bits = (code >> 12 & 1) << 9 | (code >> 3 & 3) << 7 | (code >> 5 & 1) << 6
            self.move_stack(signed(bits | (code >> 2 & 1) << 5 | (code >> 6 & 1) << 4, 10))
        elif group == 0b00001 and register == SP:  # c.addi
            self.move_stack(number)
        elif group == 0b00001 or (group == 0b00101 and self.is_64):  # c.addi, c.addiw
            self._set(register, self.sum(register, number))
        elif group == 0b01001:  # c.li
            self._set(register, number)
        elif group == 0b01101:  # c.lui
            self._set(register, number << 12)
        elif group == 0b00010:  # c.slli
            self._set(register, self._shift(register, number & 31))
        elif group in (0b00101, 0b10101):  # c.jal, c.j
            self._jump(RA if group == 0b00101 else 0, at + _read_compressed_offset(code))
        elif group == 0b10010 and other == 0 and register:  # c.jr, c.jalr
            self._jump_to_register(RA if code >> 12 & 1 else 0, register)
        elif group == 0b10010 and register != SP:  # c.mv, c.add
            self._set(register, self.sum(other, self.known.get(register) if code >> 12 & 1 else 0))
        elif group == 0b10010 and code >> 12 & 1:  # c.add sp, rM
            self.move_stack(self.constant(other))
        elif group & 3 == 0 and group >> 2 in (1, 2, 3):  # c.lw, c.ld and similar
            self._set(8 + (code >> 2 & 7), None)
        elif group & 3 == 1 and group >> 2 == 4:  # c.srli, c.sub and similar
            self._set(8 + (code >> 7 & 7), None)
        elif group in (0b01010, 0b01110):  # c.lwsp, c.ldsp
            self._set(register, None)

    def _shift(self, register: int, by: int) -> int | None:
        value = self.known.get(register)
        return None if value is None else value << by

    def full(self, at: int, code: int) -> None:
        """Reads the instruction of 32 bits `code` at the address `at`."""
        opcode, target, kind, first = code & 0x7F, code >> 7 & 31, code >> 12 & 7, code >> 15 & 31
        number = signed(code >> 20, 12)
        if opcode == 0x13 and kind == 0 and target == first == SP:  # addi sp, sp, n
            self.move_stack(number)
        elif opcode == 0x13 and kind == 7 and target == first == SP:  # andi sp, sp, -n
            self.move_stack(min(0, number + _STACK_ALIGNMENT))
        elif opcode == 0x33 and target == first == SP:  # add, sub
            self.move_stack(self.constant(code >> 20 & 31, -1 if code >> 25 == 0x20 else 1))
        elif opcode == 0x6F:  # jal
            bits = (code >> 31) << 20 | (code >> 12 & 0xFF) << 12 | (code >> 20 & 1) << 11
            self._jump(target, at + signed(bits | (code >> 21 & 0x3FF) << 1, 21))
        elif opcode == 0x67:  # jalr
            self._jump_to_register(target, first, number)
        elif opcode == 0x63:  # branches
            bits = (code >> 31) << 12 | (code >> 7 & 1) << 11 | (code >> 25 & 0x3F) << 5
            self.jump(at + signed(bits | (code >> 8 & 15) << 1, 13))
        elif opcode == 0x03:  # loads
            if first in self.known:
                self.body.taken.add(self.known[first] + number & MASK)
            self._set(target, None)
        elif opcode not in (0x23, 0x27, 0x57, 0x0F):  # all but stores, vectors, fences
            self._set(target, self._value(at, code))

    def _value(self, at: int, code: int) -> int | None:
        """Returns the value that the instruction `code` at `at` writes to a register; None if it is not
        known.
        """
        opcode, kind, first = code & 0x7F, code >> 12 & 7, code >> 15 & 31
        number = signed(code >> 20, 12)
        if opcode == 0x37:  # lui
            return code & 0xFFFFF000
        if opcode == 0x17:  # auipc
            return at + (code & 0xFFFFF000)
        if opcode in (0x13, 0x1B) and kind == 0:  # addi, addiw
            return self.sum(first, number)
        if opcode == 0x13 and kind == 1:  # slli
            return self._shift(first, number & 31)
        if opcode == 0x73 and kind == 2 and code >> 20 == _VLENB:  # csrr rD, vlenb
            return self.vector_bytes or None
        a, b = self.known.get(first), self.known.get(code >> 20 & 31)
        if opcode == 0x33 and a is not None and b is not None:
            return {(0, 0): a + b, (0, 0x20): a - b, (0, 1): a * b}.get((kind, code >> 25))
        return None


def _read_compressed_offset(code: int) -> int:
    """Returns the signed offset of the jumps c.j and c.jal."""
    places = ((12, 11), (11, 4), (10, 9), (9, 8), (8, 10), (7, 6), (6, 7), (5, 3), (4, 2), (3, 1), (2, 5))
    return signed(sum((code >> source & 1) << to for source, to in places), 12)
