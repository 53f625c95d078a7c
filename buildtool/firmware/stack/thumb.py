"""Reads Thumb code (ARMv6-M, ARMv7-M, ARMv8-M) for what moves the stack pointer, calls or jumps."""

from __future__ import annotations

from buildtool.firmware.stack.body import Body, Code, Reader, signed

SP = 13
_STACK_ALIGNMENT = 8  # of the stack pointer at a function's entry (AAPCS)


def read_body(code: Code) -> Body:
    """Returns a function's use of the stack pointer, and its calls."""
    reader, at = _Reader(code), code.address
    while at < code.end:
        if end := next((high for low, high in code.literals if low <= at < high), 0):
            at = end  # behind the data
            continue
        first, second = code.bits(at, 2), code.bits(at + 2, 2)
        if first >> 11 < 0b11101:
            reader.narrow(at, first)
            at += 2
            continue
        if first >> 11 == 0b11110 and second & 0x8000:
            reader.branch(at, first, second)
        else:
            reader.wide(first, second)
        at += 4
    for low, high in code.literals:
        reader.body.taken |= {code.bits(at, 4) for at in range(low, high - 3, 4)}
    return reader.body


class _Reader(Reader):
    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.alignments: dict[int, int] = {}  # register -> the alignment of its value

    def narrow(self, address: int, code: int) -> None:
        """Reads an instruction of 16 bits."""
        body = self.body
        if code & 0xFE00 == 0xB400:  # push
            body.frame += 4 * (code & 0x1FF).bit_count()
        elif code & 0xFF80 == 0xB080:  # sub sp, #n
            body.frame += 4 * (code & 0x7F)
        elif code & 0xFF87 == 0x4685:  # mov sp, rM: back to a frame pointer, or to an aligned address
            aligned = self.alignments.get(code >> 3 & 15, 0)
            body.frame += max(0, aligned - _STACK_ALIGNMENT)
        elif code & 0xFF87 == 0x4485:  # add sp, rM
            self.move_stack(self.constant(code >> 3 & 15))
        elif code & 0xF800 == 0x4800:  # ldr rD, [pc, #n]
            place = (address + 4 & ~3) + 4 * (code & 0xFF)
            self.known[code >> 8 & 7] = self.code.bits(place, 4)
        elif code & 0xFF07 == 0x4700 and code >> 3 & 15 != 14:  # bx, blx: all but bx lr
            body.is_indirect = True
        elif code & 0xF800 == 0xE000:  # b
            self.jump(address + 4 + 2 * signed(code & 0x7FF, 11))
        elif code & 0xF800 == 0x2000:  # movs rD, #n
            self.known[code >> 8 & 7] = code & 0xFF

    def branch(self, address: int, first: int, second: int) -> None:
        """Reads a branch or call of 32 bits, whose halves are `first` and `second`."""
        sign, j1, j2 = first >> 10 & 1, second >> 13 & 1, second >> 11 & 1
        if second & 0x5000 == 0:  # b<condition>, or a system instruction
            if first >> 7 & 7 != 7:
                high = sign << 19 | j2 << 18 | j1 << 17 | (first & 0x3F) << 11 | second & 0x7FF
                self.jump(address + 4 + 2 * signed(high, 20))
            return
        i1, i2 = 1 ^ j1 ^ sign, 1 ^ j2 ^ sign
        offset = sign << 23 | i1 << 22 | i2 << 21 | (first & 0x3FF) << 11 | second & 0x7FF
        target = address + 4 + 2 * signed(offset, 24)
        # ARMv6-M has no other branch that reaches far, so a bl into the function itself is a jump.
        if second & 0x4000 and second & 0x1000 and (target not in self.code or target == self.code.address):
            self.body.calls.add(target)
        elif second & 0x1000:  # b.w, bl
            self.jump(target)

    def wide(self, first: int, second: int) -> None:
        """Reads any other instruction of 32 bits, whose halves are `first` and `second`."""
        body = self.body
        target = second >> 8 & 15
        number = (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF
        if first == 0xE92D:  # push.w
            body.frame += 4 * second.bit_count()
        elif first == 0xF84D and second & 0x0F00 == 0x0D00:  # str rT, [sp, #-n]!
            body.frame += second & 0xFF
        elif first == 0xE96D or (first & 0xFFBF == 0xED2D and second & 0x0E00 == 0x0A00):  # strd, vpush
            body.frame += 4 * (second & 0xFF)
        elif first & 0xFBEF in (0xF1AD, 0xF2AD) and second & 0x8000 == 0 and target == SP:  # sub sp, sp, #n
            body.frame += number if first & 0x0200 else _expand(number)
        elif first & 0xFFEF == 0xEBAD and target == SP:  # sub sp, sp, rM
            self.move_stack(self.constant(second & 15, -1))
        elif first & 0xFBF0 in (0xF240, 0xF2C0):  # movw, movt
            half, top = (first & 15) << 12 | number, first & 0x0080
            value = self.known.get(target, 0) & 0xFFFF | half << 16 if top else half
            self.known[target] = value
            body.taken.add(value)
        elif first & 0xFBEF == 0xF04F:  # mov rD, #n
            self.known[target] = _expand(number)
        elif first == 0xF36F and (second >> 12 & 7) << 2 | second >> 6 & 3 == 0:  # bfc rD, #0, #n
            self.alignments[target] = 1 << (second & 31) + 1
        elif first & 0xFBE0 == 0xF020:  # bic rD, rN, #n
            self.alignments[target] = _expand(number) + 1


def _expand(number: int) -> int:
    """Returns the value of a modified 12-bit constant, as Arm's ThumbExpandImm does."""
    low = number & 0xFF
    if number >> 10 == 0:
        return (low, low << 16 | low, low << 24 | low << 8, low * 0x01010101)[number >> 8 & 3]
    shift, value = number >> 7, 0x80 | number & 0x7F
    return (value >> shift | value << 32 - shift) & 0xFFFFFFFF
