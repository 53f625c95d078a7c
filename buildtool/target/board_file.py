"""Board files: .toml tables into Board, every field checked.

    extends = "cortex-m4"
    reserved_bytes = "16K"

`board_keys` lists every key with its meaning, and docs/target-reference.md is made from that list. Sizes are
bytes, or strings with K, M or G (1024).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from buildtool.base.errors import Hint, TargetError, did_you_mean
from buildtool.base.modes import MOST_THREADS
from buildtool.target import board_keys
from buildtool.target.keys import names
from buildtool.target.partitions import boundary, partition_start
from buildtool.target.speeds import Cache, Pipeline, Speed
from buildtool.target.threads import MACRO, threaded
from buildtool.target.toml_values import Table, Values, parse_size, placed, show_size, shown
from buildtool.target.types import (
    Board,
    Chip,
    Core,
    Emulator,
    Estimate,
    FlashImage,
    Mcuboot,
    Memory,
    MemoryKind,
    Probe,
    ProbeTool,
    Published,
    PublishedPart,
    Uart,
    VectorUnit,
)

_ADDRESS_END = 1 << 32
_LEAST_VECTOR_BITS, _MOST_VECTOR_BITS = 32, 1 << 16
_MOST_FILE_BYTES = 1 << 20
_MOST_EXTENDED = 16  # files, one by another
# Flags with which a compiler prints something, or stops, in place of making an object.
_NO_OBJECT = frozenset(
    (
        "-E",
        "-S",
        "-M",
        "-MM",
        "-c",
        "-o",
        "-###",
        "-fsyntax-only",
        "--version",
        "--help",
        "-help",
        "-emit-llvm",
    )
)
_PRINTS = ("-print-", "--print-", "-dumpversion", "-dumpmachine", "-dumpspecs", "--analyze", "-cc1")
_ROLES = names(board_keys.ROLES)
_BLOCKS = re.compile(r"(?:([1-9][0-9]{0,5})x)?([0-9]{1,9}[KM]?)")
_MOST_SLOTS = 16  # as nn_slots.h has it
_SERVERS = ("openocd", "pyocd")
_PROBE_TOOLS = (*_SERVERS, "esptool", "xflash")
_BAUD = 115200
# How the standard library says where a file is no TOML.
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_table(path: Path, data: bytes | None = None) -> Table:
    """The file's top-level table; raises TargetError. `data`: its content, where it was read already."""
    text = ""
    try:
        text = (_read(path) if data is None else data).decode("utf-8")
        return tomllib.loads(text)
    except OSError as error:
        raise TargetError(f"cannot read the board file: {error.strerror}", path=str(path)) from None
    except RecursionError:
        raise TargetError("not a TOML file: it is nested too deeply", path=str(path)) from None
    except ValueError as error:  # the decoders' errors are of this kind, and so is a number of 5,000 digits
        said, at = str(error), _AT.search(str(error))
        line, column = (int(at[1] or 0), int(at[2] or 0)) if at else (0, 0)
        if at and not line:  # the end of the document
            line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        what = f"not a TOML file: {_AT.sub('', said)}"
        raise TargetError(what, path=str(path), line=line, column=column) from None


def _read(path: Path) -> bytes:
    """The bytes of a board's file; TargetError for what is no plain file, or one that no board needs."""
    if path.exists() and not path.is_file():
        raise TargetError("cannot read the board file: it is not a regular file", path=str(path))
    with path.open("rb") as file:
        data = file.read(_MOST_FILE_BYTES + 1)
    if len(data) > _MOST_FILE_BYTES:
        raise TargetError(f"the board file has more than {_MOST_FILE_BYTES} bytes", path=str(path))
    return data


def merge(base: Mapping[str, object], override: Mapping[str, object]) -> Table:
    """`override` laid over `base`: tables key by key, everything else replaced."""
    merged = dict(base)
    for key, value in override.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def parse_board(table: Mapping[str, object], name: str, path: str, data: bytes | None = None) -> Board:
    """A Board from a table without `extends`; raises TargetError naming `path`, the key and its line.

    `data`: the content of the file, where it was read already.
    """
    return _Reader(path, data).board(table, name)


class _Reader(Values):
    """Takes a board out of one file's tables, and says which key is wrong."""

    def flags(self, value: object, key: str) -> tuple[str, ...]:
        """Flags of a compiler that makes an object by them."""
        flags = self.texts(value, key)
        for flag in flags:
            if flag in _NO_OBJECT or flag.startswith(_PRINTS):
                hint = "leave it out: these flags are for making objects and images"
                self.fail(key, f"with '{flag}' the compiler makes no object", hint)
        return flags

    def board(self, table: Mapping[str, object], name: str) -> Board:
        self.known(table, names(board_keys.TOP), "")
        text = {key: self.text(self.need(table, key, ""), key) for key in ("title", "family")}
        caches = self.caches(self.table(table.get("cache", {}), "cache"))
        memories = self.memories(self.table(self.need(table, "memory", ""), "memory"), caches)
        named = self.table(self.need(table, "roles", ""), "roles")
        roles, arenas = self.roles(named, memories), self.arenas(named, memories)
        stack = self.size(self.need(table, "stack_bytes", ""), "stack_bytes")
        reserved = self.optional(table, "reserved_bytes", 0)
        alignment = self.optional(table, "alignment", 16)
        if alignment < 4 or alignment > 4096 or alignment & (alignment - 1):
            self.fail("alignment", f"must be a power of two from 4 to 4096, not {alignment}")
        sizes = {memory.name: memory.size for memory in memories}
        if stack < 256 or stack % 8:
            self.fail("stack_bytes", f"must be a multiple of 8, 256 at least, not {stack}")
        taken = {roles["data"]: stack}
        taken[roles["arena"]] = taken.get(roles["arena"], 0) + reserved
        for memory, need in taken.items():
            if need >= sizes[memory]:
                keys = "stack_bytes" if reserved == 0 else "stack_bytes and reserved_bytes"
                self.fail(
                    keys, f"{show_size(need)} do not fit in memory '{memory}' of {show_size(sizes[memory])}"
                )
        return Board(
            name=name,
            **text,
            core=self.core(self.table(self.need(table, "core", ""), "core")),
            memories=memories,
            **roles,
            stack_bytes=stack,
            reserved_bytes=reserved,
            alignment=alignment,
            toolchains=self.texts(table.get("toolchains", []), "toolchains"),
            emulator=self.emulator(table["emulator"], memories) if "emulator" in table else None,
            clock_hz=self.optional(table, "clock_hz", 0),
            note=self.note(table["note"]) if "note" in table else "",
            estimate=self.estimate(table["estimate"]) if "estimate" in table else None,
            probe=self.probe(table["probe"]) if "probe" in table else None,
            image=self.image(table["image"], roles, memories) if "image" in table else FlashImage(),
            uart=self.uart(table["uart"]) if "uart" in table else None,
            chip=self.chip(table["chip"]) if "chip" in table else None,
            vector_unit=self.vector_unit(table["vector_unit"]) if "vector_unit" in table else None,
            published=self.published(table["published"]) if "published" in table else None,
            pipeline=self.pipeline(table["pipeline"]) if "pipeline" in table else None,
            caches=caches,
            arenas=arenas,
            firmware=(),
        )

    def image(self, value: object, roles: dict[str, str], memories: tuple[Memory, ...]) -> FlashImage:
        table = self.table(value, "image")
        self.known(table, names(board_keys.IMAGE), "image.")
        sizes = {memory.name: memory for memory in memories}
        code, weights = sizes[roles["code"]], sizes[roles["weights"]]
        found = FlashImage(
            uf2_family=self.below_image(table, "uf2_family", 0),
            code_start=self.below_image(table, "code_start", 0),
            weights_start=self.size(table["weights_start"], "image.weights_start")
            if "weights_start" in table
            else None,
            slots=self.below_image(table, "slots", 1),
            slot_bytes=self.below_image(table, "slot_bytes", 0),
            mcuboot=self.mcuboot(table["mcuboot"]) if "mcuboot" in table else None,
        )
        if found.uf2_family >= _ADDRESS_END:
            self.fail("image.uf2_family", f"{found.uf2_family:#x} has more than 32 bits")
        if not 1 <= found.slots <= _MOST_SLOTS:
            self.fail("image.slots", f"must be from 1 to {_MOST_SLOTS}, not {found.slots}")
        if found.slots > 1 and not found.slot_bytes:
            self.fail("image.slots", f"{found.slots} slots need their size", "write slot_bytes below [image]")
        self.partition(found, code, weights)
        return found

    def below_image(self, table: Table, key: str, default: int) -> int:
        return self.size(table.get(key, default), f"image.{key}")

    def partition(self, image: FlashImage, code: Memory, weights: Memory) -> None:
        """Code, slots and partitions lie in their memories, at the boundaries of erase blocks."""
        places = [("code_start", image.code_start, code)]
        if image.weights_start is not None:
            places.append(("weights_start", image.weights_start, weights))
        for key, start, memory in places:
            if start >= memory.size:
                self.fail(f"image.{key}", f"{show_size(start)} is behind memory '{memory.name}'")
            if start != boundary(memory, start) or start % 16:
                near = show_size(boundary(memory, start + -start % 16))
                self.fail(
                    f"image.{key}",
                    f"{show_size(start)} is inside an erase block",
                    f"the next begins at {near}",
                )
        boot = image.mcuboot
        if boot and image.code_start + boot.slot_bytes > code.size:
            what = f"{show_size(boot.slot_bytes)} from {show_size(image.code_start)} on"
            self.fail("image.mcuboot", f"{what} do not fit in memory '{code.name}'")
        if image.slot_bytes:
            self.slots(image, code, weights)
        if image.weights_start is not None and code == weights:
            end = image.code_start + (boot.slot_bytes if boot else 1)
            if image.code_start <= image.weights_start < end:
                self.fail("image.weights_start", "the firmware lies there", "give a place behind it")

    def slots(self, image: FlashImage, code: Memory, weights: Memory) -> None:
        """Each slot begins and ends with an erase block, and all of them lie in the memory."""
        start = partition_start(image, code, weights)
        if start is None:
            hint = "write weights_start below [image]"
            self.fail("image.slot_bytes", "slots behind the firmware have no place of their own", hint)
        end = image.code_start if code == weights and start < image.code_start else weights.size
        if start + image.slots * image.slot_bytes > end:
            what = f"{image.slots} slots of {show_size(image.slot_bytes)} from {show_size(start)} on"
            self.fail("image.slots", f"{what} do not fit in memory '{weights.name}'")
        for slot in range(image.slots + 1):
            at = start + slot * image.slot_bytes
            if at % 16 or at != boundary(weights, at):
                what = f"{show_size(image.slot_bytes)} are no whole number of erase blocks"
                self.fail("image.slot_bytes", what, f"the block at {show_size(at)} would be in two slots")

    def mcuboot(self, value: object) -> Mcuboot:
        table = self.table(value, "image.mcuboot")
        self.known(table, names(board_keys.MCUBOOT), "image.mcuboot.")
        where = "image.mcuboot."
        slot = self.size(self.need(table, "slot_bytes", where), f"{where}slot_bytes")
        header = self.size(table.get("header_bytes", 512), f"{where}header_bytes")
        align = self.size(table.get("align", 8), f"{where}align")
        if align not in (1, 2, 4, 8, 16, 32):
            self.fail(f"{where}align", f"must be 1, 2, 4, 8, 16 or 32, not {align}")
        if header < 32 or header % 128 or header >= slot:
            hint = "vector tables begin at such a multiple"
            self.fail(
                f"{where}header_bytes", f"must be a multiple of 128 below slot_bytes, not {header}", hint
            )
        return Mcuboot(slot, header, align)

    def core(self, table: Table) -> Core:
        self.known(table, names(board_keys.CORE), "core.")
        families = self.texts(self.need(table, "families", "core."), "core.families")
        for family in families:
            self.name(family, "core.families")
        defines = self.texts(table.get("defines", []), "core.defines")
        if any(define.partition("=")[0] == MACRO for define in defines):
            self.fail("core.defines", f"{MACRO} is buildtool's own macro", "write threads under [core]")
        core = Core(
            name=self.text(self.need(table, "name", "core."), "core.name"),
            isa=self.text(self.need(table, "isa", "core."), "core.isa"),
            families=families,
            cflags=self.flags(table.get("cflags", []), "core.cflags"),
            defines=defines,
            vector_bits=self.vector_bits(table),
        )
        return threaded(core, self.threads(table))

    def note(self, value: object) -> str:
        """Text of one or more lines, as one line."""
        return self.text(" ".join(value.split()) if isinstance(value, str) else value, "note")

    def vector_bits(self, table: Table) -> int:
        bits = self.optional(table, "vector_bits", 0)
        if bits and (bits < _LEAST_VECTOR_BITS or bits > _MOST_VECTOR_BITS or bits & (bits - 1)):
            limits = f"{_LEAST_VECTOR_BITS} to {_MOST_VECTOR_BITS}"
            self.fail("core.vector_bits", f"must be 0 or a power of two from {limits}, not {bits}")
        return bits

    def threads(self, table: Table) -> int:
        threads = table.get("threads", 1)
        if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MOST_THREADS:
            self.fail(
                "core.threads", f"must be a whole number from 1 to {MOST_THREADS}, not {shown(threads)}"
            )
        return threads

    def memories(self, table: Table, caches: tuple[Cache, ...]) -> tuple[Memory, ...]:
        if not table:
            self.fail("memory", "at least one memory is needed", "write [memory.ram]")
        found = [
            self.memory(self.table(value, f"memory.{name}"), name, caches) for name, value in table.items()
        ]
        self.apart(found, {memory.name: f"memory.{memory.name}" for memory in found})
        return tuple(found)

    def apart(self, memories: Iterable[Memory], keys: Mapping[str, str]) -> None:
        """No memory lies in another one; `keys`: which key says where each of them is."""
        for low, high in pairwise(sorted(memories, key=lambda memory: memory.base)):
            if low.base + low.size > high.base:
                end = low.base + low.size
                self.fail(
                    keys.get(high.name) or keys.get(low.name, "memory"),
                    f"begins at {high.base:#x}, inside memory '{low.name}' which ends at {end:#x}",
                )

    def memory(self, table: Table, name: str, caches: tuple[Cache, ...]) -> Memory:
        where = f"memory.{name}"
        self.name(name, where)
        self.known(table, names(board_keys.MEMORY), where + ".")

        def need(key: str) -> object:
            return self.need(table, key, where + ".")

        kind = self.text(need("kind"), f"{where}.kind")
        if kind not in list(MemoryKind):
            self.fail(f"{where}.kind", f"{shown(kind)} is unknown", "known: " + ", ".join(MemoryKind))
        base, size = self.size(need("base"), f"{where}.base"), self.size(need("size"), f"{where}.size")
        if size == 0 or base + size > _ADDRESS_END:
            self.fail(f"{where}.size", f"{size} bytes at {base:#x} are not a 32-bit address range")
        bandwidth = self.size(table.get("bandwidth", 0), f"{where}.bandwidth")
        erase = self.erase(table["erase_blocks"], where) if "erase_blocks" in table else ()
        largest = max((block for _, block in erase), default=1)
        if base % largest:
            hint = f"write {where}.erase_blocks anew, or leave the base and write code_start below [image]"
            self.fail(f"{where}.base", f"{base:#x} is inside an erase block of {show_size(largest)}", hint)
        speed = self.speed(table, where, caches)
        return Memory(name, MemoryKind(kind), base, size, bandwidth, erase, speed)

    def speed(self, table: Table, where: str, caches: tuple[Cache, ...]) -> Speed | None:
        """How long the core waits for a memory; None where its file does not say."""
        if "wait_cycles" not in table:
            for key in ("bus_bits", "beat_cycles", "cache"):
                if key in table:
                    self.fail(
                        f"{where}.{key}", "it says nothing without wait_cycles", "write wait_cycles too"
                    )
            return None
        cache = self.text(table["cache"], f"{where}.cache") if "cache" in table else ""
        known = [found.name for found in caches]
        if cache and cache not in known:
            hint = did_you_mean(cache, known) if known else f"write [cache.{cache}]"
            self.fail(f"{where}.cache", f"there is no cache {shown(cache)}", hint)
        return Speed(
            wait_cycles=self.size(table["wait_cycles"], f"{where}.wait_cycles"),
            bus_bits=self.power(table.get("bus_bits", 32), f"{where}.bus_bits", 8, 1024),
            beat_cycles=self.size(table.get("beat_cycles", 1), f"{where}.beat_cycles"),
            cache=cache,
        )

    def caches(self, table: Table) -> tuple[Cache, ...]:
        return tuple(self.cache(self.table(value, f"cache.{name}"), name) for name, value in table.items())

    def cache(self, table: Table, name: str) -> Cache:
        where = f"cache.{name}."
        self.name(name, f"cache.{name}")
        self.known(table, names(board_keys.CACHE), where)
        line = self.power(self.need(table, "line_bytes", where), f"{where}line_bytes", 4, 1024)
        sizes = [self.optional(table, key, 0) for key in ("data_bytes", "code_bytes")]
        ways = self.optional(table, "ways", 0)
        for key, size in zip(("data_bytes", "code_bytes"), sizes, strict=True):
            if size % (line * max(ways, 1)):
                self.fail(f"{where}{key}", f"{show_size(size)} are no whole number of sets of lines")
        return Cache(name, line, sizes[0], sizes[1], ways)

    def power(self, value: object, key: str, least: int, most: int) -> int:
        """A power of two within two others."""
        number = self.size(value, key)
        if number & (number - 1) or not least <= number <= most:
            self.fail(key, f"must be a power of two from {least} to {most}, not {number}")
        return number

    def pipeline(self, value: object) -> Pipeline:
        table, where = self.table(value, "pipeline"), "pipeline."
        self.known(table, names(board_keys.PIPELINE), where)
        return Pipeline(
            model=self.text(self.need(table, "model", where), "pipeline.model"),
            taken_branch_cycles=self.size(table.get("taken_branch_cycles", 0), f"{where}taken_branch_cycles"),
            source=self.text(self.need(table, "source", where), "pipeline.source"),
            words_per_cycle=self.size(table.get("words_per_cycle", 0), f"{where}words_per_cycle"),
        )

    def erase(self, value: object, where: str) -> tuple[tuple[int, int], ...]:
        """Blocks such as ["4x16K", "64K", "128K"]: each begins at a multiple of its size."""
        key, found, at = f"{where}.erase_blocks", list[tuple[int, int]](), 0
        if not isinstance(value, list) or not value:
            self.fail(
                key, f"must be a list of blocks, not {shown(value)}", 'such as ["4x16K", "64K", "128K"]'
            )
        for item in value:
            match = _BLOCKS.fullmatch(item) if isinstance(item, str) else None
            if match is None:
                self.fail(
                    key, f"{shown(item)} is no block", 'a size, such as "4K", or "4x16K" for four of 16K'
                )
            count, block = int(match[1] or 1), parse_size(match[2]) or 0
            if block < 16 or block & (block - 1) or at % block:
                what = (
                    f"{shown(item)} at {show_size(at)}: blocks are powers of two, at multiples of their size"
                )
                self.fail(key, what)
            found.append((count, block))
            at += count * block
        return tuple(found)

    def roles(self, table: Table, memories: tuple[Memory, ...]) -> dict[str, str]:
        self.known(table, _ROLES, "roles.")
        kinds = {memory.name: memory.kind for memory in memories}
        needed = [role for role in _ROLES if role != "arenas"]
        roles = {role: self.text(self.need(table, role, "roles."), f"roles.{role}") for role in needed}
        for role, memory in roles.items():
            if memory not in kinds:
                self.fail(f"roles.{role}", f"there is no memory {shown(memory)}", did_you_mean(memory, kinds))
            if role in ("data", "arena") and kinds[memory] is not MemoryKind.RAM:
                self.fail(f"roles.{role}", f"memory '{memory}' is {kinds[memory]}; it must be ram")
        return roles

    def arenas(self, table: Table, memories: tuple[Memory, ...]) -> tuple[str, ...]:
        """The memories that may hold an arena, with the one that does; none where that is not stated."""
        if "arenas" not in table:
            return ()
        able = [memory.name for memory in memories if memory.kind is MemoryKind.RAM and not memory.bandwidth]
        found = self.texts(table["arenas"], "roles.arenas")
        for name in found:
            if name not in able:
                what = f"{shown(name)} is no RAM that programs write"
                self.fail("roles.arenas", what, did_you_mean(name, able))
        if len(set(found)) < len(found):
            self.fail("roles.arenas", "names a memory twice")
        if table["arena"] not in found:
            self.fail("roles.arenas", f"has to name the arena's memory {shown(table['arena'])} as well")
        return found

    def emulator(self, value: object, memories: tuple[Memory, ...]) -> Emulator:
        table = self.table(value, "emulator")
        self.known(table, names(board_keys.EMULATOR), "emulator.")
        machine = table.get("machine", "")
        return Emulator(
            kind=self.text(self.need(table, "kind", "emulator."), "emulator.kind"),
            machine=self.text(machine, "emulator.machine") if machine != "" else "",
            options=self.texts(table.get("options", []), "emulator.options"),
            bases=self.bases(self.table(table.get("bases", {}), "emulator.bases"), memories),
        )

    def bases(self, table: Table, memories: tuple[Memory, ...]) -> tuple[tuple[str, int], ...]:
        """Where the emulated machine has memories that lie elsewhere on the board."""
        self.known(table, [memory.name for memory in memories], "emulator.bases.")
        found = {name: self.size(value, f"emulator.bases.{name}") for name, value in table.items()}
        moved = [replace(memory, base=found.get(memory.name, memory.base)) for memory in memories]
        for memory in moved:
            if memory.base + memory.size > _ADDRESS_END:
                self.fail(f"emulator.bases.{memory.name}", f"{memory.base:#x} leaves no 32-bit address range")
        self.apart(moved, {name: f"emulator.bases.{name}" for name in found})
        return tuple(found.items())

    def probe(self, value: object) -> Probe:
        table = self.table(value, "probe")
        self.known(table, names(board_keys.PROBE), "probe.")
        named = {name: table[name] for name in table if name in _PROBE_TOOLS}
        if "server" in table:
            server = self.text(table["server"], "probe.server")
            if server not in _SERVERS:
                self.fail("probe.server", f"{shown(server)} is unknown", "known: " + ", ".join(_SERVERS))
            named = {server: self.need(table, "options", "probe."), **named}
        elif "options" in table:
            self.fail("probe.options", "whose options they are is not said", 'server = "openocd"')
        if not named:
            hint = f"one of {', '.join(_PROBE_TOOLS)}, with the words that it needs"
            self.fail("probe", "it names no program", hint)
        return Probe(tuple(ProbeTool(name, self.texts(v, f"probe.{name}")) for name, v in named.items()))

    def uart(self, value: object) -> Uart:
        table = self.table(value, "uart")
        self.known(table, names(board_keys.UART), "uart.")
        clock, baud = self.size(self.need(table, "clock_hz", "uart."), "uart.clock_hz"), _BAUD
        if "baud" in table:
            baud = self.size(table["baud"], "uart.baud")
        if not 0 < baud <= clock:
            self.fail("uart.baud", f"must be above 0, and clock_hz at most, not {baud}")
        base = self.size(self.need(table, "base", "uart."), "uart.base")
        if base >= _ADDRESS_END:
            self.fail("uart.base", f"{base:#x} is no 32-bit address")
        driver = self.source(self.need(table, "driver", "uart."), "uart.driver")
        return Uart(driver, base, clock, baud, self.texts(table.get("settings", []), "uart.settings"))

    def chip(self, value: object) -> Chip:
        table = self.table(value, "chip")
        self.known(table, names(board_keys.CHIP), "chip.")
        start = self.source(self.need(table, "start", "chip."), "chip.start")
        return Chip(start, self.texts(table.get("settings", []), "chip.settings"))

    def source(self, value: object, key: str) -> str:
        """The name of a file that comes with a plugin, or the path of one of the user's own."""
        text = self.text(value, key)
        if text.endswith(".c"):
            return str(Path(self.path).absolute().parent / text)
        self.name(text, key)
        return text

    def estimate(self, value: object) -> Estimate:
        table = self.table(value, "estimate")
        self.known(table, names(board_keys.ESTIMATE), "estimate.")
        rate = self.size(self.need(table, "macs_per_second", "estimate."), "estimate.macs_per_second")
        if rate == 0:
            self.fail("estimate.macs_per_second", "must be above 0")
        source = self.text(self.need(table, "source", "estimate."), "estimate.source")
        return Estimate(rate, source)

    def vector_unit(self, value: object) -> VectorUnit:
        table = self.table(value, "vector_unit")
        self.known(table, names(board_keys.VECTOR_UNIT), "vector_unit.")
        macs, cycles = (self.whole(table, key, "vector_unit.") for key in ("macs", "cycles"))
        return VectorUnit(macs, cycles)

    def published(self, value: object) -> Published:
        table, where = self.table(value, "published"), "published."
        self.known(table, names(board_keys.PUBLISHED), where)
        parts = self.need(table, "part", where)
        if not isinstance(parts, list) or not parts:
            self.fail("published.part", "must be a list of tables", "write [[published.part]]")
        return Published(
            network=self.text(self.need(table, "network", where), "published.network"),
            source=self.text(self.need(table, "source", where), "published.source"),
            macs=self.whole(table, "macs", where),
            milliseconds=self.positive(table, "milliseconds", where),
            parts=tuple(self.part(part) for part in parts),
        )

    def part(self, value: object) -> PublishedPart:
        """A line of a published profile."""
        table, where = self.table(value, "published.part"), "published.part."
        self.known(table, names(board_keys.PART), where)
        return PublishedPart(
            name=self.text(self.need(table, "name", where), f"{where}name"),
            operators=self.texts(self.need(table, "operators", where), f"{where}operators"),
            milliseconds=self.positive(table, "milliseconds", where),
        )


def chain(path: Path, known: Callable[[str], Path | None]) -> tuple[Path, ...]:
    """`path` and every file that it extends, the nearest first; of a board that `resolve` accepts."""
    base = read_table(path).get("extends")
    if not isinstance(base, str):
        return (path,)
    base_path = path.parent / base if base.endswith(".toml") else known(base)
    return (path, *(chain(base_path, known) if base_path else ()))


def resolve(
    path: Path, known: Callable[[str], Path | None], seen: tuple[Path, ...] = (), data: bytes | None = None
) -> Table:
    """The table of `path` with everything that it extends laid below it.

    `known` gives the file of a board's name, None if there is no such board, and may raise any error.
    `data`: the content of `path`, where it was read already.
    """

    def fail(what: str, hint: Sequence[Hint] = ()) -> TargetError:
        return placed(TargetError(f"extends: {what}", path=str(path), hint=hint), "extends", data)

    here = path.resolve()
    if len(seen) > _MOST_EXTENDED:
        raise fail(f"more than {_MOST_EXTENDED} files, one by another")
    if here in seen:
        circle = " -> ".join(p.name for p in (*seen, here))
        raise fail(f"the files extend each other: {circle}")
    table = read_table(path, data)
    base = table.pop("extends", None)
    if base is None:
        return table
    if not isinstance(base, str) or not base or not base.isprintable():
        raise fail(f"must be a board's name or a path, not {shown(base)}")
    if base.endswith(".toml"):
        base_path: Path | None = path.parent / base
    else:
        try:
            base_path = known(base)
        except TargetError as error:
            raise fail(error.text, error.hints) from None
    if base_path is None:
        raise fail(f"unknown board '{base}'")
    return merge(resolve(base_path, known, (*seen, here)), table)
