"""Compilers and flags with which all C of the project must compile without warnings; symbols of objects.

    objects = kernel_objects("cortex-m4", "gcc", sources, folder)   # ToolError if there is a warning
    assert symbols(objects[0]).needed <= {"memcpy"}

The units are those of the firmware images of `kernelboard`, so each is compiled once for all tests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import ckernels
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from buildtool.firmware.objects import Compiler, Unit
from buildtool.target.family import load_family
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_board, plugin

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


ASSEMBLY = ("riscv", "riscv_v")  # families that use `asm`, which C99 does not have


def kernel_units(files: Iterable[Path], includes: tuple[Path, ...]) -> list[Unit]:
    """Returns files as units to compile. In our kernels, warnings are errors."""
    ours = [path for path in kernels_root().iterdir() if path.name != "runtime"]
    units = []
    for path in files:
        standard = ("-std=gnu99",) if path.parent.name in ASSEMBLY else ()
        units.append(Unit(path, includes, (*ckernels.WARNINGS, *standard) if path.parent in ours else ()))
    return units


def kernel_objects(board: str, tool: str, files: Sequence[Path], folder: Path) -> list[Path]:
    """Compiles kernels for a board. Returns the objects in order. ToolError has the compiler's messages."""
    loaded = load_board(board)
    tools = plugin(loaded).toolchain(loaded, tool)
    compiler = Compiler(tools.cc, tools.identity, tools.cflags)
    return ckernels.compile_and_keep(compiler, kernel_units(files, (kernels_root() / "include",)), folder)


@dataclass(frozen=True)
class Symbols:
    """Symbols of an object: those it needs, its global functions, all its variables (static ones too)."""

    needed: frozenset[str]
    functions: frozenset[str]
    variables: frozenset[str]


def symbols(path: Path) -> Symbols:
    """Returns the symbols of an ELF object of any core."""
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
                elif flags & SH_FLAGS.SHF_EXECINSTR and symbol["st_info"]["bind"] != "STB_LOCAL":
                    functions.add(symbol.name)
    return Symbols(frozenset(needed), frozenset(functions), frozenset(variables))


def family_files(family: str) -> list[Path]:
    """Returns a family's files, and the files of other families that its catalogue links with them."""
    listed = {kernels_root() / name for sources in _list_sources(family) for name in sources}
    folder = kernels_root() / family
    return sorted(listed.union(folder.glob("*.c"), folder.glob("*.S")))


def needed_outside(family: str, symbols_of: Mapping[Path, Symbols]) -> frozenset[str]:
    """Returns the symbols that kernels need and that no file of their own entries defines."""
    outside: set[str] = set()
    for sources in _list_sources(family):
        parts = [symbols_of[kernels_root() / name] for name in sources]
        defined = frozenset().union(*(part.functions for part in parts))
        outside |= frozenset().union(*(part.needed for part in parts)) - defined
    return frozenset(outside)


def unlisted(family: str) -> set[str]:
    """Returns the files of a family's folder that no entry lists, so that nothing links them."""
    listed = {name for sources in _list_sources(family) for name in sources}
    return {f"{path.parent.name}/{path.name}" for path in family_files(family)} - listed


def _list_sources(family: str) -> list[tuple[str, ...]]:
    """Returns the sources of each kernel and routine of a family."""
    catalogue = load_family(kernels_root() / family)
    return [entry.sources for entry in (*catalogue.kernels, *catalogue.routines)]
