"""Text as CMake reads it, and the names of files that CMake cannot take."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from buildtool.client import UsageError

# What CMake, or the Make or Ninja that it writes for, reads in its own way; no quotes keep it from that.
_SPECIAL = {
    ";": "a semicolon",
    "\n": "a line break",
    "\r": "a carriage return",
    "\\": "a backslash",
    "$<": "'$<'",
    "$(": "'$('",
    "|": "'|'",
    "%": "'%'",
    "*": "'*'",
    "`": "a backquote",
    "^": "'^'",
    "<": "'<'",
    ">": "'>'",
}


def quoted(text: str) -> str:
    """A bracket argument: nothing in it is read, whatever it is."""
    equals = ""
    while f"]{equals}]" in text or text.endswith(f"]{equals}"):
        equals += "="
    start = "\n" if text.startswith("\n") else ""  # CMake drops the first one
    return f"[{equals}[{start}{text}]{equals}]"


def path(text: str, option: str = "") -> str:
    """A path; UsageError for one that CMake would take apart. `option`: that which names it."""
    named = next((words for mark, words in _SPECIAL.items() if mark in text), "")
    if not named and text.count("[") != text.count("]"):
        named = "a single bracket"
    if named:
        raise UsageError(
            f"CMake cannot handle {named} in the name of a file",
            path=text,
            option=option,
            hint="give the file, or the folder that it is in, another name",
        )
    return text


def set_list(name: str, values: Iterable[str]) -> str:
    """`set(name values...)`; a list without elements is empty text."""
    return f"set({name} {' '.join(map(quoted, values)) or quoted('')})"


def set_lines(name: str, values: Iterable[str]) -> str:
    """`set(name ...)`, a value a line: for long lists."""
    lines = "".join(f"\n  {quoted(value)}" for value in values)
    return f"set({name}{lines or ' ' + quoted('')})"


def shell(words: Iterable[str]) -> str:
    """Words as one item of a list of options: kept together, in this order, none of them left out."""
    return "SHELL:" + shlex.join(words).replace("$<", "'$'<")
