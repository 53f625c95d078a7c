"""What is known of a cache's entries without looking at their files: sizes, the order of use, counts.

An sqlite file beside the entries. It is written after an answer, never on its way; where it cannot be
written, or is damaged, entries are served all the same, and it is made anew.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from buildtool.base.store import Known

NAME = "index.sqlite"
MOST_SUBJECTS = 500  # requests of which is remembered what they asked for
_WAIT_SECONDS = 0.5  # for another process that writes; what is not noted then is counted later
_SCHEMA = 2  # of the tables
_TABLES = """
create table if not exists entries (
    level text not null, key text not null, bytes integer not null, used integer not null,
    primary key (level, key)) without rowid;
create table if not exists counts (name text primary key, number integer not null) without rowid;
create table if not exists asked (
    subject text not null, level text not null, report blob not null, used integer not null,
    primary key (subject, level)) without rowid;
create table if not exists clock (now integer not null);
"""
_INSERT_ENTRY = "insert into entries values (?, ?, ?, ?) on conflict"
_INSERT_REPORT = "insert into asked values (?, ?, ?, ?) on conflict"
_USED = "used = excluded.used"
_ADD_COUNT = "insert into counts values (?, ?) on conflict do update set number = number + excluded.number"
_FORGET_SUBJECTS = (
    "delete from asked where subject not in "
    "(select subject from asked group by subject order by max(used) desc limit ?)"
)


class Index:
    """The index of the entries in `folder`; opened for each use, so that nothing stays locked."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._is_new = False  # it was made by this object: there may be entries that it does not know
        self._refused = False  # by a lock or by the system: it is not tried once more

    def note(
        self,
        sizes: Mapping[Known, int],
        uses: Collection[Known],
        counts: Mapping[str, int],
        reports: Mapping[tuple[str, str], bytes],
    ) -> tuple[int, bool] | None:
        """Notes bytes of entries written, entries read, additions to counts, and by subject and level what
        the last request about it asked for (msgpack). The bytes of all entries, and whether the index was
        made just now; None where it cannot be written.
        """
        with self._open() as base:
            if base is None:
                return None
            now = _tick(base)
            written = [(*known, size, now) for known, size in sizes.items()]
            read = [(now, *known) for known in sorted(set(uses) - sizes.keys())]
            asked = [(*about, report, now) for about, report in reports.items()]
            base.executemany(f"{_INSERT_ENTRY} do update set bytes = excluded.bytes, {_USED}", written)
            base.executemany("update entries set used = ? where level = ? and key = ?", read)
            base.executemany(_ADD_COUNT, sorted(counts.items()))
            base.executemany(f"{_INSERT_REPORT} do update set report = excluded.report, {_USED}", asked)
            base.execute(_FORGET_SUBJECTS, (MOST_SUBJECTS,))
            (total,) = base.execute("select coalesce(sum(bytes), 0) from entries").fetchone()
            base.commit()
            return total, self._is_new
        return None

    def by_use(self) -> list[Known]:
        """The entries, the longest unused first."""
        return self._rows("select level, key from entries order by used, level, key")

    def forget(self, entries: Collection[Known]) -> None:
        """Removes entries from the index."""
        with self._open() as base:
            if base is not None:
                base.executemany("delete from entries where level = ? and key = ?", entries)
                base.commit()

    def now(self) -> int:
        """The clock: later notes have a larger number."""
        return int((self._rows("select max(now) from clock") or [(0,)])[0][0] or 0)

    def replace(self, sizes: Mapping[Known, int], since: int) -> None:
        """Sets the entries to those that a walk has found, old ones as old as they were.

        The walk began at `since`: what others noted after that may not have been there for it, and stays.
        """
        with self._open() as base:
            if base is None:
                return
            now, before = _tick(base), base.execute("select level, key, used from entries")
            used = {(level, key): then for level, key, then in before}
            base.execute("delete from entries where used <= ?", (since,))
            rows = [(*known, size, used.get(known, now)) for known, size in sorted(sizes.items())]
            base.executemany("insert or replace into entries values (?, ?, ?, ?)", rows)
            base.commit()

    def levels(self) -> dict[str, tuple[int, int]]:
        """By level: entries and bytes."""
        rows = self._rows("select level, count(*), sum(bytes) from entries group by level order by level")
        return {level: (entries, size) for level, entries, size in rows}

    def counts(self) -> dict[str, int]:
        """The counts since the cache was made or cleared."""
        return dict(self._rows("select name, number from counts order by name"))

    def reports(self, subject: str) -> dict[str, bytes]:
        """By level, what the last request about a subject asked for."""
        return dict(self._rows("select level, report from asked where subject = ? order by level", subject))

    def subjects(self) -> list[str]:
        """The subjects of requests, the latest first."""
        rows = self._rows("select subject from asked group by subject order by max(used) desc, subject")
        return [subject for (subject,) in rows]

    def _rows(self, query: str, *values: str) -> list[Any]:
        """The rows of a query; none where there is no index, or a damaged one."""
        with self._open() as base:
            if base is not None:
                return base.execute(query, values).fetchall()
        return []

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection | None]:
        """The index, or None. An error inside the context ends its use."""
        base = None
        if not self._refused:
            try:
                base = self._connected()
            except (sqlite3.Error, OSError):
                self._refused = True
        if base is None:
            yield None
            return
        try:
            yield base
        except (sqlite3.Error, ValueError, TypeError) as error:  # strange values where ours should be
            self._refused = True
            if not isinstance(error, sqlite3.OperationalError):
                self._remove()
        finally:
            base.close()

    def _connected(self, may_repair: bool = True) -> sqlite3.Connection:
        """An open index with its tables; one that is damaged, or no index, is replaced once."""
        base = sqlite3.connect(self.path, timeout=_WAIT_SECONDS)
        try:
            base.execute("pragma synchronous = off")  # a lost index is made anew
            (schema,) = base.execute("pragma user_version").fetchone()
            if schema not in (0, _SCHEMA):
                raise sqlite3.DatabaseError("an index of another version")
            if schema == 0:
                base.executescript(f"begin immediate; {_TABLES} pragma user_version = {_SCHEMA}; commit")
                self._is_new = True
            return base
        except sqlite3.Error as error:
            base.close()
            # operational: locked, read-only, no space
            is_damaged = isinstance(error, sqlite3.DatabaseError)
            if not (may_repair and is_damaged) or isinstance(error, sqlite3.OperationalError):
                raise
        self._remove()
        return self._connected(may_repair=False)

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
            self.path.with_name(f"{NAME}-journal").unlink(missing_ok=True)


def _tick(base: sqlite3.Connection) -> int:
    """The next number of the clock that orders uses, independent of the system's clock."""
    row = base.execute("select max(now) from clock").fetchone()
    now = int(row[0] or 0) + 1
    base.execute("delete from clock")
    base.execute("insert into clock values (?)", (now,))
    return now
