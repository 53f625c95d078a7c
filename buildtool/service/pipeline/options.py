"""Planning options: what `plan`, `build`, `validate`, `profile` and `front` all take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from buildtool.errors import UsageError, did_you_mean
from buildtool.graph.order import ORDERS
from buildtool.plan.schedule.overlap import IN_PLACE

STRATEGIES = ("best", "layerwise", "msf-cnn", "xcore-strips")
IMAGES = ("overwritable", "resident", "stream")
OBJECTIVES = ("cost", "ram")
MOST_PIXELS = 64
WHOLE_ROW = 1 << 16  # pixels: more than any row has

_CHOICES = {
    "strategy": STRATEGIES,
    "in_place": IN_PLACE,
    "image": IMAGES,
    "objective": OBJECTIVES,
    "order": ORDERS,
}
_SIZES = ("ram", "max_flash")
_LIMITS = ("max_f", "max_cost")
_UNITS = {"": 1, "K": 1024, "M": 1024 * 1024}


@dataclass(frozen=True)
class PlanOptions:
    """How to plan.

    `strategy`: `best` looks for the best plan within the limits, `layerwise` runs one operator
    after the other, `msf-cnn` and `xcore-strips` plan as these systems do, the latter by `segments`
    such as "0-6x20,7-14x10" (none: they are searched). `in_place`: what may lie on its dying input:
    `rows` (any kernel that works row by row), `elementwise` (element by element only) or `none`.
    `image`: whether the invoke may overwrite the network's input (`overwritable`), has to leave it
    (`resident`), or is handed it row by row (`stream`). `order`: operators run as the file has them
    (`given`), or so that least is alive, where that makes the better plan (`best`). `objective`: the
    least of what: `cost`, or `ram`. Limits (None: the board's, or none): `ram` and `max_flash` in
    bytes, `max_f` on the work done over the network's own, `max_cost` on the estimated cost.
    `hand_off`: the least pixels that go from operator to operator inside a group (None: 1; "row": whole
    rows only).
    `cmsis_nn`: a checkout of CMSIS-NN whose kernels are to be used (none: "").
    """

    strategy: str = "best"
    in_place: str = "rows"
    image: str = "overwritable"
    objective: str = "cost"
    ram: int | None = None
    max_flash: int | None = None
    max_f: float | None = None
    max_cost: float | None = None
    hand_off: int | None = None
    segments: str = ""
    order: str = "given"
    cmsis_nn: str = ""


def plan_options(given: Mapping[str, object]) -> PlanOptions:
    """Options from a request; unknown names and values are errors with a suggestion."""
    known = {f.name for f in fields(PlanOptions)}
    values: dict[str, object] = {}
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"unknown planning option '{name}'", hint=did_you_mean(name, known))
        values[name] = _value(name, value)
    if values.get("segments") and values.get("strategy") != "xcore-strips":
        raise UsageError("segments are for strategy xcore-strips", hint="add strategy=xcore-strips")
    return PlanOptions(**values)  # type: ignore[arg-type]


def _value(name: str, value: object) -> object:
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            hint = did_you_mean(str(value), _CHOICES[name])
            raise UsageError(f"{_spelt(name)} cannot be '{value}'", hint=hint)
        return str(value)
    if name in _SIZES:
        return _bytes(name, value)
    if name in _LIMITS:
        return _limit(name, value)
    if name == "hand_off":
        return _pixels(value)
    return str(value)


def _spelt(name: str) -> str:
    return name.replace("_", "-")


def _bytes(name: str, value: object) -> int:
    """A number of bytes, or text such as "64K" or "1M"."""
    text = str(value).strip().upper()
    unit = text[-1:] if text[-1:] in _UNITS else ""
    digits = text.removesuffix(unit)
    if isinstance(value, bool) or not digits.isdecimal() or int(digits) == 0:
        raise UsageError(f"{_spelt(name)} cannot be '{value}'", hint="bytes, such as 65536, 64K or 1M")
    return int(digits) * _UNITS[unit]


def _limit(name: str, value: object) -> float:
    try:
        limit = float(str(value))
    except ValueError:
        limit = math.nan
    if not limit > 0 or isinstance(value, bool):
        raise UsageError(f"{_spelt(name)} cannot be '{value}'", hint="a number above 0, such as 1.1")
    if name == "max_f" and limit < 1:
        raise UsageError("max-f cannot be below 1", hint="1 allows no repeated work, 1.1 a tenth more")
    return limit


def _pixels(value: object) -> int:
    text = str(value)
    if text == "row":
        return WHOLE_ROW
    if isinstance(value, bool) or not text.isdecimal() or not 1 <= int(text) <= MOST_PIXELS:
        raise UsageError(f"hand-off cannot be '{value}'", hint=f"pixels, from 1 to {MOST_PIXELS}, or row")
    return int(text)
