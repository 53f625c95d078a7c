"""Boards, kernels and targets as plain data, which is part of every cache key."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from buildtool.base.errors import TargetError, did_you_mean
from buildtool.base.modes import CostUnit, Level, Requantise
from buildtool.base.plain import Key, Kind, Mismatch, Word, must, power
from buildtool.graph.types import DType
from buildtool.target import readers
from buildtool.target.executed import Executed
from buildtool.target.hardware import (
    Chip,
    Core,
    Emulator,
    Estimate,
    FirmwareUse,
    FlashImage,
    Memory,
    MemoryKind,
    Probe,
    Published,
    Uart,
    VectorUnit,
    read_probe,
)
from buildtool.target.readers import (
    Files,
    Form,
    Headers,
    MemoryName,
    Names,
    Number,
    Operators,
    Packing,
    RamName,
    Types,
)
from buildtool.target.speeds import Cache, Pipeline
from buildtool.target.variables import SOFT_FLOAT, THREADS, VARIABLES, VECTOR_BITS

KEPT_FOR_GLOBALS = 1024  # bytes
PLAIN_IMAGE = FlashImage()  # firmware at the start of its memory, weights after it
BYTES = (DType.INT8, DType.INT8)  # the default types of a kernel
NO_PACKING = "none"  # for kernels without constants
OWN_FILE = "`SYMBOL.c` in the folder"
_UNCUT = "a block cannot be cut"
NEXT = "the next family's"


class Contract(Word):
    """To what extent a kernel's output may overlap an input that nothing reads later."""

    NONE = "none", "Input and output share no byte."
    ROW = (
        "row",
        "The kernel computes rows in ascending order. It reads all input rows of output row q before it "
        "writes row q. Afterwards it does not read rows before the window of row q.",
    )
    PIXEL = (
        "pixel",
        "The kernel reads input element i before it writes output element i, and does not read it again.",
    )
    PARTS = (
        "parts",
        "For concatenations: the kernel copies the inputs one after the other, each in ascending order.",
    )


class Argument(Word):
    """An argument of a kernel's function. The catalogue's key `call` lists the arguments in order."""

    GEOMETRY = "geometry", "the struct of the operator kind, see nn.h"
    CONSTANTS = "constants", "the kernel's block in the weight image"
    IN = "in", "a view of the operand"
    IN1 = "in1", "a view of the first operand"
    IN2 = "in2", "a view of the second operand"
    IN3 = "in3", "a view of the third operand"
    OUT = "out", "a view of the output"
    IN_DATA = "in_data", "the address of the whole operand"
    OUT_DATA = "out_data", "the address of the whole output"
    INPUTS = "inputs", "an array of the addresses of all inputs"
    OUTPUTS = "outputs", "an array of the addresses of all outputs"
    WINDOW = "window", "the rows and columns of the output that the call computes"
    SCRATCH = "scratch", "memory for the kernel while it runs; NULL if it needs none"
    SCRATCH_BYTES = "scratch_bytes", "bytes of the scratch memory"
    SUMS = "sums", "an int32 for each channel"
    CHANNELS = "channels", "channels of the input"
    PIXELS = "pixels", "pixels of the input"
    CHANNEL = "channel", "the first output channel of a slice; 0 for the whole output"
    BYTES = "bytes", "bytes of the output"
    STATE = "state", "the address of the operator's state; for an LSTM, of its last output"
    STATE2 = "state2", "the address of an LSTM's cells"
    TURN = "turn", "how many rows the window has gone along before"


def read_call(value: object, key: str) -> tuple[Argument, ...]:
    """Returns the arguments of a function, read from a text with commas. Raises Mismatch for an unknown
    one.
    """
    names = [name.strip() for name in readers.string(value, key).split(",")]
    for name in names:
        if name not in list(Argument):
            what = f"'{key}': argument '{name}' is unknown"
            raise Mismatch(what, hint=did_you_mean(name, Argument), at=key)
    return tuple(map(Argument, names))


class Windows(Word):
    """What part of the output a kernel computes in a call."""

    ANY = "any", "Any window of its output. Its views may be some channels of a wider tensor."
    WHOLE = "whole", "The whole output from whole inputs. Streamed regions cannot contain such a kernel."


class Role(Word):
    """A task of emitted code for which a routine is called in addition to an operator's kernel."""

    FILL = "fill", "Fills a tensor with one value, before a PAD's input is copied into it."
    JOIN = "join", "Copies a window of one part of a CONCATENATION to its place."
    ACCUMULATE = "accumulate", "Adds a window to the sums of a global pooling."
    FINISH = "finish", "Computes the pooling's output from these sums."
    KEEP = "keep", "Copies a window of a tensor from one view of it to another one."
    SWAP = "swap", "Swaps pixels of kept rows between a window of a tensor and what is outside of it."
    EXPAND = "expand", "Expands constants whose weights are stored in four bits, before a kernel reads them."


class Step(enum.StrEnum):
    """A step that reads fields of kernels or routines. If such a field changes, the step's results are
    stale.
    """

    PLAN = "plan"
    EMIT = "emit"
    PACK = "pack"


@dataclass(frozen=True)
class Formula(Kind):
    """The kind of a field that is a formula. `sees` are the variables that it may use."""

    sees: frozenset[str] = frozenset()


ReadBy = frozenset[Step]  # mark of a field: the steps that read it, see `target.digest`
ALL, PLAN, EMIT, PACK = frozenset(Step), *(frozenset({step}) for step in Step)
SHAPE = Formula("formula", sees=frozenset(VARIABLES))
SHARED = Formula("formula", sees=SHAPE.sees | {THREADS})  # layouts of constants must not depend on the core
COST = Formula("formula", sees=SHARED.sees | {VECTOR_BITS, SOFT_FLOAT})
ALONE = Formula("formula")
OF_BYTES = Formula("formula of `bytes`", sees=frozenset({"bytes"}))
OF_PART = Formula("formula of `oh`, `ow`, `cin`", sees=frozenset({"oh", "ow", "cin"}))
Call = Annotated[tuple[Argument, ...], Kind("arguments", read_call)]


@dataclass(frozen=True)
class Routine:
    """A C function that has a role in emitted code, for the operator kind `op` ("": every kind)."""

    role: Annotated[Role, Kind("a role"), Key("What it does."), EMIT]
    op: Annotated[Operators, Key("The operator kinds that it serves.", "every kind"), EMIT]
    symbol: Annotated[str, Key("The C function."), EMIT]
    sources: Annotated[Files, Key("Its C files, as for a kernel.", OWN_FILE)]
    call: Annotated[Call, Key("The function's arguments, in order."), EMIT]
    headers: Annotated[Headers, Key("The headers that declare the symbol.", "the family's"), EMIT] = ()
    packing: Annotated[
        Packing, Key("The packing of the kernel's constants that it reads.", "no constants"), EMIT
    ] = NO_PACKING
    types: Annotated[Types, Key("The `types` of the kernels that it serves.", "`int8`")] = BYTES
    form: Annotated[Form, Key("The `form` of the kernels that it serves.", "as int8")] = ""

    def serves(self, kernel: KernelVariant) -> bool:
        """Whether the routine is for the operator kind and types of `kernel`, and can read the kernel's
        constants.
        """
        reads = Argument.CONSTANTS in self.call
        alike = self.op in ("", kernel.op) and self.types == kernel.types
        return alike and (not reads or (self.packing, self.form) == (kernel.packing, kernel.form))


@dataclass(frozen=True)
class KernelFamily:
    """A folder of kernels: catalogue.toml, C sources, headers, and packing.py, which packs constants."""

    name: str
    folder: Path = field(compare=False)


Asked = Callable[[Mapping[str, int]], int]  # geometry (`catalogue.features`) -> bytes of scratch


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A layout of packed constants: the packing.py that packs them, and formulas for the bytes of a block and
    of each channel in it.
    """

    packer: Path | None = field(default=None, compare=False)
    constants: Annotated[
        str,
        SHAPE,
        Key(
            "The length of a packed block. Buildtool checks it for every block.",
            name="bytes",
            needed=True,
        ),
        PLAN | PACK,
    ] = "0"
    channel_factors: Annotated[
        str, SHAPE, PLAN, Key("Bytes of an output channel's factors, after the head.", _UNCUT)
    ] = "0"
    channel_weights: Annotated[
        str,
        SHAPE,
        PLAN,
        Key(
            "Bytes of an output channel's weights, after the factors. A packing needs both this key and "
            "`channel_factors`, or neither.",
            _UNCUT,
        ),
    ] = "0"
    channel_step: Annotated[
        str, SHAPE, PLAN, Key("A block can be cut before a channel whose number is a multiple of this.")
    ] = "1"
    channel_usual: Annotated[
        str,
        SHAPE,
        PLAN,
        Key(
            "The narrowest slices that take little more time than the whole block. Plans are searched with "
            "these, and with narrower ones only where they decide.",
            "`channel_step`",
        ),
    ] = "0"
    channel_unit: Annotated[
        str,
        SHAPE,
        PLAN,
        Key(
            "The weights of a block, and of a slice that is not within a `channel_group`, are padded to a "
            "multiple of this number of channels."
        ),
    ] = "1"
    channel_padded: Annotated[
        str,
        SHAPE,
        PLAN,
        Key("A block's factors are padded to a multiple of this number of channels.", "`channel_unit`"),
    ] = "0"
    channel_group: Annotated[
        str,
        SHAPE,
        PLAN,
        Key(
            "The channels whose factors belong together, a multiple of `channel_padded`. A slice of fewer "
            "channels lies within such a group and has the factors of the whole group and the weights of "
            "its own channels; the argument `channel` is the slice's first channel.",
            "`channel_padded`",
        ),
    ] = "1"
    channel_tail: Annotated[
        str, SHAPE, PLAN, Key("Bytes after a block's weights that the kernel reads but does not use.")
    ] = "0"
    channel_head: Annotated[
        str, SHAPE, PLAN, Key("Bytes of a block's head, a multiple of 16; each slice has it.")
    ] = "16"
    channel_range: Annotated[
        str,
        SHAPE,
        PLAN,
        Key(
            "Where in the head two int32 lie that are a range of output channels, the end excluded. In the "
            "arena they are made relative to a slice's first channel.",
            "the head has none",
        ),
    ] = "0"


@dataclass(frozen=True)
class KernelVariant(Layout):
    """A kernel for one operator kind. For `form` see `AsUint8`.

    A kernel with `slices` has its constants in a block of three parts: a head of `channel_head` bytes, then
    `channel_factors` bytes for each channel, then `channel_weights` bytes for each channel. The last two
    parts are each rounded up to a multiple of 16 bytes. `ask` is the library's function that answers the
    question `asks` about scratch.
    """

    op: Annotated[
        Operators,
        Key(
            "The operator kinds that it computes, with the names of `buildtool ops`, or a class: `@lookup` "
            "is all functions of one element, `@comparison` all comparisons, `@pair` all elementwise "
            "functions of two tensors but sums and products."
        ),
        ALL,
    ]
    name: Annotated[str, Key("The kernel's name in plans; no two families share one."), ALL]
    symbol: Annotated[str, Key("The C function."), EMIT]
    sources: Annotated[
        Files, Key('C files in the folder, or "family/file" in one of the families in `uses`.', OWN_FILE)
    ]
    packing: Annotated[
        Packing,
        Key("A packing of this family, of one in `uses`, or of a portable family.", "no constants"),
        PACK,
    ] = NO_PACKING
    when: Annotated[str, SHARED, Key("The shapes that it serves."), PLAN] = "True"
    scratch: Annotated[str, SHARED, Key("Bytes of scratch for a call of `ow` columns."), PLAN] = "0"
    overlap: Annotated[
        Contract,
        Kind("a contract"),
        Key("How far its output may overlap an input that nothing reads later.", "`none`"),
        PLAN,
    ] = Contract.NONE
    cost: Annotated[
        str, COST, Key("The cost of a call in the target's unit; it may also use `vector_bits`."), PLAN
    ] = "macs"
    call: Annotated[
        Call,
        Key("The function's arguments in order, separated by commas.", needed=True),
        ALL,
    ] = ()
    headers: Annotated[Headers, Key("The headers that declare the symbol.", "the family's"), EMIT] = ()
    windows: Annotated[
        Windows, Kind("`any` or `whole`"), Key("What it computes in a call.", "`any`"), PLAN
    ] = Windows.ANY
    slices: Annotated[
        str,
        SHAPE,
        Key(
            "Whether it can compute a slice of the output channels from a block of their constants. Such a "
            "kernel computes windows, and its formula of scratch also holds for a slice."
        ),
        PLAN,
    ] = "False"
    slice_cost: Annotated[
        str,
        COST,
        Key(
            "The cost of a call for a slice within a `channel_group`, where it is not that of an operator "
            "with the slice's number of output channels.",
            "`cost`",
        ),
        PLAN,
    ] = "0"
    passes: Annotated[
        str,
        SHAPE,
        Key("The number of times that a call reads all its constants, for memories that let the core wait."),
    ] = "1"
    asks: Annotated[
        str,
        Key(
            "For a library's kernel: the question about scratch that the library answers.",
            "`scratch` is a formula",
        ),
        PLAN,
    ] = ""
    ask: Asked | None = field(default=None, compare=False)
    types: Annotated[
        Types,
        Key(
            "The element type of its first input, and of its output where they differ: `int16`, or "
            "`int8 -> int16`. `int8` includes uint8.",
            "`int8`",
        ),
    ] = BYTES
    form: Annotated[
        Form,
        Key(
            "Its arithmetic, where that of LiteRT's uint8 kernel differs from that of its int8 kernel: "
            "filters with a zero point, averages that round halves up. `filled`: averages whose padding "
            "counts.",
            "as int8",
        ),
    ] = ""


@dataclass(frozen=True)
class Board:
    """A board: its core, its memories, and the roles of the memories (code, data, arena, weights)."""

    name: str
    title: Annotated[str, Key("A description of the board in a few words.")]
    family: Annotated[str, Kind("the name of a plugin"), Key("The plugin that serves the board.")]
    stack_bytes: Annotated[
        int,
        must("a multiple of 8, 256 at least", lambda n: n >= 256 and n % 8 == 0, "size, a multiple of 8"),
        Key("Bytes of the stack, which lies in the memory with the role `data`."),
    ]
    core: Annotated[Core, Key("The processor core.")]
    memories: Annotated[
        tuple[Memory, ...],
        Key("The memories. Regions of the linker script have the same names.", name="memory"),
    ]
    code: Annotated[MemoryName, Key("Code and constants of the program.", name="roles.code")]
    data: Annotated[RamName, Key("Globals and the stack.", name="roles.data")]
    arena: Annotated[RamName, Key("The arena.", name="roles.arena")]
    weights: Annotated[MemoryName, Key("The weight image.", name="roles.weights")]
    kernels: Annotated[
        RamName,
        Key(
            "The code of the kernels, which start-up code copies there.",
            "the memory of `code`",
            "roles.kernels",
        ),
    ] = ""
    arenas: Annotated[
        tuple[str, ...],
        Kind("list of names of RAMs"),
        Key(
            "All memories that may hold an arena: programs must be able to write single bytes there.",
            "every RAM without a bandwidth",
            "roles.arenas",
        ),
    ] = ()
    reserved_bytes: Annotated[int, Key("Bytes of the arena's memory for the application.")] = 0
    alignment: Annotated[int, power(4, 4096), Key("Alignment of buffers in the arena, in bytes.")] = 16
    toolchains: Annotated[Names, Key("The compilers that build for the board, the default first.")] = ()
    emulator: Annotated[Emulator | None, Key("The emulator that runs firmware images without the board.")] = (
        None
    )
    clock_hz: Annotated[Number, Key("The core's clock.", "0: not known")] = 0
    note: Annotated[str, Kind("text", readers.one_line), Key("A note that answers for this board show.")] = ""
    estimate: Annotated[Estimate | None, Key("The speed of a board that cannot be measured here.")] = None
    probe: Annotated[
        Probe | None,
        Kind("table", read_probe),
        Key("The programs that flash the board and debug on it."),
    ] = None
    image: Annotated[FlashImage, Key("Where firmware and weights lie in flash.")] = PLAIN_IMAGE
    uart: Annotated[Uart | None, Key("The serial port by which test firmware on the board answers.")] = None
    chip: Annotated[
        Chip | None, Key("The code that sets the chip up after a reset: clock, wait states, caches.")
    ] = None
    vector_unit: Annotated[
        VectorUnit | None, Key("The limits of the core's vector unit, for counts of its issues.")
    ] = None
    published: Annotated[Published | None, Key("A published profile of the board.")] = None
    pipeline: Annotated[Pipeline | None, Key("The core's timing, for estimates of cycles.")] = None
    caches: Annotated[
        tuple[Cache, ...], Key("Caches between the core and slower memories.", name="cache")
    ] = ()
    second: str = ""  # the memory of a second arena for a plan's buffers ("": no second arena)
    reserved_in: str = ""  # the memory of `reserved_bytes` ("": the arena's)
    firmware: tuple[
        FirmwareUse, ...
    ] = ()  # the current network's firmware, as far as it is known before the link

    @property
    def holders(self) -> tuple[str, ...]:
        """The names of the memories that hold a plan's buffers: that of the arena, and that of the second
        arena, if any.
        """
        return (self.arena, self.second) if self.second else (self.arena,)

    def reserved_for_others(self, name: str, state: int = 0) -> int:
        """Returns the bytes of the memory `name` that are not for arenas: reserved bytes, and stack and
        globals if they lie in it.

        `state` are the bytes that a network keeps between invokes; they lie with globals and stack. If the
        board's file reserves nothing in that memory, KEPT_FOR_GLOBALS bytes are for globals.
        """
        stack = self.stack_bytes + state if self.data == name else 0
        if (self.reserved_in or self.arena) == name:
            return stack + self.reserved_bytes
        return stack + (KEPT_FOR_GLOBALS if self.data == name else 0)

    def unavailable_bytes(self, name: str, state: int = 0) -> int:
        """Returns the bytes of the memory `name` that no arena can use: those reserved for others, or those
        of the firmware if they are more. `state` is as in `reserved_for_others`.
        """
        firmware = sum(each.bytes for each in self.firmware if each.memory == name)
        return max(self.reserved_for_others(name, state), firmware + (state if self.data == name else 0))

    def room(self, name: str, state: int = 0) -> int:
        """Returns the bytes of the memory `name` that arenas may use: all except `unavailable_bytes`.

        `state` is as in `reserved_for_others`. Raises KeyError for an unknown name.
        """
        return max(0, self.memory(name).size - self.unavailable_bytes(name, state))

    def describe_other_contents(self, name: str) -> str:
        """Returns a text that lists what else lies in the code's memory besides an arena, with sizes in
        bytes.

        It is "" for other memories, and if the firmware needs no more than `reserved_for_others`.
        """
        parts = sorted((each for each in self.firmware if each.memory == name), key=lambda each: -each.bytes)
        if name != self.code or self.unavailable_bytes(name) == self.reserved_for_others(name):
            return ""
        return " beside " + ", ".join(f"{each.what} {each.bytes:,}" for each in parts)

    @property
    def reads_weights_in_ram(self) -> bool:
        """Whether the weights lie in a RAM that programs read, and the code in ROM."""
        weights, code = self.memory(self.weights), self.memory(self.code)
        in_ram = weights.kind is MemoryKind.RAM and not weights.bandwidth
        return in_ram and code.kind is MemoryKind.ROM

    @property
    def is_native(self) -> bool:
        """Whether firmware images run as programs of this machine."""
        return self.emulator is not None and self.emulator.kind == "native"

    def memory(self, name: str) -> Memory:
        """Returns the memory called `name`. Raises KeyError for an unknown name."""
        return {memory.name: memory for memory in self.memories}[name]

    @property
    def is_stand_in(self) -> bool:
        """Whether the emulator emulates another board with this core, which cannot run this board's
        images.
        """
        return self.emulator is not None and bool(self.emulator.bases)

    @property
    def own_emulator(self) -> Emulator | None:
        """The emulator that can run the board's own firmware images; None if there is none."""
        return None if self.is_stand_in else self.emulator

    def in_emulator(self) -> Board:
        """Returns the board as the emulator presents it: with other addresses, and without chip code, UART
        and boot loader.
        """
        if self.emulator is None or not self.emulator.bases:
            return self
        bases = dict(self.emulator.bases)
        memories = tuple(replace(m, base=bases.get(m.name, m.base), erase=()) for m in self.memories)
        return replace(self, memories=memories, chip=None, uart=None, image=PLAIN_IMAGE)

    def cache_of(self, memory: Memory) -> Cache | None:
        """Returns the cache between the core and a memory; None if there is none."""
        name = memory.speed.cache if memory.speed else ""
        return next((cache for cache in self.caches if cache.name == name), None)


@dataclass(frozen=True)
class LinkerScript:
    """A file that the linker reads: its name, its content, and the flag that precedes its path.

    The path begins with a slash or "./", because -Ttext would be another flag. -Wl is not used, because it
    would split a path at commas.
    """

    name: str
    data: bytes
    flag: str = "-T"


@dataclass(frozen=True)
class Wiring:
    """What test firmware needs in order to answer over a link.

    `cflags`: flags for all files.
    `sources`, `includes`: files and folders that replace those of the harness.
    `defines`: those of the flags that a network and its kernels need.
    """

    cflags: tuple[str, ...]
    sources: tuple[str, ...]
    includes: tuple[str, ...]
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Toolchain:
    """A compiler on this machine, with the flags that build firmware for one board."""

    name: str
    identity: str  # name and version ("clang 22.1.8"), never a path
    cc: str
    cflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    ar: str
    objects: tuple[str, ...] = ()  # extra sources (start-up code, run-time support), absolute paths
    includes: tuple[str, ...] = ()
    script: LinkerScript | None = None  # see `link_flags`
    renames: tuple[str, ...] = ()  # further flags: the names of this machine's folders in debug information
    wiring: Wiring | None = None  # of test firmware that answers over a link; `cflags` include its flags

    def link_flags(self, folder: Path) -> tuple[str, ...]:
        """Returns all flags for the link, if the linker script lies in `folder`."""
        script = self.script
        own = () if script is None else (f"{script.flag}{folder.absolute() / script.name}",)
        return (*self.ldflags, *own)


@dataclass(frozen=True)
class RunRequest:
    """A request to run a program: the content of the files that it may read, and the names of those that it
    writes.
    """

    files: dict[str, bytes]
    outputs: tuple[str, ...]
    timeout: float = 120.0  # seconds
    count: bool = False  # count executed instructions by operator
    blocks: bool = False  # also count blocks of code, if the runner can
    written: Callable[[int], None] | None = None  # called during the run with the first output's size


@dataclass(frozen=True)
class BoardLink:
    """The link to an attached board."""

    wire: str  # "serial", "rtt", "semihosting"
    port: str = ""  # "": the only port of this machine
    is_emulated: bool = False  # the emulator replaces the board, and its UART is the link


@dataclass(frozen=True)
class Flashing:
    """How a firmware image is written to flash.

    `tool`: the program.
    `is_there`: whether it is installed. `install`: how to install it.
    `command`: the whole command.
    """

    tool: str
    is_there: bool
    command: tuple[str, ...]
    install: str = ""
    after: str = ""  # what the user has to do afterwards


@dataclass(frozen=True)
class DebugServer:
    """A server that halts firmware before its first instruction, and waits for a debugger at a network
    port.
    """

    command: tuple[str, ...]  # (): the debugger starts the program itself
    image: int  # the index of the image's path in the command; -1: it has none
    debuggers: tuple[str, ...]  # programs that can debug the core, the best first
    connected: tuple[str, ...] = ()  # the debugger's commands after it has connected


@dataclass(frozen=True)
class Reality:
    """How close a run is to the real board: its level, and what runs it ("emulated", "model on the host")."""

    level: Level
    text: str


@dataclass(frozen=True)
class Issues:
    """The issue slots that an operator takes on the chip, counted in a model of its vector unit."""

    vpu: int  # instructions of the vector unit
    mac: int  # those of them that multiply and accumulate
    scalar: int  # other instructions with an issue of their own
    slowest: int  # issues of both kinds of the slowest thread, summed over the calls


@dataclass(frozen=True)
class RunResult:
    """The result of a run: the files and the text that the program wrote, and counts by an operator's
    position.
    """

    files: dict[str, bytes]
    text: str
    counts: dict[int, int] = field(default_factory=dict)  # executed instructions
    total_instructions: int | None = None
    reality: Reality | None = None  # None: that of the plugin
    cycles: dict[int, int] = field(default_factory=dict)  # of the first input's invoke
    total_cycles: int | None = None
    no_cycles: str = ""  # why cycles could not be counted
    issues: dict[int, Issues] = field(default_factory=dict)
    executed: Executed | None = None  # the blocks of code, for a request with `blocks`


@dataclass(frozen=True)
class Costs:
    """Formulas for the costs of a target's code outside its kernels; see the module `costs`."""

    call: Annotated[str, ALONE, Key("The emitted loops around one kernel call.", NEXT)] = "0"
    row: Annotated[
        str, OF_BYTES, Key("One row of a streamed input image, which the application delivers.", NEXT)
    ] = "0"
    move: Annotated[str, OF_BYTES, Key("Copying a tensor within the arena.", NEXT)] = "0"
    load: Annotated[str, OF_BYTES, Key("Loading constants into the arena.", NEXT)] = "0"
    expand: Annotated[
        str, OF_BYTES, Key("Expanding constants that the weight image stores in this many bytes.", NEXT)
    ] = "0"
    sums: Annotated[str, OF_PART, Key("Adding a part of a global pooling's input to its sums.", NEXT)] = "0"
    sums_end: Annotated[str, OF_PART, Key("Computing the output of such a pooling from its sums.", NEXT)] = (
        "0"
    )


@dataclass(frozen=True)
class Library:
    """A user's library, whose kernels a target prefers to its own.

    `families`: the kernel families that call it, best first.
    `cflags`: the flags for its headers.
    `sources`: its sources (absolute paths), which are compiled with the start-up code.
    `ask`: returns a kernel's bytes of scratch for a question (`KernelVariant.asks`) and a geometry.
    `reads`: the files that decide its answers; `digest` is their SHA-256 (hex).
    """

    name: str
    families: tuple[str, ...]
    digest: str = ""
    cflags: tuple[str, ...] = field(default=(), compare=False)
    sources: tuple[str, ...] = field(default=(), compare=False)
    ask: Callable[[str, Mapping[str, int]], int] | None = field(default=None, compare=False)
    reads: tuple[Path, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Target:
    """A board with the kernels that its core can run, best first for each operator kind, and its costs.

    `routines`: other functions that emitted code calls, the preferred first.
    `families`: the folders of kernels and routines.
    `requantise`: how sums become 8-bit outputs.
    `by_ratio`: the names of kernels without a formula in cycles; their cost is instructions times the
    family's ratio.
    `lean`: whether, of the kernels that serve an operator, the one with the least scratch is selected.
    """

    board: Board
    kernels: tuple[KernelVariant, ...]
    costs: Costs = Costs()
    routines: tuple[Routine, ...] = ()
    families: tuple[KernelFamily, ...] = ()
    libraries: tuple[Library, ...] = ()
    requantise: Requantise = Requantise.EXACT
    cost_unit: CostUnit = CostUnit.INSTRUCTIONS
    by_ratio: frozenset[str] = frozenset()
    lean: bool = False

    @property
    def cost_ms(self) -> float | None:
        """The milliseconds of one unit of cost; None if costs are not in cycles, or the clock is not
        known.
        """
        clock = self.board.clock_hz
        return 1000 / clock if self.cost_unit is CostUnit.CYCLES and clock else None

    @cached_property
    def digests(self) -> dict[str, str]:
        """The digests that `target.digest` has computed, by step."""
        return {}

    @cached_property
    def selections(self) -> dict[str, tuple[KernelVariant | None, ...]]:
        """The kernels that `target.catalogue` has selected for a network's operators, by the digest of its
        topology.
        """
        return {}

    def with_firmware(self, firmware: tuple[FirmwareUse, ...]) -> Target:
        """Returns the target with the bytes of the current network's firmware. It shares digests and
        selections with this one.
        """
        if firmware == self.board.firmware:
            return self
        target = replace(self, board=replace(self.board, firmware=firmware))
        vars(target)["selections"] = self.selections
        if not self.board.second:  # with two arenas, plans depend on the room in each memory
            vars(target)["digests"] = self.digests
        return target

    def kernels_by_name(self, names: Sequence[str]) -> tuple[KernelVariant | None, ...]:
        """Returns the kernel with each of the names; None for an empty name. A plan has a name for each
        operator.
        """
        by_name = {kernel.name: kernel for kernel in self.kernels}
        return tuple(by_name[name] if name else None for name in names)

    def source(self, name: str) -> Path:
        """Returns the path of a source that a catalogue calls "family/file". Raises TargetError for an
        unknown family.
        """
        family, _, file = name.partition("/")
        folders = {each.name: each.folder for each in self.families}
        if family in folders:
            return folders[family] / file
        text = f"source '{name}' is of a kernel family that board '{self.board.name}' does not have"
        raise TargetError(text)

    def routine(self, role: Role, kernel: KernelVariant | None = None) -> Routine:
        """Returns the first routine for a role that serves `kernel` (None: any). Raises TargetError if there
        is none.
        """
        for routine in self.routines:
            if routine.role is role and (kernel is None or routine.serves(kernel)):
                return routine
        what = f"{role} for kernel '{kernel.name}' of {kernel.op}" if kernel else str(role)
        raise TargetError(f"board '{self.board.name}' has no routine: {what}")
