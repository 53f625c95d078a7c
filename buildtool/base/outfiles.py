"""Writes the files that a command was asked for: a set gets its names together, or what was there stays."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from buildtool.base.errors import UsageError
from buildtool.base.locks import FOLDER, hold_lock
from buildtool.base.modes import FlashPart, Format

_ELF = b"\x7fELF"
_ARENA = "_arena.json"  # ends the name of the file that says which network the others are of


def write(files: Mapping[str, bytes], folder: Path) -> list[str]:
    """Writes files below `folder`; their names, sorted. UsageError for what cannot be written.

    They are written beside their names first: a full disk leaves what was there before. Several processes
    may write into one folder at once; the last one's set is what remains.
    """
    token = f".buildtool-{os.getpid()}-{os.urandom(4).hex()}"  # of this process alone
    with contextlib.ExitStack() as clean, contextlib.ExitStack() as undo:
        parts: dict[Path, Path] = {}
        for name, data in files.items():
            path = folder / name
            with _writing(path):
                parts[path] = path.parent / f"{token}-{len(parts)}.part"
                _write_part(path, parts[path], data, undo)
        with alone(folder):
            for path, part in parts.items():
                with _writing(path):
                    _publish(path, part, clean, undo)
        undo.pop_all()
    return sorted(files)


def write_whole(path: Path, data: bytes) -> None:
    """Puts one file in place, whole or not at all; of two that write, the last one wins. Raises OSError."""
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
    """As `write`, but files that already have their content stay as they are; the names of those written."""
    changed = {name: data for name, data in files.items() if not holds(folder / name, data)}
    return write(changed, folder) if changed else []


def outdated_files(files: Mapping[str, bytes], folder: Path) -> list[str]:
    """The files for flash that an earlier build of these networks left in a folder, and `files` has not:
    they would be flashed beside firmware that is not theirs.
    """
    built = [name for name in files if name.endswith(_ARENA) and (folder / name).is_file()]
    endings = [f"{part}.{kind}" for part in FlashPart for kind in Format]
    names = [name.removesuffix(_ARENA) + ending for name in built for ending in endings]
    return [name for name in names if name not in files and (folder / name).is_file()]


def keep_inputs(written: Iterable[tuple[Path, bytes | None]], read: Iterable[str]) -> None:
    """UsageError where a command would write a file that it reads, or write one twice; `written`: paths with
    their content, as far as it is known: a file that has it already loses nothing.
    """
    kept = {os.path.realpath(name) for name in read}
    names = set[str]()
    for path, data in written:
        try:
            name = os.path.realpath(path)
        except ValueError:  # a null character; who writes it says so
            continue
        if name in kept and (data is None or not holds(path, data)):
            text, hint = "this file is read by the command, and would be lost", "write to another one"
            raise UsageError(text, path=str(path), hint=hint)
        if name in names:
            text, hint = "two files are to be written by this name", "give each a name of its own"
            raise UsageError(text, path=str(path), hint=hint)
        names.add(name)


def keep_networks(files: Mapping[str, bytes], folder: Path) -> None:
    """UsageError where `files` would replace those of another network in `folder` that has the same name in
    C. A file that cannot be read, or that names no network, keeps nothing from being written.
    """
    for name, data in files.items():
        if name.endswith(_ARENA):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                old = json.loads((folder / name).read_bytes())["network"]
                new, net = json.loads(data)["network"], name.removesuffix(_ARENA)
                refuse_another(old if isinstance(old, str) else None, new, folder, net)


def refuse_another(old: str | None, new: str, folder: Path, net: str) -> None:
    """Raises UsageError where `old` (None: there is none) is another network than `new`; both are `net`."""
    if old not in (None, new):
        raise UsageError(
            f"the folder has the network '{old}', and '{new}' is called '{net}' in C as well: "
            "its files would replace the other's",
            path=str(folder),
            hint="name the new one (--name), write it to a folder of its own, or remove the old one's files",
        )


def holds(path: Path, data: bytes) -> bool:
    """Whether a regular file has this content."""
    try:
        return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data
    except (OSError, ValueError):
        return False


def _write_part(path: Path, part: Path, data: bytes, undo: contextlib.ExitStack) -> None:
    """Writes `data` to the file `part` beside `path`, whose folders are made; `undo` removes them all."""
    folder, missing = path.parent, list[Path]()
    while not folder.exists() and folder != folder.parent:
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        undo.callback(_quietly, folder.rmdir)  # unless somebody else has put something there
    if path.is_dir():
        raise IsADirectoryError(0, "Is a directory")
    # a device, a pipe or a socket, or a link that stands for an open file (/dev/stdout)
    is_open = path.is_symlink() and str(path.readlink()).startswith("/proc/")
    if is_open or (path.exists() and not path.is_file()):
        raise OSError(0, "a device or a pipe, and a file would take its place")
    undo.callback(_quietly, part.unlink)
    with part.open("xb") as file:
        file.write(data)
    if data.startswith(_ELF):
        mode = part.stat().st_mode
        part.chmod(mode | (mode & 0o444) >> 2)  # users who may read a program may run it


def _publish(path: Path, part: Path, clean: contextlib.ExitStack, undo: contextlib.ExitStack) -> None:
    """Renames a part to its own name. A file of this name gets a second name first; `undo` puts it back."""
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
    """Does a step, and ignores what the system refuses."""
    with contextlib.suppress(OSError):
        step(*about)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Only one process at a time renames files in a folder, where the system has locks."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            held.enter_context(hold_lock(folder, wait=True, flags=FOLDER))
        yield


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turns an error of the system into a UsageError about `path`."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write: {error.strerror}", path=str(path)) from None
    except ValueError:  # a null character
        raise UsageError("cannot write: this is not a path", path=repr(str(path))) from None


# ---- what a rule of Make, Ninja or CMake reads about a command: a depfile and a stamp ----------------------
#
# The stamp is the rule's one output. It is gone while files get their content and comes last, so that a
# command that was killed runs again whatever times say. Its time is when the command began: a model that is
# saved while it is planned is newer, and planned again. The files change only where their content does.


def depfile(target: str, files: Iterable[str]) -> bytes:
    """The rule `target: files` for Make, Ninja and CMake, a file a line, sorted; UsageError for a line break
    in a name. Make alone reads a semicolon and brackets as its own, and has no escape for them.
    """
    lines = [_escape(target) + ":", *(_escape(name) for name in sorted(set(files)))]
    return (" \\\n  ".join(lines) + "\n").encode(errors="surrogateescape")


def _escape(name: str) -> str:
    """A name with its blanks, hashes and dollars escaped, as Ninja and Make read it."""
    if "\n" in name or "\r" in name:
        raise UsageError("a file with a line break in its name cannot stand in a depfile", path=repr(name))
    # of a blank or a hash the backslashes before it are doubled, and one is its own
    return re.sub(r"(\\*)([ \t#])", r"\1\1\\\2", name).replace("$", "$$")


def remove_stamp(stamp: str) -> None:
    """Removes the stamp that vouches for an earlier command's files. UsageError where that cannot be."""
    try:
        Path(stamp).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot remove the stamp: {error.strerror}", path=stamp) from None
    except ValueError:  # a null character
        raise UsageError("cannot write: this is not a path", path=repr(stamp)) from None


def write_stamp(stamp: str, rule: tuple[str, bytes] | None, began: int) -> None:
    """Writes the depfile (its path and content), then the stamp with the time `began` (ns since 1970)."""
    if rule is not None:
        path = Path(rule[0])
        write({path.name: rule[1]}, path.parent)
    path = Path(stamp)
    write({path.name: b""}, path.parent)
    with contextlib.suppress(OSError):  # a file system without times, or another process has removed it
        os.utime(path, ns=(began, began))
