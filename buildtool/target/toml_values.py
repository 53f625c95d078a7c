"""Values out of a TOML file's tables, each checked; a mistake is an error that names the key and its line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

from buildtool.base.errors import TargetError, did_you_mean

Table = dict[str, object]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST = 1 << 48  # of any number in a board's file: bytes, hertz, or either a second
_MOST_SHOWN = 60  # characters of a wrong value in a message
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def shown(value: object) -> str:
    """A value as a message has it."""
    try:
        words = repr(value)
    except ValueError:  # Python writes no integer of thousands of digits
        return "a number of thousands of digits"
    return words if len(words) <= _MOST_SHOWN else f"{words[:_MOST_SHOWN]}..."


def placed(error: TargetError, key: str, data: bytes | None = None) -> TargetError:
    """The error, with the line and column of `key` where its file has that."""
    from buildtool.target.toml_places import place  # of mistakes alone: it costs start-up time

    with contextlib.suppress(OSError, ValueError):
        text = (Path(error.path).read_bytes() if data is None else data).decode("utf-8")
        error.line, error.column = place(text, key)
    return error


def parse_size(value: object) -> int | None:
    """Bytes from a non-negative integer or a string such as "512K"; None if it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    match = re.fullmatch(r"([0-9]{1,18})([KMG]?)", value) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[match[2]] if match else None


def show_size(size: int) -> str:
    """Bytes in the largest unit that divides them: 524288 -> "512K"."""
    for unit in ("G", "M", "K"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)


class Values:
    """Takes values out of one file's tables, and says which key is wrong."""

    def __init__(self, path: str, data: bytes | None) -> None:
        self.path, self.data = path, data

    def fail(self, key: str, what: str, hint: str = "", at: str = "") -> NoReturn:
        """Raises the error about `key`, or about the whole, in which case `at` is the key that it is near."""
        error = TargetError(f"{key}: {what}" if key else what, path=self.path, hint=hint)
        raise placed(error, at or key.partition(" ")[0], self.data)

    def known(self, table: Mapping[str, object], keys: Iterable[str], where: str) -> None:
        """Every key of the table is one of these."""
        names = tuple(keys)
        for key in table:
            if key not in names:
                self.fail("", f"unknown key {shown(where + key)}", did_you_mean(key, names), where + key)

    def need(self, table: Mapping[str, object], key: str, where: str) -> object:
        """The value of a key that cannot be left out."""
        if key not in table:
            self.fail("", f"key '{where}{key}' is missing", at=where.rstrip("."))
        return table[key]

    def table(self, value: object, key: str) -> Table:
        """A value that is a table."""
        if not isinstance(value, dict):
            self.fail(key, f"must be a table, not {shown(value)}", f"write [{key}]")
        return value

    def text(self, value: object, key: str) -> str:
        """One line of text that is not empty."""
        if not isinstance(value, str) or not value:
            self.fail(key, f"must be a string that is not empty, not {shown(value)}")
        if not value.isprintable():
            self.fail(key, f"must be one line without control characters, not {shown(value)}")
        return value

    def texts(self, value: object, key: str) -> tuple[str, ...]:
        """A list of such texts."""
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            self.fail(key, f"must be a list of strings that are not empty, not {shown(value)}")
        return tuple(self.text(item, key) for item in value)

    def size(self, value: object, key: str) -> int:
        """Bytes, or another whole number from 0 on."""
        size = parse_size(value)
        if size is None:
            hint = 'bytes (65536), or a string with K, M or G ("64K")'
            self.fail(key, f"must be a size, not {shown(value)}", hint)
        if size > _MOST:
            self.fail(key, f"{shown(value)} is too large: at most {_MOST:,}")
        return size

    def optional(self, table: Mapping[str, object], key: str, default: int) -> int:
        """Such a number, or what holds without the key."""
        return self.size(table[key], key) if key in table else default

    def name(self, name: str, key: str) -> None:
        """Names end up in file names and linker scripts."""
        if not _NAME.fullmatch(name):
            self.fail(
                key, f"{shown(name)} is not a name", "letters, digits, '_', '-' and '.', a letter first"
            )

    def whole(self, table: Mapping[str, object], key: str, where: str) -> int:
        """A whole number above 0."""
        value = self.positive(table, key, where)
        if not isinstance(value, int):
            self.fail(f"{where}{key}", f"must be a whole number, not {shown(value)}")
        return value

    def positive(self, table: Mapping[str, object], key: str, where: str) -> float:
        """A number above 0, which is not infinite."""
        value = self.need(table, key, where)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST:
            self.fail(f"{where}{key}", f"must be a number above 0, not {shown(value)}")
        return value
