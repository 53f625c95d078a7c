"""Reads the output of a linker, ld.lld or GNU ld: its map, and errors about a memory that is too small.

The map lists, for each section of the image, the bytes that come from each object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from buildtool.base.errors import ToolError
from buildtool.base.files import File
from buildtool.base.sizes import show_size
from buildtool.target.partitions import PARTITION, Region, regions
from buildtool.target.types import Board

MAP_FLAG = "-Map="  # the linker's flag before the file's name
_MOST_BYTES = 1 << 28  # of a map

# ld.lld: "    40       40       4e     4         obj/000_net.o:(.text.net_init)". An output section is one
# blank after the numbers, an input section eight blanks more, a symbol another eight.
_LLD = re.compile(r" *([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +\d+ (.*)")
_LLD_INPUT = re.compile(r" {8}(\S.*):\(([^)]*)\)$")
# GNU ld: ".text  0x00000000  0xc436", " .text.net_init  0x00000040  0x4e obj/000_net.o".
_GNU_OUTPUT = re.compile(r"(\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:\s|$)")
_GNU_NAME = re.compile(r" ?[^\s*]\S* *")
_GNU_INPUT = re.compile(r" (\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)")
# An absolute path at the beginning of a word, up to its last part.
_ABSOLUTE = re.compile(rb"(?m)(?:(?<=[ \t(])|^)/(?:[^\n/()]*/)*([^\n/()]+)")


class Share(NamedTuple):
    """The bytes that a section of an object file has in a section of the image.

    `output`: the section of the image.
    `section`: the section of the object.
    `file`: the object's path, or "<internal>" for constants that ld.lld has merged from several objects.
    `address`: -1 if it is not known.
    """

    output: str
    section: str
    file: str
    bytes: int
    address: int = -1


def portable(table: bytes) -> bytes:
    """Returns a map without the paths of this machine: of an absolute path only the file's name stays."""
    return _ABSOLUTE.sub(rb"\1", table)


class Output(NamedTuple):
    """A section of the image, as the linker's map lists it."""

    name: str
    address: int
    bytes: int


def map_text(elf: File, map_file: File | None) -> str:
    """Returns the text of `map_file`, or of the map in the image's folder; "" if there is none."""
    if map_file is not None:
        return map_file.read("the map", _MOST_BYTES).decode("utf-8", "replace")
    if elf.data is not None:
        return ""
    path = Path(elf.path)
    for beside in (path.with_suffix(".map"), path.with_name(f"{path.name}.map")):
        try:
            if beside.is_file() and beside.stat().st_size <= _MOST_BYTES:
                return beside.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return ""


def contributions(text: str) -> list[Share]:
    """Returns the bytes of each object, read from the text of a linker's map."""
    return [line for line in _read(text) if isinstance(line, Share) and line.bytes]


def outputs(text: str) -> list[Output]:
    """Returns the sections of the image, read from the text of a linker's map."""
    return [line for line in _read(text) if isinstance(line, Output)]


def _read(text: str) -> Iterator[Share | Output]:
    lines, output = text.splitlines(), ""
    if not lines or lines[0].split()[-3:] != ["Out", "In", "Symbol"]:
        yield from _read_gnu(lines)
        return
    for columns in filter(None, map(_LLD.match, lines[1:])):
        address, size, rest = int(columns[1], 16), int(columns[2], 16), columns[3]
        if not rest.startswith(" "):
            output = rest
            yield Output(output, address, size)
        elif (section := _LLD_INPUT.match(rest)) is not None:
            yield Share(output, section[2], section[1], size, address)


def _read_gnu(lines: list[str]) -> Iterator[Share | Output]:
    output = ""
    for line in _join_long_names(lines):
        if not line.startswith(" "):
            output = ""
            if section := _GNU_OUTPUT.match(line):
                output = section[1]
                yield Output(output, int(section[2], 16), int(section[3], 16))
        elif (part := _GNU_INPUT.match(line)) is not None and not part[1].startswith("*"):
            yield Share(output, part[1], part[4], int(part[3], 16), int(part[2], 16))


def _join_long_names(lines: list[str]) -> Iterator[str]:
    """Yields the lines of GNU ld's memory map; the line of a long name is joined with the next line."""
    in_map, name = False, ""
    for line in lines:
        in_map = in_map or line.startswith("Linker script and memory map")
        if name:
            yield f"{name} {line.strip()}"
            name = ""
        elif in_map and _GNU_NAME.fullmatch(line):
            name = line.rstrip()
        elif in_map:
            yield line


# ---- memories that overflow -------------------------------------------------------------------------


# ld.lld: "section '.text' will not fit in region 'flash': overflowed by 12 bytes"
_LLD_FULL = re.compile(r"section '([^']+)' will not fit in region '([^']+)': overflowed by (\d+) bytes?")
# GNU ld: "region `flash' overflowed by 12 bytes"; other lines name the sections.
_GNU_FULL = re.compile(r"region [`']([^']+)' overflowed by (\d+) bytes?")

_HELP = {
    "code": "fewer operators, or a board with more room for code",
    "data": "a smaller stack_bytes in the board's file, or fewer globals",
    "arena": "a smaller RAM limit for the plan, and reserved_bytes for the other content of this memory",
    "kernels": "kernels in another memory (kernels_in)",
    "weights": "a smaller network, or `roles.weights` in a larger memory",
}


def explain_link_failure(text: str, board: Board) -> ToolError | None:
    """Returns an error about the memory that lacks the most bytes, from a linker's output; None if the output
    is about something else.
    """
    places = {region.name: region for region in regions(board)}
    full = [*_GNU_FULL.findall(text), *(words[1:] for words in _LLD_FULL.findall(text))]
    overflows = [(int(excess), region) for region, excess in full if region in places]
    if not overflows:
        return None
    excess, region = max(overflows)
    return too_small(board, places[region], places[region].size + excess)


def too_small(board: Board, region: Region, needed: int) -> ToolError:
    """Returns the error for a region of the linker script that needs `needed` bytes, more than it has. The
    text names the roles of its memory, such as code or arena.
    """
    memory = region.memory.name
    roles = [role for role in _HELP if getattr(board, role) == memory]
    roles += ["arena"] if memory == board.second else []
    if region.name.endswith(PARTITION):
        roles = ["weights"]
    elif any(other.name == memory + PARTITION for other in regions(board)):
        roles.remove("weights")
    holds = f" ({', '.join(roles)})" if roles else ""
    helps = [_HELP[role] for role in roles]
    what = f"memory '{memory}'{holds}"
    if region.size < region.memory.size:
        what += f" from {region.origin:#x} on"
        helps.append("other places below [image] in the board's file")
    return ToolError(
        f"{what} of board '{board.name}' is {needed - region.size} bytes too small:"
        f" it needs {needed} and has {show_size(region.size)}",
        hint="; ".join(helps),
    )
