"""The answers about boards, operators, kernels, and the networks that have a name."""

from __future__ import annotations

from typing import TypedDict, final


class NamedBytes(TypedDict):
    """The number of bytes of a section, an input, or a part of a memory's content."""

    name: str
    bytes: int


class Price(TypedDict):
    """What a plan needs and costs.

    - `kept_bytes`: bytes of state that a network on a moving window keeps from invoke to invoke; the option
      `ram` limits them together with the arena.
    - `f`: the plan's work over the network's own work.
    - `estimated_ms`: the cost at the board's clock; null if costs are not times or the clock is not known.
    """

    arena_bytes: int
    kept_bytes: int
    f: float
    cost: float
    estimated_ms: float | None


class Estimate(TypedDict):
    """The estimated time on a board where nothing can be measured, in seconds, and the rates behind it.

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
    """How constants are loaded from slow flash into the arena.

    - `bytes`: the sum of all loads, for this many `operators`.
    - `again`: the number of operators of streamed regions whose constants are loaded more than once, which
      adds `again_bytes`.
    - `in_slices`: the number of operators whose constants are loaded in slices of output channels.
    - `early`: the number of operators whose loading begins before their region.
    - `fullest_without`: live bytes of the fullest step without the buffers of loads.
    - `enlarge_arena`: whether these buffers make the arena larger.
    - `largest`: bytes of the largest one of these buffers.
    """

    bytes: int
    operators: int
    again: int
    again_bytes: int
    in_slices: int
    early: int
    fullest_without: int
    enlarge_arena: bool
    largest: int


class BoardFacts(TypedDict):
    """Facts of the board that a user has to know; `note` may be "".

    `notes` are sentences about options that the board cannot satisfy, such as a limit above its memory.
    """

    note: str
    notes: list[str]
    estimate: Estimate | None
    loading: Loading | None


class LevelAnswer(TypedDict):
    """How close a run was to the real board; `level_text` is the same in a few words, for headlines.

    `level` is one of these words:
    - "host": the emitted C, compiled for this machine.
    - "model": the emitted C, compiled for this machine, with a model of the chip's own operations.
    - "compiled": compiled by the chip's own compiler, but not run.
    - "emulator": the chip's own code in an emulator of the instruction set.
    - "simulator": the chip's own code in the maker's simulator of the chip.
    - "board": the chip's own code on a board.
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
    """A board, and the sizes of the memories for arena and weights.

    `emulator` is the machine that the emulator models. It may have the same core, but memories at other
    addresses.
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
    """An operator and its kernels.

    `kernels` has, for each board, the names of the kernels, or how the operator runs without one. `count` is
    the number of such operators in the model, None without a model.
    """

    operator: str
    count: int | None
    kernels: dict[str, str]


class TfliteOperator(TypedDict):
    """A built-in operator of TFLite.

    `refused` maps each refused data type to the reason. It is empty where the operator is read with any type.
    """

    operator: str
    refused: dict[str, str]


class OpsAnswer(TypedDict):
    """The supported operators on the cores of all boards, or those of a model.

    `tflite` has all operators of TFLite.
    """

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
    """One of the named networks as a file."""

    files: dict[str, bytes]


class FailedCase(TypedDict):
    """The first network on which a kernel failed, as a file.

    `text` says what failed. `options` are for `buildtool validate`.
    """

    name: str
    text: str
    options: str
    model: bytes


class CheckedKernel(TypedDict):
    """A kernel that was checked on a board.

    - `cases`: the number of networks that were run.
    - `in_networks`: the number of these networks in which the kernel ran among other operators, with little
      memory.
    - `values`: the number of different output values that were compared.
    - `reached`: whether the board picks the kernel for any network.
    - `failed`: None if all values were equal.
    """

    board: str
    kernel: str
    operator: str
    symbol: str
    cases: int
    in_networks: int
    values: int
    reached: bool
    failed: FailedCase | None


class CheckAnswer(TypedDict):
    """The checked kernels of a plugin's boards; `exact` says whether all passed."""

    plugin: str
    interface: int
    boards: list[str]
    kernels: list[CheckedKernel]
    exact: bool
