"""Writes a board file to start from, with what is known about a chip."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from buildtool.base.errors import TargetError, UsageError, did_you_mean, shown
from buildtool.base.sizes import show_size
from buildtool.target import registry
from buildtool.target.board_file import chain, parse_board, resolve
from buildtool.target.chipfiles.facts import ChipFacts, Region, largest
from buildtool.target.hardware import MemoryKind
from buildtool.target.types import Board

_MOST_STACK = 8192
_EXTERNAL = 0x60000000  # Arm's address map of Cortex-M
_SOFT = {"cortex-m4": "-mcpu=cortex-m4", "cortex-m7": "-mcpu=cortex-m7", "cortex-m33": "-mcpu=cortex-m33"}
GUIDE = "docs/guides/new-boards.md"


def new_board(facts: ChipFacts, sources: Sequence[str], core: str = "") -> str:
    """Returns the text of a board file for a chip.

    `sources` are the names of the files that were read. `core` is the name of a core ("": that of the facts).
    Raises UsageError if no memory can hold code or the arena, or if the core is not known.
    """
    base = _core_file(core or facts.core)
    rom, ram = facts.code or _first_rom(facts), facts.arena or _internal_ram(facts)
    if not rom or not ram:
        have = ", ".join(r.name for r in facts.regions) or "none: a CMSIS-SVD has peripherals and no memories"
        hint = "--from chip.ld (or .dts, .pdsc), too; or --flash 0x08000000:512K --ram 0x20000000:128K"
        what = f"a memory for {'the arena' if rom else 'code'} is missing; known memories: {have}"
        raise UsageError(what, hint=hint)
    text = "\n".join(_lines(facts, sources, base, rom, ram)) + "\n"
    try:
        _check(text)
    except TargetError as error:
        raise UsageError(f"these facts make no board: {error.text}") from None
    with contextlib.suppress(TargetError):
        placed = text + _in_machine(facts.regions, base, rom)
        _check(placed)
        return placed
    return text + _NO_MACHINE.format(core=base)


_NO_MACHINE = (
    "# The emulated machine of {core} has no room for these memories: nothing runs without the board.\n"
)


def _check(text: str) -> Board:
    files = [(Path("new.toml"), tomllib.loads(text))]
    name = files[0][1].pop("extends")
    known = registry.find_extended_file
    return parse_board(resolve([*files, *chain(known(name), known)]), "new", "new.toml", text.encode())


def _core_file(core: str) -> str:
    cores = registry.core_names()
    if core in cores:
        return core
    if core.startswith(("rv32", "rv64")):  # the nearest with no more extensions
        letters = set(core[4:].partition("_")[0].replace("g", "imafd"))
        fitting = [name for name in cores if name[:4] == core[:4] and set(name[4:]) <= letters]
        if fitting:
            return max(fitting, key=len)
    what = f"buildtool has no core {shown(core)}" if core else "the files do not name the core"
    raise UsageError(what, hint=f"--core NAME: {did_you_mean(core, cores) if core else ', '.join(cores)}")


def _first_rom(facts: ChipFacts) -> str:
    """Returns the name of the first ROM that is called flash or similar; if there is none, of the first
    ROM.
    """
    roms = [region.name for region in facts.regions if region.kind is MemoryKind.ROM]
    return next((name for name in roms if re.search(r"flash|rom|mram|xip", name)), roms[0] if roms else "")


def _internal_ram(facts: ChipFacts) -> str:
    """Returns the name of the largest RAM at an address of internal memory; if there is none, of the largest
    RAM.
    """
    internal = [region for region in facts.regions if region.base < _EXTERNAL]
    return largest(internal, MemoryKind.RAM) or largest(facts.regions, MemoryKind.RAM)


def _comment(*sentences: str) -> Iterator[str]:
    for sentence in sentences:
        words, line = "".join(c if c.isprintable() else " " for c in sentence).split(), "#"
        for word in words:
            if len(line) + 1 + len(word) > 108:
                yield line
                line = "#"
            line += f" {word}"
        yield line


def _lines(facts: ChipFacts, sources: Sequence[str], core: str, rom: str, ram: str) -> Iterator[str]:
    chip, *names = (re.sub(r"[^\w .,()+/-]", "_", name, flags=re.ASCII) for name in (facts.chip, *sources))
    chip = chip or names[0].partition(".")[0]
    yield from _comment(
        f"{chip}: core and memories as in {', '.join(names)}; written by buildtool boards new. {GUIDE} goes"
        " on from here: the clock, a serial port, flashing.",
        *facts.remarks,
    )
    yield f'extends = "{registry.CORES}{core}"'
    yield f'title = "{chip} ({core})"'
    data = next(r for r in facts.regions if r.name == ram)
    yield f"stack_bytes = {max(256, min(_MOST_STACK, data.size // 8 // 8 * 8))}"
    if facts.clock_hz:
        yield f"clock_hz = {facts.clock_hz} # as the file has it: what it is depends on your start-up code"
    else:
        yield from _comment(
            "State clock_hz, the core's clock: without it no time in milliseconds is estimated."
        )
    yield from _core_lines(core, facts.fpu)
    for region in facts.regions:
        yield from ("", f"[memory.{region.name}]", f'kind = "{region.kind}"', f"base = {region.base:#010x}")
        yield f'size = "{show_size(region.size)}"'
        if region.erase:
            yield f'erase_blocks = ["{show_size(region.erase)}"]'
    yield ""
    yield from _comment(
        "State wait_cycles (and bus_bits) of a memory for estimates of time; erase_blocks of a flash, so that"
        " the weights begin at one of them.",
    )
    yield from (
        "",
        "[roles]",
        f'code = "{rom}"',
        f'data = "{ram}"',
        f'arena = "{ram}"',
        f'weights = "{rom}"',
        "",
    )
    ports = ", ".join(f"{name} at {base:#x}" for name, base in facts.uarts[:8])
    yield from _comment(
        "For runs on the board, state [chip] (the file that sets its clock), [uart] and [probe] (what flashes"
        " it)." + (f" Its serial ports: {ports}." if ports else ""),
    )
    yield ""


def _core_lines(core: str, fpu: str) -> Iterator[str]:
    """Yields the lines of the table [core]; none if the chip's floating-point unit is that of the core's own
    file.
    """
    select = _SOFT.get(core)
    if select and fpu == "none":
        yield from (
            "",
            "[core]",
            f'cflags = ["{select}", "-mthumb", "-mfloat-abi=soft"] # no floating-point unit',
        )
    elif core == "cortex-m7" and fpu == "single":
        flags = f'"{select}", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"'
        yield from ("", "[core]", f"cflags = [{flags}] # floats of single precision")


def _machine(core: str) -> Board | None:
    """Returns an emulated board with this core, whose memories are those of the emulated machine; None if
    there is none.
    """
    for name in registry.board_names():
        board = registry.load_board(name)
        is_own = board.emulator is not None and not board.emulator.bases and board.probe is None
        if is_own and board.core.name == core:
            return board
    return None


def _in_machine(regions: Sequence[Region], core: str, rom: str) -> str:
    """Returns the table [emulator], which places the memories in the emulated machine; a remark if there is
    no such machine.

    Code lies where the machine starts. Memories for which the machine has no room get addresses after its
    last one.
    """
    board = _machine(core)
    if board is None or board.emulator is None:
        return _NO_MACHINE.format(core=core)
    code = board.memory(board.code)
    windows = [[code.base, code.base + code.size]]
    for memory in sorted(board.memories, key=lambda memory: memory.base):
        if memory.name == board.code:
            continue
        if len(windows) > 1 and windows[-1][1] == memory.base:
            windows[-1][1] += memory.size
        else:
            windows.append([memory.base, memory.base + memory.size])
    others = sorted((r for r in regions if r.name != rom), key=lambda region: -region.size)
    bases, beyond = {rom: code.base}, max(end for _, end in windows)
    for region in others:
        window = next((w for w in windows[1:] if w[1] - w[0] >= region.size), None)
        if window is None:  # a program uses it only where an option selects it
            window = [beyond, beyond]
            beyond += region.size
        bases[region.name] = window[0]
        window[0] += region.size + -region.size % 4096
    places = ", ".join(f"{name} = {base:#010x}" for name, base in bases.items())
    remark = (
        f"# QEMU's {board.emulator.machine} has the core, and memory at these addresses: runs are there.\n"
    )
    return f"{remark}[emulator]\nbases = {{ {places} }}\n"


def board_name(facts: ChipFacts, sources: Sequence[Path]) -> str:
    """Returns a name for the board: that of the chip, or that of the first file that was read."""
    return re.sub(r"[^a-z0-9]+", "-", (facts.chip or sources[0].stem).lower()).strip("-")[:60] or "board"
