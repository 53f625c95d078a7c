"""How each front end writes an option in its messages: command line, CMake, Bazel, PlatformIO and Python.

SCons writes it as requests do (`base.errors.in_requests`). An option that a front end does not have is
written as on the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple

from buildtool.base.errors import Spelling, Value, in_requests
from buildtool.options.table import BY_NAME, OPTIONS, Group


class Front(NamedTuple):
    """The spelling of options in one front end, such as CMake.

    `setting` writes an option with its value, and `name` writes the option alone.
    """

    setting: Spelling
    name: Callable[[str], str]


_OWN = ("depth", "fail_if", "jobs", "out")  # options of commands, which no request has


def spell(option: str, value: Value) -> str:
    """Returns an option and its value as on the command line, such as --ram 4624.

    A name that is not an option is written as in requests (see `in_requests`). The result for `model` is "",
    because the command line has it as a positional argument.
    """
    if option == "model":
        return ""
    if option not in BY_NAME and option not in _OWN:
        return in_requests(option, value)
    flag = spell_name(option)
    if value is None:
        return f"without {flag}"
    return flag if value is True else f"{flag} {value}"


def spell_name(option: str) -> str:
    """Returns an option's name as on the command line, or the metavar of a positional one."""
    if option in _OWN:
        return "--" + option.replace("_", "-")
    if option not in BY_NAME:
        return option
    if option in ("model", "file", "network"):
        return BY_NAME[option].metavar
    return BY_NAME[option].flagged


def _front(rename: Callable[[str], str], write: Callable[[str, Value], str]) -> Front:
    """Returns the spelling of a front end.

    `rename` returns the front end's name for an option ("": it does not have this option). `write` joins a
    name and a value.
    """

    def setting(option: str, value: Value) -> str:
        name = rename(option)
        if not name:
            return spell(option, value)
        return f"without {name}" if value is None else write(name, value)

    return Front(setting, lambda option: rename(option) or spell_name(option))


# The options that decide a network's plan, and those that also decide which kernels it calls.
_PLANNING = {option.name for option in OPTIONS if option.group is Group.PLANNING} | {"model", "board", "plan"}
_FIELD = {option.name for option in OPTIONS if option.group is Group.FIELD}
_BOARDS = {"cmsis_nn", "requantise", "threads", "weights_in", "arena_in", "kernels_in"}
_KEYWORDS = {name: name.upper() for name in (*_PLANNING, *_BOARDS, *_FIELD, "on", "wire")}
_KEYWORDS |= {name: name.upper() for name in ("sign", "image_version")}
_KEYWORDS |= {"formats": "FORMAT", "toolchain": "-DBUILDTOOL_TOOLCHAIN"}


def _with_keyword(keyword: str, value: Value) -> str:
    if value is True:
        return keyword
    return f"{keyword}={value}" if keyword.startswith("-D") else f"{keyword} {value}"


def platformio(prefix: str) -> Front:
    """Returns the spelling of options in platformio.ini; `prefix` stands before their names."""
    known = {*_PLANNING, *_BOARDS, *_FIELD, "name"}
    return _front(lambda option: prefix + option if option in known else "", "{} = {}".format)


def _as_keyword(option: str, value: Value) -> str:
    """Returns an option and its value as a keyword argument in Python; `model` becomes
    `buildtool.open(...)`.
    """
    if option == "model":
        return f"buildtool.open({value!r})"
    return f"without {option}" if value is None else f"{option}={value!r}"


COMMAND_LINE = Front(spell, spell_name)
CMAKE = _front(lambda option: _KEYWORDS.get(option, ""), _with_keyword)
PYTHON = Front(_as_keyword, str)
BAZEL = _front(lambda option: option if option in _PLANNING | _FIELD else "", '{} = "{}"'.format)
FRONT: ContextVar[Front] = ContextVar("front", default=COMMAND_LINE)  # of the command line's errors
