"""Writes a weight image into a linked program, without linking again.

The program is an ELF file with a symbol for the space that the weight image takes (`NAME_weights`, with its
size). Only the bytes there change.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from buildtool.base.errors import ToolError

_SYMBOLS, _NO_BITS = 2, 8  # section types
_MOST_SYMBOLS = 1 << 22
_LOCAL = 0  # a binding of symbols
# For ELF files of 32 and of 64 bits, the struct formats of the file header (offset, size and number of
# section headers), of a section header and of a symbol; and the indices in a symbol of name, section, value,
# size, and the byte of binding and type.
_FORMS = {
    1: ("32xI10xHH", "10I", "IIIBBH", (0, 5, 1, 2, 3)),
    2: ("40xQ10xHH", "IIQQQQIIQQ", "IBBHQQ", (0, 3, 4, 5, 1)),
}


class _Section(NamedTuple):
    kind: int
    address: int
    offset: int
    size: int
    link: int


def place(program: bytes, symbol: str, data: bytes) -> bytes:
    """Returns the program with `data` as the content of the variable `symbol`.

    Raises ToolError if the program is not an ELF file, has no such symbol, or reserves another size for it.
    """
    try:
        start, size = _find_room(program, symbol)
    except (struct.error, IndexError, OverflowError):
        raise ToolError("not an ELF file: it is damaged or cut short", hint="link it again") from None
    if size != len(data):
        raise ToolError(
            f"the program has {size:,} bytes reserved at '{symbol}', but the weight image has {len(data):,}",
            hint="emit, compile and link the files of a network together",
        )
    return program[:start] + data + program[start + size :]


def _find_room(program: bytes, symbol: str) -> tuple[int, int]:
    """Returns (position in the file, size) of the bytes of `symbol`."""
    if program[:4] != b"\x7fELF" or len(program) < 64 or program[4] not in _FORMS or program[5] not in (1, 2):
        raise ToolError("not an ELF file")
    order, (head, header, entry, numbers) = "<" if program[5] == 1 else ">", _FORMS[program[4]]
    offset, size, count = struct.unpack_from(order + head, program)
    if size != struct.calcsize(order + header):
        raise ToolError("not an ELF file: its section headers have an unknown size")
    headers = [struct.unpack_from(order + header, program, offset + index * size) for index in range(count)]
    sections = [_Section(fields[1], *fields[3:7]) for fields in headers]
    step = struct.calcsize(order + entry)
    rooms: dict[tuple[int, int], bool] = {}  # position and size -> whether other files see the symbol
    for table in sections:
        for index in range(min(table.size // step, _MOST_SYMBOLS) if table.kind == _SYMBOLS else 0):
            fields = struct.unpack_from(order + entry, program, table.offset + index * step)
            name, section, value, size, info = (fields[number] for number in numbers)
            there = sections[table.link].offset + name
            if program[there : there + len(symbol) + 1] == symbol.encode() + b"\0" and 0 < section < 0xFF00:
                holder = sections[section]
                start = value - holder.address
                if holder.kind == _NO_BITS or not 0 <= start <= start + size <= holder.size:
                    raise ToolError(f"the program has no bytes for '{symbol}'")
                if holder.offset + start + size > len(program):
                    raise ToolError("not an ELF file: it is cut short", hint="link it again")
                place = holder.offset + start, size
                rooms[place] = info >> 4 != _LOCAL or rooms.get(place, False)
    # a source of the program may have a static variable with this name
    places = [place for place, seen in rooms.items() if seen] or list(rooms)
    if len(places) > 1:
        raise ToolError(f"the program has several symbols '{symbol}'", hint="give the others another name")
    if not places:
        hint = "link the network's code, and do not strip the program before it gets its weight image"
        raise ToolError(f"the program has no symbol '{symbol}'", hint=hint)
    return places[0]
