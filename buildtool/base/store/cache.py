"""The cache that a session uses: entries on disk and on a server, and counts of hits and misses.

`flush` writes new entries to disk, and `share` sends them to the server. Both are called after the answer has
been sent, so that nobody waits for them. A `level` is the name of a cache namespace.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgpack

from buildtool.base.code_digest import code_digest
from buildtool.base.folders import active_cache_folder, cache_levels, most_disk_bytes
from buildtool.base.modes import Use
from buildtool.base.store import NAMESPACES, EntryId
from buildtool.base.store.disk import Disk

if TYPE_CHECKING:
    from buildtool.base.store.remote.cache import Remote
    from buildtool.base.store.remote.settings import Settings

_SHOWN = 80  # upper limit for the characters of a part of a key in a report


class Cache:
    """Payloads (bytes) by namespace and key.

    `code`: the digest of the code that makes them; keys contain it.
    `is_current`: returns whether this is still the code on disk. It is called before entries are written.
    `levels`: the namespaces in use, None for all.
    `remote`: the server that is asked for entries that are not on disk, None without a server.
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
        self.remote = self._known_remote = cast("Remote | None", None)
        self._unwritten: dict[EntryId, bytes] = {}
        self._uses: set[EntryId] = set()
        self._made: set[EntryId] = set()  # since the request began: `renew` may read these
        self._found: Counter[tuple[str, str]] = Counter()  # by namespace and "hits" or "misses"
        self._fetched: set[EntryId] = set()  # unwritten entries that came from the server
        self._places: Counter[str] = Counter()  # by place, such as "disk:hits"
        self._asked: dict[str, tuple[Mapping[str, Any], bool]] = {}
        self.subject = ""

    def begin(self, subject: str, use: Use = Use.ON) -> None:
        """Begins a request. `subject` describes it for `explain`."""
        self.subject = subject.encode(errors="backslashreplace").decode()  # a file's name need not be UTF-8
        self.use = use
        self._made.clear()
        self._found.clear()  # counts of preparations since the last request
        self._asked.clear()
        if self.remote is not None:
            self.remote.begin()

    def get(self, level: str, key: str, parts: Mapping[str, Any]) -> bytes | None:
        """Returns a payload, or None if it is not in the cache. `parts` are the parts of the key, for
        `explain`.
        """
        if self._leaves_out(level):
            return None
        known = level, key
        data = None
        if self.use is Use.ON or known in self._made:
            data = self._unwritten.get(known) or self._read(level, key)
        if data is None and self.use is Use.ON and self.remote is not None:
            data = self.remote.get(level, key)
            if data is not None:
                self._unwritten[known] = data
                self._fetched.add(known)
        self._found[level, "hits" if data is not None else "misses"] += 1
        self._asked.setdefault(level, (parts, data is not None))  # the request itself makes the first look-up
        if data is not None:
            self._uses.add(known)
        return data

    def _read(self, level: str, key: str) -> bytes | None:
        began = time.perf_counter()
        data = self.disk.read(level, key)
        self._places["disk:microseconds"] += int(1e6 * (time.perf_counter() - began))
        self._places["disk:hits" if data is not None else "disk:misses"] += 1
        return data

    def count_memory(self, is_hit: bool) -> None:
        """Counts a look-up in a session's memory, which is made before the cache is asked."""
        self._places["memory:hits" if is_hit else "memory:misses"] += 1

    def put(self, level: str, key: str, data: bytes) -> None:
        """Adds a payload. It is written to disk at the next `flush`."""
        if self._leaves_out(level):
            return
        self._made.add((level, key))
        self._unwritten[level, key] = data

    def refuse(self, level: str, key: str) -> None:
        """Moves aside a payload from which no value could be unpacked, and counts its hit as a miss."""
        self._found[level, "hits"] -= 1
        self._found[level, "misses"] += 1
        self._unwritten.pop((level, key), None)
        if (level, key) in self._fetched and self.remote is not None:
            self.remote.counts["errors"] += 1
        self._uses.discard((level, key))
        self.disk.discard(level, key)

    def unmake(self) -> None:
        """Drops the entries that this request has added, because their keys do not contain all that they
        depend on.
        """
        for known in self._made:
            self._unwritten.pop(known, None)
        self._made.clear()

    def counts(self) -> dict[str, dict[str, int]]:
        """Returns the hits and misses since the last `flush`, by namespace."""
        counts: dict[str, dict[str, int]] = {}
        for (level, what), number in sorted(self._found.items()):
            counts.setdefault(level, {"hits": 0, "misses": 0})[what] = number
        return counts

    def flush(self) -> None:
        """Writes new entries to disk, and records which entries were used. Errors of the disk are ignored. If
        the code on disk has changed, new entries are dropped: it is unknown which code made them.
        """
        if self._unwritten and not self.is_current():
            self._unwritten.clear()
        unwritten, self._unwritten = self._unwritten, {}
        self._queue(unwritten)
        counts = {f"{level} {what}": n for (level, what), n in self._found.items() if n}
        asked, self._asked = self._asked, {}
        uses, self._uses = self._uses, set()
        per_level = self.counts()
        self._found.clear()
        if not (unwritten or counts) or self.disk.trouble:
            return
        from buildtool.base.store.notes import Notes  # imported here, since no answer waits for it

        written = sum(self.disk.write(*known, data) for known, data in unwritten.items())
        counts |= {what: n for what, n in self.disk.counts.items() if n} | self._take_places()
        self.disk.counts.clear()
        notes = Notes(self.disk.folder)
        now = notes.add(written, counts)
        for known in uses | unwritten.keys():
            self.disk.touch(known, now)
        if self.subject:  # for `explain`: look-ups in each namespace, and changed parts of keys
            before, reports = notes.reports(self.subject), dict[str, Any]()
            for level, (parts, hit) in asked.items():
                shown = {name: _shorten(part) for name, part in sorted({"code": self.code, **parts}.items())}
                changed = [] if hit else _list_changes(before.get(level), shown)
                reports[level] = {"counts": per_level.get(level, {}), "parts": shown, "changed": changed}
            notes.report(self.subject, reports, now)
        self.subject = ""  # later entries belong to no request
        total = notes.total()
        if written and (total is None or total > most_disk_bytes()):
            notes.evict(self.disk, most_disk_bytes())

    def _queue(self, unwritten: Mapping[EntryId, bytes]) -> None:
        """Queues new entries for the server. They are sent by `share`, at the latest when this process
        ends.
        """
        fetched, self._fetched = self._fetched, set()
        if self.remote is None:
            return
        for known in unwritten.keys() - fetched:
            self.remote.queue(*known, unwritten[known])
        if self.remote.is_waiting:
            import atexit

            atexit.unregister(self.share)
            atexit.register(self.share)

    def share(self) -> None:
        """Sends queued entries to the server, and prints the warnings about the server since the last
        call.
        """
        if self.remote is None:
            return
        import atexit  # only here: few processes use a server

        atexit.unregister(self.share)
        try:
            self.remote.push()
        except KeyboardInterrupt:
            return
        for text in self.take_warnings():
            print(f"warning: {text}", file=sys.stderr, flush=True)
        counts = self._take_places()
        if counts and not self.disk.trouble:
            from buildtool.base.store.notes import Notes

            Notes(self.disk.folder).add(0, counts)

    def take_warnings(self) -> list[str]:
        """Returns the warnings about the server that were not returned before."""
        warnings: list[str] = []
        if self.remote is not None:
            warnings, self.remote.warnings = self.remote.warnings, []
        return warnings

    def _take_places(self) -> dict[str, int]:
        """Returns the counts since the last call, by place (memory, disk, remote): "disk:hits" is an example
        of a key.
        """
        counts = {what: n for what, n in self._places.items() if n}
        self._places.clear()
        if self.remote is not None:
            counts |= {f"remote:{what}": n for what, n in self.remote.counts.items() if n}
            self.remote.counts.clear()
        return counts

    def connect(self, settings: Settings | None) -> None:
        """Uses the server that `settings` name, None for no server. An open connection to the same server
        stays open.
        """
        known, self.remote = self._known_remote, None
        if settings is not None and (known is None or known.settings != settings or known.off):
            from buildtool.base.store.remote.cache import Remote

            known = Remote(settings, None if self.disk.trouble else self.disk.folder)
        if settings is not None:
            self.remote = self._known_remote = known

    def _leaves_out(self, level: str) -> bool:
        return self.use is Use.OFF or (self._levels is not None and level not in self._levels)


def open_cache(code: str, without: Collection[str] = ()) -> Cache | None:
    """Returns the user's cache without the namespaces `without`; None if it is switched off, or the user has
    no home. `code` is the digest of buildtool's code.
    """
    if (folder := active_cache_folder()) is None:
        return None
    levels = cache_levels()
    if without:
        levels = frozenset(levels if levels is not None else NAMESPACES) - frozenset(without)
    return Cache(folder, code, is_current=lambda: code_digest() == code, levels=levels)


def _shorten(part: object) -> list[str]:
    """Returns a part of a key as reports show it: a digest, and a short text for people."""
    data, text = msgpack.packb(part, unicode_errors="backslashreplace"), str(part)
    return [
        hashlib.sha256(data).hexdigest()[:16],
        text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}...",
    ]


def _list_changes(before: Any, now: Mapping[str, list[str]]) -> list[list[str]]:
    """Returns the name, old text and new text of each part of a key that has changed; [] without an earlier
    report. `before` is the earlier report, `now` has the present parts.
    """
    try:
        old = {str(name): [str(digest), str(text)] for name, (digest, text) in before["parts"].items()}
    except Exception:  # no report, or a damaged one
        return []
    names = sorted(old.keys() | now.keys())
    nothing = ["", "(none)"]
    pairs = [(name, old.get(name, nothing), now.get(name, nothing)) for name in names]
    return [[name, was[1], is_[1]] for name, was, is_ in pairs if was[0] != is_[0]]
