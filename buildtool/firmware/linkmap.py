"""Reads the words of a linker, ld.lld or GNU ld: its map, and errors about a memory that is too small.

The map lists how many bytes of each output section come from each object.
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

MAP_FLAG = "-Map="  # of the linker, before the file
_MOST_BYTES = 1 << 28  # of a map

# ld.lld: "    40       40       4e     4         obj/000_net.o:(.text.net_init)"; an output section stands
# one blank behind the numbers, an input section eight more, a symbol another eight.
_LLD = re.compile(r" *([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +\d+ (.*)")
_LLD_INPUT = re.compile(r" {8}(\S.*):\(([^)]*)\)$")
# GNU ld: ".text  0x00000000  0xc436", " .text.net_init  0x00000040  0x4e obj/000_net.o".
_GNU_OUTPUT = re.compile(r"(\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:\s|$)")
_GNU_NAME = re.compile(r" ?[^\s*]\S* *")
_GNU_INPUT = re.compile(r" (\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)")
# An absolute path at the beginning of a word, up to its last part.
_ABSOLUTE = re.compile(rb"(?m)(?:(?<=[ \t(])|^)/(?:[^\n/()]*/)*([^\n/()]+)")


class Share(NamedTuple):
    """The bytes that a section of an object brings to a section of the image, and their address.

    `file`: the object's path; "<internal>" for constants that ld.lld has merged, from whatever object.
    """

    output: str
    section: str
    file: str
    bytes: int
    address: int = -1


def portable(table: bytes) -> bytes:
    """A map without the paths of this machine: absolute ones are cut to their last part."""
    return _ABSOLUTE.sub(rb"\1", table)


class Output(NamedTuple):
    """A section of the image in the map."""

    name: str
    address: int
    bytes: int


def map_text(elf: File, named: File | None) -> str:
    """The text of the map of an image: the named one, or one beside the image ("": none)."""
    if named is not None:
        return named.read("the map", _MOST_BYTES).decode("utf-8", "replace")
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
    """The bytes that each object brings, by the text of a linker's map."""
    return [line for line in _read(text) if isinstance(line, Share) and line.bytes]


def outputs(text: str) -> list[Output]:
    """The sections of the image, by the text of a linker's map."""
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
        elif (named := _LLD_INPUT.match(rest)) is not None:
            yield Share(output, named[2], named[1], size, address)


def _read_gnu(lines: list[str]) -> Iterator[Share | Output]:
    output = ""
    for line in _join_long_names(lines):
        if not line.startswith(" "):
            output = ""
            if section := _GNU_OUTPUT.match(line):
                output = section[1]
                yield Output(output, int(section[2], 16), int(section[3], 16))
        elif (named := _GNU_INPUT.match(line)) is not None and not named[1].startswith("*"):
            yield Share(output, named[1], named[4], int(named[3], 16), int(named[2], 16))


def _join_long_names(lines: list[str]) -> Iterator[str]:
    """The lines of GNU ld's memory map; the line of a long name and the next one are joined."""
    begun, name = False, ""
    for line in lines:
        begun = begun or line.startswith("Linker script and memory map")
        if name:
            yield f"{name} {line.strip()}"
            name = ""
        elif begun and _GNU_NAME.fullmatch(line):
            name = line.rstrip()
        elif begun:
            yield line


# ---- memories that overflow -------------------------------------------------------------------------


# ld.lld: "section '.text' will not fit in region 'flash': overflowed by 12 bytes"
_LLD_FULL = re.compile(r"section '([^']+)' will not fit in region '([^']+)': overflowed by (\d+) bytes?")
# GNU ld: "region `flash' overflowed by 12 bytes"; it names the sections in lines of their own.
_GNU_FULL = re.compile(r"region [`']([^']+)' overflowed by (\d+) bytes?")

_HELP = {
    "code": "fewer operators, or a board with more room for code",
    "data": "a smaller stack_bytes in the board's file, or fewer globals",
    "arena": "a smaller RAM limit for the plan, and reserved_bytes for what else lives there",
    "weights": "a smaller network, or `roles.weights` in a larger memory",
}


def explain_link_failure(text: str, board: Board) -> ToolError | None:
    """An error about the memory with the largest excess, from a linker's output; None for other errors."""
    places = {region.name: region for region in regions(board)}
    full = [*_GNU_FULL.findall(text), *(words[1:] for words in _LLD_FULL.findall(text))]
    known = [(int(excess), region) for region, excess in full if region in places]
    if not known:
        return None
    excess, region = max(known)
    return too_small(board, places[region], places[region].size + excess)


def too_small(board: Board, region: Region, needed: int) -> ToolError:
    """The error for a region that is to hold `needed` bytes; it names the region's roles."""
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
        f" {needed} needed, {show_size(region.size)} there",
        hint="; ".join(helps),
    )
