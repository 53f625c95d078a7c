"""TOML files: their tables, and the lines and columns of mistakes in them."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from buildtool.base.errors import TargetError
from buildtool.base.plain import Mismatch

_MOST_BYTES = 1 << 20  # of a file
# How the standard library says where a file is no TOML.
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_toml(path: Path, what: str, data: bytes | None = None) -> dict[str, Any]:
    """The file's top-level table; raises TargetError. `what` it is; `data`: its content, if read already."""
    text = ""
    try:
        text = (_read(path, what) if data is None else data).decode("utf-8")
        return tomllib.loads(text)
    except OSError as error:
        raise TargetError(f"cannot read the {what}: {error.strerror}", path=str(path)) from None
    except RecursionError:
        raise TargetError("not a TOML file: it is nested too deeply", path=str(path)) from None
    except ValueError as error:  # the decoders' errors are of this kind, and so is a number of 5,000 digits
        said, at = str(error), _AT.search(str(error))
        line, column = (int(at[1] or 0), int(at[2] or 0)) if at else (0, 0)
        if at and not line:  # the end of the document
            line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        wrong = f"not a TOML file: {_AT.sub('', said)}"
        raise TargetError(wrong, path=str(path), line=line, column=column) from None


def _read(path: Path, what: str) -> bytes:
    """The bytes of a file; TargetError for what is no plain file, or one that nobody needs."""
    if path.exists() and not path.is_file():
        raise TargetError(f"cannot read the {what}: it is not a regular file", path=str(path))
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise TargetError(f"the {what} has more than {_MOST_BYTES} bytes", path=str(path))
    return data


def placed(error: TargetError, key: str, data: bytes | None = None) -> TargetError:
    """The error, with the line and column of `key` where its file has that."""
    with contextlib.suppress(OSError, ValueError):
        text = (Path(error.path).read_bytes() if data is None else data).decode("utf-8")
        error.line, error.column = place(text, key)
    return error


@contextlib.contextmanager
def mistakes(path: str, data: bytes | None = None) -> Iterator[None]:
    """Tells what is wrong with a file's tables (Mismatch) as a TargetError with the key and its place."""
    try:
        yield
    except Mismatch as error:
        raise placed(TargetError(str(error), path=path, hint=error.hint), error.at, data) from None


# ---- where in a file a key stands: the standard library's reader does not say --------------------------

_PART = r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'"""
_KEY = rf"(?:{_PART})(?:[ \t]*\.[ \t]*(?:{_PART}))*"
_SKIPPED = r"(?:[ \t\r\n]+|#[^\n]*)*+"  # possessive: no part of a comment is given back
_HEADER = r"\[\[?[ \t]*"
_STRING = r'(?s)"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'"
_SCALAR = r"[^,\]}\n#]*"
_MOST_NESTED = 50


def place(text: str, key: str) -> tuple[int, int]:
    """Line and column (from 1) at which a file gives `key` (dotted) first; (0, 0) where it does not.

    A file that is no TOML is read up to the mistake.
    """
    scanner = _Scanner(text)
    with contextlib.suppress(_UnreadableError):
        scanner.document()
    at = scanner.places.get(key, -1)
    return (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) if at >= 0 else (0, 0)


class _UnreadableError(Exception):
    """The text is no TOML from here on."""


class _Scanner:
    """Reads a document's keys; `places`: where each begins first."""

    def __init__(self, text: str) -> None:
        self.places: dict[str, int] = {}
        self._text, self._at = text, 0

    def document(self) -> None:
        """All tables and keys."""
        table = ""
        while self._take(_SKIPPED) is not None and self._at < len(self._text):
            if self._take(_HEADER) is not None:
                table = self._key("")
                self._at = self._text.find("\n", self._at)
                if self._at < 0:
                    return
            else:
                self._pair(table, 0)

    def _take(self, pattern: str) -> str | None:
        """Reads what matches a pattern here; None where nothing does."""
        match = re.compile(pattern).match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[0]

    def _key(self, table: str) -> str:
        """The key that stands here, below `table`; every table on its way has its place here, too."""
        start, text = self._at, self._take(_KEY)
        if text is None:
            raise _UnreadableError
        for part in re.findall(_PART, text):
            name = part[1:-1] if part[0] in "\"'" else part
            table = f"{table}.{name}" if table else name
            self.places.setdefault(table, start)
        return table

    def _pair(self, table: str, depth: int) -> None:
        key = self._key(table)
        if self._take(rf"{_SKIPPED}={_SKIPPED}") is None:
            raise _UnreadableError
        self._value(key, depth)

    def _value(self, key: str, depth: int) -> None:
        """A string or another scalar; an array or an inline table with its values or pairs."""
        if depth > _MOST_NESTED or self._at >= len(self._text):
            raise _UnreadableError
        begin = self._take(r"[\[{]")
        if begin is None:
            if self._take(_STRING) is None:
                self._take(_SCALAR)
            return
        end = rf"{_SKIPPED}{re.escape(']' if begin == '[' else '}')}"
        while self._take(end) is None:
            self._take(_SKIPPED)
            if begin == "{":
                self._pair(key, depth + 1)
            else:
                self._value("", depth + 1)
            if self._take(rf"{_SKIPPED},") is None and not re.compile(end).match(self._text, self._at):
                raise _UnreadableError
