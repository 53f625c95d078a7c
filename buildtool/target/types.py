"""What a board and a core are, as plain data; it goes into every cache key."""

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
    FlashImage,
    Memory,
    Probe,
    Published,
    Taken,
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
from buildtool.target.variables import THREADS, VARIABLES, VECTOR_BITS

KEPT_FOR_GLOBALS = 1024  # bytes
PLAIN_IMAGE = FlashImage()  # firmware at the start of its memory, weights behind it
BYTES = (DType.INT8, DType.INT8)  # the types of a kernel that says none
NO_PACKING = "none"  # of kernels without constants
OWN_FILE = "`SYMBOL.c` of the folder"
_UNCUT = "a block cannot be cut"
NEXT = "the next family's"


class Contract(Word):
    """How far a kernel's output may lie on its dying input."""

    NONE = "none", "Input and output share no byte."
    ROW = (
        "row",
        "Output row q is written after every input row that it needs was read. Rows are made in "
        "ascending order, and rows below the window of row q are never read again.",
    )
    PIXEL = "pixel", "Output element i is written after input element i was read, which is never read again."
    PARTS = (
        "parts",
        "Of concatenations: the inputs are copied one after the other, each in ascending order.",
    )


class Argument(Word):
    """What a kernel can be handed; the catalogue's `call` has them in the order of its parameters."""

    GEOMETRY = "geometry", "the struct of the operator kind, see nn.h"
    CONSTANTS = "constants", "its block of the weight image"
    IN = "in", "a view of the operand"
    IN1 = "in1", "a view of the first operand"
    IN2 = "in2", "a view of the second operand"
    IN3 = "in3", "a view of the third operand"
    OUT = "out", "a view of the output"
    IN_DATA = "in_data", "the address of the whole operand"
    OUT_DATA = "out_data", "the address of the whole output"
    WINDOW = "window", "the rows and columns of the output that the call makes"
    SCRATCH = "scratch", "memory that is the kernel's while it runs; NULL without any"
    SCRATCH_BYTES = "scratch_bytes", "how much of it there is"
    SUMS = "sums", "an int32 for each channel"
    CHANNELS = "channels", "channels of the input"
    PIXELS = "pixels", "pixels of the input"
    CHANNEL = "channel", "the first channel of a part of the output; 0 where it is not a part"
    BYTES = "bytes", "bytes of the output"
    STATE = "state", "the address of the operator's state, of an LSTM's last output"
    STATE2 = "state2", "the address of an LSTM's cells"


def read_call(value: object, key: str) -> tuple[Argument, ...]:
    """The arguments of a function, with commas between them."""
    names = [name.strip() for name in readers.string(value, key).split(",")]
    for name in names:
        if name not in list(Argument):
            what = f"'{key}': argument '{name}' is unknown"
            raise Mismatch(what, hint=did_you_mean(name, Argument), at=key)
    return tuple(map(Argument, names))


class Windows(Word):
    """What a kernel computes in a call. A kernel of WHOLE takes no parts of a wider tensor's channels."""

    ANY = "any", "Any window of its output, from views that may be parts of a wider tensor's channels."
    WHOLE = "whole", "The whole output from whole inputs; such a kernel is in no streamed region."


class Role(Word):
    """What emitted code needs done beside an operator's kernel."""

    FILL = "fill", "Fills a tensor with one value, before a PAD's input is copied into it."
    JOIN = "join", "Copies a window of one part of a CONCATENATION to its place."
    ACCUMULATE = "accumulate", "Adds a window to the sums of a global pooling."
    FINISH = "finish", "Turns such sums into the pooling's output."


class Step(enum.StrEnum):
    """A step that reads a field of a kernel or a routine; its results are stale where the field changes."""

    PLAN = "plan"
    EMIT = "emit"
    PACK = "pack"


@dataclass(frozen=True)
class Formula(Kind):
    """A field is a formula over the variables that it `sees`."""

    sees: frozenset[str] = frozenset()


ReadBy = frozenset[Step]  # of a field: the steps that read it, see `target.digest`
ALL, PLAN, EMIT, PACK = frozenset(Step), *(frozenset({step}) for step in Step)
SHAPE = Formula("formula", sees=frozenset(VARIABLES))
SHARED = Formula("formula", sees=SHAPE.sees | {THREADS})  # the layout of constants must not see the core
COST = Formula("formula", sees=SHARED.sees | {VECTOR_BITS})
ALONE = Formula("formula")
OF_BYTES = Formula("formula of `bytes`", sees=frozenset({"bytes"}))
OF_PART = Formula("formula of `oh`, `ow`, `cin`", sees=frozenset({"oh", "ow", "cin"}))
Call = Annotated[tuple[Argument, ...], Kind("arguments", read_call)]


@dataclass(frozen=True)
class Routine:
    """A C function for a role; of operator kind `op` ("": of every one)."""

    role: Annotated[Role, Kind("a role"), Key("What it does."), EMIT]
    op: Annotated[Operators, Key("The operators that it does it for.", "every kind"), EMIT]
    symbol: Annotated[str, Key("The C function."), EMIT]
    sources: Annotated[Files, Key("As those of a kernel.", OWN_FILE)]
    call: Annotated[Call, Key("The function's arguments in their order."), EMIT]
    headers: Annotated[Headers, Key("The headers that declare the symbol.", "the family's"), EMIT] = ()
    packing: Annotated[
        Packing, Key("Of the constants that it reads: they are the kernel's.", "no constants"), EMIT
    ] = NO_PACKING
    types: Annotated[Types, Key("As those of the kernels that it stands beside.", "`int8`")] = BYTES
    form: Annotated[Form, Key("As that of the kernel whose constants it reads.", "as int8")] = ""

    def serves(self, kernel: KernelVariant) -> bool:
        """Whether it is for the kernel's operator kind and types, and reads constants as it has them."""
        reads = Argument.CONSTANTS in self.call
        alike = self.op in ("", kernel.op) and self.types == kernel.types
        return alike and (not reads or (self.packing, self.form) == (kernel.packing, kernel.form))


@dataclass(frozen=True)
class KernelFamily:
    """A folder of kernels by its name: catalogue.toml, C sources, headers, packing.py for weight layouts."""

    name: str
    folder: Path = field(compare=False)


Asked = Callable[[Mapping[str, int]], int]  # geometry (`catalogue.features`) -> bytes of scratch


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A layout of constants: the packing.py that has it, the bytes of a block and of each channel in it."""

    packer: Path | None = field(default=None, compare=False)
    constants: Annotated[
        str,
        SHAPE,
        Key(
            "The length of a packed block; every block that is packed is compared with it.",
            name="bytes",
            needed=True,
        ),
        PLAN | PACK,
    ] = "0"
    channel_factors: Annotated[
        str, SHAPE, PLAN, Key("Bytes of an output channel's factors, behind a head of 16 bytes.", _UNCUT)
    ] = "0"
    channel_weights: Annotated[
        str,
        SHAPE,
        PLAN,
        Key(
            "Bytes of an output channel's weights, behind the factors. It comes together with "
            "`channel_factors`.",
            _UNCUT,
        ),
    ] = "0"
    channel_step: Annotated[
        str, SHAPE, PLAN, Key("Where a block can be cut: before channels whose number is a multiple of this.")
    ] = "1"
    channel_unit: Annotated[
        str,
        SHAPE,
        PLAN,
        Key("Of how many channels a block has the bytes of a multiple; the last ones are filled up."),
    ] = "1"
    channel_group: Annotated[
        str,
        SHAPE,
        PLAN,
        Key(
            "Of how many channels the factors belong together, a multiple of `channel_unit`. A slice of "
            "fewer lies within them and comes with the factors of all; the argument `channel` says where "
            "it begins.",
            "`channel_unit`",
        ),
    ] = "1"
    channel_tail: Annotated[
        str, SHAPE, PLAN, Key("Bytes behind a block's weights that the kernel reads and that say nothing.")
    ] = "0"


@dataclass(frozen=True)
class KernelVariant(Layout):
    """One way to compute an operator kind; `form`: see `AsUint8`.

    `slices`: a block is a head of 16 bytes, then `channel_factors` bytes of each channel, then
    `channel_weights` bytes of each, both parts rounded up to 16. `ask` answers the question `asks`.
    """

    op: Annotated[
        Operators,
        Key(
            "What it computes, as `buildtool ops` names it; or a class: `@lookup`, all functions of one "
            "element; `@comparison`; `@pair`, all functions of the elements at one place but sums and "
            "products."
        ),
        ALL,
    ]
    name: Annotated[str, Key("The kernel's name in plans; no two families share one."), ALL]
    symbol: Annotated[str, Key("The C function."), EMIT]
    sources: Annotated[Files, Key('Of the folder, or "family/file" of a family that is used.', OWN_FILE)]
    packing: Annotated[
        Packing, Key("Its own one, of a family that is used, or of a portable one.", "no constants"), PACK
    ] = NO_PACKING
    when: Annotated[str, SHARED, Key("The shapes that it serves."), PLAN] = "True"
    scratch: Annotated[str, SHARED, Key("Bytes of scratch for a call of `ow` columns."), PLAN] = "0"
    overlap: Annotated[
        Contract, Kind("a contract"), Key("How far its output may lie on its dying input.", "`none`"), PLAN
    ] = Contract.NONE
    cost: Annotated[
        str, COST, Key("What a call costs in the unit of the target; it also sees `vector_bits`."), PLAN
    ] = "macs"
    call: Annotated[
        Call,
        Key("The function's arguments in their order, with commas between them.", needed=True),
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
            "Whether it computes some output channels from a block of theirs. Such a kernel computes "
            "windows; its formula of scratch holds for each of the parts."
        ),
        PLAN,
    ] = "False"
    passes: Annotated[
        str, SHAPE, Key("How often a call reads all of its constants, for memories that let the core wait.")
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
            "The element type of its first input, and of its output where that is another one: `int16`, or "
            "`int8 -> int16`. `int8` stands for uint8, too.",
            "`int8`",
        ),
    ] = BYTES
    form: Annotated[
        Form,
        Key(
            "Which arithmetic it computes, where LiteRT's uint8 kernel has another one than its int8 kernel: "
            "filters with a zero point, averages whose halves are rounded up.",
            "as int8",
        ),
    ] = ""


@dataclass(frozen=True)
class Board:
    """A board: its core, its memories, and which of them holds what."""

    name: str
    title: Annotated[str, Key("What the board is.")]
    family: Annotated[str, Kind("the name of a plugin"), Key("The plugin that serves the board.")]
    stack_bytes: Annotated[
        int,
        must("a multiple of 8, 256 at least", lambda n: n >= 256 and n % 8 == 0, "size, a multiple of 8"),
        Key("The stack, which lies in the memory of the data."),
    ]
    core: Annotated[Core, Key("The processor core.")]
    memories: Annotated[
        tuple[Memory, ...],
        Key("The memories. Their names are those of the linker script's regions.", name="memory"),
    ]
    code: Annotated[MemoryName, Key("Code and constants of the program.", name="roles.code")]
    data: Annotated[RamName, Key("Globals and the stack.", name="roles.data")]
    arena: Annotated[RamName, Key("The arena.", name="roles.arena")]
    weights: Annotated[MemoryName, Key("The weight image.", name="roles.weights")]
    arenas: Annotated[
        tuple[str, ...],
        Kind("list of names of RAMs"),
        Key(
            "The memories that may hold an arena in its place: those whose bytes can be written one by one.",
            "every RAM without a bandwidth",
            "roles.arenas",
        ),
    ] = ()
    reserved_bytes: Annotated[int, Key("What the application needs of the arena's memory.")] = 0
    alignment: Annotated[int, power(4, 4096), Key("Of buffers in the arena, in bytes.")] = 16
    toolchains: Annotated[Names, Key("The compilers that build for the board, the default first.")] = ()
    emulator: Annotated[Emulator | None, Key("What runs an image without the board.")] = None
    clock_hz: Annotated[Number, Key("The core's clock.", "0: not known")] = 0
    note: Annotated[
        str, Kind("text", readers.one_line), Key("What a user has to know of results for this board.")
    ] = ""
    estimate: Annotated[Estimate | None, Key("How fast a board is whose speed cannot be measured here.")] = (
        None
    )
    probe: Annotated[
        Probe | None,
        Kind("table", read_probe),
        Key("How programs reach the board: to flash it, and to debug on it."),
    ] = None
    image: Annotated[FlashImage, Key("How firmware and weights lie in flash.")] = PLAIN_IMAGE
    uart: Annotated[Uart | None, Key("The serial port by which test firmware on the board answers.")] = None
    chip: Annotated[Chip | None, Key("What the chip needs after a reset: clock, wait states, caches.")] = None
    vector_unit: Annotated[
        VectorUnit | None, Key("How fast the core's vector unit can be, for counts of its issues.")
    ] = None
    published: Annotated[Published | None, Key("A profile that somebody published of the board.")] = None
    pipeline: Annotated[Pipeline | None, Key("The core's timing, for estimates of cycles.")] = None
    caches: Annotated[
        tuple[Cache, ...], Key("Caches between the core and slower memories.", name="cache")
    ] = ()
    second: str = ""  # memory of a second arena, over which a plan's buffers are spread ("": there is none)
    reserved_in: str = ""  # memory of `reserved_bytes` ("": the arena's)
    firmware: tuple[Taken, ...] = ()  # of the network at hand, as far as that is known before it is linked

    @property
    def holders(self) -> tuple[str, ...]:
        """The memories over which a plan is spread: the arena's, and the second arena's."""
        return (self.arena, self.second) if self.second else (self.arena,)

    def kept(self, name: str, state: int = 0) -> int:
        """Bytes of a memory that no arena may have: what is reserved there, and the stack if it is there.

        `state`: bytes that a network keeps between invokes; they lie with the globals, whose memory has
        KEPT_FOR_GLOBALS if the board's file reserves nothing there.
        """
        stack = self.stack_bytes + state if self.data == name else 0
        if (self.reserved_in or self.arena) == name:
            return stack + self.reserved_bytes
        return stack + (KEPT_FOR_GLOBALS if self.data == name else 0)

    def taken(self, name: str, state: int = 0) -> int:
        """Bytes of a memory that no arena may have: what the application keeps, or firmware's if more."""
        firmware = sum(one.bytes for one in self.firmware if one.memory == name)
        return max(self.kept(name, state), firmware + (state if self.data == name else 0))

    def room(self, name: str, state: int = 0) -> int:
        """Bytes of a memory that an arena may have; see `taken`. KeyError if there is no such memory."""
        return max(0, self.memory(name).size - self.taken(name, state))

    def beside(self, name: str) -> str:
        """In words, what a memory holds beside the arena where code is among it; "" elsewhere."""
        parts = sorted((one for one in self.firmware if one.memory == name), key=lambda one: -one.bytes)
        if name != self.code or self.taken(name) == self.kept(name):
            return ""
        return " beside " + ", ".join(f"{one.what} {one.bytes}" for one in parts)

    @property
    def is_native(self) -> bool:
        """Whether images run as programs of this machine."""
        return self.emulator is not None and self.emulator.kind == "native"

    def memory(self, name: str) -> Memory:
        """The memory called `name`; KeyError if there is none."""
        return {memory.name: memory for memory in self.memories}[name]

    @property
    def is_stand_in(self) -> bool:
        """Whether the emulated machine is another one with this core: it runs no image for the board."""
        return self.emulator is not None and bool(self.emulator.bases)

    @property
    def own_emulator(self) -> Emulator | None:
        """The emulator of the board itself, which runs images that are for the board."""
        return None if self.is_stand_in else self.emulator

    def in_emulator(self) -> Board:
        """The board as the emulator presents it: memories elsewhere, and nothing of the chip."""
        if self.emulator is None or not self.emulator.bases:
            return self
        bases = dict(self.emulator.bases)
        memories = tuple(replace(m, base=bases.get(m.name, m.base), erase=()) for m in self.memories)
        return replace(self, memories=memories, chip=None, uart=None, image=PLAIN_IMAGE)

    def cache_of(self, memory: Memory) -> Cache | None:
        """The known cache between the core and a memory."""
        name = memory.speed.cache if memory.speed else ""
        return next((cache for cache in self.caches if cache.name == name), None)


@dataclass(frozen=True)
class LinkerScript:
    """A file that the link reads: its name, its content, and the flag before its path.

    The path begins with a slash or "./", because -Ttext is another flag. -Wl would split it at commas.
    """

    name: str
    data: bytes
    flag: str = "-T"


@dataclass(frozen=True)
class Wiring:
    """What a test firmware needs to answer over a wire.

    `cflags` are for all files, `defines` those that a network and its kernels need. `sources` and `includes`
    replace the test firmware's own.
    """

    cflags: tuple[str, ...]
    sources: tuple[str, ...]
    includes: tuple[str, ...]
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Toolchain:
    """A compiler found on this machine, with the flags that build for one board, ready for a command line."""

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
    wiring: Wiring | None = None  # of a test firmware that answers over a wire; `cflags` have its flags

    def link_flags(self, folder: Path) -> tuple[str, ...]:
        """All flags of a link whose script lies in `folder`."""
        script = self.script
        own = () if script is None else (f"{script.flag}{folder.absolute() / script.name}",)
        return (*self.ldflags, *own)


@dataclass(frozen=True)
class RunRequest:
    """What a runner gets: files the program may read, and the names of those it will write."""

    files: dict[str, bytes]
    outputs: tuple[str, ...]
    timeout: float = 120.0  # seconds
    count: bool = False  # count executed instructions per marker
    blocks: bool = False  # count blocks of code as well, where the runner can
    written: Callable[[int], None] | None = None  # called during the run with bytes of the first output


@dataclass(frozen=True)
class Desk:
    """How a board on the desk is reached."""

    wire: str  # "serial", "rtt"
    port: str = ""  # "": the only one there is
    is_emulated: bool = False  # the emulator replaces the board, and its UART is the wire


@dataclass(frozen=True)
class Flashing:
    """How an image comes into a board's flash: a program, whether it is installed, and the whole command."""

    tool: str
    is_there: bool
    command: tuple[str, ...]
    install: str = ""
    after: str = ""  # what is to be done by hand


@dataclass(frozen=True)
class DebugServer:
    """A server that halts an image at the first step for a debugger that connects to a port here."""

    command: tuple[str, ...]  # (): the debugger starts the image itself
    image: int  # the place of the image's path in the command; -1: none
    debuggers: tuple[str, ...]  # programs that know the core, the best first
    connected: tuple[str, ...] = ()  # the debugger's commands once it is connected


@dataclass(frozen=True)
class Reality:
    """How real a run is: its level, and what runs it ("emulated", "model on the host")."""

    level: Level
    text: str


@dataclass(frozen=True)
class Issues:
    """The issues of an operator on the chip, counted in a model of its vector unit."""

    vpu: int  # instructions of the vector unit
    mac: int  # those of them that multiply and accumulate
    scalar: int  # other instructions with an issue of their own
    slowest: int  # issues of both kinds of the slowest thread, summed over the calls


@dataclass(frozen=True)
class RunResult:
    """The result of a run; counts are by an operator's position."""

    files: dict[str, bytes]
    text: str
    counts: dict[int, int] = field(default_factory=dict)  # executed instructions
    total_instructions: int | None = None
    reality: Reality | None = None  # None: the plugin's own
    cycles: dict[int, int] = field(default_factory=dict)  # of the first input's invoke
    total_cycles: int | None = None
    no_cycles: str = ""  # why counting cycles failed
    issues: dict[int, Issues] = field(default_factory=dict)
    executed: Executed | None = None  # the blocks of code, where they were asked for


@dataclass(frozen=True)
class Costs:
    """What a target's code costs beside the kernels' own formulas; see `costs`."""

    call: Annotated[str, ALONE, Key("The emitted loops around one kernel call.", NEXT)] = "0"
    row: Annotated[str, OF_BYTES, Key("A row of a streamed image that the application delivers.", NEXT)] = "0"
    move: Annotated[str, OF_BYTES, Key("A tensor that is copied within the arena.", NEXT)] = "0"
    load: Annotated[str, OF_BYTES, Key("Constants that are brought into the arena.", NEXT)] = "0"
    sums: Annotated[
        str, OF_PART, Key("A part of a global pooling's input that is added to its sums.", NEXT)
    ] = "0"
    sums_end: Annotated[str, OF_PART, Key("The output of such a pooling, made of its sums.", NEXT)] = "0"


@dataclass(frozen=True)
class Library:
    """A user's library, whose kernels a target uses before its own.

    `families`: kernel families that call it, best first; `cflags` find its headers; `sources` (absolute
    paths) are compiled with the start-up code. `ask` gives the bytes of scratch that a kernel wants, by the
    question (`KernelVariant.asks`) and the geometry; `digest` (SHA-256, hex) is of the files `reads` that
    decide the answers.
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

    Emitted code also calls `routines`, the first one that serves. `families` have the files of both.
    `requantise`: whether outputs equal the reference to the bit. `by_ratio`: kernels without a formula in
    cycles, whose instructions are counted at the family's mean of cycles.
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

    @property
    def cost_ms(self) -> float | None:
        """Milliseconds of a cost of 1; None where costs are no time, or the clock is not known."""
        clock = self.board.clock_hz
        return 1000 / clock if self.cost_unit is CostUnit.CYCLES and clock else None

    @cached_property
    def digests(self) -> dict[str, str]:
        """The digests of `target.digest`, by step."""
        return {}

    @cached_property
    def selections(self) -> dict[str, tuple[KernelVariant | None, ...]]:
        """The kernels by the digest of a topology, as `target.catalogue` has selected them."""
        return {}

    def with_firmware(self, firmware: tuple[Taken, ...]) -> Target:
        """The target of a network whose firmware takes this much; digests and selections stay known."""
        if firmware == self.board.firmware:
            return self
        made = replace(self, board=replace(self.board, firmware=firmware))
        vars(made)["selections"] = self.selections
        if not self.board.second:  # else rooms are part of what a plan depends on
            vars(made)["digests"] = self.digests
        return made

    def named(self, names: Sequence[str]) -> tuple[KernelVariant | None, ...]:
        """The kernels of these names, as a plan lists them by operator; None for an empty name."""
        by_name = {kernel.name: kernel for kernel in self.kernels}
        return tuple(by_name[name] if name else None for name in names)

    def source(self, name: str) -> Path:
        """The file of a source "family/file"."""
        family, _, file = name.partition("/")
        folders = {found.name: found.folder for found in self.families}
        if family in folders:
            return folders[family] / file
        text = f"source '{name}' is of a kernel family that board '{self.board.name}' does not have"
        raise TargetError(text)

    def routine(self, role: Role, kernel: KernelVariant | None = None) -> Routine:
        """The routine of a role, for operators that `kernel` computes; TargetError if no family has it."""
        for routine in self.routines:
            if routine.role is role and (kernel is None or routine.serves(kernel)):
                return routine
        what = f"{role} for kernel '{kernel.name}' of {kernel.op}" if kernel else str(role)
        raise TargetError(f"board '{self.board.name}' has no routine: {what}")
