"""Refused operators of a network as one error: grouped by cause and kind, with a cure for each cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from buildtool.base.errors import Hint, UnsupportedError

_PLACE = re.compile(r"#(\d+) (\S+)")  # an operator's place: its number and its kind
_LISTED = 3  # operators of a kind whose numbers are given


def together(refused: Sequence[UnsupportedError]) -> UnsupportedError:
    """One error for all of `refused`, which is not empty; one alone stays as it is.

    The text has a line a cause with all kinds of operators that have it, the hints one phrase a cause.
    """
    if len(refused) == 1:
        return refused[0]
    causes: dict[str, list[UnsupportedError]] = {}
    for error in refused:
        causes.setdefault(error.text, []).append(error)
    lines = [f"{len(refused)} operators are not supported:"]
    hints: dict[Hint, list[str]] = {}
    for cause, errors in causes.items():
        lines.append(f"  {len(errors)} x {cause}: {_kinds(errors)}")
        for hint in errors[0].hints:
            hints.setdefault(hint, []).append(cause)
    return UnsupportedError(
        "\n".join(lines),
        hint=[_of(hint, named if len(causes) > 1 else []) for hint, named in hints.items()],
    )


def _of(hint: Hint, causes: Sequence[str]) -> Hint:
    """A hint with what it is for."""
    return Hint(f"for {', '.join(causes)}: {hint.text}", hint.settings) if causes else hint


def _kinds(errors: Sequence[UnsupportedError]) -> str:
    """All kinds with their numbers: 3 ADD (#1, #4, #7), 120 CONV_2D (#0, #2, #3, ...)."""
    found: dict[str, list[str]] = {}
    for error in errors:
        place = _PLACE.match(error.operator)
        kind, number = (place[2], f"#{place[1]}") if place else (error.operator, "")
        found.setdefault(kind, []).append(number)
    counts = Counter({kind: len(numbers) for kind, numbers in found.items()})
    return ", ".join(f"{n} {kind} ({_some(found[kind])})" for kind, n in counts.most_common())


def _some(numbers: Sequence[str]) -> str:
    return ", ".join([*numbers[:_LISTED], *(["..."] if len(numbers) > _LISTED else [])])
