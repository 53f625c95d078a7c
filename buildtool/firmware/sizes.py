"""Reads the sections of an ELF image by memory, and its symbols with their source files."""

from __future__ import annotations

import io
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from buildtool.base.errors import ToolError
from buildtool.schema.boards import NamedBytes
from buildtool.schema.builds import MemorySize
from buildtool.target.hardware import Memory
from buildtool.target.types import Board

_LEAST_HEADER = 32  # bytes of the smallest header of a section or segment, that of a 32-bit segment
_WRITABLE, _ALLOCATED, _EXECUTABLE = 1, 2, 4  # flags of a section
# The first bytes of files that users give instead of ELF images.
_OTHERS = (
    (b"!<arch>\n", "a library"),
    (b"BC\xc0\xde", "LLVM's bitcode (-flto)"),
    (b"MZ", "a program for Windows"),
    (b"\x64\x86", "a COFF object"),
    (b"\x4c\x01", "a COFF object"),
    (b"\xcf\xfa\xed\xfe", "a program for macOS"),
    (b"UF2\n", "a file for flash"),
    (b":", "a file for flash (Intel hex)"),
)
_RUNS, _WRITES = 1, 2  # flags of a segment
ELSEWHERE = "elsewhere"  # instead of a memory's name: sections in none of the board's memories
PROCESS = "process"  # instead of a memory's name: programs of this machine


def open_elf(data: bytes) -> Any:
    """Returns the ELF image as an object of pyelftools. Raises ToolError for other files."""
    from elftools.common.exceptions import ELFError
    from elftools.construct import ConstructError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(data))
        parts = elf.num_sections() + elf.num_segments()
        if parts > len(data) // _LEAST_HEADER:  # reading a damaged image's headers would take forever
            raise ELFError(f"{parts} headers in {len(data)} bytes")
        for _ in (*elf.iter_sections(), *elf.iter_segments()):
            pass  # reads all, as some of a damaged image cannot be read
    except (ELFError, ConstructError, ValueError, OverflowError) as error:
        raise ToolError(f"not an ELF image: {error}", hint=_suggest_file(data)) from None
    return elf


def _suggest_file(data: bytes) -> str:
    """Returns a hint for a file that is not a readable ELF image."""
    if data.startswith(b"\x7fELF"):
        return "link it again: it is damaged or cut short"
    kind = next((what for magic, what in _OTHERS if data.startswith(magic)), "")
    return f"it looks like {kind}: give the image that the linker wrote for the board" if kind else ""


def lies_in(memory: Memory, address: int) -> bool:
    """Whether an address is in a memory."""
    return memory.base <= address < memory.base + memory.size


def size_report(data: bytes, board: Board) -> list[MemorySize]:
    """Returns the used bytes and the size of each memory, and its sections, the largest first.

    Initialised data counts twice: in RAM, and in the memory from which it is loaded. The sections of a native
    image (the host) count as one memory. Sections that are in none of the board's memories come last, under
    ELSEWHERE.
    """
    rows: dict[str, list[tuple[str, int]]] = {}
    for memory, section, is_copy in in_memories(list_sections(open_elf(data)), board):
        stored = "initial values" if section.is_writable else "stored"
        name = f"{section.name} ({stored})" if is_copy else section.name
        rows.setdefault(memory, []).append((name, section.size))
    sizes = {PROCESS: 0} if board.is_native else {memory.name: memory.size for memory in board.memories}
    if ELSEWHERE in rows:
        sizes[ELSEWHERE] = 0
    report: list[MemorySize] = []
    for name, size in sizes.items():
        inside = sorted(rows.get(name, []), key=lambda r: (-r[1], r[0]))
        sections: list[NamedBytes] = [{"name": section, "bytes": n} for section, n in inside]
        report.append({"memory": name, "used": sum(n for _, n in inside), "size": size, "sections": sections})
    return report


def in_memories(sections: Sequence[Section], board: Board) -> Iterator[tuple[str, Section, bool]]:
    """Yields (memory, section, is_copy) for every memory and section in it. Sections in no memory come last,
    under ELSEWHERE.

    `is_copy` is true if the memory has only a copy of initial values or code, which start-up code reads.
    """
    if board.is_native:
        yield from ((PROCESS, section, False) for section in sections)
        return
    for memory in board.memories:
        for section in sections:
            if lies_in(memory, section.address):
                yield memory.name, section, False
            elif lies_in(memory, section.load_address):
                yield memory.name, section, True
    for section in sections:
        if not any(lies_in(memory, section.address) for memory in board.memories):
            yield ELSEWHERE, section, False


@dataclass(frozen=True)
class Section:
    """A section that takes memory when the program runs.

    `load_address` is where its stored contents lie, -1 if it has none.
    """

    name: str
    address: int
    size: int
    load_address: int
    is_writable: bool
    index: int = -1  # among the file's sections; below 0: a segment of a file without sections
    is_code: bool = False

    @property
    def is_stored(self) -> bool:
        """Whether the image stores contents for the section."""
        return self.load_address >= 0


def list_sections(elf: Any) -> list[Section]:
    """Returns the sections that take memory, in the file's order; the segments if there are no sections."""
    loads = [(int(s["p_vaddr"]), int(s["p_paddr"]), int(s["p_filesz"])) for s in elf.iter_segments("PT_LOAD")]
    is_linked = elf["e_type"] != "ET_REL"  # an object has no segments: its load addresses are its addresses
    sections = []
    for index, section in enumerate(elf.iter_sections()):
        flags, size, address = (int(section[key]) for key in ("sh_flags", "sh_size", "sh_addr"))
        if flags & _ALLOCATED and size:
            load = address
            if section["sh_type"] == "SHT_NOBITS":
                load = -1
            elif is_linked:
                inside = (start + address - low for low, start, n in loads if low <= address < low + n)
                load = next(inside, -1)
            kinds = bool(flags & _WRITABLE), index, bool(flags & _EXECUTABLE)
            sections.append(Section(section.name, address, size, load, *kinds))
    return sections if elf.num_sections() else list(_list_segments(elf))


def _list_segments(elf: Any) -> Iterator[Section]:
    """Yields the loaded segments of an image whose sections were removed."""
    for number, segment in enumerate(elf.iter_segments("PT_LOAD")):
        address, stored, size = (int(segment[key]) for key in ("p_vaddr", "p_filesz", "p_memsz"))
        is_writable, is_code = bool(segment["p_flags"] & _WRITES), bool(segment["p_flags"] & _RUNS)
        load, name = int(segment["p_paddr"]), f"(segment {number})"
        if stored:
            yield Section(name, address, stored, load, is_writable, -2 * number - 2, is_code)
        if size > stored:
            rest = f"{name[:-1]}, without contents)"
            yield Section(rest, address + stored, size - stored, -1, is_writable, -2 * number - 3, is_code)


# ---- symbols -------------------------------------------------------------------------------------------


_NOTYPE, _OBJECT, _FUNC, _FILE, _COMMON, _TLS, _IFUNC = 0, 1, 2, 4, 5, 6, 10
_NAMED = (_NOTYPE, _OBJECT, _FUNC, _COMMON, _TLS, _IFUNC)
_LOCAL = 0
_LAST_SECTION = 0xFEFF  # numbers above it have other meanings
_THREAD_LOCAL = 0x400  # flag of a section
_TABLES = ("SHT_SYMTAB", "SHT_DYNSYM")  # a stripped program has only the second one


@dataclass(frozen=True)
class Symbol:
    """A named range of bytes [address, address + size) in the section with the number `section`.

    `size`: 0 if it is not known.
    `is_global`: whether other files may use the name.
    `file`: the compiler's source file ("": not known).
    """

    name: str
    address: int
    size: int
    section: int
    is_global: bool
    file: str = ""

    @property
    def end(self) -> int:
        """The first address after the symbol."""
        return self.address + self.size


def symbols(elf: Any) -> list[Symbol]:
    """Returns the symbols of an image; empty if the table is missing or damaged.

    It makes no object of pyelftools for each symbol, because images of whole applications have 100,000
    symbols.
    """
    tables = {str(section["sh_type"]): section for section in elf.iter_sections()}
    table = next((tables[kind] for kind in _TABLES if kind in tables), None)
    if table is None:
        return []
    try:
        names, data = elf.get_section(table["sh_link"]).data(), table.data()
    except Exception:  # pyelftools raises many kinds of errors for a damaged table
        return []
    every = list(_read_symbols(elf, data, names))
    # A global symbol has no file, but a local one at the same place, the mark of its code, may have one.
    files = {(s.section, s.address): s.file for s in every if s.file}
    # ".L": the compiler's labels; "$t", "$d.4", "$xrv32i": marks where code or data begins.
    others = (symbol for symbol in every if not symbol.name.startswith((".L", "$")))
    return [s if s.file else replace(s, file=files.get((s.section, s.address), "")) for s in others]


def _read_symbols(elf: Any, data: bytes, names: bytes) -> Iterator[Symbol]:
    """Yields all named symbols, including those that mark where code or data begins."""
    is_arm, file = elf["e_machine"] == "EM_ARM", ""
    thread_local = (int(s["sh_addr"]) for s in elf.iter_sections() if s["sh_flags"] & _THREAD_LOCAL)
    thread_base = min(thread_local, default=0)  # values of thread-local symbols count from here
    for name_at, address, size, info, section in _read_entries(elf, data):
        kind, binding = info & 15, info >> 4
        if kind == _FILE:
            file = _read_name(names, name_at)
        if binding != _LOCAL:
            file = ""  # local symbols come first, file by file
        name = _read_name(names, name_at) if kind in _NAMED and 0 < section <= _LAST_SECTION else ""
        if not name:
            continue
        is_thumb = is_arm and kind in (_FUNC, _IFUNC) and address & 1  # the bit is not part of the address
        begin = address - 1 if is_thumb else address + thread_base if kind == _TLS else address
        yield Symbol(name, begin, size, section, binding != _LOCAL, file)


def _read_entries(elf: Any, data: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """Yields the fields of each entry in a symbol table.

    They are the name's offset, the value, the size, the type with the binding, and the section's number.
    """
    is_long = elf.elfclass == 64
    layout = struct.Struct(("<" if elf.little_endian else ">") + ("IBBHQQ" if is_long else "IIIBBH"))
    for fields in layout.iter_unpack(data[: len(data) // layout.size * layout.size]):
        if is_long:
            name, info, _, section, value, size = fields
        else:
            name, value, size, info, _, section = fields
        yield name, value, size, info, section


def _read_name(names: bytes, at: int) -> str:
    end = names.find(b"\0", at)
    return names[at : end if end >= 0 else None].decode("utf-8", "replace")


_MOST_BYTES = 1 << 26  # of .debug_info; a larger one takes minutes to read


class DebugFiles:
    """Finds the source file of code at an address, if the image has debug information (-g).

    It does not find the files of variables, as it would have to read every variable.
    """

    def __init__(self, elf: Any) -> None:
        self._ranges: list[tuple[int, int, str]] = []
        try:
            info = elf.get_section_by_name(".debug_info")
            if info is not None and 0 < info["sh_size"] <= _MOST_BYTES:
                self._ranges = sorted(_read_ranges(elf.get_dwarf_info()))
        except Exception:  # pyelftools raises many kinds of errors for damaged debug information
            self._ranges = []
        self._begins = [begin for begin, _, _ in self._ranges]

    def file(self, address: int) -> str:
        """Returns the source file of the code at an address; "" if it is not known."""
        index = bisect_right(self._begins, address) - 1
        return self._ranges[index][2] if index >= 0 and address < self._ranges[index][1] else ""


def _read_ranges(dwarf: Any) -> Iterator[tuple[int, int, str]]:
    """Yields (first address, end, file name) for every address range of each compilation unit."""
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
            yield from (
                (begin, end, file) for begin, end in _read_range_list(lists, at, unit, base) if begin < end
            )
        elif low is not None and high is not None:
            end = high.value if high.form == "DW_FORM_addr" else low.value + high.value
            yield low.value, end, file


def _read_range_list(lists: Any, at: Any, unit: Any, base: int) -> Iterator[tuple[int, int]]:
    """Yields (first address, end) for each range in a range list of the debug information."""
    for entry in lists.get_range_list_at_offset(at.value, cu=unit):
        if hasattr(entry, "base_address"):
            base = entry.base_address
        else:
            offset = 0 if entry.is_absolute else base
            yield offset + entry.begin_offset, offset + entry.end_offset
