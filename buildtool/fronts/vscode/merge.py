"""Merges entries into VS Code's files: adds missing entries, and changes nothing else."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buildtool.client import UsageError
from buildtool.fronts.vscode import entries

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"[-+.\w]+")
_MOST_NESTED = 200
INDENT = "    "  # for files without any indentation


class DamagedError(ValueError):
    """A text is not JSON with comments; the error is at `line` and `column` (from 1)."""

    def __init__(self, text: str, at: int, what: str) -> None:
        super().__init__(what)
        self.line, self.column = place(text, at)


def place(text: str, at: int) -> tuple[int, int]:
    """Returns the line and column (from 1) of a position in a text."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


@dataclass
class Node:
    """A value at text positions [start, end).

    - `value`: the parsed value.
    - `members`: an object's members; `items`: an array's items.
    - `comma`: whether a comma follows the last member or item.
    """

    start: int
    end: int
    value: Any
    members: dict[str, Node] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)
    comma: bool = False

    @property
    def inner(self) -> list[Node]:
        """The members or items, in order."""
        return [*self.members.values(), *self.items]


class Document:
    """A JSON text whose value is an object.

    A text that is empty, or has only comments, is an empty object.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._eol = "\r\n" if "\r\n" in text else "\n"
        self.root = self._parsed()

    def set_member(self, path: tuple[str, ...], key: str, value: Any) -> None:
        """Adds `key` with its value at the end of the object at `path`, which has no such key."""
        self._add(self.at(path), f"{json.dumps(key)}: ", value)

    def append(self, path: tuple[str, ...], value: Any) -> None:
        """Adds a value at the end of the array at `path`."""
        self._add(self.at(path), "", value)

    def at(self, path: tuple[str, ...]) -> Node:
        """Returns the node that the keys of `path` lead to. Raises KeyError if a key is missing."""
        node = self.root
        for key in path:
            node = node.members[key]
        return node

    # ---- writing ---------------------------------------------------------------------------------

    def _add(self, node: Node, prefix: str, value: Any) -> None:
        """Writes a member or an item after the last one of `node`, and after the comments that follow it.

        `prefix` is the key of a member ("": it is an item).
        """
        inner, text = node.inner, self.text
        outer = self._indent_at(node.start)
        indent = self._indent_at(inner[0].start) if inner else ""
        if not inner or len(indent) <= len(outer):  # all on one line
            indent = outer + self._unit()
        close = node.end - 1
        end = len(text[:close].rstrip())  # the end of the present text, with comments
        dumped = json.dumps(value, indent=self._unit(), ensure_ascii=False)
        entry = prefix + dumped.replace("\n", self._eol + indent)
        tail = f"{self._eol}{indent}{entry}{self._eol}{outer}"
        head = text[:end]
        if inner and not node.comma:
            last = max(one.end for one in inner)  # of equal keys, the last one counts
            head = f"{text[:last]},{text[last:end]}"
        self.text = f"{head}{tail}{text[close:]}"
        self.root = self._parsed()

    def _indent_at(self, at: int) -> str:
        """Returns the blanks at the beginning of the line that has the position `at`."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip())]

    def _unit(self) -> str:
        """Returns the blanks by which the file's first indented line is indented."""
        match = re.search(r"\n([ \t]+)[\"{\[]", self.text)
        return match[1] if match else INDENT

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
        match = _BLANK.match(self.text, at)
        assert match is not None  # the pattern also matches ""
        return match.end()

    def _value(self, at: int, depth: int) -> Node:
        first = self.text[at : at + 1]
        if depth > _MOST_NESTED:
            raise DamagedError(self.text, at, "it is nested too deeply")
        if first in ("{", "["):
            return self._nested(at, depth)
        match = _STRING.match(self.text, at) or _SCALAR.match(self.text, at)
        if match is not None:
            with contextlib.suppress(ValueError):
                return Node(at, match.end(), json.loads(match[0]))
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
        match = _STRING.match(self.text, at)
        if match is None:
            raise DamagedError(self.text, at, "a name in quotes is expected here")
        at = self._skip(match.end())
        if self.text[at : at + 1] != ":":
            raise DamagedError(self.text, at, "a colon is expected here")
        try:
            return json.loads(match[0]), self._skip(at + 1)
        except ValueError:
            raise DamagedError(self.text, match.start(), "a name in quotes is expected here") from None


FOLDER = ".vscode"


@dataclass
class Merged:
    """The result of a merge.

    - `files`: the changed files by name.
    - `added`: the entries that were added.
    - `kept`: the entries that differ from ours and stay as they were.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


class _File:
    """One of the files while it is merged."""

    def __init__(self, folder: Path, name: str, merged: Merged) -> None:
        self.path, self.name, self.merged = folder / FOLDER / name, name, merged
        self.document = _read(self.path)

    def need(self, key: str, value: Any) -> bool:
        """Adds a key with its value if the file does not have the key. Returns whether the file had it."""
        if key in self.document.root.members:
            return True
        self.document.set_member((), key, value)
        return False

    def add_entries(self, key: str, label: str, items: Sequence[dict[str, Any]]) -> None:
        """Adds those of `items` to the array under `key` that it does not have yet.

        An item is there already if an entry of the array has the same value under the key `label`.
        """
        if not items:
            return
        self.array(key)
        present = {str(e.get(label)): e for e in self.document.at((key,)).value if isinstance(e, dict)}
        for entry in items:
            name = f"{self.name}: {entry[label]}"
            if entry[label] not in present:
                self.document.append((key,), entry)
                self.merged.added.append(name)
            elif present[entry[label]] != entry:
                self.merged.kept.append(name)

    def array(self, key: str) -> None:
        """Adds an empty array under `key` if there is none. Raises UsageError if another value is there."""
        if not self.need(key, []):
            return
        node = self.document.at((key,))
        if not isinstance(node.value, list):
            line, column = place(self.document.text, node.start)
            what = f"'{key}' is not a list: [ ... ]"
            raise UsageError(what, path=str(self.path), line=line, column=column)


def _read(path: Path) -> Document:
    if path.exists() and not path.is_file():  # reading a pipe would wait
        raise UsageError("cannot read: it is not a regular file", path=str(path))
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise UsageError(f"cannot read: {error.strerror}", path=str(path)) from None
    except UnicodeDecodeError:
        raise UsageError("this is not a text file in UTF-8", path=str(path)) from None
    try:
        return Document(text)
    except DamagedError as error:
        hint = "correct it, or move it away: nothing was written"
        what = f"this is not JSON with comments: {error}"
        raise UsageError(what, path=str(path), line=error.line, column=error.column, hint=hint) from None


def merged(folder: Path, subject: entries.Subject) -> Merged:
    """Returns the files of `folder` with the entries for `subject`. It writes nothing.

    Raises UsageError if a file cannot be read.
    """
    result = Merged()
    for name, fill in _FILES.items():
        file = _File(folder, name, result)
        before = file.document.root.value
        fill(file, subject)
        if file.document.root.value != before:
            result.files[name] = file.document.text.encode()
    return result


def places(folder: Path, files: Mapping[str, bytes]) -> dict[Path, dict[str, bytes]]:
    """Returns the files to write: folder -> name -> content. Symbolic links are replaced by their targets."""
    by_folder: dict[Path, dict[str, bytes]] = {}
    for name, data in files.items():
        path = folder / FOLDER / name
        real = path.resolve() if path.is_symlink() else path
        by_folder.setdefault(real.parent, {})[real.name] = data
    return by_folder


def _tasks(file: _File, subject: entries.Subject) -> None:
    file.need("version", "2.0.0")
    file.add_entries("tasks", "label", entries.tasks(subject))
    file.add_entries("inputs", "id", entries.inputs(subject))


def _launch(file: _File, subject: entries.Subject) -> None:
    configurations = entries.configurations(subject)
    if configurations:
        file.need("version", "0.2.0")
        file.add_entries("configurations", "name", configurations)


def _settings(file: _File, _: entries.Subject) -> None:
    file.array(entries.CLANGD)
    present = [str(word) for word in file.document.at((entries.CLANGD,)).value]
    for word in (entries.COMMANDS, entries.DRIVERS):
        flag = word.partition("=")[0]
        name = f"{file.name}: {entries.CLANGD} {flag}"
        if not any(other.partition("=")[0] == flag for other in present):
            file.document.append((entries.CLANGD,), word)
            file.merged.added.append(name)
        elif word not in present:
            file.merged.kept.append(name)


_FILES: dict[str, Callable[[_File, entries.Subject], None]] = {
    "tasks.json": _tasks,
    "launch.json": _launch,
    "settings.json": _settings,
}
