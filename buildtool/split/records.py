"""What was trained and priced already: one JSON file of records by key, so that nothing is done twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from buildtool.base import outfiles
from buildtool.base.errors import UsageError

SCHEMA = 1
_HINT = "move the file away, or name another folder with --out; nothing was written to it"


def key_of(parts: Mapping[str, Any]) -> str:
    """A record's key: SHA-256 (hex) of all that the record depends on, plain values by name."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class Records:
    """Plain values by key in one file; several processes may write to it, each record whole.

    Raises UsageError for a file that is none of these; it is left as it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found = self._read()

    def get(self, key: str) -> dict[str, Any] | None:
        """The record of a key; None where there is none."""
        return self._found.get(key)

    def put(self, key: str, record: Mapping[str, Any]) -> None:
        """Keeps a record, before it returns: the file is replaced whole, or not at all."""
        value = json.loads(json.dumps(record))  # as it will be read, and independent of the caller's
        with self._alone():
            self._found = {**self._read(), key: value}
            data = {"schema": SCHEMA, "records": self._found}
            text = json.dumps(data, indent=1, sort_keys=True) + "\n"
            outfiles.write({self.path.name: text.encode()}, self.path.parent)

    def writable(self) -> None:
        """UsageError where the folder cannot be made or written to: before hours of training."""
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise _unwritable(folder, error) from None

    def __len__(self) -> int:
        return len(self._found)

    def _read(self) -> dict[str, dict[str, Any]]:
        """All records of the file."""
        try:
            data = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _unwritable(self.path.parent, error) from None
        except ValueError:
            raise UsageError("this is no file of records", path=str(self.path), hint=_HINT) from None
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema != SCHEMA:
            text = f"the records have the schema {schema}; this buildtool reads {SCHEMA}"
            raise UsageError(text, path=str(self.path), hint=_HINT)
        records = data.get("records")
        if not isinstance(records, dict) or not all(isinstance(one, dict) for one in records.values()):
            raise UsageError("this is no file of records", path=str(self.path), hint=_HINT)
        return records

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """While the file is read and replaced, no other process does so."""
        try:
            import fcntl
        except ImportError:  # a system without it: who starts two searches there loses a record at most
            yield
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = self.path.with_name(f".{self.path.name}.lock").open("w")
        except OSError as error:
            raise _unwritable(self.path.parent, error) from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _unwritable(folder: Path, error: OSError) -> UsageError:
    text = f"the folder for records and results cannot be used: {error.strerror}"
    return UsageError(text, path=str(folder), option="out", hint="name another folder")
