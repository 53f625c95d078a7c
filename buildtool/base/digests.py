"""Results computed from files, such as digests. A file is read again only where it may have changed.

A record holds a file's size, times and inode, the time when it was read, and the result. It is valid while
size, times and inode stay the same, provided that the file was at rest when it was read: a file that changes
twice within the clock's resolution keeps its time (git calls it "racily clean"). A write through a memory map
changes the time only when the system writes the page to disk; in a file system in memory it never does. An
image of a file system gives all files the same times, in whole seconds, and the next image may use the same
inodes: a record of such a file is only valid until the system or the container starts anew.

If HASH_INPUTS is set in the environment, every file is read. The records of a `Memo` end with their process.
`Digests` are saved in the memo of builds (buildtool/base/store).
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

GRAIN_NS = 2_000_000_000  # file systems record times in steps of up to two seconds
# Linux writes a changed page of a memory map to disk after 30 s, and looks for such pages every 5 s. Until
# then a second store to the page does not change the file's times.
MAPPED_NS = 60_000_000_000
HASH_INPUTS = "BUILDTOOL_HASH_INPUTS"  # 1: every file is read, whatever its times are
_LEVEL = "digests"
_FORMAT = 1
_MOST_RECORDS = 20_000  # above this number, the records that this process has not used are dropped
_CHUNK = 1 << 20

# size, mtime, ctime, inode, time when the file was read, result; all times in nanoseconds
Record = tuple[int, int, int, int, int, T]


def stamp(there: os.stat_result) -> tuple[int, int, int, int]:
    """Returns the numbers that change when a file changes: its size, its mtime and ctime in nanoseconds, and
    its inode. If the ctime is a whole second, the last number also changes when the system starts.
    """
    inode = there.st_ino
    if _may_be_of_an_image(there):
        data = f"{inode} {there.st_dev} {_system_start()}".encode()
        inode = int.from_bytes(hashlib.sha256(data).digest()[:7], "little")
    return there.st_size, there.st_mtime_ns, there.st_ctime_ns, inode


def _may_be_of_an_image(there: os.stat_result) -> bool:
    """Whether a file may come from an image of a file system: its ctime is a whole second. The file systems
    that store no fractions of seconds give the same answer.
    """
    return there.st_ctime_ns % 1_000_000_000 == 0


@functools.cache
def _system_start() -> str:
    """Returns a text that differs for each start of the system and of the container; "" where it is
    unknown.
    """
    try:
        first_process = Path("/proc/1/stat").read_text().rpartition(")")[2].split()
        start = first_process[19]  # in ticks since the system started
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {start} {Path('/proc/self/ns/mnt').stat().st_ino}"
    except (OSError, IndexError):
        return ""


def at_rest(there: os.stat_result, when_ns: int) -> bool:
    """Whether, at the time `when_ns`, the file had been unchanged for longer than the clock's resolution.
    False for a file that may come from an image, if the system's start is unknown.
    """
    if _may_be_of_an_image(there) and not _system_start():
        return False
    return max(there.st_mtime_ns, there.st_ctime_ns) + GRAIN_NS <= when_ns


def is_hashed_always() -> bool:
    """Whether the user requires (HASH_INPUTS) that every file is read, even an unchanged one."""
    return os.environ.get(HASH_INPUTS, "").lower() not in ("", "0", "off", "no", "false")


@contextlib.contextmanager
def hashing_always(wanted: bool) -> Iterator[None]:
    """A context in which every file is read if `wanted`, also by processes that are started in the
    context.
    """
    old = os.environ.get(HASH_INPUTS)
    if wanted:
        os.environ[HASH_INPUTS] = "1"
    try:
        yield
    finally:
        os.environ.pop(HASH_INPUTS, None)
        if old is not None:
            os.environ[HASH_INPUTS] = old


def proves(there: os.stat_result, when_ns: int) -> bool:
    """Whether an unchanged `stamp` proves that a file still has the content that was read at `when_ns`."""
    if is_hashed_always() or there.st_dev in _without_times():
        return False
    return at_rest(there, when_ns) and max(there.st_mtime_ns, there.st_ctime_ns) + MAPPED_NS <= when_ns


@functools.cache
def _without_times() -> frozenset[int]:
    """Returns the devices of file systems that record no time for a write through a memory map."""
    devices = set()
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
            fields, _, after = line.partition(" - ")
            if after.split(" ")[0] in ("tmpfs", "ramfs", "hugetlbfs"):
                major, minor = fields.split(" ")[2].split(":")
                devices.add(os.makedev(int(major), int(minor)))
    return frozenset(devices)


def _recall_or_make(path: str, old: Record[T] | None, make: Callable[[str], T]) -> tuple[T, Record[T] | None]:
    """Returns the result for a file, and a new record. The result comes from the record `old` if the file is
    unchanged, and from `make` otherwise. The new record is None where `old` is still valid, or where the file
    may change without a change of its stamp.
    """
    status = os.stat(path)  # noqa: PTH116 (for hundreds of files: making a Path takes longer than the call)
    if old is not None and old[:4] == stamp(status) and proves(status, old[4]):
        return old[5], None
    now = time.time_ns()
    result = make(path)
    is_proof = stamp(Path(path).stat()) == stamp(status) and proves(status, now)
    return result, (*stamp(status), now, result) if is_proof else None


class Memo(Generic[T]):
    """Computes the result of `make` for files, and remembers the `most` results that were used last."""

    def __init__(self, make: Callable[[str], T], most: int) -> None:
        self._make = make
        self._records: Recent[str, Record[T]] = Recent(most)

    def of(self, path: str) -> T:
        """Returns the result for the file at `path`. Raises OSError if it cannot be read."""
        result, record = _recall_or_make(path, self._records.get(path), self._make)
        if record is not None:
            self._records.put(path, record)
        return result


class Digests:
    """The recorded digests of the files of one `scope`: a checkout, or a build's top folder. `save` writes
    them.
    """

    def __init__(self, scope: str) -> None:
        name = f"{__version__} {scope}"  # no version reads entries of another one
        self._name = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()
        self._used: set[str] = set()
        self._has_new = False

    @functools.cached_property
    def _records(self) -> dict[str, Record[str]]:
        """The records of earlier processes. It is empty if another version wrote them, or if they are
        damaged.
        """
        data = disk.recall(_LEVEL, self._name)
        try:
            number, records = msgpack.unpackb(data, use_list=False, unicode_errors="surrogateescape")
            if data is None or number != _FORMAT:
                return {}
            items = ((key, record) for key, record in records.items() if isinstance(record, tuple))
            return {key: record for key, record in items if tuple(map(type, record)) == (*(int,) * 5, str)}
        except Exception:  # no entry, or any error of msgpack about foreign bytes
            return {}

    def digest(self, path: str, made: Callable[[str], str] | None = None, how: str = "") -> str:
        """Returns the SHA-256 (hex) of the file at `path`, or the result of `made` for it. `how` identifies
        the function `made` in the records. Raises OSError if the file cannot be read.
        """
        key = f"{how}:{path}"
        self._used.add(key)
        digest, record = _recall_or_make(path, self._records.get(key), made or sha256)
        if record is not None:
            self._records[key] = record
            self._has_new = True
        return digest

    def of_content(self, path: str, content: str, make: Callable[[str], str], how: str) -> str:
        """Returns the result of `make` for the file at `path`, which has the digest `content`. `how`
        identifies `make` in the records.

        `make` is called once for each path and content, whatever the file's times are.
        """
        key = f"{how}:{content}:{path}"
        self._used.add(key)
        if key not in self._records or is_hashed_always():
            self._records[key] = (0, 0, 0, 0, 0, make(path))
            self._has_new = True
        return self._records[key][5]

    def save(self) -> None:
        """Saves the records for the next process, if there are new ones."""
        if not self._has_new:
            return
        records = self._records
        if len(records) > _MOST_RECORDS:
            records = {key: record for key, record in records.items() if key in self._used}
        packed: bytes = msgpack.packb([_FORMAT, records], unicode_errors="surrogateescape")
        disk.keep(_LEVEL, self._name, packed)
        self._has_new = False


def sha256(path: str, most: float = math.inf) -> str:
    """Returns the SHA-256 (hex) of a file. Raises OSError if it is not a regular file, cannot be read, or has
    more than `most` bytes.
    """
    digest = hashlib.sha256()
    no_wait = getattr(os, "O_NONBLOCK", 0)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | no_wait)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise OSError("not a regular file, or too large")
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def digest_of(path: str) -> str:
    """Returns the SHA-256 (hex) of a file's content; "" if it cannot be read."""
    try:
        return sha256(path)
    except (OSError, ValueError):  # ValueError: the text is not a path
        return ""
