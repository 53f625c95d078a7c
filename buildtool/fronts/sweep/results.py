"""The folder of a sweep: its lock, the rows so far, and the results.

Rows are appended to `rows.jsonl` as they arrive, each line with the key of its job. A line that a killed
process left unfinished is cut off. The results are written at the end, all together or not at all.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from buildtool.base.errors import UsageError
from buildtool.base.locks import has_locks, hold_lock
from buildtool.base.outfiles import remove_parts
from buildtool.fronts.changes.figures import METRICS
from buildtool.fronts.sweep.worker import STATUS, Row

ROWS, RESULTS, TABLE, PAGE, NETWORKS = (
    "rows.jsonl",
    "results.jsonl",
    "results.parquet",
    "sweep.html",
    "networks",
)
_LOCK = ".lock"
_EVERY = {"network", "board", STATUS}  # columns of every row
# Failures that another machine, another moment or a newer version may not have: they are tried again.
PASSING = ("TOOL", "MACHINE", "INTERNAL")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """A context in which no other sweep writes to the folder, which is created if needed.

    Raises UsageError if another sweep writes to it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = hold_lock(folder / _LOCK, wait=False)
        mine = lock.__enter__()
    except OSError as error:
        raise UsageError(f"cannot write: {error.strerror}", path=str(folder)) from None
    try:
        if mine is None and has_locks():
            hint = "wait until it ends, or give this one another folder (--out)"
            raise UsageError("another sweep is writing to this folder", path=str(folder), hint=hint)
        remove_parts(folder, folder / NETWORKS)
        yield
    finally:
        lock.__exit__(None, None, None)


class Record:
    """The rows so far, by the keys of their jobs. Rows of an earlier run are read from `folder`.

    If `folder` is None, no rows are read or written.
    """

    def __init__(self, folder: Path | None) -> None:
        self.rows: dict[str, Row] = {}
        self._path = None if folder is None else folder / ROWS
        if self._path is not None and self._path.exists():
            self._read(self._path)

    def _read(self, path: Path) -> None:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read the rows: {error.strerror}", path=str(path)) from None
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                content = json.loads(line)
                if content["row"].keys() >= _EVERY:
                    self.rows[str(content["key"])] = content["row"]
        if len(whole) < len(data):
            os.truncate(path, len(whole))
        self.rows = {key: row for key, row in self.rows.items() if row.get("code") not in PASSING}

    def add(self, rows: Iterable[tuple[str, Row]]) -> None:
        """Adds rows, and appends them to the file."""
        new = [(key, row) for key, row in rows if key not in self.rows]
        self.rows |= dict(new)
        if self._path is not None and new:
            lines = [json.dumps({"key": key, "row": row}, sort_keys=True) for key, row in new]
            try:
                with self._path.open("ab") as file:
                    file.write(("\n".join(lines) + "\n").encode())
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                hint = "the same command continues when it can write"
                raise UsageError(f"cannot write: {error.strerror}", path=str(self._path), hint=hint) from None


def json_lines(rows: Sequence[Row]) -> bytes:
    """Returns rows as JSON lines."""
    return "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows).encode()


def read_results(path: str) -> list[Row]:
    """Returns the rows of a sweep's results. Raises UsageError if the file has none."""
    hint = f"give the {RESULTS} of an earlier sweep"
    try:
        rows = [json.loads(line) for line in Path(path).read_bytes().splitlines() if line.strip()]
    except OSError as error:
        raise UsageError(f"cannot read the results: {error.strerror}", path=path, hint=hint) from None
    except (ValueError, RecursionError):
        rows = [None]
    if not all(isinstance(row, dict) and row.keys() >= _EVERY for row in rows):
        raise UsageError("these are not the results of a sweep", path=path, hint=hint)
    return rows


def columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the names of all columns: the candidate, then its figures in the order of `buildtool diff`."""
    there = dict.fromkeys(name for row in rows for name in row)
    options = sorted(name for name in there if name.startswith("options."))
    first = ["network", "board", *options, STATUS, *(metric.name for metric in METRICS)]
    return [*(name for name in first if name in there), *sorted(set(there) - set(first))]


def in_order(row: Row) -> Row:
    """Returns a row with its columns in the order of `columns`, whether it was computed or read."""
    return {name: row[name] for name in columns([row])}


def parquet(rows: Sequence[Row]) -> bytes | None:
    """Returns rows as a Parquet file, or None if pyarrow is not installed. A column has one type."""
    try:
        pyarrow, writer = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        return None
    table = {name: _one_type([row.get(name) for row in rows]) for name in columns(rows)}
    file = io.BytesIO()
    writer.write_table(pyarrow.table(table), file)
    return file.getvalue()


def _one_type(values: list[Any]) -> list[Any]:
    """Returns values of one type: floats if all are numbers of both kinds, text if types differ otherwise."""
    kinds = {type(value) for value in values} - {type(None)}
    if len(kinds) <= 1:
        return values
    turn: Any = float if kinds <= {int, float} else str
    return [None if value is None else turn(value) for value in values]
