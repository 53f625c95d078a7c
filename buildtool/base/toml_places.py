"""Where in a TOML file a key stands: the standard library's reader does not say."""

from __future__ import annotations

import contextlib
import re

_SKIPPED = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_PART = r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'"""
_KEY = re.compile(rf"(?:{_PART})(?:[ \t]*\.[ \t]*(?:{_PART}))*")
_HEADER = re.compile(r"\[\[?[ \t]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'", re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}\n#]*")
_MOST_NESTED = 50


def place(text: str, key: str) -> tuple[int, int]:
    """Line and column (from 1) at which a file gives `key` (dotted) first; (0, 0) where it does not.

    The file may be one that is no TOML: then what stands before the mistake is found.
    """
    found: dict[str, int] = {}
    with contextlib.suppress(_UnreadableError):
        _Scanner(text, found).document()
    at = found.get(key, -1)
    if at < 0:
        return 0, 0
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


class _UnreadableError(Exception):
    """The text is no TOML from here on."""


class _Scanner:
    """Reads a document's keys, and their places into `found`."""

    def __init__(self, text: str, found: dict[str, int]) -> None:
        self._text, self._found = text, found
        self._at = 0

    def document(self) -> None:
        """All tables and keys."""
        table = ""
        while self._skip() < len(self._text):
            if header := _HEADER.match(self._text, self._at):
                self._at = header.end()
                table = self._key("")
                self._at = self._text.find("\n", self._at)
                if self._at < 0:
                    return
            else:
                self._pair(table)

    def _skip(self) -> int:
        skipped = _SKIPPED.match(self._text, self._at)
        assert skipped is not None  # it may be empty
        self._at = skipped.end()
        return self._at

    def _key(self, table: str) -> str:
        """The key that stands here, below `table`; every table on its way has its place here, too."""
        matched = _KEY.match(self._text, self._at)
        if matched is None:
            raise _UnreadableError
        whole = table
        for part in re.finditer(_PART, matched[0]):
            name = part[0][1:-1] if part[0][0] in "\"'" else part[0]
            whole = f"{whole}.{name}" if whole else name
            self._found.setdefault(whole, matched.start())
        self._at = matched.end()
        return whole

    def _pair(self, table: str, depth: int = 0) -> None:
        key = self._key(table)
        if not self._text.startswith("=", self._skip()):
            raise _UnreadableError
        self._at += 1
        self._skip()
        self._value(key, depth)

    def _value(self, key: str, depth: int) -> None:
        if depth > _MOST_NESTED or self._at >= len(self._text):
            raise _UnreadableError
        first = self._text[self._at]
        if first in "[{":
            self._at += 1
            self._items("]" if first == "[" else "}", key, depth + 1)
        elif string := _STRING.match(self._text, self._at):
            self._at = string.end()
        else:
            scalar = _SCALAR.match(self._text, self._at)
            assert scalar is not None
            self._at = scalar.end()

    def _items(self, end: str, key: str, depth: int) -> None:
        """What stands in brackets, up to their end: values, or pairs of an inline table."""
        while not self._text.startswith(end, self._skip()):
            if end == "}":
                self._pair(key, depth)
            else:
                self._value("", depth)
            if self._text.startswith(",", self._skip()):
                self._at += 1
            elif not self._text.startswith(end, self._at):
                raise _UnreadableError
        self._at += 1
