"""What answers say of boards, of operators and of the networks that have a name."""

from __future__ import annotations

from typing import TypedDict, final


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

    `bytes`: all that is loaded, of so many `operators`; `again`: operators of streamed regions whose
    constants are loaded more than once, `again_bytes`: what that adds; `in_slices`: operators whose
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
    """What a user has to know of the board; `note` is "" where there is nothing to say.

    `notes`: what was asked for and cannot be, in sentences, such as a limit above what the board has.
    """

    note: str
    notes: list[str]
    estimate: Estimate | None
    loading: Loading | None


class LevelAnswer(TypedDict):
    """How real a result is. `level_text` says it in a few words, as headlines have it.

    `level`: "host" (the same C, compiled for the machine at hand), "model" (the chip's own operations in a
    model of them, there), "compiled" (by the chip's own compiler, and not run), "emulator" (the chip's own
    code in an emulator of the instruction set), "simulator" (that in the maker's simulator of the chip) or
    "board" (on the board itself).
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
    """A board, and the sizes of the memories that arena and weights are in; `emulator`: its machine.

    The machine may stand in for the board, with the same core and its memories elsewhere.
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

    `count`: how many of them the model has, None where none was given.
    """

    operator: str
    count: int | None
    kernels: dict[str, str]


class TfliteOperator(TypedDict):
    """A built-in operator of TFLite; `refused`: by data type why it is not read, empty where it is."""

    operator: str
    refused: dict[str, str]


class OpsAnswer(TypedDict):
    """The supported operators on the cores of all boards; of a model, those that it has.

    `tflite`: all of TFLite's operators; empty for a model.
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
    """One of these networks as a file."""

    files: dict[str, bytes]
