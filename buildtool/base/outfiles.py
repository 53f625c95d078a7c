"""Writes the output files of a command: all of them, or none. If it fails, the old files stay as they
were.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from buildtool.base.errors import UsageError
from buildtool.base.locks import FOLDER, hold_lock
from buildtool.base.modes import FlashPart, Format

_ELF = b"\x7fELF"
_LOOKED_AT, _COMPARED = 64, 10  # bytes by which the kind of a text is known
_ARENA = "_arena.json"  # the end of the name of the file that names the network


def write(files: Mapping[str, bytes], folder: Path) -> list[str]:
    """Writes files below `folder`, given as name -> content; returns their names, sorted. Raises UsageError
    if one cannot be written.

    It first writes temporary files beside them, so a full disk leaves the old files as they were. Several
    processes may write into one folder at once: all files are then those of the process that wrote last.
    """
    token = f".buildtool-{os.getpid()}-{os.urandom(4).hex()}"  # no other process uses it
    with contextlib.ExitStack() as clean, contextlib.ExitStack() as undo:
        parts: dict[Path, Path] = {}
        for name, data in files.items():
            path = folder / name
            with _report_errors(path):
                parts[path] = path.parent / f"{token}-{len(parts)}.part"
                _write_part(path, parts[path], data, undo)
        with alone(folder):
            for path, part in parts.items():
                with _report_errors(path):
                    _publish(path, part, clean, undo)
        undo.pop_all()
    return sorted(files)


def write_text(path: Path, data: bytes) -> list[str]:
    """Writes a text file that the user has named; returns its name in a list.

    Raises UsageError if it cannot be written, or would overwrite a file that begins differently from this
    text: that may be a network, or somebody's program.
    """
    with _report_errors(path):
        is_there = path.is_file()
        old = path.open("rb").read(_LOOKED_AT) if is_there else b""
    if old and _beginning(old) != _beginning(data):
        text = "a file of another kind is there, which this one would overwrite"
        raise UsageError(text, path=str(path), hint="give another name, or remove that file")
    return write({path.name: data}, path.parent)


def _beginning(data: bytes) -> bytes:
    """Returns the first characters of a text, without byte order mark, line ends and spaces."""
    return b"".join(data[:_LOOKED_AT].removeprefix(codecs.BOM_UTF8).split())[:_COMPARED]


def remove_parts(*folders: Path) -> None:
    """Removes the unfinished files that killed processes left in these folders."""
    for path in itertools.chain(*(folder.glob(".buildtool-*-*-*") for folder in folders)):
        number = path.name.split("-")[1]
        if path.suffix not in (".part", ".old") or not number.isdigit():
            continue
        with contextlib.suppress(PermissionError):  # a running process of another user
            try:
                if os.name == "posix":  # elsewhere 0 is a real signal, and the file stays
                    os.kill(int(number), 0)
            except ProcessLookupError:
                path.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raises UsageError if the file `path` could not be written. To find out, it writes an empty file beside
    it and removes that file.
    """
    part = path.parent / f".buildtool-{os.getpid()}-{os.urandom(4).hex()}-0.part"
    with contextlib.ExitStack() as undo, _report_errors(path):
        _write_part(path, part, b"", undo)


def write_whole(path: Path, data: bytes) -> None:
    """Writes one file completely or not at all. If two processes write it, the last one wins. Raises OSError
    if it cannot be written.
    """
    part = path.with_name(f".buildtool-{os.getpid()}-{os.urandom(4).hex()}-0.part")
    try:
        with part.open("xb") as file:
            file.write(data)
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def write_changed(files: Mapping[str, bytes], folder: Path) -> list[str]:
    """Writes the files whose content differs from the one on disk, as `write` does; returns their names."""
    changed = {name: data for name, data in files.items() if not holds(folder / name, data)}
    return write(changed, folder) if changed else []


def outdated_files(files: Mapping[str, bytes], folder: Path) -> list[str]:
    """Returns the files for flash in `folder` that an earlier build of these networks wrote, and that are not
    among `files`. Flashed together with the new firmware, they would not match it.
    """
    arenas = [name for name in files if name.endswith(_ARENA) and (folder / name).is_file()]
    endings = [f"{part}.{kind}" for part in FlashPart for kind in Format]
    names = [name.removesuffix(_ARENA) + ending for name in arenas for ending in endings]
    return [name for name in names if name not in files and (folder / name).is_file()]


def keep_inputs(written: Iterable[tuple[Path, bytes | None]], read: Iterable[str]) -> None:
    """Raises UsageError where a command would overwrite a file that it reads, or write a file twice.
    `written` gives paths with their content (None: unknown). An input may be written with the content that it
    already has.
    """
    inputs = {os.path.realpath(name) for name in read}
    spelt = {name.casefold(): name for name in inputs}
    names = set[str]()
    for path, data in written:
        try:
            name = os.path.realpath(path)
        except ValueError:  # a null character: writing the file will report it
            continue
        is_input = name in inputs or _is_same(name, spelt.get(name.casefold()))
        if is_input and (data is None or not holds(path, data)):
            text, hint = "the command reads this file and would overwrite it", "write to another file"
            raise UsageError(text, path=str(path), hint=hint)
        if name in names:
            text, hint = "the command would write two files with this name", "give each its own name"
            raise UsageError(text, path=str(path), hint=hint)
        names.add(name)


def _is_same(name: str, other: str | None) -> bool:
    """Whether two names belong to one file. In some file systems "a" and "A" do."""
    try:
        return other is not None and Path(name).samefile(other)
    except OSError:  # one of them does not exist
        return False


def keep_networks(files: Mapping[str, bytes], folder: Path) -> None:
    """Raises UsageError where `files` would replace those of another network in `folder` that has the same
    name in C. A file that cannot be read, or that names no network, may be replaced.
    """
    for name, data in files.items():
        if name.endswith(_ARENA):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                old = json.loads((folder / name).read_bytes())["network"]
                new, net = json.loads(data)["network"], name.removesuffix(_ARENA)
                refuse_another(old if isinstance(old, str) else None, new, folder, net)


def refuse_another(old: str | None, new: str, folder: Path, net: str) -> None:
    """Raises UsageError if the networks `old` and `new` differ. `old` is None where no network is known. Both
    are called `net` in C, and their files are in `folder`.
    """
    if old not in (None, new):
        raise UsageError(
            f"the folder contains the network '{old}', which has the same C name '{net}' as '{new}': "
            "the new files would replace the old ones",
            path=str(folder),
            hint="name the new one (--name), write it to another folder, or remove the old one's files",
        )


def holds(path: Path, data: bytes) -> bool:
    """Whether the file at `path` is a regular file with the content `data`."""
    try:
        return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data
    except (OSError, ValueError):
        return False


def _write_part(path: Path, part: Path, data: bytes, undo: contextlib.ExitStack) -> None:
    """Writes `data` to `part`, a temporary file beside `path`, and makes missing folders. `undo` removes
    both.
    """
    folder, missing = path.parent, list[Path]()
    while not folder.exists() and folder != folder.parent:
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        undo.callback(_quietly, folder.rmdir)  # it stays if another process has put something there
    if path.is_dir():
        raise IsADirectoryError(0, "Is a directory")
    # a device, a pipe, a socket, or a link to an open file (/dev/stdout)
    is_open = path.is_symlink() and str(path.readlink()).startswith("/proc/")
    if is_open or (path.exists() and not path.is_file()):
        raise OSError(0, "this is a device or a pipe, which a file would replace")
    undo.callback(_quietly, part.unlink)
    with part.open("xb") as file:
        file.write(data)
    if data.startswith(_ELF):
        mode = part.stat().st_mode
        part.chmod(mode | (mode & 0o444) >> 2)  # those who may read a program may run it


def _publish(path: Path, part: Path, clean: contextlib.ExitStack, undo: contextlib.ExitStack) -> None:
    """Renames `part` to `path`. An old file `path` first gets a second name: `undo` restores it from there,
    and `clean` removes that name.
    """
    old = part.with_suffix(".old")
    is_there = path.is_symlink() or path.exists()
    if is_there:
        try:
            old.hardlink_to(path)
        except OSError:  # a file system without hard links
            path.rename(old)
        clean.callback(_quietly, old.unlink)
        undo.callback(_quietly, old.replace, path)
    part.replace(path)
    if not is_there:
        undo.callback(_quietly, path.unlink)


def _quietly(step: Callable[..., object], *about: object) -> None:
    """Calls `step` with the arguments `about`, and ignores errors of the system."""
    with contextlib.suppress(OSError):
        step(*about)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """A context in which no other process that uses it renames files in `folder`. It has no effect on a
    system without locks.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(hold_lock(folder, wait=True, flags=FOLDER))
        yield


@contextlib.contextmanager
def _report_errors(path: Path) -> Iterator[None]:
    """A context that turns errors of the system into UsageErrors about `path`."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write: {error.strerror}", path=str(path)) from None
    except ValueError:  # a null character
        raise UsageError("cannot write: this is not a path", path=repr(str(path))) from None


# ---- a depfile and a stamp, for rules of Make, Ninja and CMake ---------------------------------------------
#
# The stamp is the rule's only output. It is removed before the files are written and written after them, so
# that a killed command runs again, whatever the times of files are. Its time is the start of the command: a
# model that is saved during planning is newer, and is planned again. Files with equal content stay unchanged.


def depfile(target: str, files: Iterable[str]) -> bytes:
    """Returns the rule `target: files` for Make, Ninja and CMake, with one file per line, sorted. Raises
    UsageError if a name has a line break. Semicolons and brackets stay as they are: Make has no escape for
    them.
    """
    lines = [_escape(target) + ":", *(_escape(name) for name in sorted(set(files)))]
    return (" \\\n  ".join(lines) + "\n").encode(errors="surrogateescape")


def _escape(name: str) -> str:
    """Returns a name with spaces, hashes and dollar signs escaped, as Ninja and Make read it."""
    if "\n" in name or "\r" in name:
        raise UsageError("a depfile cannot name a file with a line break in its name", path=repr(name))
    # a space or a hash gets a backslash, and backslashes right before it are doubled
    return re.sub(r"(\\*)([ \t#])", r"\1\1\\\2", name).replace("$", "$$")


def remove_stamp(stamp: str) -> None:
    """Removes the stamp file of an earlier command. Raises UsageError if it cannot be removed."""
    try:
        Path(stamp).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot remove the stamp: {error.strerror}", path=stamp) from None
    except ValueError:  # a null character
        raise UsageError("cannot remove the stamp: this is not a path", path=repr(stamp)) from None


def write_stamp(stamp: str, rule: tuple[str, bytes] | None, began: int) -> None:
    """Writes the depfile `rule` (its path and content; None: no depfile), then the empty file `stamp`, whose
    time is `began` (ns since 1970).
    """
    if rule is not None:
        path = Path(rule[0])
        write({path.name: rule[1]}, path.parent)
    path = Path(stamp)
    write({path.name: b""}, path.parent)
    with contextlib.suppress(OSError):  # the file system has no times, or another process has removed it
        os.utime(path, ns=(began, began))
