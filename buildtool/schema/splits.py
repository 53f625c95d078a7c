"""What the answer to `split` says: the network that was found, its accuracy, what it takes of the board."""

from __future__ import annotations

from typing import TypedDict


class SplitAccuracy(TypedDict):
    """Shares of images that get the right class, from 0 to 1.

    `held_out`: of the training images that decide; `test`: of all test images; `original_test`: the same of
    the network before it was split. Of the same `images` test images: `float` of the Keras network, `int8` of
    the .tflite file by `reference`, `firmware` of the emitted C on this machine, `guessing`
    of naming the most frequent class always.
    """

    held_out: float
    test: float
    original_test: float
    images: int
    float: float
    int8: float
    firmware: float | None
    reference: str
    guessing: float


class SplitFirmware(TypedDict):
    """How many outputs of the firmware are equal to the reference, to the bit.

    `images`, `equal`: on this machine; `board_images`, `board_equal`: of the board's own in its emulator;
    `board_not_run`: why that was not run, "" where it was.
    """

    images: int
    equal: int
    board_images: int
    board_equal: int
    board_not_run: str


class SplitPlan(TypedDict):
    """The plan that is written.

    `flash_bytes`: of the weight image; `code_bytes`: of flash beside it, at most, null where no sizes of code
    are recorded for the board.
    """

    arena_bytes: int
    flash_bytes: int
    code_bytes: int | None
    macs: int
    f: float
    cost: float
    cost_unit: str
    estimated_ms: float | None


class SplitPrice(TypedDict):
    """What a structure takes of the board.

    `ram`: for each plan bytes of the arena, F, cost, milliseconds, and bytes of flash beside the weight
    image; `layerwise`: bytes of the arena layer by layer; `flash`: bytes of the weight image; `unit`: of the
    costs; `ram_there`, `flash_there`, `code_there`: what the board has for arena, weights and code.
    """

    board: str
    ram: list[list[int | float | None]]
    layerwise: int | None
    flash: int
    macs: int
    unit: str
    ram_there: int
    flash_there: int
    code_there: int | None


class SplitTable(TypedDict):
    """A table: its rows have a value for each column's title."""

    title: str
    rows: list[dict[str, str | int | float | None]]
    notes: list[str]


class SplitAnswer(TypedDict):
    """A network that was split for a board; the command alone gives it, and no service.

    `structure`: the factor of each block, and what branches read; `drop`: points of accuracy lost against the
    original on the test images; `misses`: why a goal is missed, "" where none is; `prices`: of all structures
    that were looked at; `settings`: of the training.
    """

    network: str
    board: str
    structure: str
    factors: list[int]
    average_factor: float
    drop: float
    misses: str
    accuracy: SplitAccuracy
    firmware: SplitFirmware
    plan: SplitPlan | None
    prices: dict[str, SplitPrice]
    settings: dict[str, str | int | float | bool]
    tables: list[SplitTable]
    files: list[str]
