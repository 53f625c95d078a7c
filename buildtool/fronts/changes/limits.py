"""How much a figure may grow: `ram+2%`, `weights+4K`, `memory.flash+0`; what it must reach: `top1<70%`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError, did_you_mean
from buildtool.fronts.changes.compare import Change
from buildtool.fronts.changes.figures import HIGHER_IS_BETTER, MEMORY, METRICS, SHARES, shares

if TYPE_CHECKING:
    from buildtool.schema.datasets import DatasetAnswer

_RULE = re.compile(r"([A-Za-z][\w.-]*)\+([0-9]+(?:\.[0-9]+)?)(%|[KM]?)")
_UNITS = {"": 1, "K": 1024, "M": 1024 * 1024}
_FLOOR = re.compile(r"([A-Za-z]\w*)<([0-9]+(?:\.[0-9]+)?)(%?)")
_FLOOR_HELP = "write a figure, < and what it must reach: top1<70%, recall<50%, precision<0.5"
_HELP = "write a figure, + and how much it may grow: ram+2%, weights+4K, f+0.05"


@dataclass(frozen=True)
class Limit:
    """A figure's name and the most that it may grow: per cent of what was before, or its own unit."""

    text: str
    name: str
    most: float
    is_percent: bool


@dataclass(frozen=True)
class Floor:
    """A figure's name and the least that it may be, from 0 to 1."""

    text: str
    name: str
    least: float


def parse(text: str) -> Limit | Floor:
    """The limit that a text says; UsageError for other texts and unknown figures."""
    if "<" in text:
        return floor(text)
    known = [metric.name for metric in METRICS]
    match = _RULE.fullmatch(text)
    if match is None:
        raise _wrong(f"'{text}' is no limit", _HELP)
    name, number, unit = match.groups()
    if name not in known and not name.startswith(MEMORY):
        raise _wrong(f"'{text}': there is no figure '{name}'", did_you_mean(name, [*known, f"{MEMORY}NAME"]))
    if name in HIGHER_IS_BETTER:
        hint = f"{name}<70%" if name in SHARES else "elements_different+0"
        raise _wrong(f"'{text}': more of '{name}' is no worse", hint)
    is_percent = unit == "%"
    return Limit(text, name, float(number) * (1 if is_percent else _UNITS[unit]), is_percent)


def floor(text: str) -> Floor:
    """The floor that a text says; UsageError for other texts and unknown figures."""
    match = _FLOOR.fullmatch(text)
    if match is None:
        raise _wrong(f"'{text}' is no limit", _FLOOR_HELP)
    name, number, unit = match.groups()
    if name not in SHARES:
        raise _wrong(f"'{text}': there is no figure '{name}'", did_you_mean(name, SHARES))
    least = float(number) / (100 if unit else 1)
    if least > 1:
        hint = _FLOOR_HELP if unit else f"{name}<{number}%"
        raise _wrong(f"'{text}': nothing is above 1, which is 100%", hint)
    return Floor(text, name, least)


def _wrong(what: str, hint: str) -> UsageError:
    return UsageError(what, option="fail_if", hint=hint)


def undercut(floors: Sequence[Floor], answer: DatasetAnswer) -> list[str]:
    """The floors (their texts) that an answer is below; UsageError where it has no accuracy."""
    if not floors:
        return []
    found = answer["accuracy"]
    if found is None:
        raise _wrong(f"there is no accuracy: {answer['no_accuracy']}", "give labels")
    least = shares(found)
    return [floor.text for floor in floors if least[floor.name] < floor.least]


def exceeded(limits: Sequence[Limit | Floor], totals: Sequence[Change]) -> list[str]:
    """The limits (their texts) that are exceeded; UsageError for a figure that one of the files lacks."""
    by_name = {change.name: change for change in totals}
    found = []
    for limit in limits:
        change = by_name.get(limit.name)
        if isinstance(limit, Floor):
            if change is None or change.after is None:
                hint = "buildtool validate MODEL --board B --data FILE --json, with labels"
                raise _wrong(f"'{limit.text}': the second file has no '{limit.name}'", hint)
            beyond = change.after / 100 < limit.least
        else:
            if change is None or change.growth is None or change.before is None:
                have = [name for name, one in by_name.items() if one.growth is not None]
                hint = "both have: " + ", ".join(have) if have else "the files are of different commands"
                raise _wrong(f"'{limit.text}': not both files have '{limit.name}'", hint)
            most = limit.most * change.before / 100 if limit.is_percent else limit.most
            beyond = change.growth > most
        if beyond:
            found.append(limit.text)
    return found
