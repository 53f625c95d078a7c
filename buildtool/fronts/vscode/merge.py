"""Merges what is wanted into VS Code's files: adds what is missing, and changes nothing that is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buildtool.client import UsageError
from buildtool.fronts.vscode import wanted
from buildtool.fronts.vscode.jsonc import DamagedError, Document, place

FOLDER = ".vscode"


@dataclass
class Merged:
    """The files by name, and what was done: entries that were added, and those that were left as they are."""

    files: dict[str, bytes] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


class _File:
    """One of the files on its way."""

    def __init__(self, folder: Path, name: str, merged: Merged) -> None:
        self.path, self.name, self.merged = folder / FOLDER / name, name, merged
        self.document = _read(self.path)

    def need(self, key: str, value: Any) -> bool:
        """Sees to it that the file has a key; whether it already had one."""
        if key in self.document.root.members:
            return True
        self.document.set_member((), key, value)
        return False

    def entries(self, key: str, label: str, found: Sequence[dict[str, Any]]) -> None:
        """Adds entries that no entry under `key` has the same `label` as."""
        if not found:
            return
        self.array(key)
        have = {str(e.get(label)): e for e in self.document.at((key,)).value if isinstance(e, dict)}
        for entry in found:
            name = f"{self.name}: {entry[label]}"
            if entry[label] not in have:
                self.document.append((key,), entry)
                self.merged.added.append(name)
            elif have[entry[label]] != entry:
                self.merged.kept.append(name)

    def array(self, key: str) -> None:
        """Sees to it that there is an array under `key`; UsageError where there is something else."""
        if not self.need(key, []):
            return
        node = self.document.at((key,))
        if not isinstance(node.value, list):
            line, column = place(self.document.text, node.start)
            what = f"'{key}' is not a list: [ ... ]"
            raise UsageError(what, path=str(self.path), line=line, column=column)

    def done(self) -> None:
        """Takes the file up among those to write."""
        self.merged.files[self.name] = self.document.text.encode()


def _read(path: Path) -> Document:
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise UsageError("cannot read: it is not a regular file", path=str(path))
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise UsageError(f"cannot read: {error.strerror}", path=str(path)) from None
    except UnicodeDecodeError:
        raise UsageError("it is not a text file in UTF-8", path=str(path)) from None
    try:
        return Document(text)
    except DamagedError as error:
        hint = "correct it, or move it away: nothing was written"
        what = f"not JSON with comments: {error}"
        raise UsageError(what, path=str(path), line=error.line, column=error.column, hint=hint) from None


def merged(folder: Path, subject: wanted.Subject) -> Merged:
    """The files of `folder` with what `subject` wants added; UsageError for a file that cannot be read."""
    found = Merged()
    for name, fill in _FILES.items():
        file = _File(folder, name, found)
        before = file.document.root.value
        fill(file, subject)
        if file.document.root.value != before:
            file.done()
    return found


def places(folder: Path, files: Mapping[str, bytes]) -> dict[Path, dict[str, bytes]]:
    """The files by the folders that they lie in: one that is a link is written where it leads."""
    found: dict[Path, dict[str, bytes]] = {}
    for name, data in files.items():
        path = folder / FOLDER / name
        real = path.resolve() if path.is_symlink() else path
        found.setdefault(real.parent, {})[real.name] = data
    return found


def _tasks(file: _File, subject: wanted.Subject) -> None:
    file.need("version", "2.0.0")
    file.entries("tasks", "label", wanted.tasks(subject))
    file.entries("inputs", "id", wanted.inputs(subject))


def _launch(file: _File, subject: wanted.Subject) -> None:
    configurations = wanted.configurations(subject)
    if configurations:
        file.need("version", "0.2.0")
        file.entries("configurations", "name", configurations)


def _settings(file: _File, _: wanted.Subject) -> None:
    file.array(wanted.CLANGD)
    have = [str(word) for word in file.document.at((wanted.CLANGD,)).value]
    for word in (wanted.COMMANDS, wanted.DRIVERS):
        flag = word.partition("=")[0]
        name = f"{file.name}: {wanted.CLANGD} {flag}"
        if not any(known.partition("=")[0] == flag for known in have):
            file.document.append((wanted.CLANGD,), word)
            file.merged.added.append(name)
        elif word not in have:
            file.merged.kept.append(name)


_FILES: dict[str, Callable[[_File, wanted.Subject], None]] = {
    "tasks.json": _tasks,
    "launch.json": _launch,
    "settings.json": _settings,
}
