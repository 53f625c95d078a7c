"""The parts of a board, as plain data. The annotations of the fields define the keys of board files."""

from __future__ import annotations

import enum
import re
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

_WITH_FLOATS = ("native", "xtensa-lx6", "xtensa-lx7", "xs3")  # instruction sets with operators of float32


class MemoryKind(enum.StrEnum):
    """RAM is read and written by the program; ROM is executed or read in place."""

    RAM = "ram"
    ROM = "rom"


@dataclass(frozen=True)
class Memory:
    """One memory, an address range. A board may have any number of them.

    `erase`: pairs (number of blocks, bytes of a block).
    `speed`: None if it is not known; then accesses are assumed not to wait.
    """

    name: str
    kind: Annotated[
        MemoryKind,
        Kind("`ram` or `rom`"),
        Key("Whether programs can write it, or only execute and read it in place."),
    ]
    base: Annotated[Number, Key("Its first address.")]
    size: Annotated[int, Key("Its size in bytes.")]
    bandwidth: Annotated[
        int,
        Kind("bytes a second"),
        Key(
            "Bytes that a loader copies a second. Weights in a memory with a bandwidth are loaded into the "
            "arena before kernels read them.",
            "0: weights are read in place",
        ),
    ] = 0
    erase: Annotated[
        Blocks,
        Key(
            "For flash: its erase blocks from the start. The last size is repeated to the end.",
            "not known",
            "erase_blocks",
        ),
    ] = ()
    speed: Annotated[Speed | None, Key("How long the core waits for it.", name=BESIDE)] = None


@dataclass(frozen=True)
class Core:
    """The processor core."""

    name: Annotated[str, Key("The core's name in reports.")]
    isa: Annotated[str, Key("Its instruction set.")]
    families: Annotated[
        tuple[str, ...],
        Kind("list of names", readers.names),
        Key("The kernel families that the core can run, best first."),
    ]
    cflags: Annotated[
        tuple[str, ...],
        Kind("list of flags", readers.flags),
        Key("Flags that select the core, for both clang and gcc."),
    ] = ()
    defines: Annotated[
        tuple[str, ...],
        Kind("list of macros", readers.macros),
        Key("Macros for every compiled file, as `NAME` or `NAME=VALUE`."),
    ] = ()
    vector_bits: Annotated[
        int,
        must(
            "0 or a power of two from 32 to 65536",
            lambda bits: bits == 0 or (32 <= bits <= 1 << 16 and bits & (bits - 1) == 0),
            "0, or a power of two from 32",
        ),
        Key("The bits of a vector register, for code that runs with several lengths."),
    ] = 0
    threads: Annotated[
        int,
        Kind(f"1 to {MOST_THREADS}", readers.threads),
        Key(
            "The threads of the core that share the work of a kernel's call. The option `threads` selects "
            "fewer."
        ),
    ] = 1

    @property
    def has_float_unit(self) -> bool:
        """Whether the core computes float32 in hardware, as its flags and its instruction set say."""
        arm = {"-mfloat-abi=hard", "-mfloat-abi=softfp"}.intersection(self.cflags)
        riscv = re.match(r"rv\d\d[a-eh-z]*[fg]", self.isa)
        return bool(arm or riscv) or self.isa in _WITH_FLOATS

    def with_threads(self, threads: int) -> Core:
        """Returns the core with this many threads, and with the macro for them if there are several."""
        own = tuple(define for define in self.defines if define.partition("=")[0] != THREADS_MACRO)
        defines = (*own, f"{THREADS_MACRO}={threads}") if threads > 1 else own
        return replace(self, threads=threads, defines=defines)


@dataclass(frozen=True)
class Emulator:
    """The emulator that runs firmware images."""

    kind: Annotated[str, Key("The emulator, by the plugin's name for it: `native`, `qemu-system-arm`.")]
    machine: Annotated[str, Kind("text", readers.text_or_none), Key("The emulated machine.")] = ""
    options: Annotated[tuple[str, ...], Key("Further arguments of the emulator.")] = ()
    bases: Annotated[
        tuple[tuple[str, int], ...],
        Kind("addresses by the names of memories", readers.sizes_by_name),
        Key("Addresses of memories that differ in the emulated machine.", "those of the board"),
    ] = ()


@dataclass(frozen=True)
class ProbeTool:
    """A program that accesses the board (`openocd`, `pyocd`, ...), and its arguments for this board."""

    name: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Probe:
    """The programs that access the board, the preferred one first."""

    tools: tuple[ProbeTool, ...]


class ProbeKey(Word):
    """The keys of the table [probe]: one for each program, and `server` with `options`, another way to name a
    program.
    """

    OPENOCD = "openocd", "The arguments of OpenOCD for this board."
    PYOCD = "pyocd", "The arguments of pyOCD."
    ESPTOOL = "esptool", "The arguments of esptool."
    XFLASH = "xflash", "The arguments of XMOS's xflash."
    SERVER = "server", "The name of one of these programs."
    OPTIONS = "options", "The arguments of `server`."

    @property
    def words(self) -> str:
        """What the value of the key is, in words for the reference page."""
        return "`openocd` or `pyocd`" if self is ProbeKey.SERVER else "list of texts"


SERVERS = (ProbeKey.OPENOCD, ProbeKey.PYOCD)
PROGRAMS = (*SERVERS, ProbeKey.ESPTOOL, ProbeKey.XFLASH)


def read_probe(value: object, key: str) -> Probe:
    """Returns the programs in the table [probe]. The table has the arguments of each program, or names one
    program as `server`, with its arguments as `options`. Raises Mismatch for another key or value.
    """
    table, where = a_table(value, key), f"{key}."
    check_keys(table, ProbeKey, where)
    arguments = {name: table[name] for name in table if name in PROGRAMS}
    if "server" in table:
        server = text(table["server"], f"{where}server")
        if server not in SERVERS:
            hint = "known: " + ", ".join(SERVERS)
            raise Mismatch(f"{shown(server)} is unknown", f"{where}server", hint)
        arguments = {server: require_key(table, "options", where), **arguments}
    elif "options" in table:
        raise Mismatch("needs the key 'server', too", f"{where}options", 'server = "openocd"')
    if not arguments:
        hint = f"one of {', '.join(PROGRAMS)}, with its arguments"
        raise Mismatch("must name a program", key, hint)
    return Probe(tuple(ProbeTool(name, texts(words, f"{where}{name}")) for name, words in arguments.items()))


@dataclass(frozen=True)
class Uart:
    """The serial port of test firmware.

    The driver's file gets the macros WIRE_BASE, WIRE_CLOCK_HZ, WIRE_BAUD and the `settings`.
    """

    driver: Annotated[
        Source,
        Key(
            "The file with the functions of `wire.h` for the port: `cmsdk_uart`, `nrf_uart`, `ns16550`, "
            "`sifive_uart`, `stm32_usart`, `stm32_usart_v2`, or a file of your own, relative to the board's "
            "file."
        ),
    ]
    base: Annotated[Address, Key("The address of the port's registers.")]
    clock_hz: Annotated[AboveZero, Key("The clock that feeds the port.")]
    baud: Annotated[AboveZero, Key("Bits a second.")] = 115200
    settings: Annotated[Settings, Key("Further macros for the driver, as `NAME=VALUE`.")] = ()


@dataclass(frozen=True)
class Chip:
    """The code that sets the chip up after a reset."""

    start: Annotated[
        Source,
        Key(
            "The file with the functions of `chip.h`: `nrf`, `nrf5340`, `stm32f4`, `stm32f7`, `stm32h7a3`, "
            "`stm32l4`, `stm32u5`, or a file of your own."
        ),
    ]
    settings: Annotated[Settings, Key("Macros for this file, as `NAME=VALUE`.")] = ()


@dataclass(frozen=True)
class Estimate:
    """The speed of a board on which nothing can be measured here."""

    macs_per_second: Annotated[Rate, Key("Multiply-accumulates a second.")]
    source: Annotated[str, Key("Where the figure is from. Every estimate shows it.")]


@dataclass(frozen=True)
class Mcuboot:
    """A slot of the boot loader MCUboot."""

    slot_bytes: Annotated[int, Key("Bytes of MCUboot's slot, which begins at `code_start`.")]
    header_bytes: Annotated[
        int, Kind("size, a multiple of 128"), Key("Bytes reserved for MCUboot's header before the code.")
    ] = 512
    align: Annotated[
        int,
        must("1, 2, 4, 8, 16 or 32", lambda n: n in (1, 2, 4, 8, 16, 32)),
        Key("The flash's smallest write, in bytes."),
    ] = 8


@dataclass(frozen=True)
class FlashImage:
    """Where firmware and weights lie in flash, in bytes from the start of the memory."""

    uf2_family: Annotated[Bits32, Key("The chip's number in UF2 files.", "0: it has none")] = 0
    code_start: Annotated[
        int, Key("Where the firmware begins in the code's memory, after a boot loader.")
    ] = 0
    weights_start: Annotated[
        int | None,
        Key(
            "Where the partition of the weights begins in their memory.",
            "the first erase block after the firmware",
        ),
    ] = None
    slots: Annotated[
        int,
        must("from 1 to 16", lambda n: 1 <= n <= 16, "number from 1 to 16"),  # nn_slots.h has the same limit
        Key("How many weight images the partition has room for."),
    ] = 1
    slot_bytes: Annotated[
        int, Key("Bytes of a slot, in whole erase blocks.", "0: the rest of the memory")
    ] = 0
    mcuboot: Annotated[Mcuboot | None, Key("The slot of a boot loader that checks signatures.")] = None


@dataclass(frozen=True)
class VectorUnit:
    """The limits of the core's vector unit."""

    macs: Annotated[Whole, Key("The largest number of multiply-accumulates in one issue.")]
    cycles: Annotated[Whole, Key("The core's cycles from one issue of a thread to its next.")]


@dataclass(frozen=True)
class PublishedPart:
    """A line of a published profile: the time of some operators."""

    name: Annotated[str, Key("The line's name in reports.")]
    operators: Annotated[tuple[str, ...], Key("Its operator kinds; `LOAD` stands for loading weights.")]
    milliseconds: Annotated[float, Key("The time of these operators.")]


@dataclass(frozen=True)
class Published:
    """A profile of a network on the board that somebody has published."""

    network: Annotated[str, Key("The network's name in reports.")]
    source: Annotated[str, Key("Who published the profile.")]
    macs: Annotated[Whole, Key("The network's multiply-accumulates, by which buildtool recognises it.")]
    milliseconds: Annotated[float, Key("The total time.")]
    parts: Annotated[tuple[PublishedPart, ...], Key("Its lines.", name="part")]


@dataclass(frozen=True)
class FirmwareUse:
    """The bytes of a memory that firmware needs for something (`what`) besides its arena."""

    memory: str
    what: str
    bytes: int
