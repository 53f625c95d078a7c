"""Results computed from files, such as digests: a file is read again where it may have changed.

A record holds a file's size, times and inode, when it was read, and the result. It counts while these are the
same, if the file was at rest when it was read: a file that changes twice within the grain of the clock keeps
its time (git calls it racily clean). A write through a memory map changes the time only when the system
writes the page to disk, and in a file system in memory never.

With HASH_INPUTS in the environment every file is read. `Memo` lives as long as its process, `Digests` are
kept in the memo of builds (buildtool/base/store).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

import msgpack

from buildtool import __version__
from buildtool.base.store import disk
from buildtool.base.store.recent import Recent

T = TypeVar("T")

GRAIN_NS = 2_000_000_000  # file systems there are keep times in steps of up to two seconds
# Linux writes a page that a program has mapped and changed 30 s later, looks for such pages every 5 s, and
# only then notices the next store to it: for so long a second store leaves the times as they are.
MAPPED_NS = 60_000_000_000
HASH_INPUTS = "BUILDTOOL_HASH_INPUTS"  # 1: files are read, whatever their times say
_LEVEL = "digests"
_FORMAT = 1
_MOST_RECORDS = 20_000  # then those that this process has not used are dropped
_CHUNK = 1 << 20

# size, time of the content, time of the inode's data, inode, when it was read (nanoseconds), what was made
Record = tuple[int, int, int, int, int, T]


def stamp(there: os.stat_result) -> tuple[int, int, int, int]:
    """The numbers that change with a file: size, both times in nanoseconds, inode."""
    return there.st_size, there.st_mtime_ns, there.st_ctime_ns, there.st_ino


def at_rest(there: os.stat_result, when_ns: int) -> bool:
    """Whether the file had been unchanged for longer than the clock's grain at `when_ns`. Unknown after a
    change in a whole second: all files of a file system's image have one time and known inodes.
    """
    if there.st_ctime_ns % 1_000_000_000 == 0:
        return False
    return max(there.st_mtime_ns, there.st_ctime_ns) + GRAIN_NS <= when_ns


def is_hashed_always() -> bool:
    """Whether the user wants every file to be read."""
    return os.environ.get(HASH_INPUTS, "").lower() not in ("", "0", "off", "no", "false")


@contextlib.contextmanager
def hashing_always(wanted: bool) -> Iterator[None]:
    """A context in which every file is read if that is `wanted`, also by processes started in it."""
    before = os.environ.get(HASH_INPUTS)
    if wanted:
        os.environ[HASH_INPUTS] = "1"
    try:
        yield
    finally:
        os.environ.pop(HASH_INPUTS, None)
        if before is not None:
            os.environ[HASH_INPUTS] = before


def proves(there: os.stat_result, when_ns: int) -> bool:
    """Whether a file that was read at `when_ns` has that content for as long as its stamp stays the same."""
    if is_hashed_always() or there.st_dev in _without_times():
        return False
    return at_rest(there, when_ns) and max(there.st_mtime_ns, there.st_ctime_ns) + MAPPED_NS <= when_ns


@functools.cache
def _without_times() -> frozenset[int]:
    """The devices of file systems that record no time for a write through a memory map."""
    devices = set()
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
            before, _, after = line.partition(" - ")
            if after.split(" ")[0] in ("tmpfs", "ramfs", "hugetlbfs"):
                major, minor = before.split(" ")[2].split(":")
                devices.add(os.makedev(int(major), int(minor)))
    return frozenset(devices)


def _made(path: str, known: Record[T] | None, make: Callable[[str], T]) -> tuple[T, Record[T] | None]:
    """The result of `make` for a file, recorded or computed, and a new record, if that proves anything."""
    there = os.stat(path)  # noqa: PTH116 (of hundreds of files: a Path costs more than the question)
    if known is not None and known[:4] == stamp(there) and proves(there, known[4]):
        return known[5], None
    now = time.time_ns()
    result = make(path)
    is_proof = stamp(Path(path).stat()) == stamp(there) and proves(there, now)
    return result, (*stamp(there), now, result) if is_proof else None


class Memo(Generic[T]):
    """The results of `make` for files: for the `most` files that were asked for last."""

    def __init__(self, make: Callable[[str], T], most: int) -> None:
        self._make = make
        self._records: Recent[str, Record[T]] = Recent(most)

    def of(self, path: str) -> T:
        """The result for the file at `path`. OSError if it cannot be read."""
        result, record = _made(path, self._records.get(path), self._make)
        if record is not None:
            self._records.put(path, record)
        return result


class Digests:
    """The digests of the files of one `scope` (a checkout, a build's top folder); `save` keeps them."""

    def __init__(self, scope: str) -> None:
        name = f"{__version__} {scope}"  # no version reads another one's entries
        self._name = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()
        self._used: set[str] = set()
        self._learnt = False

    @functools.cached_property
    def _records(self) -> dict[str, Record[str]]:
        """The records of earlier processes; none where another version wrote them, or they are damaged."""
        data = disk.recall(_LEVEL, self._name)
        try:
            form, records = msgpack.unpackb(data, use_list=False, unicode_errors="surrogateescape")
            if data is None or form != _FORMAT:
                return {}
            known = ((key, record) for key, record in records.items() if isinstance(record, tuple))
            return {key: record for key, record in known if tuple(map(type, record)) == (*(int,) * 5, str)}
        except Exception:  # nothing was kept, or whatever msgpack raises about bytes that somebody else wrote
            return {}

    def digest(self, path: str, made: Callable[[str], str] | None = None, how: str = "") -> str:
        """SHA-256 (hex) of the file at `path`, or what `made`, named `how`, gives. OSError if unreadable."""
        key = f"{how}:{path}"
        self._used.add(key)
        digest, record = _made(path, self._records.get(key), made or sha256)
        if record is not None:
            self._records[key] = record
            self._learnt = True
        return digest

    def of_content(self, path: str, content: str, make: Callable[[str], str], how: str) -> str:
        """The result of `make`, named `how`, for the file at `path`, whose digest is `content`.
        It is computed once for a path and content, whatever the file's times say.
        """
        key = f"{how}:{content}:{path}"
        self._used.add(key)
        if key not in self._records or is_hashed_always():
            self._records[key] = (0, 0, 0, 0, 0, make(path))
            self._learnt = True
        return self._records[key][5]

    def save(self) -> None:
        """Keeps the records for the next process, if there are new ones."""
        if not self._learnt:
            return
        records = self._records
        if len(records) > _MOST_RECORDS:
            records = {key: record for key, record in records.items() if key in self._used}
        packed: bytes = msgpack.packb([_FORMAT, records], unicode_errors="surrogateescape")
        disk.keep(_LEVEL, self._name, packed)
        self._learnt = False


def sha256(path: str, most: float = math.inf) -> str:
    """SHA-256 (hex) of a file; OSError above `most` bytes, or for a pipe or the like, which would block."""
    digest = hashlib.sha256()
    no_wait = getattr(os, "O_NONBLOCK", 0)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | no_wait)) as file:
        there = os.fstat(file.fileno())
        if not stat.S_ISREG(there.st_mode) or there.st_size > most:
            raise OSError("not a file, or too large a one")
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def digest_of(path: str) -> str:
    """SHA-256 (hex) of a file's content; "" if it cannot be read."""
    try:
        return sha256(path)
    except (OSError, ValueError):  # ValueError: text that is no path
        return ""
