"""What a linked image takes of each memory, section by section."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from buildtool.errors import ToolError
from buildtool.schema.builds import MemorySize
from buildtool.target.types import Board, Memory

_LEAST_HEADER = 32  # bytes of a section's or a segment's header: a 32-bit segment's has the least
_WRITABLE, _ALLOCATED = 1, 2  # flags of a section


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
        hint = "link it again: it is damaged or cut short" if data.startswith(b"\x7fELF") else ""
        raise ToolError(f"not an ELF image: {error}", hint=hint) from None
    return elf


def _in(memory: Memory, address: int) -> bool:
    return memory.base <= address < memory.base + memory.size


def is_native(board: Board) -> bool:
    """Whether images run as programs of this machine, whose memory is not the board's."""
    return board.emulator is not None and board.emulator.kind == "native"


def size_report(data: bytes, board: Board) -> list[MemorySize]:
    """Per memory: bytes used of its size, and the sections in it; largest section first.

    Initialised data counts twice: in RAM, and in the memory it is loaded from. A native image
    (the host) has no memories of the board's: its sections are listed as one.
    """
    sections = placed_sections(open_elf(data))
    if is_native(board):
        rows = sorted(((s.name, s.size) for s in sections), key=lambda r: (-r[1], r[0]))
        return [_entry("process", 0, rows)]
    report = []
    for memory in board.memories:
        rows = []
        for section in sections:
            if _in(memory, section.address):
                rows.append((section.name, section.size))
            elif _in(memory, section.load_address):
                rows.append((f"{section.name} (initial values)", section.size))
        rows.sort(key=lambda r: (-r[1], r[0]))
        report.append(_entry(memory.name, memory.size, rows))
    return report


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
    index: int = -1  # among the file's sections

    @property
    def is_stored(self) -> bool:
        """Whether the image has contents for it."""
        return self.load_address >= 0


def placed_sections(elf: Any) -> list[Placed]:
    """The sections of an image that take memory, in the order of the file."""
    loads = [(int(s["p_vaddr"]), int(s["p_paddr"]), int(s["p_filesz"])) for s in elf.iter_segments("PT_LOAD")]
    found = []
    for index, section in enumerate(elf.iter_sections()):
        flags, size, address = (int(section[key]) for key in ("sh_flags", "sh_size", "sh_addr"))
        if flags & _ALLOCATED and size:
            stored = section["sh_type"] != "SHT_NOBITS"
            load = _load_address(loads, address) if stored else -1
            found.append(Placed(section.name, address, size, load, bool(flags & _WRITABLE), index))
    return found


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
