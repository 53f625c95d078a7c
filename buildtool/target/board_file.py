"""Reads board files: turns .toml tables into a Board, and checks every field.

    extends = "cortex-m4"
    reserved_bytes = "16K"

The keys are defined by the fields of `Board` and of its parts (`plain.Key`). The page
docs/reference/target-reference.md is made from these definitions. This module checks conditions between
several keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from buildtool.base.errors import Hint, TargetError, did_you_mean, shown
from buildtool.base.plain import Mismatch, Table, check_keys, from_table, texts
from buildtool.base.sizes import show_size
from buildtool.base.toml import add_place, mistakes, read_toml
from buildtool.target.hardware import Emulator, FlashImage, Memory, MemoryKind
from buildtool.target.partitions import boundary, partition_start
from buildtool.target.readers import ADDRESS_END
from buildtool.target.types import Board

_MOST_EXTENDED = 16  # files in a chain of `extends`
EXTENDS = "extends"
WITHOUT = "without"
WHAT = "board file"


def merge(base: Mapping[str, object], override: Mapping[str, object]) -> Table:
    """Returns the tables of `base` and `override` merged key by key; `override` wins."""
    merged = dict(base)
    for key, value in override.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def parse_board(table: Table, name: str, path: str, data: bytes | None = None) -> Board:
    """Returns the Board that a board file's table describes. The table no longer has the key `extends`.

    `name` is the board's name. `data` is the content of the file at `path`, if it has been read already.
    Raises TargetError with the path, the key and its line if the table has a mistake.
    """
    with mistakes(path, data):
        board = from_table(table, Board, also=(EXTENDS,), name=name)
        _check_memories(board)
        _check_roles(board)
        if "arenas" in table["roles"]:
            _check_arenas(board)
        _check_room(board)
        if board.emulator:
            _check_bases(board.emulator, board.memories)
        if "image" in table:
            _check_image(board.image, board.memory(board.code), board.memory(board.weights))
        if board.uart and not 0 < board.uart.baud <= board.uart.clock_hz:
            raise Mismatch(f"must be from 1 to clock_hz, not {board.uart.baud}", "uart.baud")
    folder, uart, chip = Path(path).absolute().parent, board.uart, board.chip
    if uart and uart.driver.endswith(".c"):
        uart = replace(uart, driver=str(folder / uart.driver))
    if chip and chip.start.endswith(".c"):
        chip = replace(chip, start=str(folder / chip.start))
    return replace(board, core=board.core.with_threads(board.core.threads), uart=uart, chip=chip)


def _check_memories(board: Board) -> None:
    """Raises Mismatch unless memories are separate 32-bit address ranges, and their caches exist and hold
    whole lines.
    """
    if not board.memories:
        raise Mismatch("at least one memory is needed", "memory", "write [memory.ram]")
    for cache in board.caches:
        for key in ("data_bytes", "code_bytes"):
            if getattr(cache, key) % (cache.line_bytes * max(cache.ways, 1)):
                what = f"{show_size(getattr(cache, key))} is not a whole number of sets of lines"
                raise Mismatch(what, f"cache.{cache.name}.{key}")
    for memory in board.memories:
        where, base = f"memory.{memory.name}", memory.base
        if memory.size == 0 or base + memory.size > ADDRESS_END:
            what = f"{memory.size} bytes at {base:#x} are not a 32-bit address range"
            raise Mismatch(what, f"{where}.size")
        largest = max((block for _, block in memory.erase), default=1)
        if base % largest:
            hint = f"change {where}.erase_blocks, or keep the base and set code_start in [image]"
            what = f"{base:#x} is inside an erase block of {show_size(largest)}"
            raise Mismatch(what, f"{where}.base", hint)
        caches = [cache.name for cache in board.caches]
        if memory.speed and memory.speed.cache and memory.speed.cache not in caches:
            cache_name = memory.speed.cache
            hint = did_you_mean(cache_name, caches) if caches else f"write [cache.{cache_name}]"
            raise Mismatch(f"there is no cache {shown(cache_name)}", f"{where}.cache", hint)
    _check_apart(board.memories, {memory.name: f"memory.{memory.name}" for memory in board.memories})


def _check_apart(memories: Iterable[Memory], keys: Mapping[str, str]) -> None:
    """Raises Mismatch if two memories overlap. `keys` maps a memory's name to the key that gives its
    address.
    """
    for low, high in pairwise(sorted(memories, key=lambda memory: memory.base)):
        if low.base + low.size > high.base:
            end = low.base + low.size
            what = f"begins at {high.base:#x}, inside memory '{low.name}' which ends at {end:#x}"
            raise Mismatch(what, keys.get(high.name) or keys.get(low.name, "memory"))


def _check_roles(board: Board) -> None:
    """Raises Mismatch unless the memories of all roles exist, and those for data and arena are RAM."""
    kinds = {memory.name: memory.kind for memory in board.memories}
    for role in ("code", "data", "arena", "weights", *(["kernels"] if board.kernels else [])):
        memory = getattr(board, role)
        if memory not in kinds:
            what = f"there is no memory {shown(memory)}"
            raise Mismatch(what, f"roles.{role}", did_you_mean(memory, kinds))
        if role in ("data", "arena", "kernels") and kinds[memory] is not MemoryKind.RAM:
            raise Mismatch(f"memory '{memory}' is {kinds[memory]}; it must be ram", f"roles.{role}")


def _check_arenas(board: Board) -> None:
    """Raises Mismatch unless programs can write the memories in `roles.arenas`, and the arena's memory is one
    of them.
    """
    usable = [m.name for m in board.memories if m.kind is MemoryKind.RAM and not m.bandwidth]
    for name in board.arenas:
        if name not in usable:
            what = f"{shown(name)} is not a RAM that programs can write"
            raise Mismatch(what, "roles.arenas", did_you_mean(name, usable))
    if len(set(board.arenas)) < len(board.arenas):
        raise Mismatch("names a memory twice", "roles.arenas")
    if board.arena not in board.arenas:
        what = f"must also name the arena's memory {shown(board.arena)}"
        raise Mismatch(what, "roles.arenas")


def _check_room(board: Board) -> None:
    """Raises Mismatch unless the stack and the reserved bytes fit in their memories."""
    needs = {board.data: board.stack_bytes}
    needs[board.arena] = needs.get(board.arena, 0) + board.reserved_bytes
    for name, bytes_needed in needs.items():
        size = board.memory(name).size
        if bytes_needed >= size:
            keys = "stack_bytes" if board.reserved_bytes == 0 else "stack_bytes and reserved_bytes"
            what = f"{show_size(bytes_needed)} do not fit in memory '{name}' of {show_size(size)}"
            raise Mismatch(what, keys, at="stack_bytes")


def _check_bases(emulator: Emulator, memories: Sequence[Memory]) -> None:
    """Raises Mismatch unless the memories in `emulator.bases` exist, and with these addresses all memories
    are separate 32-bit address ranges.
    """
    bases = dict(emulator.bases)
    check_keys(bases, [memory.name for memory in memories], "emulator.bases.")
    emulated = [replace(memory, base=bases.get(memory.name, memory.base)) for memory in memories]
    for memory in emulated:
        if memory.base + memory.size > ADDRESS_END:
            what = f"{memory.size} bytes at {memory.base:#x} are not a 32-bit address range"
            raise Mismatch(what, f"emulator.bases.{memory.name}")
    _check_apart(emulated, {name: f"emulator.bases.{name}" for name in bases})


def _check_image(image: FlashImage, code: Memory, weights: Memory) -> None:
    """Raises Mismatch unless code, slots and partitions lie in their memories and begin at erase blocks."""
    boot = image.mcuboot
    if boot and (boot.header_bytes < 32 or boot.header_bytes % 128 or boot.header_bytes >= boot.slot_bytes):
        what = f"must be a multiple of 128 below slot_bytes, not {boot.header_bytes}"
        hint = "a vector table begins at a multiple of 128"
        raise Mismatch(what, "image.mcuboot.header_bytes", hint)
    if image.slots > 1 and not image.slot_bytes:
        what = f"{image.slots} slots need a size"
        raise Mismatch(what, "image.slots", "set slot_bytes in [image]")
    places = [("code_start", image.code_start, code)]
    if image.weights_start is not None:
        places.append(("weights_start", image.weights_start, weights))
    for key, start, memory in places:
        if start >= memory.size:
            raise Mismatch(f"{show_size(start)} is after the end of memory '{memory.name}'", f"image.{key}")
        if start != boundary(memory, start) or start % 16:
            near = show_size(boundary(memory, start + -start % 16))
            what = f"{show_size(start)} is inside an erase block"
            raise Mismatch(what, f"image.{key}", f"the next block begins at {near}")
    if boot and image.code_start + boot.slot_bytes > code.size:
        what = f"{show_size(boot.slot_bytes)} from {show_size(image.code_start)}"
        raise Mismatch(f"{what} do not fit in memory '{code.name}'", "image.mcuboot")
    if image.slot_bytes:
        _check_slots(image, code, weights)
    if image.weights_start is not None and code == weights:
        end = image.code_start + (boot.slot_bytes if boot else 1)
        if image.code_start <= image.weights_start < end:
            raise Mismatch("the firmware lies there", "image.weights_start", "give a place after it")


def _check_slots(image: FlashImage, code: Memory, weights: Memory) -> None:
    """Raises Mismatch unless every slot is a whole number of erase blocks, and all slots lie in the
    memory.
    """
    start = partition_start(image, code, weights)
    if start is None:
        hint = "set weights_start in [image]"
        raise Mismatch("slots after the firmware need a fixed place", "image.slot_bytes", hint)
    end = image.code_start if code == weights and start < image.code_start else weights.size
    if start + image.slots * image.slot_bytes > end:
        what = f"{image.slots} slots of {show_size(image.slot_bytes)} from {show_size(start)}"
        raise Mismatch(f"{what} do not fit in memory '{weights.name}'", "image.slots")
    for slot in range(image.slots + 1):
        at = start + slot * image.slot_bytes
        if at % 16 or at != boundary(weights, at):
            what = f"{show_size(image.slot_bytes)} is not a whole number of erase blocks"
            hint = f"the block at {show_size(at)} would be in two slots"
            raise Mismatch(what, "image.slot_bytes", hint)


def resolve(files: Sequence[tuple[Path, Table]]) -> Table:
    """Returns the table of a board file, merged over those of the files that it extends.

    `files` is from `chain`. Raises TargetError if the key `without` of a file names something that the files
    that it extends do not have.
    """
    merged: Table = {}
    for path, table in reversed(files):
        own = {key: value for key, value in table.items() if key != WITHOUT}
        with mistakes(str(path)):
            for name in texts(table.get(WITHOUT, []), WITHOUT):
                merged = _leave_out(merged, name)
        merged = merge(merged, own)
    return merged


def _leave_out(table: Table, name: str) -> Table:
    """Returns the table without the key or inner table `name`, such as "memory.psram". Raises Mismatch if it
    does not exist.
    """
    first, _, rest = name.partition(".")
    inner = table.get(first)
    if first not in table or (rest and not isinstance(inner, dict)):
        raise Mismatch(f"there is no {shown(first)} to leave out", WITHOUT, did_you_mean(first, table))
    others = {key: value for key, value in table.items() if key != first}
    return {**others, first: _leave_out(inner, rest)} if rest and isinstance(inner, dict) else others


def chain(
    path: Path, known: Callable[[str], Path], data: bytes | None = None
) -> Iterator[tuple[Path, Table]]:
    """Yields `path` and every file that it extends, directly or not, the nearest first, each with its own
    table.

    `known` returns the file of a board's or a core's name, and raises TargetError for an unknown one. `data`
    is the content of `path`, if it has been read already. Raises TargetError if a file cannot be read, or if
    files extend each other.
    """
    seen: list[Path] = []

    def read(path: Path, above: tuple[Path, ...], data: bytes | None) -> Iterator[tuple[Path, Table]]:
        def fail(what: str, hint: Sequence[Hint] = ()) -> TargetError:
            return add_place(TargetError(f"{EXTENDS}: {what}", path=str(path), hint=hint), EXTENDS, data)

        if len(seen) > _MOST_EXTENDED:
            raise fail(f"a chain of more than {_MOST_EXTENDED} files")
        if (here := path.resolve()) in above:
            raise fail(f"the files extend each other: {' -> '.join(p.name for p in (*above, here))}")
        table = read_toml(path, WHAT, data)
        names = table.pop(EXTENDS, [])
        seen.append(here)
        yield path, table
        for name in reversed(names if isinstance(names, list) else [names]):
            if not isinstance(name, str) or not name or not name.isprintable():
                raise fail(f"must be a board's name or a path, not {shown(name)}")
            try:
                base = path.parent / name if name.endswith(".toml") else known(name)
            except TargetError as error:
                raise fail(error.text, error.hints) from None
            yield from read(base, (*above, here), None)

    yield from read(path, (), data)
