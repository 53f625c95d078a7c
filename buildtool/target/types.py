"""What a board and a core are, as plain data; it goes into every cache key."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from buildtool.base.errors import TargetError
from buildtool.base.modes import CostUnit, Level, Requantise
from buildtool.graph.types import DType
from buildtool.target.blocks import Executed
from buildtool.target.speeds import Cache, Pipeline, Speed

KEPT_FOR_GLOBALS = 1024  # bytes
BYTES = (DType.INT8, DType.INT8)  # the types of a kernel that says none


class MemoryKind(enum.StrEnum):
    """RAM is read and written by the program; ROM is executed or read in place."""

    RAM = "ram"
    ROM = "rom"


@dataclass(frozen=True)
class Memory:
    """An address range; sizes in bytes, bandwidth in bytes a second (0: not a limit).

    `erase`: flash is erased in blocks, from the memory's start so many (count) of so many bytes; the last
    entry goes on to the end. Empty: what is erased at once is not known. `speed`: how long the core waits for
    it; None: not known, and it is taken for ideal.
    """

    name: str
    kind: MemoryKind
    base: int
    size: int
    bandwidth: int = 0
    erase: tuple[tuple[int, int], ...] = ()
    speed: Speed | None = None


class Contract(enum.StrEnum):
    """How far a kernel's output may lie on its dying input.

    NONE: nowhere. ROW: output row q is written after every input row it needs was read, rows
    ascending, and rows below the window of row q are never read again. PIXEL: output element i is
    written after input element i was read, and that is never read again. PARTS (concatenations): the
    inputs are copied one after the other, in their order, each one in ascending order.
    """

    NONE = "none"
    ROW = "row"
    PIXEL = "pixel"
    PARTS = "parts"


class Argument(enum.StrEnum):
    """What a kernel can be handed; the catalogue's `call` has them in the order of its parameters.

    GEOMETRY: the struct of the operator kind. CONSTANTS: its block of the weight image. IN, IN1, IN2, IN3,
    OUT:     views of operands and result, of which WINDOW is computed; IN_DATA, OUT_DATA: addresses of whole
    tensors. SCRATCH: NULL without any; SCRATCH_BYTES: how much there is. The others are for routines.
    SUMS: one int32 a channel;
    CHANNELS, PIXELS: of the input; CHANNEL: the first of a part of the output, or 0; BYTES: of the output.
    STATE, STATE2: addresses of what the operator keeps from call to call.
    """

    GEOMETRY = "geometry"
    CONSTANTS = "constants"
    IN = "in"
    IN1 = "in1"
    IN2 = "in2"
    IN3 = "in3"
    OUT = "out"
    IN_DATA = "in_data"
    OUT_DATA = "out_data"
    WINDOW = "window"
    SCRATCH = "scratch"
    SCRATCH_BYTES = "scratch_bytes"
    SUMS = "sums"
    CHANNELS = "channels"
    PIXELS = "pixels"
    CHANNEL = "channel"
    BYTES = "bytes"
    STATE = "state"
    STATE2 = "state2"


class Windows(enum.StrEnum):
    """What a kernel computes in a call: ANY window of its output, or the WHOLE of it from whole inputs.

    A kernel of ANY takes views that are parts of a wider tensor's channels; WHOLE takes none of these.
    """

    ANY = "any"
    WHOLE = "whole"


class Role(enum.StrEnum):
    """What emitted code needs done beside an operator's kernel.

    FILL: a tensor with one value, before a PAD's input is copied into it. JOIN: one part of a CONCATENATION
    by windows. ACCUMULATE: adds a window to the sums of a global pooling, which FINISH turns into its output.
    """

    FILL = "fill"
    JOIN = "join"
    ACCUMULATE = "accumulate"
    FINISH = "finish"


@dataclass(frozen=True)
class Routine:
    """A C function for a role; of operator kind `op` ("": of every one).

    `packing`: of the constants that it reads, which are the operator's kernel's. `types`: as a kernel's;
    `form`, too, of what reads constants.
    """

    role: Role
    op: str
    symbol: str
    sources: tuple[str, ...]
    call: tuple[Argument, ...]
    headers: tuple[str, ...] = ()
    packing: str = "none"
    types: tuple[DType, DType] = BYTES
    form: str = ""

    def serves(self, kernel: KernelVariant) -> bool:
        """Whether it is for the kernel's operator kind and types, and reads constants as it has them."""
        reads = Argument.CONSTANTS in self.call
        alike = self.op in ("", kernel.op) and self.types == kernel.types
        return alike and (not reads or (self.packing, self.form) == (kernel.packing, kernel.form))


@dataclass(frozen=True)
class KernelFamily:
    """A folder of kernels: catalogue.toml, C sources, headers, and packing.py for its weight layouts.

    The folder's name is the family's. Where it lies is no part of what it is.
    """

    name: str
    folder: Path = field(compare=False)


Asked = Callable[[Mapping[str, int]], int]  # geometry (`catalogue.features`) -> bytes of scratch


@dataclass(frozen=True)
class KernelVariant:
    """One way to compute an operator kind.

    `call` are the arguments of the C function `symbol`, in their order; `headers` declare it.
    `when`, `scratch`, `constants`, `slices`, `passes` and the cost's terms are expressions (see
    `expression`) over the operator's geometry. Sources are "family/file".
    `packing` is the layout of the constants and `packer` the packing.py that has it; `constants` is the
    length of the packed block in bytes. `slices` says whether the kernel can compute some of the output
    channels from a block of theirs: a head of 16 bytes, then `channel_factors` bytes of each channel,
    then `channel_weights` bytes of each, both parts rounded up to 16; all but the last channels are cut at
    multiples of `channel_step`, and there are bytes for a multiple of `channel_unit` channels and
    `channel_tail` bytes more. Of fewer channels than `channel_group` there are the factors of all that
    belong together, and the argument `channel` says which they are.
    `passes`: how often a call reads its constants from the first to the last.
    `types`: of the elements of its first input and of its output; INT8 stands for UINT8, too. `form`: the
    arithmetic, where an operator has several: `uint8`, or "" (see `AsUint8`).
    `asks` names the question about scratch that the kernel's library answers, instead of a formula
    ("": none), and `ask` is who answers it.
    """

    op: str
    name: str
    symbol: str
    sources: tuple[str, ...]
    packing: str = "none"
    when: str = "True"
    scratch: str = "0"
    overlap: Contract = Contract.NONE
    cost: str = "macs"
    call: tuple[Argument, ...] = ()
    headers: tuple[str, ...] = ()
    windows: Windows = Windows.ANY
    constants: str = "0"
    slices: str = "False"
    channel_factors: str = "0"
    channel_weights: str = "0"
    channel_step: str = "1"
    channel_unit: str = "1"
    channel_group: str = "1"
    channel_tail: str = "0"
    passes: str = "1"
    packer: Path | None = field(default=None, compare=False)
    asks: str = ""
    ask: Asked | None = field(default=None, compare=False)
    types: tuple[DType, DType] = BYTES
    form: str = ""


@dataclass(frozen=True)
class Core:
    """A processor core; `families` are the kernel folders it can run, best first.

    `vector_bits`: of a vector register, where cores that run the same code differ in it; 0: they do not.
    `threads`: how many of the core's threads share a kernel's call (see `threads.threaded`).
    """

    name: str
    isa: str
    families: tuple[str, ...]
    cflags: tuple[str, ...] = ()  # that select the core, clang and gcc alike
    defines: tuple[str, ...] = ()
    vector_bits: int = 0
    threads: int = 1


@dataclass(frozen=True)
class Emulator:
    """How to run an image without the board: `machine` as the runner understands it.

    `bases`: memories by name that lie elsewhere in the machine than on the board, with their addresses there.
    """

    kind: str  # "native" | "qemu-system-arm" | ...
    machine: str = ""
    options: tuple[str, ...] = ()
    bases: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class ProbeTool:
    """A program that reaches the board itself (`openocd`, `pyocd`, ...), and its words for this board."""

    name: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Probe:
    """How programs reach the board: the one that is preferred first."""

    tools: tuple[ProbeTool, ...]


@dataclass(frozen=True)
class Uart:
    """The serial port by which the board's test firmware answers.

    `driver`: a file of C that has the functions of wire.h, by its name without an ending, or a path; it gets
    the macros WIRE_BASE, WIRE_CLOCK_HZ (of the port's own clock), WIRE_BAUD and the `settings`.
    """

    driver: str
    base: int
    clock_hz: int
    baud: int
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chip:
    """What the chip needs after a reset, such as its clock: a file of C by its name, or a path.

    `settings` are macros for it.
    """

    start: str
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """How fast a board works where it cannot be measured: multiply-accumulates a second, and by whom."""

    macs_per_second: int
    source: str


@dataclass(frozen=True)
class Mcuboot:
    """A slot of the boot loader MCUboot, in bytes, from `FlashImage.code_start` on.

    `header_bytes`: kept for its header, before the code; `align`: what the flash writes at once.
    """

    slot_bytes: int
    header_bytes: int = 512
    align: int = 8


@dataclass(frozen=True)
class FlashImage:
    """How firmware lies in flash; places in bytes from the start of the memory.

    `code_start`: where the firmware begins, behind a boot loader. `weights_start`: where the partition of the
    weights does; None: at the first erase block that the firmware leaves free. `slots` images of weights have
    `slot_bytes` each (0: what is left). `uf2_family`: the chip's number in UF2 files; 0: it has none.
    """

    uf2_family: int = 0
    code_start: int = 0
    weights_start: int | None = None
    slots: int = 1
    slot_bytes: int = 0
    mcuboot: Mcuboot | None = None


@dataclass(frozen=True)
class VectorUnit:
    """How fast a vector unit can be: `macs` an issue at most, `cycles` of the core from issue to issue."""

    macs: int
    cycles: int


@dataclass(frozen=True)
class PublishedPart:
    """A line of a published profile: milliseconds of these operator kinds ("LOAD": loading weights)."""

    name: str
    operators: tuple[str, ...]
    milliseconds: float


@dataclass(frozen=True)
class Published:
    """A profile that somebody published of the board; `macs` of the network, by which it is known again."""

    network: str
    source: str
    macs: int
    milliseconds: float
    parts: tuple[PublishedPart, ...]


@dataclass(frozen=True)
class Taken:
    """Bytes of a memory that firmware takes beside its arena, and what for."""

    memory: str
    what: str
    bytes: int


@dataclass(frozen=True)
class Board:
    """A board: its core, its memories, and which of them holds what."""

    name: str
    family: str  # the plugin that serves it
    title: str
    core: Core
    memories: tuple[Memory, ...]
    code: str  # memory of code and constants
    data: str  # memory of globals and stack
    arena: str  # memory of the arena
    weights: str  # memory of the weight image
    stack_bytes: int
    reserved_bytes: int = 0  # of the arena's memory, for the application
    alignment: int = 16  # of buffers in the arena
    toolchains: tuple[str, ...] = ()  # names, the default first
    emulator: Emulator | None = None
    clock_hz: int = 0  # of the core; 0: not known
    note: str = ""  # what a user has to know of results "for" it
    estimate: Estimate | None = None
    probe: Probe | None = None
    image: FlashImage = FlashImage()
    uart: Uart | None = None
    chip: Chip | None = None
    vector_unit: VectorUnit | None = None
    published: Published | None = None
    pipeline: Pipeline | None = None
    caches: tuple[Cache, ...] = ()
    arenas: tuple[str, ...] = ()  # memories that may hold an arena; none: every RAM that programs write
    second: str = ""  # memory of a second arena, over which a plan's buffers are spread ("": there is none)
    reserved_in: str = ""  # memory of `reserved_bytes` ("": the arena's)
    firmware: tuple[Taken, ...] = ()  # of the network at hand, as far as that is known before it is linked

    @property
    def holders(self) -> tuple[str, ...]:
        """The memories over which a plan is spread: the arena's, and the second one's where there is one."""
        return (self.arena, self.second) if self.second else (self.arena,)

    def kept(self, name: str, state: int = 0) -> int:
        """Bytes of a memory that no arena may have: what is reserved there, and the stack if it is there.

        `state`: bytes that a network keeps between invokes, which lie with the globals. In the memory of
        globals, where the board's file reserves nothing, some are kept for these.
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
        """Bytes of a memory that an arena may have, beside `state` bytes that a network keeps; see `taken`.

        KeyError if there is no such memory. Whoever asks how large an arena can be asks here.
        """
        return max(0, self.memory(name).size - self.taken(name, state))

    def beside(self, name: str) -> str:
        """In words, what a memory holds beside the arena where code is among it; "" elsewhere."""
        parts = sorted((one for one in self.firmware if one.memory == name), key=lambda one: -one.bytes)
        if name != self.code or self.taken(name) == self.kept(name):
            return ""
        return " beside " + ", ".join(f"{one.what} {one.bytes}" for one in parts)

    @property
    def is_native(self) -> bool:
        """Whether images run as programs of this machine, whose memory is not the board's."""
        return self.emulator is not None and self.emulator.kind == "native"

    def memory(self, name: str) -> Memory:
        """The memory called `name`; KeyError if there is none."""
        for memory in self.memories:
            if memory.name == name:
                return memory
        raise KeyError(name)

    @property
    def is_stand_in(self) -> bool:
        """Whether the emulated machine is another one with this core: it runs no image for the board."""
        return self.emulator is not None and bool(self.emulator.bases)

    @property
    def own_emulator(self) -> Emulator | None:
        """The emulator of the board itself, which runs images that are for the board."""
        return None if self.is_stand_in else self.emulator

    def in_emulator(self) -> Board:
        """The board as what stands in for it has it: memories elsewhere, and nothing of the chip."""
        if self.emulator is None or not self.emulator.bases:
            return self
        bases = dict(self.emulator.bases)
        memories = tuple(replace(m, base=bases.get(m.name, m.base), erase=()) for m in self.memories)
        return replace(self, memories=memories, chip=None, uart=None, image=FlashImage())

    def cache_of(self, memory: Memory) -> Cache | None:
        """The cache between the core and a memory; None where there is none, or none is known."""
        name = memory.speed.cache if memory.speed else ""
        return next((cache for cache in self.caches if cache.name == name), None)


@dataclass(frozen=True)
class LinkerScript:
    """A file that the link reads: its name, its content, and the flag that its path goes behind.

    The path has to begin with a slash or "./": -Ttext and its like are other flags. -Wl would take a
    path with a comma for several words.
    """

    name: str
    data: bytes
    flag: str = "-T"


@dataclass(frozen=True)
class Wiring:
    """What makes a test firmware one that answers over a wire.

    `cflags`: of all that is compiled; of them a network and its kernels need `defines`. `sources` and
    `includes` take the place of the test firmware's own.
    """

    cflags: tuple[str, ...]
    sources: tuple[str, ...]
    includes: tuple[str, ...]
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Toolchain:
    """A compiler found on this machine, with the flags that build for one board.

    All strings are ready for a command line. The flag of the linker script comes after `ldflags`; whoever
    links writes the script into a folder of his own (see `link_flags`).
    `identity` is the compiler's name and version ("clang 22.1.8"), never a path. `renames` are further flags
    of every compilation: what folders of this machine are called in debug information; the objects do not
    depend on where these are. `wiring`: of a test firmware that answers over a wire; `cflags` have
    its flags.
    """

    name: str
    identity: str
    cc: str
    cflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    ar: str
    objects: tuple[str, ...] = ()  # extra sources (start-up code, run-time support), absolute paths
    includes: tuple[str, ...] = ()
    script: LinkerScript | None = None
    renames: tuple[str, ...] = ()
    wiring: Wiring | None = None

    def link_flags(self, folder: Path) -> tuple[str, ...]:
        """All flags of a link whose script lies in `folder`."""
        return (
            self.ldflags
            if self.script is None
            else (*self.ldflags, f"{self.script.flag}{folder.absolute() / self.script.name}")
        )


@dataclass(frozen=True)
class RunRequest:
    """What a runner gets: files the program may read, and the names of those it will write.

    `written` may be called while the program runs, with the size of the first output by then, in bytes.
    `blocks`: counts the blocks of code as well, where the runner can.
    """

    files: dict[str, bytes]
    outputs: tuple[str, ...]
    timeout: float = 120.0
    count: bool = False  # count executed instructions per marker
    blocks: bool = False
    written: Callable[[int], None] | None = None


@dataclass(frozen=True)
class Desk:
    """How a board on the desk is reached: by `wire` ("serial", "rtt") at `port` ("": the only one there is).

    `is_emulated`: in its place stands the emulator, whose UART is the wire.
    """

    wire: str
    port: str = ""
    is_emulated: bool = False


@dataclass(frozen=True)
class Flashing:
    """How an image comes into a board's flash: a program, whether it is there, and the whole command.

    `after`: what is to be done by hand, "" for nothing.
    """

    tool: str
    is_there: bool
    command: tuple[str, ...]
    install: str = ""
    after: str = ""


@dataclass(frozen=True)
class DebugServer:
    """What serves an image to a debugger that connects to a port of this machine, halted at the first step.

    `command` begins it (empty: the debugger starts the image itself), `image` is where in it the image's
    path goes (-1: it has no place there). `debuggers` are programs that know the core, the best first;
    `connected` what to say to one of them once it is connected.
    """

    command: tuple[str, ...]
    image: int
    debuggers: tuple[str, ...]
    connected: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reality:
    """How real a run is: its level, and in a few words what runs it ("emulated", "model on the host")."""

    level: Level
    text: str


@dataclass(frozen=True)
class Issues:
    """What an operator would issue on the chip, counted in a model of its vector unit.

    `vpu`: instructions of the vector unit, of which `mac` multiply and accumulate; `scalar`: those that take
    an issue of their own beside it. `slowest`: issues of both kinds of the slowest thread, call by call.
    """

    vpu: int
    mac: int
    scalar: int
    slowest: int


@dataclass(frozen=True)
class RunResult:
    """What a run gave, by an operator's position: `counts` are executed instructions, `issues` of a model.

    `cycles` are of the first input's invoke; `no_cycles`: why there are none, if somebody tried. `reality`:
    where the run was otherwise than the plugin's own. `executed`: the blocks of code that were asked for.
    """

    files: dict[str, bytes]
    text: str
    counts: dict[int, int] = field(default_factory=dict)
    total_instructions: int | None = None
    reality: Reality | None = None
    cycles: dict[int, int] = field(default_factory=dict)
    total_cycles: int | None = None
    no_cycles: str = ""
    issues: dict[int, Issues] = field(default_factory=dict)
    executed: Executed | None = None


@dataclass(frozen=True)
class Costs:
    """What a target's code costs beside the kernels' own formulas; expressions, see `costs`."""

    call: str = "0"
    row: str = "0"
    move: str = "0"
    load: str = "0"
    sums: str = "0"
    sums_end: str = "0"


@dataclass(frozen=True)
class Library:
    """Somebody else's library, whose kernels a target uses before its own where the user has it.

    `families`: kernel families that call it, best first; `cflags` find its headers; `sources` are absolute
    paths of what is compiled with the start-up code. `ask` gives the bytes of scratch that a kernel wants,
    by the name of the question (`KernelVariant.asks`) and the geometry, and `digest` (SHA-256, hex) is of
    the files that decide the answers, which `reads` lists. Where it lies is no part of what it is.
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

    `routines` are what emitted code calls besides; the first one that serves is taken. `families` have the
    files of both. `libraries` are in use. `requantise`: whether outputs are the reference's to the bit.
    `cost_unit`: of all costs, those of kernels included. `by_ratio`: kernels that have no formula in cycles,
    whose instructions are counted at the family's mean of cycles.
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
        """What `target.digest` worked out of it, by step."""
        return {}

    @cached_property
    def selections(self) -> dict[str, tuple[KernelVariant | None, ...]]:
        """The kernels by the digest of a topology, as `target.catalogue` has selected them."""
        return {}

    def with_firmware(self, firmware: tuple[Taken, ...]) -> Target:
        """The target of a network whose firmware takes so much; all that was worked out of it stays known."""
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
        for found in self.families:
            if found.name == family:
                return found.folder / file
        raise TargetError(
            f"source '{name}' is of a kernel family that board '{self.board.name}' does not have"
        )

    def routine(self, role: Role, kernel: KernelVariant | None = None) -> Routine:
        """What does `role`, for operators that `kernel` computes; TargetError if no family has it."""
        for routine in self.routines:
            if routine.role is role and (kernel is None or routine.serves(kernel)):
                return routine
        what = f"{role} for kernel '{kernel.name}' of {kernel.op}" if kernel else str(role)
        raise TargetError(f"board '{self.board.name}' has no routine: {what}")
