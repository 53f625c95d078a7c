"""What a board is made of, as plain data; what a board's file says of each part stands with its field."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Annotated

from buildtool.base.errors import shown
from buildtool.base.modes import MOST_THREADS
from buildtool.base.plain import (
    BESIDE,
    Key,
    Kind,
    Mismatch,
    Word,
    a_table,
    check_keys,
    must,
    require_key,
    text,
    texts,
)
from buildtool.target import readers
from buildtool.target.readers import (
    THREADS_MACRO,
    AboveZero,
    Address,
    Bits32,
    Blocks,
    Number,
    Rate,
    Settings,
    Source,
    Whole,
)
from buildtool.target.speeds import Speed


class MemoryKind(enum.StrEnum):
    """RAM is read and written by the program; ROM is executed or read in place."""

    RAM = "ram"
    ROM = "rom"


@dataclass(frozen=True)
class Memory:
    """One memory, an address range; any number of them.

    `erase`: pairs of a number of blocks and their bytes. `speed`: None: not known, so taken as ideal.
    """

    name: str
    kind: Annotated[
        MemoryKind,
        Kind("`ram` or `rom`"),
        Key("Whether programs write it, or only execute and read it in place."),
    ]
    base: Annotated[Number, Key("Its first address.")]
    size: Annotated[int, Key("Its bytes.")]
    bandwidth: Annotated[
        int,
        Kind("bytes a second"),
        Key(
            "Weights in a memory that has one are loaded into the arena before they are read.",
            "0: not a limit",
        ),
    ] = 0
    erase: Annotated[
        Blocks,
        Key(
            "Of flash: what one erase empties, from its start; the last one goes on to the end.",
            "not known",
            "erase_blocks",
        ),
    ] = ()
    speed: Annotated[Speed | None, Key("How long the core waits for it.", name=BESIDE)] = None


@dataclass(frozen=True)
class Core:
    """The processor core."""

    name: Annotated[str, Key("The core, as reports call it.")]
    isa: Annotated[str, Key("Its instruction set.")]
    families: Annotated[
        tuple[str, ...],
        Kind("list of names", readers.names),
        Key("The kernel families that it can run, best first."),
    ]
    cflags: Annotated[
        tuple[str, ...],
        Kind("list of flags", readers.flags),
        Key("Flags that select the core, for clang and gcc alike."),
    ] = ()
    defines: Annotated[
        tuple[str, ...],
        Kind("list of macros", readers.macros),
        Key("Macros for every file that is compiled, as `NAME` or `NAME=VALUE`."),
    ] = ()
    vector_bits: Annotated[
        int,
        must(
            "0 or a power of two from 32 to 65536",
            lambda bits: bits == 0 or (32 <= bits <= 1 << 16 and bits & (bits - 1) == 0),
            "0, or a power of two from 32",
        ),
        Key("The bits of a vector register, where cores that run the same code differ in it."),
    ] = 0
    threads: Annotated[
        int,
        Kind(f"1 to {MOST_THREADS}", readers.threads),
        Key(
            "The threads of the core that share the work of a kernel's call. The option `threads` takes "
            "fewer."
        ),
    ] = 1

    def with_threads(self, threads: int) -> Core:
        """The core with this many threads at work, which its macros say if there are several."""
        own = tuple(define for define in self.defines if define.partition("=")[0] != THREADS_MACRO)
        defines = (*own, f"{THREADS_MACRO}={threads}") if threads > 1 else own
        return replace(self, threads=threads, defines=defines)


@dataclass(frozen=True)
class Emulator:
    """What runs images."""

    kind: Annotated[str, Key("Who runs images, as the plugin understands it: `native`, `qemu-system-arm`.")]
    machine: Annotated[str, Kind("text", readers.text_or_none), Key("The emulated machine.")] = ""
    options: Annotated[tuple[str, ...], Key("Further words of the emulator's command line.")] = ()
    bases: Annotated[
        tuple[tuple[str, int], ...],
        Kind("addresses by the names of memories", readers.sizes_by_name),
        Key("Memories that lie elsewhere in the emulated machine.", "those of the board"),
    ] = ()


@dataclass(frozen=True)
class ProbeTool:
    """A program that reaches the board itself (`openocd`, `pyocd`, ...), and its words for this board."""

    name: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Probe:
    """How programs reach the board, the preferred one first."""

    tools: tuple[ProbeTool, ...]


class ProbeKey(Word):
    """What the table [probe] may have: the programs, and two that stand for one of them."""

    OPENOCD = "openocd", "The words that OpenOCD needs for this board."
    PYOCD = "pyocd", "Those that pyOCD needs."
    ESPTOOL = "esptool", "Those that esptool needs."
    XFLASH = "xflash", "Those that XMOS's xflash needs."
    SERVER = "server", "One of these by its name."
    OPTIONS = "options", "The words that `server` needs."

    @property
    def words(self) -> str:
        """What its value is."""
        return "`openocd` or `pyocd`" if self is ProbeKey.SERVER else "list of texts"


SERVERS = (ProbeKey.OPENOCD, ProbeKey.PYOCD)
PROGRAMS = (*SERVERS, ProbeKey.ESPTOOL, ProbeKey.XFLASH)


def read_probe(value: object, key: str) -> Probe:
    """The table [probe]: the words of each program, or those of `server` as `options`."""
    table, where = a_table(value, key), f"{key}."
    check_keys(table, ProbeKey, where)
    named = {name: table[name] for name in table if name in PROGRAMS}
    if "server" in table:
        server = text(table["server"], f"{where}server")
        if server not in SERVERS:
            hint = "known: " + ", ".join(SERVERS)
            raise Mismatch(f"{shown(server)} is unknown", f"{where}server", hint)
        named = {server: require_key(table, "options", where), **named}
    elif "options" in table:
        raise Mismatch("whose options they are is not said", f"{where}options", 'server = "openocd"')
    if not named:
        hint = f"one of {', '.join(PROGRAMS)}, with the words that it needs"
        raise Mismatch("it names no program", key, hint)
    return Probe(tuple(ProbeTool(name, texts(words, f"{where}{name}")) for name, words in named.items()))


@dataclass(frozen=True)
class Uart:
    """The serial port of test firmware.

    The driver's file gets the macros WIRE_BASE, WIRE_CLOCK_HZ, WIRE_BAUD and the `settings`.
    """

    driver: Annotated[
        Source,
        Key(
            "The functions of `wire.h` for the port: `cmsdk_uart`, `ns16550`, `sifive_uart`, `stm32_usart`, "
            "`stm32_usart_v2`, or a file of your own, from the board's file on."
        ),
    ]
    base: Annotated[Address, Key("The address of the port's registers.")]
    clock_hz: Annotated[AboveZero, Key("The clock that feeds the port.")]
    baud: Annotated[AboveZero, Key("Bits a second.")] = 115200
    settings: Annotated[Settings, Key("What else the driver wants to know, as `NAME=VALUE`.")] = ()


@dataclass(frozen=True)
class Chip:
    """What the chip needs after a reset."""

    start: Annotated[
        Source, Key("The functions of `chip.h` for the chip: `stm32f4`, `stm32f7`, or a file of your own.")
    ]
    settings: Annotated[Settings, Key("What the code wants to know, as `NAME=VALUE`.")] = ()


@dataclass(frozen=True)
class Estimate:
    """A board that cannot be measured."""

    macs_per_second: Annotated[Rate, Key("Multiply-accumulates a second.")]
    source: Annotated[str, Key("Where the figure is from. It stands beside every estimate.")]


@dataclass(frozen=True)
class Mcuboot:
    """A slot of the boot loader MCUboot."""

    slot_bytes: Annotated[int, Key("Bytes of MCUboot's slot, which begins at `code_start`.")]
    header_bytes: Annotated[
        int, Kind("size, a multiple of 128"), Key("What is kept for MCUboot's header before the code.")
    ] = 512
    align: Annotated[
        int,
        must("1, 2, 4, 8, 16 or 32", lambda n: n in (1, 2, 4, 8, 16, 32)),
        Key("What the flash writes at once, in bytes."),
    ] = 8


@dataclass(frozen=True)
class FlashImage:
    """How firmware and weights lie in flash; places in bytes from the start of the memory."""

    uf2_family: Annotated[Bits32, Key("The chip's number in UF2 files.", "0: it has none")] = 0
    code_start: Annotated[
        int, Key("Where the firmware begins in the code's memory, behind a boot loader.")
    ] = 0
    weights_start: Annotated[
        int | None,
        Key(
            "Where the partition of the weights begins in their memory.",
            "the first erase block that the firmware leaves free",
        ),
    ] = None
    slots: Annotated[
        int,
        must("from 1 to 16", lambda n: 1 <= n <= 16, "number from 1 to 16"),  # as nn_slots.h has it
        Key("How many weight images the partition has room for."),
    ] = 1
    slot_bytes: Annotated[int, Key("Bytes of a slot, in whole erase blocks.", "0: all that is left")] = 0
    mcuboot: Annotated[Mcuboot | None, Key("The slot of a boot loader that checks signatures.")] = None


@dataclass(frozen=True)
class VectorUnit:
    """The limits of a vector unit."""

    macs: Annotated[Whole, Key("Multiply-accumulates of one issue, at most.")]
    cycles: Annotated[Whole, Key("Cycles of the core from one issue of a thread to its next one.")]


@dataclass(frozen=True)
class PublishedPart:
    """A line of a published profile."""

    name: Annotated[str, Key("The line, as reports call it.")]
    operators: Annotated[tuple[str, ...], Key("Its operator kinds; `LOAD` is loading weights.")]
    milliseconds: Annotated[float, Key("Their time.")]


@dataclass(frozen=True)
class Published:
    """A profile that somebody published of the board."""

    network: Annotated[str, Key("The network, as reports call it.")]
    source: Annotated[str, Key("Who published the profile.")]
    macs: Annotated[Whole, Key("The network's multiply-accumulates, by which it is known again.")]
    milliseconds: Annotated[float, Key("The whole time.")]
    parts: Annotated[tuple[PublishedPart, ...], Key("Its lines.", name="part")]


@dataclass(frozen=True)
class Taken:
    """Bytes of a memory that firmware takes beside its arena, and what for."""

    memory: str
    what: str
    bytes: int
