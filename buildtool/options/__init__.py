"""The options, once: the command line, SCons and the reference page are made from the table.

A leaf: the standard library only. Values are parsed here (parsers.py), from a request's plain values or from
text, so that every front refuses the same mistakes in the same words; values.py is what they become. Begin at
table.py. Which options a kind of request takes is said by the kind (buildtool/api/requests).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from buildtool.base.errors import UsageError, Value, did_you_mean, in_requests, suggest
from buildtool.base.modes import Strategy
from buildtool.options.table import BOARD_SUFFIXES, BY_NAME, MODEL_SUFFIXES, NESTED, OPTIONS, Group, Option

__all__ = [
    "BOARD_SUFFIXES",
    "BY_NAME",
    "MODEL_SUFFIXES",
    "NESTED",
    "OPTIONS",
    "Group",
    "Option",
    "beside_plan",
    "from_text",
    "idle",
    "parse",
    "planning",
    "refuse_unknown",
    "spelled",
    "spelled_name",
    "without_board",
]

_CHECKED = ("ram", "max_f", "max_cost", "max_ms", "max_flash", "image")  # what a given plan is held against
_OWN = ("depth", "fail_if", "out")  # of commands alone: no request has them


def parse(name: str, value: object) -> Any:
    """The value of the option `name`; UsageError for one that it does not take."""
    return BY_NAME[name].parse(name, value)


def from_text(option: Option, text: object) -> object:
    """The value for a request of a value that is given as text; `parse` refuses what is not a number."""
    good = isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 20
    return int(str(text)) if option.number and good else text


def planning(values: Mapping[str, Any]) -> dict[str, Any]:
    """Planning options, each parsed; UsageError for those that have no effect together."""
    known = [option.name for option in OPTIONS if option.group is Group.PLANNING]
    for name in values:
        if name not in known:
            raise refuse_unknown("plan", name, known, "the options of a request")
    return together({name: parse(name, value) for name, value in values.items()})


def together(options: Mapping[str, Any]) -> dict[str, Any]:
    """Planning options that are parsed; UsageError for those that have no effect together."""
    strategy = options.get("strategy", Strategy.BEST)
    for name in options:
        others = BY_NAME[name].strategies
        if strategy not in others:
            helps = [suggest(**{name: None}), suggest(strategy=str(others[0]))]
            raise UsageError(f"it has no effect with strategy {strategy}", option=name, hint=helps)
    if "max_ms" in options and "max_cost" in options:
        helps = [suggest(max_cost=None), suggest(max_ms=None)]
        raise UsageError(
            "it is max_cost in another unit, and one of them is enough", option="max_ms", hint=helps
        )
    return dict(options)


def beside_plan(names: Iterable[str]) -> None:
    """UsageError for a planning option that decides how a plan is made, where a plan is given."""
    for name in names:
        if name not in _CHECKED:
            raise idle(name, "it has no effect, because the plan is given")


def refuse_unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> UsageError:
    """The error for a key that a kind of request does not take."""
    names = list(known)
    if name in BY_NAME and name not in names:
        return idle(name, f"it has no effect on a request of kind '{kind}'")
    what = f"unknown key '{name}' in {where or 'a request'} of kind '{kind}'"
    return UsageError(what, hint=did_you_mean(name, names))


def without_board(name: str) -> UsageError:
    """The error for an option that means something for a board only."""
    return idle(name, "it has no effect on an ONNX or Darknet file that is counted without a board")


def idle(name: str, text: str) -> UsageError:
    """The error for an option that has no effect, and why."""
    return UsageError(text, option=name, hint=suggest(**{name: None}))


def spell(option: str, value: Value) -> str:
    """An option with its value as on the command line: --ram 4624; others write it as `in_requests`."""
    if option not in BY_NAME:
        return in_requests(option, value)
    flag = spell_name(option)
    if value is None:
        return f"without {flag}"
    return flag if value is True else f"{flag} {value}"


def spell_name(option: str) -> str:
    """An option's name as on the command line; positional ones have their metavar."""
    if option in _OWN:
        return "--" + option.replace("_", "-")
    if option not in BY_NAME:
        return option
    if option in ("model", "file", "network"):
        return BY_NAME[option].metavar
    return BY_NAME[option].flagged
