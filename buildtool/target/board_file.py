"""Board files: .toml tables into Board, every field checked.

    extends = "cortex-m4"
    reserved_bytes = "16K"

The fields of `Board`, and of what it is made of, say which keys there are (`plain.Key`), and
docs/target-reference.md is made from them. Here is what has to hold between several keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from pathlib import Path

from buildtool.base.errors import Hint, TargetError, did_you_mean, shown
from buildtool.base.plain import Mismatch, Table, check_keys, from_table
from buildtool.base.sizes import show_size
from buildtool.base.toml import add_place, mistakes, read_toml
from buildtool.target.hardware import Emulator, FlashImage, Memory, MemoryKind
from buildtool.target.partitions import boundary, partition_start
from buildtool.target.readers import ADDRESS_END
from buildtool.target.types import Board

_MOST_EXTENDED = 16  # files, one by another
EXTENDS = "extends"
WHAT = "board file"


def merge(base: Mapping[str, object], override: Mapping[str, object]) -> Table:
    """`override` laid over `base`: tables key by key, everything else replaced."""
    merged = dict(base)
    for key, value in override.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def parse_board(table: Table, name: str, path: str, data: bytes | None = None) -> Board:
    """A Board from a table without `extends`; raises TargetError naming `path`, the key and its line.

    `data`: the content of the file, where it was read already.
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
            raise Mismatch(f"must be above 0, and clock_hz at most, not {board.uart.baud}", "uart.baud")
    folder, uart, chip = Path(path).absolute().parent, board.uart, board.chip
    if uart and uart.driver.endswith(".c"):
        uart = replace(uart, driver=str(folder / uart.driver))
    if chip and chip.start.endswith(".c"):
        chip = replace(chip, start=str(folder / chip.start))
    return replace(board, core=board.core.with_threads(board.core.threads), uart=uart, chip=chip)


def _check_memories(board: Board) -> None:
    """Memories are address ranges apart from each other; caches are there, and hold whole lines."""
    if not board.memories:
        raise Mismatch("at least one memory is needed", "memory", "write [memory.ram]")
    for cache in board.caches:
        for key in ("data_bytes", "code_bytes"):
            if getattr(cache, key) % (cache.line_bytes * max(cache.ways, 1)):
                what = f"{show_size(getattr(cache, key))} are not a whole number of sets of lines"
                raise Mismatch(what, f"cache.{cache.name}.{key}")
    for memory in board.memories:
        where, base = f"memory.{memory.name}", memory.base
        if memory.size == 0 or base + memory.size > ADDRESS_END:
            what = f"{memory.size} bytes at {base:#x} are not a 32-bit address range"
            raise Mismatch(what, f"{where}.size")
        largest = max((block for _, block in memory.erase), default=1)
        if base % largest:
            hint = f"write {where}.erase_blocks anew, or leave the base and write code_start below [image]"
            what = f"{base:#x} is inside an erase block of {show_size(largest)}"
            raise Mismatch(what, f"{where}.base", hint)
        known = [cache.name for cache in board.caches]
        if memory.speed and memory.speed.cache and memory.speed.cache not in known:
            cache_name = memory.speed.cache
            hint = did_you_mean(cache_name, known) if known else f"write [cache.{cache_name}]"
            raise Mismatch(f"there is no cache {shown(cache_name)}", f"{where}.cache", hint)
    _check_apart(board.memories, {memory.name: f"memory.{memory.name}" for memory in board.memories})


def _check_apart(memories: Iterable[Memory], keys: Mapping[str, str]) -> None:
    """No memory lies in another one; `keys`: which key says where each of them is."""
    for low, high in pairwise(sorted(memories, key=lambda memory: memory.base)):
        if low.base + low.size > high.base:
            end = low.base + low.size
            what = f"begins at {high.base:#x}, inside memory '{low.name}' which ends at {end:#x}"
            raise Mismatch(what, keys.get(high.name) or keys.get(low.name, "memory"))


def _check_roles(board: Board) -> None:
    """Roles are those of memories that are there, and that programs write where they have to."""
    kinds = {memory.name: memory.kind for memory in board.memories}
    for role in ("code", "data", "arena", "weights"):
        memory = getattr(board, role)
        if memory not in kinds:
            what = f"there is no memory {shown(memory)}"
            raise Mismatch(what, f"roles.{role}", did_you_mean(memory, kinds))
        if role in ("data", "arena") and kinds[memory] is not MemoryKind.RAM:
            raise Mismatch(f"memory '{memory}' is {kinds[memory]}; it must be ram", f"roles.{role}")


def _check_arenas(board: Board) -> None:
    """Programs write the memories that may hold an arena, and the arena's own is among them."""
    able = [m.name for m in board.memories if m.kind is MemoryKind.RAM and not m.bandwidth]
    for name in board.arenas:
        if name not in able:
            what = f"{shown(name)} is no RAM that programs write"
            raise Mismatch(what, "roles.arenas", did_you_mean(name, able))
    if len(set(board.arenas)) < len(board.arenas):
        raise Mismatch("names a memory twice", "roles.arenas")
    if board.arena not in board.arenas:
        what = f"has to name the arena's memory {shown(board.arena)} as well"
        raise Mismatch(what, "roles.arenas")


def _check_room(board: Board) -> None:
    """The stack, and what is reserved, fit where they lie."""
    taken = {board.data: board.stack_bytes}
    taken[board.arena] = taken.get(board.arena, 0) + board.reserved_bytes
    for name, need in taken.items():
        size = board.memory(name).size
        if need >= size:
            keys = "stack_bytes" if board.reserved_bytes == 0 else "stack_bytes and reserved_bytes"
            what = f"{show_size(need)} do not fit in memory '{name}' of {show_size(size)}"
            raise Mismatch(what, keys, at="stack_bytes")


def _check_bases(emulator: Emulator, memories: Sequence[Memory]) -> None:
    """Memories that lie elsewhere in the emulated machine are there, in its addresses, and apart."""
    found = dict(emulator.bases)
    check_keys(found, [memory.name for memory in memories], "emulator.bases.")
    moved = [replace(memory, base=found.get(memory.name, memory.base)) for memory in memories]
    for memory in moved:
        if memory.base + memory.size > ADDRESS_END:
            what = f"{memory.base:#x} leaves no 32-bit address range"
            raise Mismatch(what, f"emulator.bases.{memory.name}")
    _check_apart(moved, {name: f"emulator.bases.{name}" for name in found})


def _check_image(image: FlashImage, code: Memory, weights: Memory) -> None:
    """Code, slots and partitions lie in their memories, at the boundaries of erase blocks."""
    boot = image.mcuboot
    if boot and (boot.header_bytes < 32 or boot.header_bytes % 128 or boot.header_bytes >= boot.slot_bytes):
        what = f"must be a multiple of 128 below slot_bytes, not {boot.header_bytes}"
        hint = "vector tables begin at such a multiple"
        raise Mismatch(what, "image.mcuboot.header_bytes", hint)
    if image.slots > 1 and not image.slot_bytes:
        what = f"{image.slots} slots need their size"
        raise Mismatch(what, "image.slots", "write slot_bytes below [image]")
    places = [("code_start", image.code_start, code)]
    if image.weights_start is not None:
        places.append(("weights_start", image.weights_start, weights))
    for key, start, memory in places:
        if start >= memory.size:
            raise Mismatch(f"{show_size(start)} is behind memory '{memory.name}'", f"image.{key}")
        if start != boundary(memory, start) or start % 16:
            near = show_size(boundary(memory, start + -start % 16))
            what = f"{show_size(start)} is inside an erase block"
            raise Mismatch(what, f"image.{key}", f"the next begins at {near}")
    if boot and image.code_start + boot.slot_bytes > code.size:
        what = f"{show_size(boot.slot_bytes)} from {show_size(image.code_start)} on"
        raise Mismatch(f"{what} do not fit in memory '{code.name}'", "image.mcuboot")
    if image.slot_bytes:
        _check_slots(image, code, weights)
    if image.weights_start is not None and code == weights:
        end = image.code_start + (boot.slot_bytes if boot else 1)
        if image.code_start <= image.weights_start < end:
            raise Mismatch("the firmware lies there", "image.weights_start", "give a place behind it")


def _check_slots(image: FlashImage, code: Memory, weights: Memory) -> None:
    """Each slot begins and ends with an erase block, and all of them lie in the memory."""
    start = partition_start(image, code, weights)
    if start is None:
        hint = "write weights_start below [image]"
        raise Mismatch("slots behind the firmware have no place of their own", "image.slot_bytes", hint)
    end = image.code_start if code == weights and start < image.code_start else weights.size
    if start + image.slots * image.slot_bytes > end:
        what = f"{image.slots} slots of {show_size(image.slot_bytes)} from {show_size(start)} on"
        raise Mismatch(f"{what} do not fit in memory '{weights.name}'", "image.slots")
    for slot in range(image.slots + 1):
        at = start + slot * image.slot_bytes
        if at % 16 or at != boundary(weights, at):
            what = f"{show_size(image.slot_bytes)} are not a whole number of erase blocks"
            hint = f"the block at {show_size(at)} would be in two slots"
            raise Mismatch(what, "image.slot_bytes", hint)


def resolve(path: Path, known: Callable[[str], Path], data: bytes | None = None) -> Table:
    """The table of `path` with everything that it extends laid below it; see `chain`."""
    return reduce(merge, (table for _, table in reversed([*chain(path, known, data)])))


def chain(
    path: Path, known: Callable[[str], Path], data: bytes | None = None
) -> Iterator[tuple[Path, Table]]:
    """`path` and every file that it extends, the nearest first, each with its own table.

    `known` gives the file of a board's name; its TargetError says that there is no such board. `data`: the
    content of `path`, where it was read already.
    """
    seen: list[Path] = []

    def fail(what: str, hint: Sequence[Hint] = ()) -> TargetError:
        return add_place(TargetError(f"extends: {what}", path=str(path), hint=hint), EXTENDS, data)

    while True:
        if len(seen) > _MOST_EXTENDED:
            raise fail(f"more than {_MOST_EXTENDED} files, one by another")
        if (here := path.resolve()) in seen:
            raise fail(f"the files extend each other: {' -> '.join(p.name for p in (*seen, here))}")
        table = read_toml(path, WHAT, data)
        base = table.pop(EXTENDS, None)
        seen.append(here)
        yield path, table
        if base is None:
            return
        if not isinstance(base, str) or not base or not base.isprintable():
            raise fail(f"must be a board's name or a path, not {shown(base)}")
        try:
            base_path = path.parent / base if base.endswith(".toml") else known(base)
        except TargetError as error:
            raise fail(error.text, error.hints) from None
        path, data = base_path, None
