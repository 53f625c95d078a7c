"""The table of options, from which the command line, SCons and the reference page are built.

This package imports only the standard library and buildtool.base. Its files:

- table.py: the options themselves, one row each.
- parsers.py: parses the plain values of a request, or text, so that every front end refuses the same mistakes
  with the same message.
- values.py: the types of parsed options.
- syntax.py: how each front end writes an option.

Each kind of request lists the options that it takes (buildtool/api/requests).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from buildtool.base.errors import UsageError, did_you_mean, suggest
from buildtool.base.modes import Image, Strategy
from buildtool.options.parsers import refuse_less_work
from buildtool.options.syntax import BAZEL, CMAKE, FRONT, PYTHON, platformio, spell, spell_name
from buildtool.options.table import BOARD_SUFFIXES, BY_NAME, MODEL_SUFFIXES, NESTED, OPTIONS, Group, Option

__all__ = [
    "BAZEL",
    "BOARD_SUFFIXES",
    "BY_NAME",
    "CMAKE",
    "FRONT",
    "MODEL_SUFFIXES",
    "NESTED",
    "OPTIONS",
    "PYTHON",
    "Group",
    "Option",
    "check_planning",
    "from_text",
    "needs_board_error",
    "no_effect_error",
    "parse",
    "parse_planning",
    "platformio",
    "refuse_beside_plan",
    "spell",
    "spell_name",
    "unknown_key_error",
]

# Options beside a plan from a file: limits that this plan must keep, and `outputs`, which names its network.
_BESIDE_PLAN = ("ram", "max_f", "max_cost", "max_ms", "max_flash", "image", "outputs")


def parse(name: str, value: object) -> Any:
    """Returns the parsed value of the option `name`. Raises UsageError for a wrong value."""
    return BY_NAME[name].parse(name, value)


def from_text(option: Option, text: object) -> object:
    """Converts an option's text to the value that a request has: digits of a numeric option become an int.

    All other text stays as it is; `parse` refuses it if it is wrong.
    """
    is_number = isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 20
    return int(str(text)) if option.number and is_number else text


def parse_planning(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the planning options in `values` (name -> plain value or text), parsed.

    Raises UsageError for an unknown option, a wrong value, or an option that has no effect beside the others.
    """
    names = [option.name for option in OPTIONS if option.group is Group.PLANNING]
    for name in values:
        if name not in names:
            raise unknown_key_error("plan", name, names, "the options of a request")
    return check_planning({name: parse(name, value) for name, value in values.items()})


def check_planning(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns parsed planning options (name -> value) unchanged.

    Raises UsageError if one of them has no effect beside the others, such as `max_f` with a strategy that
    never repeats work.
    """
    strategy = options.get("strategy", Strategy.BEST)
    for name in options:
        strategies = BY_NAME[name].strategies
        if strategy not in strategies:
            hints = [suggest(**{name: None}), suggest(strategy=str(strategies[0]))]
            raise UsageError(f"it has no effect with strategy {strategy}", option=name, hint=hints)
    if "max_f" in options and "hop" not in options:
        refuse_less_work("max_f", options["max_f"])
    if "hop" in options and options.get("image") == Image.STREAM:
        text = "the rows of a hop are few, and are written at once"
        raise UsageError(text, option="image", hint=[suggest(image=None), suggest(hop=None)])
    if "max_ms" in options and "max_cost" in options:
        hints = [suggest(max_cost=None), suggest(max_ms=None)]
        raise UsageError("it sets the same limit as max_cost: give one of them", option="max_ms", hint=hints)
    return dict(options)


def refuse_beside_plan(names: Iterable[str]) -> None:
    """Raises UsageError if one of `names` is an option that only affects planning.

    Requests with a plan from a file call it, because nothing is planned for them.
    """
    for name in names:
        if name not in _BESIDE_PLAN:
            raise no_effect_error(name, "it has no effect, because the plan is given")


def unknown_key_error(kind: str, name: str, known: Iterable[str], where: str = "") -> UsageError:
    """Returns the error for a key `name` that requests of this `kind` do not take.

    `known` are the keys that they take, of which the most similar one is suggested. `where` names the mapping
    that has the key ("": the request itself).
    """
    names = list(known)
    if name in BY_NAME and name not in names:
        return no_effect_error(name, f"it has no effect on a request of kind '{kind}'")
    what = f"unknown key '{name}' in {where or 'a request'} of kind '{kind}'"
    return UsageError(what, hint=did_you_mean(name, names))


def needs_board_error(name: str) -> UsageError:
    """Returns the error for an option that needs a board, where a file's memory is counted without one."""
    return no_effect_error(
        name, "it has no effect on an ONNX or Darknet file that is counted without a board"
    )


def no_effect_error(name: str, text: str) -> UsageError:
    """Returns the error for an option that has no effect. `text` says why."""
    return UsageError(text, option=name, hint=suggest(**{name: None}))
