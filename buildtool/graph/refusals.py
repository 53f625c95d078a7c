"""Joins errors for a network's operators into one error, grouped by cause and kind, with all their hints."""

import os
import re
import shlex
from collections.abc import Sequence

from buildtool.base.errors import BuildtoolError, Hint, UnsupportedError, suggest

_PLACE = re.compile(r"#(\d+) (\S+)")  # an operator's place: its number and its kind
_LISTED = 3  # operators of a kind whose numbers are given


QUANTISE = "buildtool quantize NETWORK --data DATA -o OUT"  # in hints; `name_files` puts the names in


def name_files(error: BuildtoolError, path: str) -> BuildtoolError:
    """Completes a hint to quantise the network with the command line, and moves it to the end of the hints.

    Such a hint contains QUANTISE, which is replaced by a `buildtool quantize` command for `path`, the
    network's file. A further hint, for build scripts, sets `model` to the quantised network. Errors without
    such a hint are not changed. Returns `error`.
    """
    lines = [hint for hint in error.hints if QUANTISE in hint.text]
    if lines and path:
        stem, suffix = os.path.splitext(path)  # noqa: PTH122 - a Path would change how it is written
        out = f"{stem}_int8{suffix}"
        line = f"buildtool quantize {shlex.quote(path)} --data DATA -o {shlex.quote(out)}"
        others = [hint for hint in error.hints if hint not in lines]
        error.hints = (*others, suggest(model=out), Hint(lines[0].text.replace(QUANTISE, line)))
    return error


def join_errors(refused: Sequence[UnsupportedError]) -> UnsupportedError:
    """Returns one error for all of `refused`, which is not empty. A single error stays as it is.

    The text has one line per cause with all kinds of operators. The hints have one phrase per cause.
    """
    if len(refused) == 1:
        return refused[0]
    causes: dict[str, list[UnsupportedError]] = {}
    for error in refused:
        causes.setdefault(error.text, []).append(error)
    lines = [f"{len(refused)} operators are not supported:"]
    hints: dict[Hint, list[str]] = {}
    for cause, errors in causes.items():
        lines.append(f"  {len(errors)} x {cause}: {_list_kinds(errors)}")
        for hint in errors[0].hints:
            hints.setdefault(hint, []).append(cause)
    if len(causes) == 1:
        return UnsupportedError("\n".join(lines), hint=list(hints))
    prefixed = [Hint(f"for {', '.join(why)}: {hint.text}", hint.settings) for hint, why in hints.items()]
    return UnsupportedError("\n".join(lines), hint=prefixed)


def _list_kinds(errors: Sequence[UnsupportedError]) -> str:
    """Lists all kinds and their operators' numbers: 3 ADD (#1, #4, #7), 120 CONV_2D (#0, #2, #3, ...)."""
    kinds: dict[str, list[str]] = {}
    for error in errors:
        place = _PLACE.match(error.operator)
        kind, number = (place[2], f"#{place[1]}") if place else (error.operator, "")
        kinds.setdefault(kind, []).append(number)
    parts = []
    for kind, numbers in sorted(kinds.items(), key=lambda item: -len(item[1])):
        listed = numbers if len(numbers) <= _LISTED else [*numbers[:_LISTED], "..."]
        parts.append(f"{len(numbers)} {kind} ({', '.join(listed)})")
    return ", ".join(parts)
