"""Reads TOML files, and finds the lines and columns of mistakes in them."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from buildtool.base.errors import TargetError
from buildtool.base.plain import Mismatch

_MOST_BYTES = 1 << 20  # upper limit for a file
# The place of an error in messages of the standard library.
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_toml(path: Path, what: str, data: bytes | None = None) -> dict[str, Any]:
    """Returns the top-level table of a TOML file. Messages call the file `what`. `data` is its content, None
    if it has to be read. Raises TargetError if the file cannot be read or is not valid TOML.
    """
    text = ""
    try:
        text = (_read(path, what) if data is None else data).decode("utf-8")
        return tomllib.loads(text)
    except OSError as error:
        raise TargetError(f"cannot read the {what}: {error.strerror}", path=str(path)) from None
    except RecursionError:
        raise TargetError("not a TOML file: it is nested too deeply", path=str(path)) from None
    except ValueError as error:  # from the decoders, and for a number of 5,000 digits
        message, at = str(error), _AT.search(str(error))
        line, column = (int(at[1] or 0), int(at[2] or 0)) if at else (0, 0)
        if at and not line:  # at the end of the document
            line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        wrong = f"not a TOML file: {_AT.sub('', message)}"
        raise TargetError(wrong, path=str(path), line=line, column=column) from None


def _read(path: Path, what: str) -> bytes:
    """Returns the bytes of a file. Raises TargetError if it is not a regular file, or has more than 1 MiB."""
    if path.exists() and not path.is_file():
        raise TargetError(f"cannot read the {what}: it is not a regular file", path=str(path))
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise TargetError(f"the {what} has more than {_MOST_BYTES} bytes", path=str(path))
    return data


def add_place(error: TargetError, key: str, data: bytes | None = None) -> TargetError:
    """Returns `error` with the line and column of `key` in the error's file, if the file has that key. `data`
    is the file's content, None if it has to be read.
    """
    with contextlib.suppress(OSError, ValueError):
        text = (Path(error.path).read_bytes() if data is None else data).decode("utf-8")
        error.line, error.column = place(text, key)
    return error


@contextlib.contextmanager
def mistakes(path: str, data: bytes | None = None) -> Iterator[None]:
    """A context that turns a Mismatch in the tables of the file `path` into a TargetError with the key's line
    and column. `data` is the file's content, None if it has to be read.
    """
    try:
        yield
    except Mismatch as error:
        raise add_place(TargetError(str(error), path=path, hint=error.hint), error.at, data) from None


# ---- the places of keys in a file, which the standard library's reader does not return ------------------

_PART = r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'"""
_KEY = re.compile(rf"(?:{_PART})(?:[ \t]*\.[ \t]*(?:{_PART}))*")
_BLANK = r"(?:[ \t\r\n]+|#[^\n]*)*+"  # possessive, so that a match never ends within a comment
_SKIPPED, _EQUALS = re.compile(_BLANK), re.compile(rf"{_BLANK}={_BLANK}")
_HEADER, _LINE = re.compile(r"\[\[?[ \t]*"), re.compile(r"[^\n]*")
_STRING = r'''"""(?:[^\\]|\\.)*?"{3,5}|'{3}.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*[']'''
_SCALAR = re.compile(rf"(?s){_STRING}|[^,\]}}\n#]+")
_CLOSING = {"[": "]", "{": "}"}


def place(text: str, key: str) -> tuple[int, int]:
    """Returns the line and column (from 1) where the dotted `key` first appears in the TOML document `text`;
    (0, 0) if it does not appear. An invalid document is read up to the mistake.
    """
    at = _places(text).get(key, -1)
    return (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) if at >= 0 else (0, 0)


def _places(text: str) -> dict[str, int]:
    """Returns the first position in `text` of each dotted key, and of each table that contains a key."""
    places: dict[str, int] = {}
    table = ""
    inside: list[tuple[str, str]] = []  # for each open bracket: the closing one, and an inline table's key

    def key_at(at: int, name: str) -> tuple[str, int]:
        """Reads the key at the position `at`, in the table `name`. Returns the dotted key, and the position
        where it ends.
        """
        match = _KEY.match(text, at)
        for part in re.findall(_PART, match[0]) if match else ():
            word = part[1:-1] if part[0] in "\"'" else part
            name = f"{name}.{word}" if name else word
            places.setdefault(name, at)
        return name, match.end() if match else len(text)

    def after(pattern: re.Pattern[str], at: int) -> int:
        """Returns the end of the pattern's match at the position `at`, or the end of the text if it does not
        match.
        """
        match = pattern.match(text, at)
        return match.end() if match else len(text)

    at = after(_SKIPPED, 0)
    while at < len(text):
        closing, name = inside[-1] if inside else ("", table)
        if text[at] in (closing, ",") and inside:
            if text[at] == closing:
                inside.pop()
            at += 1
        elif text[at] == "[" and not inside:
            table, at = key_at(after(_HEADER, at), "")
            at = after(_LINE, at)
        else:
            if closing != "]":  # a pair, not an item of an array
                name, at = key_at(at, name)
                at = after(_EQUALS, at)
            bracket = text[at : at + 1]
            if bracket in _CLOSING:
                inside.append((_CLOSING[bracket], name if bracket == "{" else ""))
            at = at + 1 if bracket in _CLOSING else after(_SCALAR, at)
        at = after(_SKIPPED, at)
    return places
