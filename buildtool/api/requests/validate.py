"""The request `validate`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from buildtool.api.requests.parts import (
    COMPILED,
    DESK,
    INPUT,
    RANDOM,
    Inputs,
    Made,
    Needs,
    OnDesk,
    Planning,
    Request,
    Values,
)
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Reference, Resize
from buildtool.options.table import DATA
from buildtool.options.values import Wanted


@dataclass(frozen=True)
class Data:
    """A data set, and what is done with it.

    `through`: how many of its inputs go through the firmware; 0: none, None: as many as an estimate allows.
    `scores`: the name of the output whose largest value is the class ("": the only one that can be).
    """

    wanted: Wanted
    through: int | None = None
    scores: str = ""


@dataclass(frozen=True, kw_only=True)
class Validate(Planning):
    """A run that is compared with the reference; `made`: of this image, not of one that is built here.

    `desk`: over a wire, which the target's choice names. `sequence`: inputs from one reset of the state to
    the next; 0: half of the random ones, one of a data set.
    """

    kind: ClassVar = "validate"
    takes: ClassVar = (
        *Planning.takes,
        *COMPILED,
        *INPUT,
        *DATA,
        *DESK,
        "flashed",
        "tool",
        "elf",
    )
    handler: ClassVar = "buildtool.firmware.run.validation:validation"
    needs: ClassVar = Needs.PROGRAMS
    made: Made | None = None
    inputs: Inputs = RANDOM
    tensors: bool = False
    reference: Reference = Reference.AUTO
    sanitize: bool = False
    desk: OnDesk | None = None
    sequence: int = 0

    @classmethod
    def read(cls, values: Values) -> Request:
        """The request: on inputs, or on a data set."""
        data = _data(values)
        if data is None:
            return super().read(values)
        shared = {field.name: values.field(field) for field in fields(cls) if field.name != "inputs"}
        return ValidateData(**shared, data=data)


@dataclass(frozen=True, kw_only=True)
class ValidateData(Validate):
    """The same on a data set, in place of `inputs`."""

    handler: ClassVar = "buildtool.firmware.run.dataset:dataset_validation"
    data: Data


def _data(values: Values) -> Data | None:
    """A data set; UsageError for what has no effect on one, or without one."""
    given = values.given
    if "data" not in given:
        for name in DATA:  # random inputs follow one another, too
            if given.get(name) and name != "sequence":
                text = "it has no effect without a data set"
                raise UsageError(text, option=name, hint=suggest(**{name: None}))
        return None
    for name in ("input", "inputs", "tensors"):
        if given.get(name):
            text = "it has no effect on a data set"
            raise UsageError(text, option=name, hint=suggest(**{name: None}))
    alone = values.get("reference_only", False)
    for name in ("through_firmware", "elf", "sanitize", "flashed", "tool", "wire"):
        if alone and given.get(name):
            text = "it has no effect, because the reference alone is run"
            raise UsageError(text, option=name, hint=suggest(reference_only=None))
    if "seed" in given and "limit" not in given:
        text = "it has no effect without a limit: the whole data set is run"
        raise UsageError(text, option="seed", hint=suggest(seed=None))
    wanted = Wanted(
        values.value("data"),
        values.value("labels", None),
        values.get("limit", None),
        values.get("seed", 0),
        values.get("resize", Resize.CROP),
        values.get("normalise", None),
    )
    through = 0 if alone else values.get("through_firmware", None)
    return Data(wanted, through, values.get("scores", ""))
