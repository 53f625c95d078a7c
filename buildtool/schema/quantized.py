"""The answer to `quantize`: the quantised network, what it needs of a board, and how accurate it still is."""

from __future__ import annotations

from typing import TypedDict

from buildtool.base.errors import ErrorData
from buildtool.schema.datasets import FedInput, Top1


class OutputError(TypedDict):
    """How far an output of the quantised network is from the float network's output, over all inputs.

    - `max_abs`, `mean_abs`: the largest and the mean absolute difference, in the output's unit.
    - `largest`: the largest absolute value of the float network.
    - `sqnr_db`: the ratio of the float network's signal to the quantisation's noise, in decibels; None if
      there is no noise or no signal.
    """

    name: str
    max_abs: float
    mean_abs: float
    largest: float
    sqnr_db: float | None


class LostAccuracy(TypedDict):
    """The float network and the quantised one on the same inputs.

    `float` and `quantised` are None without labels, or without an output that has a value for each class;
    `no_top1` then says why. `agree` is the number of inputs to which both give the same class, None in the
    same cases.
    """

    float: Top1 | None
    quantised: Top1 | None
    agree: int | None
    no_top1: str
    outputs: list[OutputError]


class PlannedAtOnce(TypedDict):
    """The plan of the quantised network for a board: the bytes of the arena and the weights, or the error."""

    board: str
    arena_bytes: int | None
    flash_bytes: int | None
    error: ErrorData | None


class QuantizeAnswer(TypedDict):
    """A quantised network as a file, and how good it is.

    - `data`: the name of the data set ("": random values, so that nothing about accuracy is known).
    - `inputs`: the number that was run, out of `inputs_there` of the data set.
    - `calibrated`: the number of inputs that gave the first scales.
    - `quantiser`: the names and versions of the libraries.
    - `reference`: what computed the quantised outputs.
    - `planned`: None without a board.
    - `lost`: None without a data set.
    """

    model: str
    activations: str
    data: str
    inputs: int
    inputs_there: int
    calibrated: int
    fed: list[FedInput]
    quantiser: str
    reference: str
    float_bytes: int
    bytes: int
    planned: PlannedAtOnce | None
    lost: LostAccuracy | None
    files: dict[str, bytes]
