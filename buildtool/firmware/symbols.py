"""The symbols of an ELF file that stand for bytes of it, each with the source file that its compiler named.

They are read in one go, without an object a symbol of pyelftools': images of whole applications have a
hundred thousand. Debug information (-g), where there is some, says which source file code is of.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_NOTYPE, _OBJECT, _FUNC, _SECTION, _FILE, _COMMON, _TLS, _IFUNC = 0, 1, 2, 3, 4, 5, 6, 10
_NAMED = (_NOTYPE, _OBJECT, _FUNC, _COMMON, _TLS, _IFUNC)
_LOCAL, _GLOBAL = 0, 1
_LAST_SECTION = 0xFEFF  # numbers above it are no sections
_THREAD_LOCAL = 0x400  # flag of a section
_TABLES = ("SHT_SYMTAB", "SHT_DYNSYM")  # the second one is what a stripped program keeps


@dataclass(frozen=True)
class Symbol:
    """A name of bytes [address, address + size) of the section with this number.

    `size` 0: the assembler was not told. `is_global`: other files may name it. `file`: the source file as the
    compiler said it ("": not known).
    """

    name: str
    address: int
    size: int
    section: int
    is_global: bool
    file: str = ""

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.address + self.size


def symbols(elf: Any) -> list[Symbol]:
    """The symbols of an image that pyelftools has opened; none of a stripped or damaged table."""
    tables = {str(section["sh_type"]): section for section in elf.iter_sections()}
    table = next((tables[kind] for kind in _TABLES if kind in tables), None)
    if table is None:
        return []
    try:
        names, data = elf.get_section(table["sh_link"]).data(), table.data()
    except Exception:  # of a damaged table pyelftools raises whatever it comes to
        return []
    found = list(_read(elf, data, names, _thread_base(elf)))
    files = {(s.section, s.address): s.file for s in found if s.file}
    return [_with_file(symbol, files) for symbol in found if not _is_mapping(symbol.name)]


def _read(elf: Any, data: bytes, names: bytes, thread_base: int) -> Iterator[Symbol]:
    """All that name something, marks of code and data among them."""
    is_arm = elf["e_machine"] == "EM_ARM"
    file = ""
    for name_at, address, size, info, section in _lines(elf, data):
        kind, binding = info & 15, info >> 4
        if kind == _FILE:
            file = _name(names, name_at)
        if binding != _LOCAL:
            file = ""  # local symbols come first, file by file
        if kind not in _NAMED or not 0 < section <= _LAST_SECTION:
            continue
        name = _name(names, name_at)
        if not name:
            continue
        is_thumb = is_arm and kind in (_FUNC, _IFUNC) and address & 1  # no part of the address
        begin = address - 1 if is_thumb else address + thread_base if kind == _TLS else address
        yield Symbol(name, begin, size, section, binding != _LOCAL, file)


def _lines(elf: Any, data: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """(place of the name, value, size, type and binding, section) of each entry of a table."""
    order = "<" if elf.little_endian else ">"
    if elf.elfclass == 64:
        layout = struct.Struct(f"{order}IBBHQQ")
        for name, info, _, section, value, size in layout.iter_unpack(_whole(data, layout.size)):
            yield name, value, size, info, section
    else:
        layout = struct.Struct(f"{order}IIIBBH")
        for name, value, size, info, _, section in layout.iter_unpack(_whole(data, layout.size)):
            yield name, value, size, info, section


def _whole(data: bytes, size: int) -> bytes:
    return data[: len(data) // size * size]


def _name(names: bytes, at: int) -> str:
    end = names.find(b"\0", at)
    return names[at : end if end >= 0 else None].decode("utf-8", "replace")


def _thread_base(elf: Any) -> int:
    """What values of thread-local symbols count from."""
    found = [int(s["sh_addr"]) for s in elf.iter_sections() if s["sh_flags"] & _THREAD_LOCAL]
    return min(found, default=0)


def _is_mapping(name: str) -> bool:
    """Whether it marks where code or data begins ($t, $d.4, $xrv32i), or is a label of the compiler's."""
    return name.startswith((".L", "$"))


def _with_file(symbol: Symbol, files: Mapping[tuple[int, int], str]) -> Symbol:
    """A global symbol has no file, but a local one at the same place may have: the mark of its code."""
    known = symbol.file or files.get((symbol.section, symbol.address), "")
    if known == symbol.file:
        return symbol
    return Symbol(symbol.name, symbol.address, symbol.size, symbol.section, symbol.is_global, known)


_MOST_BYTES = 1 << 26  # of .debug_info: beyond it reading takes minutes


class DebugFiles:
    """The source files of addresses of code; those of variables would take reading every variable."""

    def __init__(self, elf: Any) -> None:
        found: list[tuple[int, int, str]] = []
        try:
            info = elf.get_section_by_name(".debug_info")
            if info is not None and 0 < info["sh_size"] <= _MOST_BYTES:
                found = sorted(_ranges(elf.get_dwarf_info()))
        except Exception:  # of damaged debug information pyelftools raises whatever it comes to
            found = []
        self._ranges, self._begins = found, [begin for begin, _, _ in found]

    def file(self, address: int) -> str:
        """The file that the code at an address is of; "" where nothing says it."""
        index = bisect_right(self._begins, address) - 1
        if index < 0 or address >= self._ranges[index][1]:
            return ""
        return self._ranges[index][2]


def _ranges(dwarf: Any) -> Iterator[tuple[int, int, str]]:
    """(first address, end, file's name) of each part of a unit that was compiled at once."""
    lists = dwarf.range_lists()
    for unit in dwarf.iter_CUs():
        top = unit.get_top_DIE()
        name = top.attributes.get("DW_AT_name")
        if top.tag != "DW_TAG_compile_unit" or name is None:
            continue
        file = name.value.decode("utf-8", "replace").rpartition("/")[2]
        low, high, at = (top.attributes.get(f"DW_AT_{key}") for key in ("low_pc", "high_pc", "ranges"))
        if at is not None and lists is not None:
            base = low.value if low is not None else 0
            yield from ((begin, end, file) for begin, end in _listed(lists, at, unit, base) if begin < end)
        elif low is not None and high is not None:
            end = high.value if high.form == "DW_FORM_addr" else low.value + high.value
            yield low.value, end, file


def _listed(lists: Any, at: Any, unit: Any, base: int) -> Iterator[tuple[int, int]]:
    """The addresses of a list of ranges."""
    for entry in lists.get_range_list_at_offset(at.value, cu=unit):
        if hasattr(entry, "base_address"):
            base = entry.base_address
        else:
            offset = 0 if entry.is_absolute else base
            yield offset + entry.begin_offset, offset + entry.end_offset
