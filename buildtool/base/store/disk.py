"""Cache entries as files FOLDER/LEVEL/ab/cdef…, where "abcdef…" is the key. LEVEL is the namespace.

A file is written under a temporary name and then renamed, so any number of processes may read and write at
once. Nothing here raises: what cannot be read is a miss, what cannot be written is not stored, and both are
counted. A file has the payload and its seal: a SHA-256 of the format, the entry's level and key, the version
of buildtool, and the payload. So damaged bytes are refused, and so is the file of another entry or version.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import msgpack

from buildtool import __version__
from buildtool.base.errors import MachineError
from buildtool.base.folders import memo_folder, private, user, writable_by_others
from buildtool.base.locks import hold_lock
from buildtool.base.store import EntryId

FORMAT = 3
MOST_BYTES = 16 << 20  # of an entry: no larger file is written or read
ASIDE = "aside"  # the folder of entries that were bad
MOST_ASIDE = 20  # bad entries that are kept, so that people can look for the cause
MEMO_BYTES = 32 << 20  # of the memo of builds
_EVICTING = "0"  # the memo's size is checked only for keys that begin so, since that takes a while
_BLOCK = 4096  # bytes that a file takes on disk at least; the memo has many small files
_EVICTED_TO = 0.8  # the share of the limit that is left after entries were evicted
LOCK = "evict.lock"
_STALE_SECONDS = 3600  # an unfinished file this old belongs to a process that was killed
_KEY = re.compile(r"[0-9a-f]{64}")
_PREFIX = re.compile(r"[0-9a-f]{2}")
_LEVEL = re.compile(rf"(?!{ASIDE}$)[a-z]{{1,32}}")
_PART = re.compile(r"\.[0-9a-f]{16}-[0-9]+-[0-9a-f]{8}\.part")
_ASIDE_NAME = re.compile(r"[a-z]{1,32}-[0-9a-f]{64}")

_SEAL_BYTES = hashlib.sha256().digest_size


class BadEntryError(Exception):
    """The bytes of an entry are damaged, or belong to another entry or another version of buildtool."""


def pack(level: str, key: str, payload: bytes) -> bytes:
    """Returns the bytes of an entry: the payload, followed by its seal."""
    return payload + _seal(level, key, payload)


def unpack(data: bytes, level: str, key: str) -> bytes:
    """Returns an entry's payload. Raises BadEntryError unless `data` are the undamaged bytes of exactly this
    entry.
    """
    payload, seal = data[:-_SEAL_BYTES], data[-_SEAL_BYTES:]
    if seal != _seal(level, key, payload):
        raise BadEntryError("it is damaged, another entry, or another version's")
    return payload


def _seal(level: str, key: str, payload: bytes) -> bytes:
    digest = hashlib.sha256(msgpack.packb([FORMAT, level, key, __version__]))
    digest.update(payload)
    return digest.digest()


class Disk:
    """The entries below `folder`. `counts` has the numbers of failed reads ("unreadable"), failed writes
    ("unwritable") and bad entries ("bad").
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()

    @cached_property
    def trouble(self) -> str:
        """The reason why the folder cannot be used; "" if it can be used. A missing folder is made."""
        try:
            private(self.folder)
            return ""
        except MachineError as error:
            return f"{error.path}: {error.text}"

    def read(self, level: str, key: str) -> bytes | None:
        """Returns an entry's payload; None if there is no entry, or a bad one, which is then moved aside."""
        if self.trouble:
            return None
        path = self._path(level, key)
        try:
            return unpack(_content(path), level, key)
        except FileNotFoundError:
            return None
        except OSError:
            self.counts["unreadable"] += 1
            return None
        except BadEntryError:
            self.discard(level, key)
            return None

    def write(self, level: str, key: str, payload: bytes) -> int:
        """Stores an entry. Returns its bytes on disk, or 0 where it could not be stored."""
        data = pack(level, key, payload)
        if self.trouble or len(data) > MOST_BYTES:
            return 0
        path = self._path(level, key)
        part = path.with_name(f".{key[:16]}-{os.getpid()}-{os.urandom(4).hex()}.part")
        try:
            try:
                _write(part, data)
            except FileNotFoundError:  # the first entry of its folder; the cache's own folder is not made
                for folder in (path.parent.parent, path.parent):
                    folder.mkdir(mode=0o700, exist_ok=True)
                _write(part, data)
            part.replace(path)
        except OSError:
            self.counts["unwritable"] += 1
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            return 0
        return len(data)

    def discard(self, level: str, key: str) -> None:
        """Moves a bad entry into the folder ASIDE, where people can look at it and no program reads it."""
        self.counts["bad"] += 1
        aside = self.folder / ASIDE
        path = self._path(level, key)
        with contextlib.suppress(OSError, MachineError):
            aside.mkdir(mode=0o700, exist_ok=True)
            private(aside)  # a link would lead out of the folder
            if sum(1 for _ in os.scandir(aside)) < MOST_ASIDE:
                path.replace(aside / f"{level}-{key}")
                return
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)

    def remove(self, level: str, key: str) -> None:
        """Removes an entry, if it exists."""
        with contextlib.suppress(OSError, ValueError):
            self._path(level, key).unlink(missing_ok=True)

    def entries(self) -> Iterator[tuple[str, str, int]]:
        """Yields the level, key and bytes of every entry. It reads all folders."""
        for part in self._parts():
            with contextlib.suppress(OSError):
                for file in os.scandir(part):
                    key = part.name + file.name
                    if _KEY.fullmatch(key) and file.is_file(follow_symlinks=False):
                        yield part.parent.name, key, file.stat(follow_symlinks=False).st_size

    def used(self, known: EntryId) -> int:
        """Returns the time when an entry was last used (ns since 1970): the access time of its file, or 0 if
        it has no file.
        """
        try:
            return self._path(*known).lstat().st_atime_ns
        except OSError:
            return 0

    def touch(self, known: EntryId, when: int) -> None:
        """Records that an entry was used at the time `when` (ns since 1970)."""
        path = self._path(*known)
        with contextlib.suppress(OSError):
            os.utime(path, ns=(when, path.lstat().st_mtime_ns), follow_symlinks=False)

    def sweep(self, stale_seconds: float = _STALE_SECONDS) -> None:
        """Removes unfinished files of killed processes: those older than `stale_seconds`, or with a time in
        the future.
        """
        now = time.time()

        def is_stale(file: os.DirEntry[str]) -> bool:
            age = now - file.stat(follow_symlinks=False).st_mtime
            return age > stale_seconds or age < -_STALE_SECONDS

        for part in self._parts():
            _unlink(part, lambda file: _PART.fullmatch(file.name) and is_stale(file))

    def empty(self) -> None:
        """Removes everything that this class has made, and nothing else in the folder."""
        for level, key, _ in list(self.entries()):
            self.remove(level, key)
        self.sweep(-math.inf)
        aside = self.folder / ASIDE
        if not aside.is_symlink():
            _unlink(aside, lambda file: _ASIDE_NAME.fullmatch(file.name))
        for folder in (*self._parts(), *_folders(self.folder)):
            if folder.name == ASIDE or _LEVEL.fullmatch(folder.name) or folder.parent.parent == self.folder:
                with contextlib.suppress(OSError):  # something else lies in it
                    folder.rmdir()

    def _parts(self) -> Iterator[Path]:
        """Yields the folders that contain entries, such as LEVEL/ab."""
        for level in _folders(self.folder):
            if _LEVEL.fullmatch(level.name):
                yield from (part for part in _folders(level) if _PREFIX.fullmatch(part.name))

    def _path(self, level: str, key: str) -> Path:
        if not _LEVEL.fullmatch(level) or not _KEY.fullmatch(key):
            raise ValueError(f"no entry is called {level}/{key}")
        return self.folder / level / key[:2] / key[2:]


def recall(level: str, key: str) -> bytes | None:
    """Returns what a build has stored in the memo; None if it is missing or cannot be trusted."""
    folder = memo_folder()
    return Disk(folder).read(level, key) if folder is not None and folder.is_dir() else None


def keep(level: str, key: str, data: bytes) -> None:
    """Stores `data` in the memo of builds. Errors of the system are ignored."""
    folder = memo_folder()
    if folder is None:
        return
    keep_within(Disk(folder), MEMO_BYTES, (level, key), data)


def keep_within(disk: Disk, most: int, known: EntryId, data: bytes) -> None:
    """Stores an entry in a folder, and evicts old entries now and then.

    So the entries in the folder have at most about `most` bytes in total.
    """
    is_new = not disk.used(known)
    if disk.write(*known, data) and is_new and known[1].startswith(_EVICTING):
        evict(disk, most, _BLOCK)


def evict(disk: Disk, most: int, least: int = 0) -> None:
    """Calls `shrink` with the same arguments, unless another process evicts entries of this folder at this
    time.
    """
    with contextlib.suppress(OSError), hold_lock(disk.folder / LOCK, wait=False) as mine:
        if mine is not None:
            shrink(disk, most, least)


def shrink(disk: Disk, most: int, least: int = 0) -> int:
    """Returns the sum of the bytes of all entries; each entry counts as at least `least` bytes. If the sum is
    above `most`, it first removes the least recently used entries until four fifths of `most` are left. The
    caller must hold the lock.
    """
    disk.sweep()
    sizes = {(level, key): max(size, least) for level, key, size in disk.entries()}
    total = sum(sizes.values())
    oldest_first = sorted(sizes, key=lambda known: (disk.used(known), known)) if total > most else []
    for known in oldest_first:
        if total <= int(most * _EVICTED_TO):
            break
        disk.remove(*known)
        total -= sizes[known]
    return total


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(Path(e.path) for e in os.scandir(folder) if e.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _unlink(folder: Path, chosen: Callable[[os.DirEntry[str]], object]) -> None:
    """Removes the files of a folder for which `chosen` is true, as far as the system allows it."""
    with contextlib.suppress(OSError):
        for file in os.scandir(folder):
            if chosen(file):
                Path(file.path).unlink(missing_ok=True)


def _content(path: Path) -> bytes:
    """Returns the content of a regular file. Raises OSError for a link, any other kind of file, and a file
    that is too large. Raises BadEntryError for a file that another user may have written.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(handle, "rb") as file:  # noqa: PTH123 - an open one, not a name
        there = os.fstat(handle)
        if not stat.S_ISREG(there.st_mode) or there.st_size > MOST_BYTES:
            raise OSError("not an entry's file")
        if there.st_uid != user() or writable_by_others(there):
            raise BadEntryError("somebody else may have written it")
        return file.read(MOST_BYTES + 1)


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "wb") as file:  # noqa: PTH123
        file.write(data)
