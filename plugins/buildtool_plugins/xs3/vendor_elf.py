"""Reads XCORE's ELF objects and archives of them, as XMOS's tools write them.

No public text describes the relocations; what they do was found from the objects themselves. Code lies in
sections without a name. A section whose flags lack GLUED begins a function; one with this flag continues the
section before it. A section of 0 bytes gives the alignment of the section that follows it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from buildtool.base.errors import ToolError
from buildtool_plugins.xs3.objects import Fixup, Object, Section, Symbol

MACHINE = 203
_HEADER = struct.Struct("<4s5B7x2H5I6H")
_SECTION = struct.Struct("<10I")
_SYMBOL = struct.Struct("<3I2BH")
_RELA = struct.Struct("<2Ii")
_ALLOC, _EXEC, _WRITE, _GLUED = 2, 4, 1, 0x300000
_SYMTAB, _RELATIONS, _NOBITS = 2, 4, 8
_ABSOLUTE, _RESERVED = 0xFFF1, 0xFF00
_LOCAL, _WEAK = 0, 2


@dataclass(frozen=True)
class _Header:
    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


def members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the content of each file in an `ar` archive. Names may repeat. Raises ToolError for
    another file.
    """
    if archive[:8] != b"!<arch>\n":
        raise ToolError("this is not an archive of objects")
    at, names = 8, b""
    while at + 60 <= len(archive):
        name = archive[at : at + 16].decode("latin-1").strip()
        size = int(archive[at + 48 : at + 58])
        body = archive[at + 60 : at + 60 + size]
        if name == "//":
            names = body
        elif name[:1] == "/" and name[1:].isdigit():
            start = int(name[1:])
            yield names[start : names.index(b"\n", start)].decode("latin-1").rstrip("/"), body
        elif name[:1] != "/":
            yield name.rstrip("/"), body
        at += 60 + size + size % 2


def load(content: bytes, name: str) -> Object:
    """Returns the object in the ELF file `content`. Raises ToolError if it is not one for XCORE. `name` is
    the file's name.
    """
    try:
        return _Loader(content, name).object()
    except (struct.error, IndexError, ValueError):
        raise ToolError("this ELF file is cut off", path=name) from None


class _Loader:
    def __init__(self, content: bytes, name: str) -> None:
        self.content, self.name = content, name
        fields = _HEADER.unpack_from(content)
        if fields[0] != b"\x7fELF" or fields[1:3] != (1, 1) or fields[7] != MACHINE:
            raise ToolError("this is not an ELF object for XCORE", path=name)
        offset, (size, count, names) = fields[11], fields[16:19]
        raw = [_SECTION.unpack_from(content, offset + size * k) for k in range(count)]
        self.headers = [_Header("", *(r[k] for k in (1, 2, 4, 5, 6, 7, 8))) for r in raw]
        table = self.headers[names]
        self.headers = [_Header(self._text(table, r[0]), *(r[k] for k in (1, 2, 4, 5, 6, 7, 8))) for r in raw]
        self.places: dict[int, tuple[Section, int]] = {}  # section's number -> section, offset in it

    def _text(self, table: _Header, at: int) -> str:
        start = table.offset + at
        return self.content[start : self.content.index(b"\0", start)].decode("latin-1")

    def object(self) -> Object:
        """Returns the object in the ELF file."""
        made = Object(self.name)
        self._sections(made)
        symbols = self._symbols(made)
        for header in self.headers:
            if header.type == _RELATIONS and header.info in self.places:
                for k in range(header.size // _RELA.size):
                    self._relocate(
                        header.info, symbols, *_RELA.unpack_from(self.content, header.offset + 12 * k)
                    )
        return made

    def _sections(self, made: Object) -> None:
        pending, group = 1, None
        for number, header in enumerate(self.headers):
            if not header.flags & _ALLOC:
                continue
            is_code = bool(header.flags & _EXEC)
            if not header.flags & _GLUED:
                group = None
            pending = max(pending, header.align)
            if header.size == 0:
                continue
            if group is None or not is_code:
                kind = "code" if is_code else "data" if header.flags & _WRITE else "const"
                label = header.name or f"{kind} {number}"
                section = Section(label, kind, max(4, pending), is_zero=header.type == _NOBITS)  # type: ignore[arg-type]
                made.sections.append(section)
                group = section if is_code else None
            else:
                section = group
                section.align = max(section.align, pending)
                section.data += b"\0" * (-len(section.data) % pending)
            pending = 1
            self.places[number] = section, len(section.data)
            if section.is_zero:
                section.size = header.size
            else:
                section.data += self.content[header.offset : header.offset + header.size]

    def _symbols(self, made: Object) -> list[str]:
        """Adds the symbols to `made`. Returns the name of each one; local symbols get names that are unique
        in the object.
        """
        names = []
        table = next(header for header in self.headers if header.type == _SYMTAB)
        strings = self.headers[table.link]
        for k in range(table.size // _SYMBOL.size):
            at, value, _, info, _, section = _SYMBOL.unpack_from(self.content, table.offset + 16 * k)
            name, bind = self._text(strings, at), info >> 4
            if bind == _LOCAL:
                name = f".{k}.{name}"
            names.append(name)
            into = made.locals if bind == _LOCAL else made.globals
            if section == _ABSOLUTE:
                into[name] = Symbol(None, value, is_weak=True)
            elif section in self.places:
                where, offset = self.places[section]
                into[name] = Symbol(where, offset + value, bind == _WEAK)
            elif 0 < section < _RESERVED and (follower := self._follower(section)) is not None:
                into[name] = Symbol(*follower, bind == _WEAK)
        return names

    def _follower(self, number: int) -> tuple[Section, int] | None:
        """Returns the first section with bytes after the empty section with this number, and the offset
        there.
        """
        later = [k for k in self.places if k > number]
        return self.places[min(later)] if later else None

    def _relocate(self, target: int, symbols: list[str], offset: int, info: int, addend: int) -> None:
        section, base = self.places[target]
        symbol, at = symbols[info >> 8], base + offset
        match info & 255:
            case 1:
                fixup = Fixup(at, "word", symbol, addend)
            case 5 | 7:  # ldw and ldaw with cp or dp; bla with cp
                fixup = Fixup(at, "pool", symbol, addend)
            case 8:  # a short branch in single issue
                fixup = Fixup(at, "short", symbol, addend, 2, at + 2)
            case 12:
                fixup = Fixup(at, "number", symbol, addend)
            case 18:  # a short branch, the upper half of a bundle
                fixup = Fixup(at, "short", symbol, addend, 4, at + 2)
            case 20:  # a short LDAP, the lower half
                fixup = Fixup(at, "short", symbol, addend, 4, at + 4)
            case 19 | 21:  # a long branch, a long LDAP
                fixup = Fixup(at, "long", symbol, addend, 4)
            case 15 | 22:  # tables of lines
                return
            case other:
                raise ToolError(f"relocation {other} is not known", path=self.name)
        section.fixups.append(fixup)
