"""What is known of a cache without looking at its files: bytes, counts, and what was asked of it.

An sqlite file beside the entries. It is written after an answer, never on its way; where it cannot be
written, or is damaged, entries are served all the same, and it is made anew.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

NAME = "index.sqlite"
MOST_SUBJECTS = 500  # requests of which is remembered what they asked for
_WAIT_SECONDS = 0.5  # for another process that writes; what is not noted then is counted later
_SCHEMA = 3  # of the tables
_TABLES = """
create table if not exists counts (name text primary key, number integer not null) without rowid;
create table if not exists asked (
    subject text not null, level text not null, report blob not null, used integer not null,
    primary key (subject, level)) without rowid;
"""
_TOTAL, _LAST = ".bytes", ".used"  # counts of another kind: bytes of all entries, the time of the last note
_ADD_COUNT = "insert into counts values (?, ?) on conflict do update set number = number + ?"
_INSERT_REPORT = (
    "insert into asked values (?, ?, ?, ?) "
    "on conflict do update set report = excluded.report, used = excluded.used"
)
_FORGET_SUBJECTS = (
    "delete from asked where subject not in "
    "(select subject from asked group by subject order by max(used) desc limit ?)"
)


class Index:
    """The index of the entries in `folder`; opened for each use, so that nothing stays locked."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._refused = False  # by a lock or by the system: it is not tried once more

    def note(self, written: int, counts: Mapping[str, int], reports: Mapping[tuple[str, str], bytes]) -> int:
        """Notes bytes of entries written, additions to counts, and by subject and level what the last request
        about it asked for (msgpack). The time (ns since 1970), after that of all notes before, whatever the
        system's clock says.
        """
        now = time.time_ns()
        with self._open() as base:
            if base is None:
                return now
            last = base.execute("select number from counts where name = ?", (_LAST,)).fetchone()
            now = max(now, last[0] + 1) if last else now
            base.execute("insert or replace into counts values (?, ?)", (_LAST, now))
            base.execute("update counts set number = number + ? where name = ?", (written, _TOTAL))
            base.executemany(_ADD_COUNT, [(name, more, more) for name, more in sorted(counts.items())])
            base.executemany(_INSERT_REPORT, [(*about, report, now) for about, report in reports.items()])
            base.execute(_FORGET_SUBJECTS, (MOST_SUBJECTS,))
            base.commit()
        return now

    def total(self) -> int | None:
        """The bytes of all entries; None where they are not known."""
        rows = self._rows("select number from counts where name = ?", _TOTAL)
        return int(rows[0][0]) if rows else None

    def correct(self, before: int | None, total: int) -> None:
        """Sets the bytes to the `total` that a walk has found; `before`: those that were known when it began.
        What others have written meanwhile is added to that.
        """
        with self._open() as base:
            if base is not None:
                base.execute(_ADD_COUNT, (_TOTAL, total, total - (before or 0)))
                base.commit()

    def counts(self) -> dict[str, int]:
        """The counts since the cache was made or cleared."""
        return dict(self._rows("select name, number from counts where name not like '.%' order by name"))

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
