"""Which bytes calls on an emulated board load and store, seen by QEMU itself.

    done, seen = traced(firmware, calls)
    strange(seen[0], call.memory.pieces, writable, image)      # [] if nothing else was touched

Of a call's own memory all pieces that were put there may be loaded from; between them lies noise that nobody
may touch. Outside of it a kernel has the stack, and loads what the image says does not change.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from buildtool_plugins.qemu import counting, runner
from buildtool_plugins.tools.sandbox import run_program
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from kernelboard import DRIVER, Call, Done, Firmware, results_of

from buildtool.target.registry import load_board
from buildtool.target.types import RunRequest

SOURCE = DRIVER.with_name("accesses.c")
Range = tuple[int, int]


@dataclass
class Touched:
    """What one call loaded and stored: [first, end) of its memory, and addresses outside of it."""

    loads: list[Range] = field(default_factory=list)
    stores: list[Range] = field(default_factory=list)
    outside_loads: list[Range] = field(default_factory=list)
    outside_stores: list[Range] = field(default_factory=list)


@dataclass(frozen=True)
class Image:
    """Where things lie in a linked image, by address."""

    memory: Range  # of the driver: where a call's memory is copied to
    arguments: Range  # which the driver loads between the markers
    constant: tuple[Range, ...]  # sections that nothing writes to
    variable: tuple[Range, ...]


@functools.cache
def image_of(path: Path) -> Image:
    """What the ELF file says."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        places = {
            name: (symbol["st_value"], symbol["st_value"] + symbol["st_size"])
            for name in ("memory", "argument")
            for symbol in table.get_symbol_by_name(name)
        }
        kept = [s for s in elf.iter_sections() if s["sh_flags"] & SH_FLAGS.SHF_ALLOC and s["sh_size"]]
        kept = [s for s in kept if "stack" not in s.name]
        parts: tuple[list[Range], list[Range]] = ([], [])
        for section in kept:
            writable = bool(section["sh_flags"] & SH_FLAGS.SHF_WRITE)
            parts[writable].append((section["sh_addr"], section["sh_addr"] + section["sh_size"]))
    return Image(places["memory"], places["argument"], tuple(parts[False]), tuple(parts[True]))


def traced(firmware: Firmware, calls: Sequence[Call]) -> tuple[list[Done], list[Touched]]:
    """Runs the calls; what each left, and what each touched."""
    board, elf = load_board(firmware.board), firmware.image()
    image = image_of(elf)
    blocks, cases = firmware.cases(calls)
    request = RunRequest({"cases.bin": cases}, ("results.bin", counting.OUTPUT), timeout=600.0, count=True)
    plugin = counting.counting_plugin(SOURCE)
    watched = f"memory={image.memory[0]}:{image.memory[1] - image.memory[0]}"
    line = runner.with_plugin(runner.command(board, elf), plugin, [watched])
    files, _ = run_program(line, request, what="the traced calls", links=(plugin,))
    seen = _parsed(files[counting.OUTPUT].decode("ascii"))
    assert len(seen) == sum(call.repeats for call in calls)
    return results_of(files["results.bin"], blocks), seen


def _parsed(text: str) -> list[Touched]:
    seen: list[Touched] = []
    for line in text.splitlines():
        *what, first, end = line.split(" ") if line != "call" else ("call", "", "")
        if what == ["call"]:
            seen.append(Touched())
            continue
        getattr(seen[-1], "_".join(what) + "s").append((int(first), int(end)))
    return seen


def unseen(seen: Touched, done: Done) -> int:
    """Bytes that the call changed and no store was seen of: 0 unless the emulator keeps stores to itself."""
    stores = _joined(seen.stores)
    return sum(not any(first <= int(at) < end for first, end in stores) for at in done.changed())


def strange(seen: Touched, given: Sequence[Range], writable: Sequence[Range], image: Image) -> list[str]:
    """What a call may not have touched, in words; of its memory it may load `given` and store `writable`."""
    pieces = _joined(given)
    found = [f"loads {r}" for r in _beyond(seen.loads, pieces)]
    found += [f"stores {r}" for r in _beyond(seen.stores, _joined(writable))]
    stores = [r for r in seen.outside_stores if any(_meet(r, s) for s in (*image.constant, *image.variable))]
    loads = [r for r in seen.outside_loads if any(_meet(r, s) for s in image.variable)]
    loads = [r for r in loads if not _within(r, image.arguments)]
    return found + [f"stores at {r[0]:#x}" for r in stores] + [f"loads at {r[0]:#x}" for r in loads]


def _joined(ranges: Sequence[Range]) -> list[Range]:
    joined: list[Range] = []
    for first, end in sorted(r for r in ranges if r[1] > r[0]):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((first, end))
    return joined


def _beyond(ranges: Sequence[Range], allowed: Sequence[Range]) -> list[Range]:
    """Those that lie in none of the allowed ones."""
    return [r for r in ranges if not any(_within(r, a) for a in allowed)]


def _within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _meet(a: Range, b: Range) -> bool:
    return a[0] < b[1] and b[0] < a[1]
