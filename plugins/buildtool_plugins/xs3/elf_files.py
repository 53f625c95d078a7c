"""Writes and reads the ELF files of buildtool's own tools for XS3: objects and linked images.

An object holds assembly text, which is assembled when it is linked. An image has its segments and its
symbols; among these are cp, dp, the stack and the end of the program.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.base.errors import ToolError
from buildtool_plugins.xs3.linker import IDENTITY, Image, Memory
from buildtool_plugins.xs3.vendor_elf import MACHINE

TEXT = ".xs3.text"  # the section of an object that has the assembly text
_FILE_HEADER, _SECTION_HEADER, _SEGMENT_HEADER, _SYMBOL = (
    struct.Struct(f"<{fields}") for fields in ("16s2H5I6H", "10I", "8I", "3I2BH")
)
_IDENTITY = b"\x7fELF\x01\x01\x01" + bytes(9)
_OBJECT, _IMAGE = 1, 2
_PROGBITS, _SYMTAB, _STRTAB, _NOBITS = 1, 2, 3, 8
_WRITABLE, _ALLOCATED, _EXECUTABLE = 1, 2, 4
_ABSOLUTE = 0xFFF1
_GLOBAL = 0x10
_ADDRESS_SYMBOLS = ("_cp", "_dp", "_end", "_stack")  # symbols for fields of Image
_MEMORY_SYMBOLS = ("_ram", "_ram_bytes", "_far", "_far_bytes")  # symbols for the image's memories
# The sections of an image by the linker's groups, and their flags.
_GROUP_SECTIONS = {
    "const": (".cp.rodata", _ALLOCATED),
    "code": (".text", _ALLOCATED | _EXECUTABLE),
    "data": (".dp.data", _ALLOCATED | _WRITABLE),
    "zeros": (".dp.bss", _ALLOCATED | _WRITABLE),
    "large data": (".dp.data.large", _ALLOCATED | _WRITABLE),
    "large zeros": (".dp.bss.large", _ALLOCATED | _WRITABLE),
    "far": (".far", _ALLOCATED),
}


@dataclass(frozen=True)
class _Section:
    name: str
    type: int
    content: bytes
    flags: int = 0
    address: int = 0
    size: int = 0  # of a section without content


def _pack_file(kind: int, entry: int, sections: Sequence[_Section]) -> bytes:
    """Returns the bytes of an ELF file. `kind` is _OBJECT or _IMAGE, `entry` the address where the program
    begins.

    Sections of memory that have content become segments, too.
    """
    strings = b"".join(b"\0" + s.name.encode() for s in sections) + b"\0.shstrtab\0"
    named = [*sections, _Section(".shstrtab", _STRTAB, strings)]
    loaded = sum(1 for s in sections if s.flags and s.content)
    at = _FILE_HEADER.size + _SEGMENT_HEADER.size * loaded
    body, segments, headers, name_at = bytearray(), bytearray(), bytearray(_SECTION_HEADER.size), 1
    for number, section in enumerate(named, 1):
        link, entry_bytes = (number + 1, _SYMBOL.size) if section.type == _SYMTAB else (0, 0)
        offset, size = at + len(body), len(section.content) or section.size
        row = (name_at, section.type, section.flags, section.address, offset, size)
        headers += _SECTION_HEADER.pack(*row, link, bool(link), 1, entry_bytes)
        if section.flags and section.content:
            segments += _SEGMENT_HEADER.pack(1, offset, section.address, section.address, size, size, 7, 1)
        name_at += len(section.name) + 1
        body += section.content
    sizes = _FILE_HEADER.size, _SEGMENT_HEADER.size, loaded, _SECTION_HEADER.size, len(named) + 1, len(named)
    program = _FILE_HEADER.size if loaded else 0
    head = _FILE_HEADER.pack(_IDENTITY, kind, MACHINE, 1, entry, program, at + len(body), 0, *sizes)
    return bytes(head + segments + body + headers)


def write_object(text: str) -> bytes:
    """Returns the bytes of an object file that holds assembly text."""
    return _pack_file(_OBJECT, 0, [_Section(TEXT, _PROGBITS, text.encode("latin-1", "replace"))])


def read_object(content: bytes, path: str) -> str:
    """Returns the assembly text of an object file. Raises ToolError if it holds none."""
    for name, data in _read_sections(content, path):
        if name == TEXT:
            return data.decode("latin-1")
    raise ToolError("this object was not made for the XS3 runner", path=path)


def write_image(image: Image, entry: str) -> bytes:
    """Returns the bytes of the ELF file for a linked program that begins at the symbol `entry`."""
    own = dict(zip(_ADDRESS_SYMBOLS, (image.cp, image.dp, image.end, image.stack), strict=True))
    sizes = (number for memory in image.memories for number in (memory.base, memory.bytes))
    own |= zip(_MEMORY_SYMBOLS, sizes, strict=True)
    names, table = bytearray(b"\0"), bytearray(_SYMBOL.size)
    for name, address in {**image.symbols, **own}.items():
        table += _SYMBOL.pack(len(names), address & 0xFFFFFFFF, 0, _GLOBAL, 0, _ABSOLUTE)
        names += name.encode("latin-1", "replace") + b"\0"
    unloaded = [
        _Section(IDENTITY, _PROGBITS, image.identity),
        _Section(".symtab", _SYMTAB, bytes(table)),
        _Section(".strtab", _STRTAB, bytes(names)),
    ]
    loaded = [_group_section(image, group) for group, (_, size) in image.places.items() if size]
    return _pack_file(_IMAGE, image.address(entry), [*loaded, *unloaded])


def write_map(image: Image) -> str:
    """Returns the linker's map of a program, in the format of ld.lld."""
    lines = ["     VMA      LMA     Size Align Out     In      Symbol"]
    for group, (start, size) in image.places.items():
        if size:
            lines.append(f"{start:8x} {start:8x} {size:8x}     1 {_GROUP_SECTIONS[group][0]}")
            for piece in (piece for piece in image.pieces if piece.group == group):
                name = f"{piece.owner}:({piece.section})"
                lines.append(f"{piece.address:8x} {piece.address:8x} {piece.bytes:8x}     1         {name}")
    return "\n".join([*lines, ""])


def _group_section(image: Image, group: str) -> _Section:
    """Returns the image's section for one of the linker's groups of sections."""
    name, flags = _GROUP_SECTIONS[group]
    start, size = image.places[group]
    if group.endswith("zeros"):
        return _Section(name, _NOBITS, b"", flags, start, size)
    content = bytearray(size)
    for address, data in image.segments:
        if start <= address < start + size:
            content[address - start : address - start + len(data)] = data
    return _Section(name, _PROGBITS, bytes(content), flags, start)


def is_image(content: bytes) -> bool:
    """Whether a file is a linked program for XS3."""
    fields = _FILE_HEADER.unpack_from(content) if len(content) >= _FILE_HEADER.size else (b"", 0, 0)
    return fields[0] == _IDENTITY and fields[1:3] == (_IMAGE, MACHINE)


def read_image(content: bytes, path: str) -> tuple[Image, int]:
    """Returns the linked program in an ELF file, and the address where it begins. Raises ToolError for other
    files.
    """
    if not is_image(content):
        raise ToolError("this is not an image for the XS3 runner", path=path)
    fields = _FILE_HEADER.unpack_from(content)
    image = Image(())
    for index in range(fields[10]):
        _, offset, address, _, size, *_ = _SEGMENT_HEADER.unpack_from(
            content, fields[5] + _SEGMENT_HEADER.size * index
        )
        image.segments.append((address, content[offset : offset + size]))
    sections = dict(_read_sections(content, path))
    names, table = sections[".strtab"], sections[".symtab"]
    for at, address, *_ in _SYMBOL.iter_unpack(table):
        image.symbols[names[at : names.index(b"\0", at)].decode("latin-1")] = address
    image.cp, image.dp, image.end, image.stack = (image.symbols.pop(name) for name in _ADDRESS_SYMBOLS)
    ram, ram_bytes, far, far_bytes = (image.symbols.pop(name) for name in _MEMORY_SYMBOLS)
    image.memories = Memory(ram, ram_bytes), Memory(far, far_bytes)
    return image, fields[4]


def _read_sections(content: bytes, path: str) -> list[tuple[str, bytes]]:
    try:
        fields = _FILE_HEADER.unpack_from(content)
        if fields[0] != _IDENTITY or fields[2] != MACHINE:
            raise ToolError("this is not an ELF file for XS3", path=path)
        rows = [
            _SECTION_HEADER.unpack_from(content, fields[6] + _SECTION_HEADER.size * index)
            for index in range(fields[12])
        ]
        names = content[rows[fields[13]][4] :]
        return [
            (names[row[0] : names.index(b"\0", row[0])].decode(), content[row[4] : row[4] + row[5]])
            for row in rows[1:]
        ]
    except (struct.error, IndexError, ValueError):
        raise ToolError("this ELF file is cut off", path=path) from None
