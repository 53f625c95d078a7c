"""A cache as a session asks it: entries on disk, with what was found and made counted.

What is written to disk goes there when `flush` is called, after an answer: nobody waits for it.
"""

from __future__ import annotations

import enum
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgpack

from buildtool.base.folders import cache_levels, kept_folder, most_disk_bytes
from buildtool.base.identity import code_digest
from buildtool.base.store import Known
from buildtool.base.store.disk import Disk

_SHOWN = 80  # characters of a part of a key in a report


class Use(enum.StrEnum):
    """Whether the cache is used: `renew` writes, and reads only what this request has made."""

    ON = "on"
    OFF = "off"
    RENEW = "renew"


class Cache:
    """Payloads by level and key; `code`, which made them, is part of every key. `is_current`: whether it is
    still the code on disk, asked before something is written. `levels`: those that are kept, None for all.
    """

    def __init__(
        self,
        folder: Path,
        code: str,
        is_current: Callable[[], bool] = lambda: True,
        levels: Collection[str] | None = None,
    ) -> None:
        self.code, self.use, self._levels = code, Use.ON, levels
        self.is_current = is_current
        self.disk = Disk(folder)
        self._unwritten: dict[Known, bytes] = {}
        self._uses: set[Known] = set()
        self._made: set[Known] = set()  # since the request began: those `renew` may read
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
            data = self._unwritten.get(known) or self.disk.read(level, key)
        self._found[level, "hits" if data is not None else "misses"] += 1
        self._asked.setdefault(level, (parts, data is not None))  # the first is what the request is about
        if data is not None:
            self._uses.add(known)
        return data

    def put(self, level: str, key: str, data: bytes) -> None:
        """Keeps a payload."""
        if self._leaves_out(level):
            return
        self._made.add((level, key))
        self._unwritten[level, key] = data

    def refuse(self, level: str, key: str) -> None:
        """Puts a payload aside that cannot be read as a value of its level; counts it as a miss."""
        self._found[level, "hits"] -= 1
        self._found[level, "misses"] += 1
        self._unwritten.pop((level, key), None)
        self._uses.discard((level, key))
        self.disk.discard(level, key)

    def unmake(self) -> None:
        """Drops what was made since the request began: its key does not say all that it depends on."""
        for known in self._made:
            self._unwritten.pop(known, None)
        self._made.clear()

    def counts(self) -> dict[str, dict[str, int]]:
        """By level, hits and misses since the last `flush`."""
        counts: dict[str, dict[str, int]] = {}
        for (level, what), number in sorted(self._found.items()):
            counts.setdefault(level, {"hits": 0, "misses": 0})[what] = number
        return counts

    def flush(self) -> None:
        """Writes what is not written, and notes what was used; never raises for a disk that refuses.
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
        from buildtool.base.store.notes import Notes  # which no answer waits for

        written = sum(self.disk.write(*known, data) for known, data in unwritten.items())
        counts |= {what: n for what, n in self.disk.counts.items() if n}
        self.disk.counts.clear()
        notes = Notes(self.disk.folder)
        now = notes.add(written, counts)
        for known in uses | unwritten.keys():
            self.disk.touch(known, now)
        if self.subject:  # for `explain`: what was asked of each level, and which parts of keys are new
            before, reports = notes.reports(self.subject), dict[str, Any]()
            for level, (parts, hit) in asked.items():
                shown = {name: _short(part) for name, part in sorted({"code": self.code, **parts}.items())}
                changed = [] if hit else _changes(before.get(level), shown)
                reports[level] = {"counts": per_level.get(level, {}), "parts": shown, "changed": changed}
            notes.report(self.subject, reports, now)
        self.subject = ""  # what is made from now on belongs to no request
        total = notes.total()
        if written and (total is None or total > most_disk_bytes()):
            notes.evict(self.disk, most_disk_bytes())

    def _leaves_out(self, level: str) -> bool:
        return self.use is Use.OFF or (self._levels is not None and level not in self._levels)


def open_cache(code: str) -> Cache | None:
    """The user's cache; None if it is switched off, or there is no folder for one."""
    if (folder := kept_folder()) is None:
        return None
    return Cache(folder, code, is_current=lambda: code_digest() == code, levels=cache_levels())


def _short(part: object) -> list[str]:
    """A part of a key for a report: its digest, and a short text for people."""
    data, text = msgpack.packb(part, unicode_errors="backslashreplace"), str(part)
    return [
        hashlib.sha256(data).hexdigest()[:16],
        text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}...",
    ]


def _changes(before: Any, now: Mapping[str, list[str]]) -> list[list[str]]:
    """Name, old and new value of each changed part of a key; [] where the last report is not known."""
    try:
        old = {str(name): [str(digest), str(text)] for name, (digest, text) in before["parts"].items()}
    except Exception:  # there is none, or somebody else has written it
        return []
    names = sorted(old.keys() | now.keys())
    nothing = ["", "(none)"]
    pairs = [(name, old.get(name, nothing), now.get(name, nothing)) for name in names]
    return [[name, was[1], is_[1]] for name, was, is_ in pairs if was[0] != is_[0]]
