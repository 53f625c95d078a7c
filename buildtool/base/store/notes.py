"""Notes about a cache, stored beside its entries: counts, the sum of all bytes, and reports on requests.

They are written after an answer was sent, so that it does not wait for them: a file of counts, and a report
for each subject of requests. If notes are damaged or cannot be written, entries are served all the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack

from buildtool.base.locks import has_locks, hold_lock
from buildtool.base.outfiles import write_whole
from buildtool.base.store.disk import LOCK as EVICT_LOCK
from buildtool.base.store.disk import Disk, keep_within, shrink

COUNTS, ASKED = "counts", "asked"  # a file and a folder in the cache's folder
WALKED = "uncounted.walk"  # the same file while all entries are counted
UNCOUNTED = "uncounted"  # an empty file: there are entries that were written and not counted
LOCK = "counts.lock"
MOST_ASKED_BYTES = 16 << 20
_WAIT_SECONDS = 0.5  # for another process that writes the counts
_TOTAL, _LAST = ".bytes", ".used"  # beside the counts: bytes of all entries, the time of the last note
_LEVEL = "reports"
Reports = dict[str, Any]  # by namespace: the look-ups of a request


class Notes:
    """The notes about the cache entries in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock, self._uncounted = folder / COUNTS, folder / LOCK, folder / UNCOUNTED
        self._walked = folder / WALKED
        self._patience = _WAIT_SECONDS
        self.asked = Disk(folder / ASKED)

    def counts(self) -> dict[str, int]:
        """Returns the counts, by name, since the cache was made or cleared."""
        return {name: number for name, number in sorted(self._read().items()) if not name.startswith(".")}

    def total(self) -> int | None:
        """Returns the bytes of all entries; None if they are not known."""
        marked = self._uncounted.exists() or self._walked.exists()
        return None if marked else self._read().get(_TOTAL)

    def add(self, written: int, counts: Mapping[str, int]) -> int:
        """Adds `written`, the bytes of new entries, and `counts` to the notes. Returns the time of this note
        (ns since 1970). It is later than that of every earlier note, even if the system's clock was set back.
        """
        now = time.time_ns()

        def change(known: dict[str, int]) -> None:
            nonlocal now
            now = known[_LAST] = max(now, known.get(_LAST, 0) + 1)
            if _TOTAL in known:
                known[_TOTAL] += written
            for name, more in counts.items():
                known[name] = known.get(name, 0) + more

        if not self._change(change) and written:
            self._mark_uncounted()
        return now

    def evict(self, disk: Disk, most: int) -> None:
        """Evicts entries if they have more than `most` bytes in total, and records the bytes of the entries
        that are left, including those that other processes wrote meanwhile. Does nothing while another
        process evicts.
        """
        with contextlib.suppress(OSError), hold_lock(disk.folder / EVICT_LOCK, wait=False) as mine:
            if mine is None:
                return
            before = self._read().get(_TOTAL, 0)
            with contextlib.suppress(FileNotFoundError):
                self._uncounted.replace(self._walked)  # what is written during the walk sets a new mark
            left = shrink(disk, most)

            def change(known: dict[str, int]) -> None:
                known[_TOTAL] = known.get(_TOTAL, before) + left - before

            if self._change(change):
                self._walked.unlink(missing_ok=True)

    def reports(self, subject: str) -> Reports:
        """Returns, by namespace, the look-ups of the last request about a subject; {} if they are not
        known.
        """
        data = self.asked.read(_LEVEL, _key(subject))
        with contextlib.suppress(Exception):  # msgpack raises a dozen kinds of damaged bytes
            return dict(msgpack.unpackb(data)["reports"])
        return {}

    def report(self, subject: str, reports: Reports, now: int) -> None:
        """Records the look-ups, at the time `now`, of a request about a subject. Earlier reports on other
        namespaces stay.
        """
        content = {"subject": subject, "reports": self.reports(subject) | reports}
        data: bytes = msgpack.packb(content, unicode_errors="backslashreplace")
        keep_within(self.asked, MOST_ASKED_BYTES, (_LEVEL, _key(subject)), data)
        self.asked.touch((_LEVEL, _key(subject)), now)

    def subjects(self) -> Iterator[tuple[str, Reports]]:
        """Yields the subjects of requests with their reports, the latest first."""
        known = [entry[:2] for entry in self.asked.entries()]
        for level, key in sorted(known, key=lambda entry: (-self.asked.used(entry), entry)):
            with contextlib.suppress(Exception):  # a damaged report is left out
                content = msgpack.unpackb(self.asked.read(level, key))
                yield str(content["subject"]), dict(content["reports"])

    def _read(self) -> dict[str, int]:
        try:
            known = msgpack.unpackb(self._path.read_bytes())
            return {str(name): int(number) for name, number in known.items()}
        except Exception:  # there are no counts, or they are damaged
            return {}

    def _mark_uncounted(self) -> None:
        """Marks the sum of all bytes as unknown. The next process that writes then counts all entries."""
        with contextlib.suppress(OSError):
            self._uncounted.touch()

    def _change(self, change: Callable[[dict[str, int]], None]) -> bool:
        """Calls `change` for the counts and writes them. Returns False if the system refuses, or another
        process locks the counts for too long.
        """
        deadline = time.monotonic() + self._patience
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline:
                with hold_lock(self._lock, wait=False) as mine:
                    if mine is not None or not has_locks():
                        known = self._read()
                        change(known)
                        write_whole(self._path, msgpack.packb(known))
                        return True
                time.sleep(0.005)
        self._patience = 0.0  # later calls do not try again
        return False


def _key(subject: str) -> str:
    return hashlib.sha256(subject.encode()).hexdigest()
