"""Compilers and flags with which all C of the project must compile without a warning; what objects hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")
_M4 = ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-ffreestanding")
_M55 = ("-mcpu=cortex-m55", "-mfloat-abi=hard", "-ffreestanding")
BUILDS = {
    "gcc host": ("gcc",),
    "clang host": ("clang",),
    "gcc cortex-m4": ("arm-none-eabi-gcc", "-mthumb", *_M4),
    "gcc cortex-m55": ("arm-none-eabi-gcc", "-mthumb", *_M55),
    "clang cortex-m4": ("clang", "--target=thumbv7em-none-eabihf", *_M4),
    "clang cortex-m55": ("clang", "--target=thumbv8.1m.main-none-eabihf", *_M55),
}


@dataclass(frozen=True)
class Symbols:
    """Names in an object: what it needs, its global functions, and its variables (static ones too)."""

    needed: frozenset[str]
    functions: frozenset[str]
    variables: frozenset[str]


def symbols(path: Path) -> Symbols:
    """The symbols of an ELF object, of whatever core."""
    needed, functions, variables = set(), set(), set()
    with path.open("rb") as file:
        elf = ELFFile(file)
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            place, kind = symbol["st_shndx"], symbol["st_info"]["type"]
            if not symbol.name or symbol.name.startswith("$") or kind in ("STT_SECTION", "STT_FILE"):
                continue  # "$d", "$t": where data and code begin
            if place == "SHN_UNDEF":
                needed.add(symbol.name)
            elif place == "SHN_COMMON":
                variables.add(symbol.name)
            elif isinstance(place, int):
                flags = elf.get_section(place)["sh_flags"]
                if flags & SH_FLAGS.SHF_WRITE:
                    variables.add(symbol.name)
                elif flags & SH_FLAGS.SHF_EXECINSTR and symbol["st_info"]["bind"] == "STB_GLOBAL":
                    functions.add(symbol.name)
    return Symbols(frozenset(needed), frozenset(functions), frozenset(variables))
