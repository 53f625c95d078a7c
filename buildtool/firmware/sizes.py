"""What a linked image takes of each memory, section by section."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from buildtool.base.errors import ToolError
from buildtool.schema.builds import MemorySize
from buildtool.target.hardware import Memory
from buildtool.target.types import Board

_LEAST_HEADER = 32  # bytes of a section's or a segment's header: a 32-bit segment's has the least
_WRITABLE, _ALLOCATED, _EXECUTABLE = 1, 2, 4  # flags of a section
# How files begin that are taken for ELF images.
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
ELSEWHERE = "elsewhere"  # instead of a memory: sections that lie in none of the board's
PROCESS = "process"  # of a program of this machine


def open_elf(data: bytes) -> Any:
    """The image as pyelftools reads it; ToolError for other files."""
    from elftools.common.exceptions import ELFError
    from elftools.construct import ConstructError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(data))
        parts = elf.num_sections() + elf.num_segments()
        if parts > len(data) // _LEAST_HEADER:  # read one after the other, they would never end
            raise ELFError(f"{parts} headers in {len(data)} bytes")
        for _ in (*elf.iter_sections(), *elf.iter_segments()):
            pass  # of a damaged image one of them cannot be read
    except (ELFError, ConstructError, ValueError, OverflowError) as error:
        raise ToolError(f"not an ELF image: {error}", hint=_instead(data)) from None
    return elf


def _instead(data: bytes) -> str:
    """What a file seems to be that is no ELF image, and what to do."""
    if data.startswith(b"\x7fELF"):
        return "link it again: it is damaged or cut short"
    known = next((what for magic, what in _OTHERS if data.startswith(magic)), "")
    return f"it looks like {known}: give the image that the linker wrote for the board" if known else ""


def _in(memory: Memory, address: int) -> bool:
    return memory.base <= address < memory.base + memory.size


def size_report(data: bytes, board: Board) -> list[MemorySize]:
    """Per memory: bytes used of its size, and the sections in it; largest section first.

    Initialised data counts twice: in RAM, and in the memory it is loaded from. A native image
    (the host) has no memories of the board's: its sections are listed as one. What lies in no memory of
    the board is listed last, as elsewhere.
    """
    rows: dict[str, list[tuple[str, int]]] = {}
    for memory, section, is_copy in in_memories(placed_sections(open_elf(data)), board):
        name = f"{section.name} (initial values)" if is_copy else section.name
        rows.setdefault(memory, []).append((name, section.size))
    sizes = {PROCESS: 0} if board.is_native else {memory.name: memory.size for memory in board.memories}
    if ELSEWHERE in rows:
        sizes[ELSEWHERE] = 0
    return [
        _entry(name, size, sorted(rows.get(name, []), key=lambda r: (-r[1], r[0])))
        for name, size in sizes.items()
    ]


def in_memories(sections: Sequence[Placed], board: Board) -> Iterator[tuple[str, Placed, bool]]:
    """(memory, section, whether it is a copy: initial values of variables) of each that takes memory.

    Memories in the board's order, what lies elsewhere last.
    """
    if board.is_native:
        yield from ((PROCESS, section, False) for section in sections)
        return
    for memory in board.memories:
        for section in sections:
            if _in(memory, section.address):
                yield memory.name, section, False
            elif _in(memory, section.load_address):
                yield memory.name, section, True
    for section in sections:
        if not any(_in(memory, section.address) for memory in board.memories):
            yield ELSEWHERE, section, False


@dataclass(frozen=True)
class Placed:
    """A section that takes memory when the program runs.

    `load_address`: where its contents are stored; -1: it has none.
    """

    name: str
    address: int
    size: int
    load_address: int
    is_writable: bool
    index: int = -1  # among the file's sections; below 0: a segment of a file that has no sections
    is_code: bool = False

    @property
    def is_stored(self) -> bool:
        """Whether the image has contents for it."""
        return self.load_address >= 0


def placed_sections(elf: Any) -> list[Placed]:
    """The sections of an image that take memory, in the file's order; of one without any its segments."""
    loads = [(int(s["p_vaddr"]), int(s["p_paddr"]), int(s["p_filesz"])) for s in elf.iter_segments("PT_LOAD")]
    is_linked = elf["e_type"] != "ET_REL"  # an object has no segments, and nothing is anywhere else first
    found = []
    for index, section in enumerate(elf.iter_sections()):
        flags, size, address = (int(section[key]) for key in ("sh_flags", "sh_size", "sh_addr"))
        if flags & _ALLOCATED and size:
            stored = section["sh_type"] != "SHT_NOBITS"
            load = -1 if not stored else _load_address(loads, address) if is_linked else address
            is_code = bool(flags & _EXECUTABLE)
            found.append(Placed(section.name, address, size, load, bool(flags & _WRITABLE), index, is_code))
    return found if elf.num_sections() else list(_segments(elf))


def _segments(elf: Any) -> Iterator[Placed]:
    """What is loaded, of an image whose sections were removed."""
    for number, segment in enumerate(elf.iter_segments("PT_LOAD")):
        address, stored, size = (int(segment[key]) for key in ("p_vaddr", "p_filesz", "p_memsz"))
        is_writable, is_code = bool(segment["p_flags"] & _WRITES), bool(segment["p_flags"] & _RUNS)
        load, name = int(segment["p_paddr"]), f"(segment {number})"
        if stored:
            yield Placed(name, address, stored, load, is_writable, -2 * number - 2, is_code)
        if size > stored:
            rest = f"{name[:-1]}, without contents)"
            yield Placed(rest, address + stored, size - stored, -1, is_writable, -2 * number - 3, is_code)


def _load_address(loads: list[tuple[int, int, int]], address: int) -> int:
    for virtual, physical, size in loads:
        if virtual <= address < virtual + size:
            return physical + address - virtual
    return -1


def _entry(name: str, size: int, rows: list[tuple[str, int]]) -> MemorySize:
    return {
        "memory": name,
        "used": sum(n for _, n in rows),
        "size": size,
        "sections": [{"name": section, "bytes": n} for section, n in rows],
    }
