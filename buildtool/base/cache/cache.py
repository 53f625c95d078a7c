"""A cache as a session asks it: memory over disk, with what was found, made and left out counted.

What is written to disk goes there when `flush` is called, after an answer: nobody waits for it.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack

from buildtool.base.cache.disk import Disk
from buildtool.base.folders import MODE, kept_folder
from buildtool.base.identity import code_digest

if TYPE_CHECKING:
    from buildtool.base.cache.index import Notes


SIZE = "BUILDTOOL_CACHE_BYTES"  # another bound on the bytes on disk
DISK_BYTES = 512 << 20
MEMORY_BYTES = 64 << 20
_EVICTED_TO = 0.8  # of the bound
_LOCK = "evict.lock"
_UNCOUNTED = "uncounted"  # there are entries that the index could not be told of
OWN_FILES = (_LOCK, _UNCOUNTED)
_SHOWN = 80  # characters of a part of a key in a report


class Use(enum.StrEnum):
    """Whether what is kept is used: `renew` writes, and reads nothing that older requests have made."""

    ON = "on"
    OFF = "off"
    RENEW = "renew"


class Cache:
    """Payloads by level and key. `code` stands for the code that made them, and is part of every key.

    `is_current`: whether that is the code on disk still; it is asked before something is written. `levels`:
    those that are kept, None for all.
    """

    def __init__(
        self,
        folder: Path,
        code: str,
        memory_bytes: int = MEMORY_BYTES,
        is_current: Callable[[], bool] = lambda: True,
        levels: Collection[str] | None = None,
    ) -> None:
        self.code, self.use, self._levels = code, Use.ON, levels
        self.is_current = is_current
        self.disk = Disk(folder)
        self._memory: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._memory_bytes, self._held = memory_bytes, 0
        self._unwritten: dict[tuple[str, str], bytes] = {}
        self._uses: set[tuple[str, str]] = set()
        self._made: set[tuple[str, str]] = set()  # since the request began: those `renew` may read
        self._found: Counter[tuple[str, str]] = Counter()  # (level, "hits" or "misses")
        self._asked: dict[str, tuple[Mapping[str, Any], bool]] = {}
        self.subject = ""

    def begin(self, subject: str, use: Use = Use.ON) -> None:
        """A request about `subject` (in words, for `explain`) begins."""
        self.subject = subject.encode(errors="backslashreplace").decode()  # a file's name need not be UTF-8
        self.use = use
        self._made.clear()
        self._found.clear()  # of what was prepared since the last request
        self._asked.clear()

    def get(self, level: str, key: str, parts: Mapping[str, Any]) -> bytes | None:
        """A payload; None where there is none. `parts`: what the key stands for, for `explain`."""
        if self._leaves_out(level):
            return None
        known = level, key
        data = None
        if self.use is Use.ON or known in self._made:
            data = self._memory.get(known) or self._unwritten.get(known) or self.disk.read(level, key)
        self._found[level, "hits" if data is not None else "misses"] += 1
        self._asked.setdefault(level, (parts, data is not None))  # the first is what the request is about
        if data is not None:
            self._uses.add(known)
            self._remember(known, data)
        return data

    def put(self, level: str, key: str, data: bytes) -> None:
        """Keeps a payload."""
        if self._leaves_out(level):
            return
        self._made.add((level, key))
        self._unwritten[level, key] = data
        self._remember((level, key), data)

    def refuse(self, level: str, key: str) -> None:
        """A payload that was found is not what its level says: it is put aside, and is a miss."""
        self._found[level, "hits"] -= 1
        self._found[level, "misses"] += 1
        self._held -= len(self._memory.pop((level, key), b""))
        self._unwritten.pop((level, key), None)
        self._uses.discard((level, key))
        self.disk.discard(level, key)

    def unmake(self) -> None:
        """What was made since the request began is not kept: its key does not say all that it depends on."""
        for known in self._made:
            self._unwritten.pop(known, None)
            self._held -= len(self._memory.pop(known, b""))
        self._made.clear()

    def counts(self) -> dict[str, dict[str, int]]:
        """By level, hits and misses since the last `flush`."""
        found: dict[str, dict[str, int]] = {}
        for (level, what), number in sorted(self._found.items()):
            found.setdefault(level, {"hits": 0, "misses": 0})[what] = number
        return found

    def forget(self) -> None:
        """Gives back what is held in memory."""
        self._memory.clear()
        self._held = 0

    def flush(self) -> None:
        """Writes what is not written, and notes what was used. Never raises for a disk that refuses.

        What was made while the code was edited is not written: nobody knows which code made it.
        """
        if self._unwritten and not self.is_current():
            self._unwritten.clear()
        unwritten, self._unwritten = self._unwritten, {}
        counts = {f"{level} {what}": n for (level, what), n in self._found.items() if n}
        asked, self._asked = self._asked, {}
        uses, self._uses = self._uses, set()
        per_level = self.counts()
        self._found.clear()
        if not (unwritten or counts) or self.disk.trouble:
            return
        from buildtool.base.cache.index import Index, Notes  # sqlite, which no answer waits for

        sizes = {known: self.disk.write(*known, data) for known, data in unwritten.items()}
        notes = Notes({known: size for known, size in sizes.items() if size}, uses, counts)
        notes.counts |= {what: n for what, n in self.disk.counts.items() if n}
        self.disk.counts.clear()
        index = Index(self.disk.folder)
        if self.subject:
            self._report(notes, asked, per_level, index.reports(self.subject))
        self.subject = ""  # what is made from now on is prepared, and nobody's request
        noted = index.note(notes)
        uncounted = self.disk.folder / _UNCOUNTED
        if noted is None:
            with contextlib.suppress(OSError):
                uncounted.touch(mode=0o600)
        elif notes.sizes:
            total, fresh = noted
            if fresh or total > most_disk_bytes() or uncounted.exists():
                evict(self.disk)

    def _leaves_out(self, level: str) -> bool:
        return self.use is Use.OFF or (self._levels is not None and level not in self._levels)

    def _remember(self, known: tuple[str, str], data: bytes) -> None:
        self._held += len(data) - len(self._memory.pop(known, b""))
        self._memory[known] = data
        while self._held > self._memory_bytes:
            self._held -= len(self._memory.popitem(last=False)[1])

    def _report(
        self,
        notes: Notes,
        asked: Mapping[str, tuple[Mapping[str, Any], bool]],
        found: Mapping[str, Mapping[str, int]],
        before: Mapping[str, bytes],
    ) -> None:
        """Notes, for `explain`, what this request asked of each level, and which parts of keys are new."""
        for level, (parts, hit) in asked.items():
            now = {"code": self.code, **parts}
            shown = {name: [_digest(value), _short(value)] for name, value in sorted(now.items())}
            changed = [] if hit else _changes(before.get(level), shown)
            report = {"hit": hit, "counts": dict(found.get(level, {})), "parts": shown, "changed": changed}
            packed = msgpack.packb(report, unicode_errors="backslashreplace")
            notes.reports[self.subject, level] = packed


def open_cache(code: str) -> Cache | None:
    """The user's cache; None where it is switched off, or where there is no place for one."""
    folder = kept_folder()
    if folder is None:
        return None
    wanted = os.environ.get(MODE, "").lower()
    levels = None if wanted in ("", "on", "1", "yes") else wanted.split(",")
    return Cache(folder, code, is_current=lambda: code_digest() == code, levels=levels)


def most_disk_bytes() -> int:
    """Bytes that entries may have on disk."""
    text = os.environ.get(SIZE, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else DISK_BYTES


def evict(disk: Disk) -> None:
    """Counts the files anew and removes what was used longest ago, if no other process is at it."""
    from buildtool.base.cache.index import Index

    with _alone(disk.folder) as mine:
        if not mine:
            return
        index = Index(disk.folder)
        disk.sweep()
        with contextlib.suppress(OSError):
            (disk.folder / _UNCOUNTED).unlink(missing_ok=True)
        sizes = {(level, key): size for level, key, size in disk.entries()}
        index.replace(sizes)
        total = sum(sizes.values())
        most = most_disk_bytes()
        if total <= most:
            return
        chosen = index.oldest(total - int(most * _EVICTED_TO))
        for level, key in chosen:
            disk.remove(level, key)
        index.forget(chosen)


@contextlib.contextmanager
def _alone(folder: Path) -> Any:
    """Whether this process alone evicts."""
    try:
        import fcntl

        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except (ImportError, OSError):
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except OSError:
        yield False
    finally:
        os.close(handle)


def _changes(before: bytes | None, now: Mapping[str, list[str]]) -> list[list[str]]:
    """Name, old and new value of each part of a key that is not what it was; [] where nothing was asked."""
    if before is None:
        return []
    try:
        old = {str(name): [str(digest), str(text)] for name, (digest, text) in _parts(before).items()}
    except (ValueError, TypeError):  # damaged
        return []
    names = sorted(old.keys() | now.keys())
    nothing = ["", "(none)"]
    pairs = [(name, old.get(name, nothing), now.get(name, nothing)) for name in names]
    return [[name, was[1], is_[1]] for name, was, is_ in pairs if was[0] != is_[0]]


def _parts(report: bytes) -> Mapping[str, Any]:
    """The parts of keys in a report; ValueError where there are none."""
    try:
        found = msgpack.unpackb(report)["parts"]
    except Exception as error:  # msgpack raises a dozen kinds
        raise ValueError("not a report") from error
    if not isinstance(found, dict):
        raise ValueError("not a report")
    return found


def _digest(value: Any) -> str:
    data = msgpack.packb(value, unicode_errors="backslashreplace")
    return hashlib.sha256(data).hexdigest()[:16]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
