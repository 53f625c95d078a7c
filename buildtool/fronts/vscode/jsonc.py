"""JSON with comments and trailing commas, edited in place: what is not changed stays as it was, to the byte.

No package for Python does this by itself: those that keep comments write the whole file anew in a form of
their own, or start Node.js.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"[-+.\w]+")
_MOST_NESTED = 200
INDENT = "    "  # of a file that has none


class DamagedError(ValueError):
    """The text is no JSON with comments, at `line` and `column` (from 1)."""

    def __init__(self, text: str, at: int, what: str) -> None:
        super().__init__(what)
        self.line, self.column = place(text, at)


def place(text: str, at: int) -> tuple[int, int]:
    """Line and column (from 1) of a position in a text."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


@dataclass
class Node:
    """A value in the text from `start` until before `end`; objects have members, arrays have items.

    `value` is what it means. `comma`: whether the last member or item has one behind it.
    """

    start: int
    end: int
    value: Any
    members: dict[str, Node] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)
    comma: bool = False

    @property
    def inner(self) -> list[Node]:
        """Members or items, in their order."""
        return [*self.members.values(), *self.items]


class Document:
    """A text whose top is an object; an empty one, or comments alone, count as an empty object."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._eol = "\r\n" if "\r\n" in text else "\n"
        self.root = self._parsed()

    def set_member(self, path: tuple[str, ...], key: str, value: Any) -> None:
        """Adds `key` with its value, last, to the object at `path`, which has no such key."""
        self._add(self.at(path), f"{json.dumps(key)}: ", value)

    def append(self, path: tuple[str, ...], value: Any) -> None:
        """Adds a value, last, to the array at `path`."""
        self._add(self.at(path), "", value)

    def at(self, path: tuple[str, ...]) -> Node:
        """The node that the keys of `path` lead to; KeyError."""
        node = self.root
        for key in path:
            node = node.members[key]
        return node

    # ---- writing ---------------------------------------------------------------------------------

    def _add(self, node: Node, prefix: str, value: Any) -> None:
        """Writes a member or item behind the last one, and behind the comments that follow that."""
        inner, text = node.inner, self.text
        outer = self._indent_at(node.start)
        indent = self._indent_at(inner[0].start) if inner else ""
        if not inner or len(indent) <= len(outer):  # all on one line
            indent = outer + self._unit()
        close = node.end - 1
        kept = len(text[:close].rstrip())  # what is there, comments too
        written = json.dumps(value, indent=self._unit(), ensure_ascii=False)
        entry = prefix + written.replace("\n", self._eol + indent)
        tail = f"{self._eol}{indent}{entry}{self._eol}{outer}"
        head = text[:kept]
        if inner and not node.comma:
            last = max(one.end for one in inner)  # a key that is there twice counts where it is last
            head = f"{text[:last]},{text[last:kept]}"
        self.text = f"{head}{tail}{text[close:]}"
        self.root = self._parsed()

    def _indent_at(self, at: int) -> str:
        """The blanks that the line of a place begins with."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip())]

    def _unit(self) -> str:
        """What the file indents by: as its first indented line is."""
        found = re.search(r"\n([ \t]+)[\"{\[]", self.text)
        return found[1] if found else INDENT

    # ---- reading ---------------------------------------------------------------------------------

    def _parsed(self) -> Node:
        begin = self._skip(0)
        if begin == len(self.text):
            gap = self._eol if self.text.strip("\ufeff") else ""
            self.text += f"{gap}{{}}{self._eol}"
            begin = self.text.rindex("{")
        node = self._value(begin, 0)
        if not isinstance(node.value, dict):
            raise DamagedError(self.text, begin, "it is not an object: { ... }")
        end = self._skip(node.end)
        if end != len(self.text):
            raise DamagedError(self.text, end, "more follows after its end")
        return node

    def _skip(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        assert found is not None  # it may be empty
        return found.end()

    def _value(self, at: int, depth: int) -> Node:
        first = self.text[at : at + 1]
        if depth > _MOST_NESTED:
            raise DamagedError(self.text, at, "it is nested too deeply")
        if first in ("{", "["):
            return self._nested(at, depth)
        found = _STRING.match(self.text, at) or _SCALAR.match(self.text, at)
        if found is not None:
            with contextlib.suppress(ValueError):
                return Node(at, found.end(), json.loads(found[0]))
        raise DamagedError(self.text, at, "a value is expected here")

    def _nested(self, start: int, depth: int) -> Node:
        is_object = self.text[start] == "{"
        close = "}" if is_object else "]"
        node, at = Node(start, start, {} if is_object else []), self._skip(start + 1)
        while self.text[at : at + 1] != close:
            key = None
            if is_object:
                key, at = self._key(at)
            one = self._value(at, depth + 1)
            if key is None:
                node.items.append(one)
                node.value.append(one.value)
            else:
                node.members[key] = one
                node.value[key] = one.value
            at = self._skip(one.end)
            node.comma = self.text[at : at + 1] == ","
            if node.comma:
                at = self._skip(at + 1)
            elif self.text[at : at + 1] != close:
                raise DamagedError(self.text, at, f"a comma or {close} is expected here")
        node.end = at + 1
        return node

    def _key(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self.text, at)
        if found is None:
            raise DamagedError(self.text, at, "a name in quotes is expected here")
        at = self._skip(found.end())
        if self.text[at : at + 1] != ":":
            raise DamagedError(self.text, at, "a colon is expected here")
        try:
            return json.loads(found[0]), self._skip(at + 1)
        except ValueError:
            raise DamagedError(self.text, found.start(), "a name in quotes is expected here") from None
