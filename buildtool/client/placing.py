"""Puts a weight image into a linked program that has room reserved for it: nothing is linked for that.

The program is an ELF file in which a symbol names the room (`NAME_weights`, with its size). All that
changes are the bytes there: addresses, code and everything else stay as they were linked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from buildtool.base.errors import ToolError

_SYMBOLS, _NO_BITS = 2, 8  # types of a section
_MOST_SYMBOLS = 1 << 22
_LOCAL = 0  # a symbol's binding
# ELF files of 32 and of 64 bits: the head (its sections' offset, size and number), a section, a symbol, and
# where in that are name, section, value, size, binding and type.
_FORMS = {
    1: ("32xI10xHH", "10I", "IIIBBH", (0, 5, 1, 2, 3)),
    2: ("40xQ10xHH", "IIQQQQIIQQ", "IBBHQQ", (0, 3, 4, 5, 1)),
}


class _Form(NamedTuple):
    """How a kind of ELF file is read: see _FORMS."""

    head: struct.Struct
    section: struct.Struct
    symbol: struct.Struct
    symbol_fields: tuple[int, ...]


class _Section(NamedTuple):
    kind: int
    address: int
    offset: int
    size: int
    link: int


def _form(program: bytes) -> _Form:
    if program[:4] != b"\x7fELF" or len(program) < 64 or program[4] not in _FORMS or program[5] not in (1, 2):
        raise ToolError("not an ELF image")
    head, section, symbol, fields = _FORMS[program[4]]
    order = "<" if program[5] == 1 else ">"
    return _Form(
        struct.Struct(order + head), struct.Struct(order + section), struct.Struct(order + symbol), fields
    )


def place(program: bytes, symbol: str, data: bytes) -> bytes:
    """The program with `data` where `symbol` is.

    ToolError where this is no ELF image, or has no such symbol, or room of another size.
    """
    try:
        start, size = _room(program, symbol)
    except (struct.error, IndexError, OverflowError):
        raise ToolError("not an ELF image: it is damaged or cut short", hint="link it again") from None
    if size != len(data):
        raise ToolError(
            f"the image has {size:,} bytes reserved at '{symbol}', and the weights have {len(data):,}",
            hint="emit, compile and link the files of a network together",
        )
    return program[:start] + data + program[start + size :]


def _room(program: bytes, symbol: str) -> tuple[int, int]:
    """Where in the file the bytes of `symbol` are, and how many."""
    form = _form(program)
    sections = _sections(program, form)
    found: dict[tuple[int, int], bool] = {}  # whether other files see the symbol there
    for table in sections:
        if table.kind != _SYMBOLS:
            continue
        for name, section, value, size, seen in _symbols(program, form, table):
            there = sections[table.link].offset + name
            if program[there : there + len(symbol) + 1] == symbol.encode() + b"\0" and 0 < section < 0xFF00:
                holder = sections[section]
                start = value - holder.address
                if holder.kind == _NO_BITS or not 0 <= start <= start + size <= holder.size:
                    raise ToolError(f"the image has no bytes for '{symbol}'")
                if holder.offset + start + size > len(program):
                    raise ToolError("not an ELF image: it is cut short", hint="link it again")
                place = holder.offset + start, size
                found[place] = seen or found.get(place, False)
    # a file of the program may have a static variable of this name
    places = [place for place, seen in found.items() if seen] or list(found)
    if len(places) > 1:
        raise ToolError(f"the image has several symbols '{symbol}'", hint="give the others another name")
    if places:
        return places[0]
    raise ToolError(
        f"the image has no symbol '{symbol}'",
        hint="link the network's code, and do not strip the image before its weights are in",
    )


def _sections(program: bytes, form: _Form) -> list[_Section]:
    offset, size, count = form.head.unpack_from(program)
    if size != form.section.size:
        raise ToolError("not an ELF image: its section headers have an unknown size")
    found = []
    for index in range(count):
        fields = form.section.unpack_from(program, offset + index * size)
        found.append(_Section(fields[1], *fields[3:7]))
    return found


def _symbols(program: bytes, form: _Form, table: _Section) -> Iterator[tuple[int, int, int, int, bool]]:
    """Name (offset in the strings), section, value, size, and whether other files see the symbol."""
    count = min(table.size // form.symbol.size, _MOST_SYMBOLS)
    for index in range(count):
        fields = form.symbol.unpack_from(program, table.offset + index * form.symbol.size)
        name, section, value, size, info = (fields[number] for number in form.symbol_fields)
        yield name, section, value, size, info >> 4 != _LOCAL
