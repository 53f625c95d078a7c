"""Files from which a later run resumes: records of trainings and prices, and arrays.

Each file is written as a whole, or not at all.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.base import outfiles
from buildtool.base.errors import UsageError

SCHEMA = 1
_HINT = "move the file away, or name another folder with --out; nothing was written to it"


def key_of(parts: Mapping[str, Any]) -> str:
    """Returns a record's key: the SHA-256 (hex) of `parts`, the plain values on which the record depends."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class Records:
    """Records of plain values, by key, in one JSON file. Several processes may write to it at once.

    `networks` is the folder for the networks of the records. Raises UsageError if the file exists and is not
    a file of records; it is then left unchanged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.networks = path.parent / "networks"
        self._records = self._read()

    def get(self, key: str) -> dict[str, Any] | None:
        """Returns the record of a key, or None."""
        return self._records.get(key)

    def put(self, key: str, record: Mapping[str, Any]) -> None:
        """Writes a record to the file. The file is replaced as a whole, or not changed if that fails."""
        value = json.loads(json.dumps(record))  # a copy, with the types that a reader will get
        self.networks.mkdir(parents=True, exist_ok=True)
        with outfiles.alone(self.networks):  # no other process reads and replaces the file meanwhile
            self._records = {**self._read(), key: value}
            data = {"schema": SCHEMA, "records": self._records}
            text = json.dumps(data, indent=1, sort_keys=True) + "\n"
            outfiles.write({self.path.name: text.encode()}, self.path.parent)

    def prepare(self) -> None:
        """Makes the file's folder, and removes incomplete files of killed processes from it.

        Raises UsageError if the folder cannot be used. So users see this error before hours of training.
        """
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise _unwritable(folder, error) from None
        outfiles.remove_parts(folder, self.networks)

    def _read(self) -> dict[str, dict[str, Any]]:
        """Returns all records of the file."""
        try:
            data = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _unwritable(self.path.parent, error) from None
        except ValueError:
            data = None
        records = data.get("records") if isinstance(data, dict) else None
        if isinstance(data, dict) and data.get("schema") != SCHEMA:
            text = f"the records have the schema {data.get('schema')}; this buildtool reads {SCHEMA}"
            raise UsageError(text, path=str(self.path), hint=_HINT)
        if not isinstance(records, dict) or not all(isinstance(one, dict) for one in records.values()):
            raise UsageError("this is not a file of records", path=str(self.path), hint=_HINT)
        return records


def _unwritable(folder: Path, error: OSError) -> UsageError:
    text = f"the folder for records and results cannot be used: {error.strerror}"
    return UsageError(text, path=str(folder), option="out", hint="name another folder")


def keep_arrays(path: Path, about: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Writes arrays and the plain values `about` to a file. If that fails, the old file is not changed."""
    stream = io.BytesIO()
    np.savez(stream, about=np.array(json.dumps(about, sort_keys=True)), **arrays)  # type: ignore[arg-type]
    outfiles.write({path.name: stream.getvalue()}, path.parent)


def read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]] | None:
    """Returns the values and arrays that `keep_arrays` wrote; None if the file is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}  # each with its CRC checked
        return dict(json.loads(str(arrays.pop("about")))), arrays
    except Exception:  # damaged files raise many kinds of errors
        return None
