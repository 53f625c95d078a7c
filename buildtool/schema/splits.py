"""The answer to `split`: the network that was found, its accuracy, and what it takes of the board."""

from __future__ import annotations

from typing import TypedDict


class SplitAccuracy(TypedDict):
    """Shares of input images that get the right class, from 0 to 1.

    - `held_out`: of the training images that were held out to choose a network.
    - `test`: of all test images.
    - `original_test`: of all test images, by the network before it was split.
    - `float`: of `images` of the test images, by the Keras network.
    - `int8`: of the same images, by the .tflite file, which `reference` computes.
    - `firmware`: of the same images, by the emitted C on this machine.
    - `guessing`: the share if the answer is always the most frequent class.
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

    `equal` of `images` are equal on this machine, and `board_equal` of `board_images` in the board's
    emulator. `board_not_run` says why the emulator did not run ("": it ran).
    """

    images: int
    equal: int
    board_images: int
    board_equal: int
    board_not_run: str


class SplitPlan(TypedDict):
    """The plan of the split network that is written to a file.

    `flash_bytes` are the bytes of the weight image. `code_bytes` is an upper limit of the other bytes in
    flash; null if no sizes of code are recorded for the board.
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
    """What a structure, which says how each block is split, takes of the board.

    - `ram`: for each plan the bytes of the arena, F, cost, milliseconds, and bytes in flash besides the
      weight image.
    - `layerwise`: the bytes of the arena layer by layer.
    - `flash`: the bytes of the weight image.
    - `unit`: the unit of the costs.
    - `ram_there`, `flash_there`, `code_there`: what the board has for arena, weights and code.
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
    """A table; each row has a value for each column's title."""

    title: str
    rows: list[dict[str, str | int | float | None]]
    notes: list[str]


class SplitAnswer(TypedDict):
    """A network that was split for a board; only the command has this answer, not the service.

    - `structure`: the factor of each block, and what branches read.
    - `drop`: the accuracy lost against the original on the test images, in percentage points.
    - `misses`: why a goal is missed ("": no goal is missed).
    - `prices`: of all structures that were considered.
    - `settings`: of the training.
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
