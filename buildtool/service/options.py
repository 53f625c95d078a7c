"""Planning options: what `plan`, `build`, `validate` and `profile` all take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from buildtool.errors import UsageError, did_you_mean
from buildtool.plan.layerwise import IMAGES
from buildtool.plan.overlap import IN_PLACE

STRATEGIES = ("layerwise",)

_CHOICES = {"strategy": STRATEGIES, "in_place": IN_PLACE, "image": IMAGES}


@dataclass(frozen=True)
class PlanOptions:
    """How to plan.

    `strategy`: layerwise runs one operator after the other. `in_place`: what may lie on its dying
    input: `rows` (any kernel that works row by row), `elementwise` (element by element only) or
    `none`. `image`: whether the invoke may overwrite the network's input.
    """

    strategy: str = "layerwise"
    in_place: str = "rows"
    image: str = "overwritable"


def plan_options(given: Mapping[str, object]) -> PlanOptions:
    """Options from a request; unknown names and values are errors with a suggestion."""
    known = {f.name for f in fields(PlanOptions)}
    values: dict[str, str] = {}
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"unknown planning option '{name}'", hint=did_you_mean(name, known))
        if value not in _CHOICES[name]:
            raise UsageError(
                f"{name.replace('_', '-')} cannot be '{value}'", hint=did_you_mean(str(value), _CHOICES[name])
            )
        values[name] = str(value)
    return PlanOptions(**values)
