"""The types of the table: an option, and the groups that options are in."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from buildtool.base.modes import Strategy

Parser = Callable[[str, object], Any]  # (an option's name, a plain value or text) -> its value; UsageError
MODEL_SUFFIXES = (".tflite", ".onnx", ".cfg")
BOARD_SUFFIXES = (".toml",)


class Group(enum.StrEnum):
    """What an option is about."""

    PLANNING = "planning"
    COUNTING = "ONNX and Darknet files"
    TARGET = "target"
    INPUT = "input"
    BUILT = "made earlier"
    DESK = "board on the desk"
    REPORT = "report"
    SPLIT = "split"
    OTHER = "other"


# In a request the options of these groups are under "options", all others are keys of the request.
NESTED = (Group.PLANNING, Group.COUNTING)


class Option(NamedTuple):
    """One option.

    `name` as in a request; `sentence` says what it does; `parse` gives its value or raises UsageError;
    `default` in words ("": there is none);
    `values`: all that a mode may say; `strategies`: those that heed it; `flag`: it takes no value;
    `number`: it is a whole number; `many`: it may be given several times; `suffixes`: what the names of
    files end in (None: it names no file); `folder`: it names a folder; `spelt`: its name on the command
    line, where that is another one.
    """

    name: str
    metavar: str
    sentence: str
    parse: Parser
    default: str = ""
    group: Group = Group.OTHER
    values: tuple[str, ...] = ()
    strategies: tuple[Strategy, ...] = tuple(Strategy)
    flag: bool = False
    number: bool = False
    many: bool = False
    suffixes: tuple[str, ...] | None = None
    folder: bool = False
    spelt: str = ""

    @property
    def help(self) -> str:
        """The sentence and the default."""
        return f"{self.sentence} (default: {self.default})" if self.default else self.sentence

    @property
    def flagged(self) -> str:
        """As on the command line: --max-f."""
        return "--" + (self.spelt or self.name).replace("_", "-")
