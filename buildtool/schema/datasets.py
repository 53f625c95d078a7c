"""The answer to `validate` for a data set."""

from __future__ import annotations

from typing import TypedDict

from buildtool.schema.boards import LevelAnswer
from buildtool.schema.runs import OperatorBound, ReferenceAnswer


class FedInput(TypedDict):
    """An input of the network; `how` says in words how the data set's values were converted."""

    name: str
    shape: str
    how: str


class ThroughFirmware(LevelAnswer):
    """The part of a data set that went through the firmware, compared with the reference.

    `inputs` is the number of its inputs, and `inputs_equal` the number of those with only correct outputs.
    `arena_high_water` and `stack_high_water` are the bytes that were really written.
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

    - `by`: "asked" (the request says how many) or "estimate".
    - `instructions`: the number for one input.
    - `counted`: whether they were counted in a run. Otherwise they were estimated from the plan.
    - `seconds`: the time of all inputs at `per_second` instructions per second. None means that nothing was
      estimated.
    """

    by: str
    instructions: int | None
    counted: bool
    per_second: int | None
    seconds: float | None


class DifferingInput(TypedDict):
    """A wrong output for an input; `index` is the input's position in the data set.

    `elements` is the number of wrong elements, and `first_element` the position of the first one.
    """

    index: int
    name: str
    tensor: str
    operator: str
    elements: int
    max_abs_diff: int
    first_element: int


class Top1(TypedDict):
    """How many inputs have the largest value at their label; `top1` is their share, from 0 to 1."""

    inputs: int
    correct: int
    top1: float


class ClassFigures(TypedDict):
    """The figures of a class.

    `inputs` is the number of inputs with this class as label, `predicted` the number with this prediction,
    and `correct` the number with both. `precision` is `correct` over `predicted`, and `recall` is `correct`
    over `inputs`. Each is None where its divisor is 0.
    """

    label: int
    name: str
    inputs: int
    predicted: int
    correct: int
    precision: float | None
    recall: float | None


class ConfusionCell(TypedDict):
    """A cell of the confusion matrix that is not 0: how many inputs have this label and this prediction."""

    label: int
    predicted: int
    inputs: int


class Accuracy(TypedDict):
    """Labels compared with the position of an output's largest value (the first of equal ones).

    `predictor` says whose predictions `classes` and `confusion` count. It is "firmware" where all inputs went
    through the firmware, else "reference".
    """

    output: str
    predictor: str
    firmware: Top1 | None
    reference: Top1
    classes: list[ClassFigures]
    confusion: list[ConfusionCell]


class DatasetAnswer(TypedDict):
    """The result of a data set on the firmware and on the reference.

    - `inputs`: the number of inputs that the reference computed, out of `inputs_there` in the data set.
    - `seed`: the seed that chose them; None if all were run.
    - `firmware`: the part that also ran on the firmware; None if only the reference was run.
    - `exact`: whether all outputs of that part are equal; None without that part.
    - `within_bounds`, `bounds`: as for a run (see `Run`). For networks that are not requantised exactly, the
      bounds are checked on the first inputs.
    - `no_accuracy`: why there is no accuracy.
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
