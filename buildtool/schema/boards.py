"""What answers say of boards, of operators and kernels, and of the networks that have a name."""

from __future__ import annotations

from typing import TypedDict, final


class NamedBytes(TypedDict):
    """The bytes of something that has a name: a section, an input, a part of what lies in a memory."""

    name: str
    bytes: int


class Price(TypedDict):
    """What a plan needs and costs.

    `f`: its work over the network's own; `estimated_ms`: the cost at the board's clock, null where costs are
    no time, or the clock is not known.
    """

    arena_bytes: int
    f: float
    cost: float
    estimated_ms: float | None


class Estimate(TypedDict):
    """How long a board takes where nothing can be measured, in seconds, and the rates behind that.

    `total_seconds` is less than the sum where the flash delivers weights while the core computes. `source`
    says where the rates come from.
    """

    compute_seconds: float
    load_seconds: float
    total_seconds: float
    macs_per_second: int
    bytes_per_second: int
    source: str


class Loading(TypedDict):
    """How constants come from slow flash into the arena.

    `bytes`: all that is loaded, for this many `operators`; `again`: operators of streamed regions whose
    constants are loaded more than once, `again_bytes`: the bytes that this adds; `in_slices`: operators whose
    constants come in slices of their output channels; `ahead`: operators whose loading begins before their
    region does. `fullest_without`: bytes live in the fullest step without these buffers; `bind`: whether
    they make the arena larger; `largest`: bytes of the largest of them.
    """

    bytes: int
    operators: int
    again: int
    again_bytes: int
    in_slices: int
    ahead: int
    fullest_without: int
    bind: bool
    largest: int


class BoardFacts(TypedDict):
    """Facts of the board that a user has to know; `note` may be "".

    `notes`: options that cannot be kept, in sentences, such as a limit above what the board has.
    """

    note: str
    notes: list[str]
    estimate: Estimate | None
    loading: Loading | None


class LevelAnswer(TypedDict):
    """How real a result is; `level_text`: the same in a few words, for headlines.

    `level`: "host" (the same C, compiled for this machine), "model" (that with a model of the chip's own
    operations), "compiled" (by the chip's own compiler, not run), "emulator" (the chip's own code in an
    emulator of the instruction set), "simulator" (in the maker's simulator of the chip) or "board".
    """

    level: str
    level_text: str


class BoardMemory(TypedDict):
    """A memory of a board: its address and its size."""

    name: str
    kind: str
    base: int
    size: int


class BoardEntry(TypedDict):
    """A board, and the sizes of the memories that arena and weights are in.

    `emulator`: its machine, which may have the same core, and memories at other addresses.
    """

    name: str
    title: str
    core: str
    family: str
    toolchains: list[str]
    emulator: str | None
    arena_memory_bytes: int
    weights_memory_bytes: int
    memories: list[BoardMemory]


class BoardsAnswer(TypedDict):
    """The known boards."""

    boards: list[BoardEntry]


class OperatorKernels(TypedDict):
    """An operator; `kernels`: by board, the names of its kernels, or how it runs without one.

    `count`: how many of them the model has, None without a model.
    """

    operator: str
    count: int | None
    kernels: dict[str, str]


class TfliteOperator(TypedDict):
    """A built-in operator of TFLite; `refused`: by data type why it is not read, empty where it is."""

    operator: str
    refused: dict[str, str]


class OpsAnswer(TypedDict):
    """The supported operators on the cores of all boards, or a model's; `tflite`: all of TFLite's."""

    boards: list[str]
    operators: list[OperatorKernels]
    tflite: list[TfliteOperator]


class NamedNetwork(TypedDict):
    """A network that can be made by name."""

    name: str
    description: str


@final
class ZooAnswer(TypedDict):
    """The networks that can be made by name."""

    networks: list[NamedNetwork]


@final
class ZooFile(TypedDict):
    """One of these networks as a file."""

    files: dict[str, bytes]


class FailedCase(TypedDict):
    """The first network on which a kernel failed, as a file; `options`: those of `buildtool validate`."""

    name: str
    text: str
    options: str
    model: bytes


class CheckedKernel(TypedDict):
    """A kernel on a board.

    `cases`: networks that were run; `among`: how many of them ran it among others with little memory;
    `values`: different output values that were compared. `reached`: whether the board picks it for any
    network. `failed`: None where all were equal.
    """

    board: str
    kernel: str
    operator: str
    symbol: str
    cases: int
    among: int
    values: int
    reached: bool
    failed: FailedCase | None


class CheckAnswer(TypedDict):
    """The kernels of a plugin's boards; `exact` says whether none failed."""

    plugin: str
    interface: int
    boards: list[str]
    kernels: list[CheckedKernel]
    exact: bool
