"""What the answer to `validate` says of a data set."""

from __future__ import annotations

from typing import TypedDict

from buildtool.schema.boards import LevelAnswer
from buildtool.schema.runs import OperatorBound, ReferenceAnswer


class FedInput(TypedDict):
    """An input of the network; `how`: what became of the data set's values, in words."""

    name: str
    shape: str
    how: str


class ThroughFirmware(LevelAnswer):
    """The part of a data set that went through the firmware, compared with the reference.

    `inputs_equal`: how many of the `inputs` have only correct outputs. The bytes of arena and stack are those
    really written.
    """

    compiler: str
    strategy: str
    inputs: int
    inputs_equal: int
    elements_different: int
    max_abs_diff: int
    output_values: int
    arena_bytes: int
    state_bytes: int
    arena_high_water: int
    stack_high_water: int | None


class Share(TypedDict):
    """Why this many inputs went through the firmware.

    `by`: "asked", or "estimate". `instructions`: of an input, `counted` in a run or estimated by the plan;
    `seconds`: what all inputs would take by that at `per_second`. None: nothing was estimated.
    """

    by: str
    instructions: int | None
    counted: bool
    per_second: int | None
    seconds: float | None


class DifferingInput(TypedDict):
    """A wrong output of an input; `index`: the input's position in the data set."""

    index: int
    name: str
    tensor: str
    operator: str
    elements: int
    max_abs_diff: int
    first_element: int


class Top1(TypedDict):
    """How many of the inputs have the largest value at their label; `top1`: the share, from 0 to 1."""

    inputs: int
    correct: int
    top1: float


class ClassFigures(TypedDict):
    """A class: `inputs` have it as their label, `predicted` as their largest value, `correct` as both.

    `precision`: correct of predicted; `recall`: correct of inputs; None where there are none of these.
    """

    label: int
    name: str
    inputs: int
    predicted: int
    correct: int
    precision: float | None
    recall: float | None


class ConfusionCell(TypedDict):
    """A cell of the confusion matrix that is not 0: inputs with this label that got this prediction."""

    label: int
    predicted: int
    inputs: int


class Accuracy(TypedDict):
    """Labels compared with the largest value of an output (of several that are equal, the first).

    `of`: whose predictions `classes` and `confusion` count: "firmware" where all inputs went through it, else
    "reference".
    """

    output: str
    of: str
    firmware: Top1 | None
    reference: Top1
    classes: list[ClassFigures]
    confusion: list[ConfusionCell]


class DatasetAnswer(TypedDict):
    """A data set through the firmware and through the reference.

    `inputs`: of the data set's `inputs_there`, those that were run, all through the reference; `seed`: by
    which they were chosen, None for all. `firmware`: the part that also went through the firmware, None where
    the reference alone was run; `exact`: whether no output differs there, None where there is none.
    `within_bounds`, `bounds`: as for a run; of networks that are not requantised exactly the bounds are
    checked on the first inputs. `no_accuracy` says why there is no accuracy.
    """

    model: str
    board: str
    data: str
    inputs: int
    inputs_there: int
    seed: int | None
    fed: list[FedInput]
    reference: ReferenceAnswer
    requantise: str
    share: Share
    firmware: ThroughFirmware | None
    exact: bool | None
    within_bounds: bool | None
    bounds: list[OperatorBound]
    differing: list[DifferingInput]
    accuracy: Accuracy | None
    no_accuracy: str
    note: str
