"""Parsers: from an option's name and a plain value, or text, to the value; UsageError for a wrong one."""

from __future__ import annotations

import contextlib
import enum
import math
import re
from typing import Any

from buildtool.base.errors import UsageError, did_you_mean
from buildtool.options.types import Group, Option, Parser

MOST_PIXELS = 64  # of a hand-off
WHOLE_ROW = 1 << 16  # pixels: more than any row has
MOST_INPUTS = 1000
MOST_SEED = (1 << 31) - 1
MOST_SIDE = 65536  # rows or columns of an image
MOST_BATCH = 65536
MOST_CAPACITY = 1 << 50  # bytes
MOST_NODES = 1 << 40
MOST_DIGITS = 19  # of a number that comes as text: more than any size has
MOST_SHOWN = 60  # characters of a refused value in a message
WIRES = ("serial", "rtt", "semihosting")  # how results come back from a board
_UNITS = {"": 1, "K": 1024, "M": 1024 * 1024}


def refuse(name: str, value: object, wanted: str) -> UsageError:
    """The error for a value that is not what an option takes."""
    return UsageError(f"{shown(value)} is not {wanted}", option=name)


def shown(value: object) -> str:
    """A value as a message has it: as Python writes it, shortened where that is long."""
    try:
        words = repr(value)
    except ValueError:  # Python writes no integer of thousands of digits
        return "a number of thousands of digits"
    return words if len(words) <= MOST_SHOWN else f"{words[:MOST_SHOWN]}..."


def text(name: str, value: object) -> str:
    """Any text."""
    if not isinstance(value, str):
        raise refuse(name, value, "text")
    return value


def flag(name: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise refuse(name, value, "true or false")
    return value


def mode(modes: type[enum.StrEnum]) -> Parser:
    """One of an enumeration's values."""

    def parse(name: str, value: object) -> enum.StrEnum:
        known = [str(member) for member in modes]
        if not isinstance(value, str) or value not in known:
            error = refuse(name, value, "one of " + ", ".join(known))
            hint = did_you_mean(value if isinstance(value, str) else "", known)
            raise UsageError(error.text, option=name, hint=hint if hint.startswith("did") else "")
        return modes(value)

    return parse


def chosen(
    name: str, metavar: str, sentence: str, modes: type[enum.StrEnum], group: Group, default: str, **more: Any
) -> Option:
    """An option that is one of an enumeration's values."""
    values = tuple(map(str, modes))
    return Option(name, metavar, sentence, mode(modes), group, default, values=values, **more)


def switch(name: str, sentence: str, group: Group) -> Option:
    """An option that takes no value."""
    return Option(name, "", sentence, flag, group, flag=True)


def whole(least: int, most: int) -> Parser:
    """A whole number from `least` to `most`."""
    wanted = f"a whole number from {least} to {most}"
    if least == 1:
        wanted = f"a whole number above 0, up to {most}"

    def parse(name: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise refuse(name, value, wanted)
        return value

    return parse


def size(name: str, value: object) -> int:
    """A number of bytes above 0, or text such as "64K" or "1M"."""
    found = _bytes(value)
    if found is None or found <= 0:
        raise refuse(name, value, "a number of bytes, such as 65536, 64K or 1M")
    if found > MOST_CAPACITY:
        raise refuse(name, value, f"a number of bytes up to {MOST_CAPACITY}")
    return found


def _bytes(value: object) -> int | None:
    """A number of bytes, or text of digits and a unit; None for anything else."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    if not isinstance(value, str):
        return None
    words = value.strip().upper()
    unit = words[-1:] if words[-1:] in _UNITS else ""
    number = _integer(words.removesuffix(unit))
    return None if number is None else number * _UNITS[unit]


def real(value: object) -> float:
    """A number, or text that is one; NaN for anything else."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            return float(value)
    return math.nan


def limit(name: str, value: object) -> float:
    """A number above 0."""
    number = real(value)
    if not 0 < number < math.inf:
        raise refuse(name, value, "a number above 0, such as 1.1")
    return number


def work(name: str, value: object) -> float:
    """A limit on F, 1 or more."""
    number = limit(name, value)
    if number < 1:
        what = f"{shown(value)} is below 1, and no plan does less than the network's own work"
        raise UsageError(what, option=name, hint="1 allows no repeated work, 1.1 a tenth more")
    return number


def pixels(name: str, value: object) -> int:
    """Pixels of a hand-off, or "row"."""
    if value == "row":
        return WHOLE_ROW
    number = _integer(value)
    if number is None or not (1 <= number <= MOST_PIXELS or number == WHOLE_ROW):
        raise refuse(name, value, f"a number of pixels from 1 to {MOST_PIXELS}, or row")
    return number


def sides(name: str, value: object) -> tuple[int, int]:
    """Rows and columns, from text such as "544" or "480x640"."""
    words = value.lower().split("x") if isinstance(value, str) else [value]
    found = [_integer(word) or 0 for word in words]
    if len(found) > 2 or not all(1 <= side <= MOST_SIDE for side in found):
        raise refuse(name, value, "rows and columns, such as 480x640, or one number for both")
    return found[0], found[-1]


def identifier(name: str, value: object) -> str:
    """A C identifier in lower case."""
    words = text(name, value)
    if not (words.isascii() and words.isidentifier() and words[0].islower() and words.lower() == words):
        raise refuse(name, value, "a C identifier in lower case")
    return words


def version(name: str, value: object) -> str:
    """A version as MCUboot has it: major and minor number below 256, revision, build."""
    words = text(name, value)
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,5}))?(?:\+(\d{1,10}))?", words, re.ASCII)
    limits = (0xFF, 0xFF, 0xFFFF, 0xFFFFFFFF)
    if match is None or any(int(n or 0) > most for n, most in zip(match.groups(), limits, strict=True)):
        raise refuse(name, value, "a version such as 1.2.3 or 1.2.3+4")
    return words


def wire(name: str, value: object) -> tuple[str, str]:
    """How a board is reached, and the port ("": the only one there is): "serial:/dev/ttyACM0"."""
    kind, _, port = text(name, value).partition(":")
    if kind not in WIRES or not port.isprintable():
        raise refuse(name, value, f"one of {', '.join(WIRES)}, or one with a port, as serial:/dev/ttyACM0")
    if port and kind == "semihosting":
        raise UsageError("semihosting goes through the debugger, and has no port", option=name)
    return kind, port


def listed(one: Parser) -> Parser:
    """A list, each of whose items `one` parses."""

    def parse(name: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise refuse(name, value, "a list")
        return tuple(one(name, item) for item in value)

    return parse


def location(name: str, value: object) -> str | dict[str, Any]:
    """What names a file, or a network or board: text, {"path", "sha256"} or {"name", "data"}."""
    if isinstance(value, dict):
        for wanted in ({"path": str, "sha256": str}, {"name": str, "data": bytes}):
            if value.keys() == wanted.keys() and all(isinstance(value[k], t) for k, t in wanted.items()):
                return value
    elif isinstance(value, str) and value:
        return value
    raise refuse(name, value, "a name, a path, or a file with its digest or its bytes")


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= MOST_DIGITS:
        return int(value)
    return None
