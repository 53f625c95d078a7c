"""How low a share of an answer may be: `top1<70%`, `recall<50%`, `precision<0.5`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from buildtool.schema.datasets import Accuracy, DatasetAnswer

FIGURES = ("top1", "recall", "precision")  # the latter two: of the class that has the least
PERCENT = "%"  # begins the unit of shares
_RULE = re.compile(r"([A-Za-z]\w*)<([0-9]+(?:\.[0-9]+)?)(%?)")
_HELP = "write a figure, < and what it must reach: top1<70%, recall<50%, precision<0.5"


@dataclass(frozen=True)
class Floor:
    """A figure's name and the least that it may be, from 0 to 1."""

    text: str
    name: str
    least: float


def parse(text: str) -> Floor:
    """The floor that a text says; UsageError for other texts and unknown figures."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is no limit", option="fail_if", hint=_HELP)
    name, number, unit = match.groups()
    if name not in FIGURES:
        hint = did_you_mean(name, FIGURES)
        raise UsageError(f"'{text}': there is no figure '{name}'", option="fail_if", hint=hint)
    least = float(number) / (100 if unit else 1)
    if least > 1:
        what = f"'{text}': nothing is above 1, which is 100%"
        raise UsageError(what, option="fail_if", hint=f"{name}<{number}%" if not unit else _HELP)
    return Floor(text, name, least)


def undercut(floors: Sequence[Floor], answer: DatasetAnswer) -> list[str]:
    """The floors (their texts) that an answer is below; UsageError where it has no accuracy."""
    if not floors:
        return []
    found = answer["accuracy"]
    if found is None:
        text = f"there is no accuracy: {answer['no_accuracy']}"
        raise UsageError(text, option="fail_if", hint="give labels")
    least = shares(found)
    return [floor.text for floor in floors if least[floor.name] < floor.least]


def shares(found: Accuracy) -> dict[str, float]:
    """FIGURES of an accuracy, from 0 to 1, of the predictions that its classes count."""
    top1 = found["firmware"] if found["of"] == "firmware" else found["reference"]
    assert top1 is not None
    return {
        "top1": top1["top1"],
        "recall": min((c["recall"] for c in found["classes"] if c["recall"] is not None), default=0.0),
        # a class that is never predicted has no precision, and is no better for that
        "precision": min((c["precision"] or 0.0 for c in found["classes"] if c["inputs"]), default=0.0),
    }
