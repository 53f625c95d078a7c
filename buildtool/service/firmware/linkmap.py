"""A linker's map: how many bytes of each output section come from each object; of ld.lld and GNU ld."""

from __future__ import annotations

import re
from collections.abc import Iterator

# ld.lld: "    40       40       4e     4         obj/000_net.o:(.text.net_init)"; an output section stands
# one blank behind the numbers, an input section eight more, a symbol another eight.
_LLD = re.compile(r" *[0-9a-f]+ +[0-9a-f]+ +([0-9a-f]+) +\d+ (.*)")
_LLD_INPUT = re.compile(r" {8}(\S.*):\([^)]*\)$")
# GNU ld: ".text  0x00000000  0xc436", " .text.net_init  0x00000040  0x4e obj/000_net.o".
_GNU_OUTPUT = re.compile(r"(\.\S+)\s+0x[0-9a-f]+\s+0x[0-9a-f]+")
_GNU_NAME = re.compile(r" ?\.\S+ *")
_GNU_INPUT = re.compile(r" (\S+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S.*)")


def contributions(text: str) -> dict[tuple[str, str], int]:
    """(output section, object's path) -> bytes, from the text of a linker's map."""
    lines = text.splitlines()
    is_lld = bool(lines) and lines[0].split()[-3:] == ["Out", "In", "Symbol"]
    found: dict[tuple[str, str], int] = {}
    for section, file, size in _lld(lines) if is_lld else _gnu(lines):
        if size:
            found[section, file] = found.get((section, file), 0) + size
    return found


def _lld(lines: list[str]) -> Iterator[tuple[str, str, int]]:
    output = ""
    for line in lines[1:]:
        columns = _LLD.match(line)
        if columns is None:
            continue
        rest = columns[2]
        if not rest.startswith(" "):
            output = rest
        elif (named := _LLD_INPUT.match(rest)) is not None:
            yield output, named[1], int(columns[1], 16)


def _gnu(lines: list[str]) -> Iterator[tuple[str, str, int]]:
    output = ""
    for line in _whole_lines(lines):
        if not line.startswith(" "):
            section = _GNU_OUTPUT.match(line)
            output = section[1] if section else ""
        elif (named := _GNU_INPUT.match(line)) is not None and not named[1].startswith("*"):
            yield output, named[3], int(named[2], 16)


def _whole_lines(lines: list[str]) -> Iterator[str]:
    """The lines of GNU ld's memory map; a long name's line and the one behind it are one."""
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
