"""Arena problems as CSV tables with the columns id, lower, upper, size, and optionally alignment and offset.

This is the format of minimalloc's benchmark files: a line with the columns' names, then one line per buffer.
A buffer is live from time `lower` until before `upper` and has `size` bytes. If the line has an `offset`, it
fixes where the buffer lies. A solution is the same table with all offsets.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.base.errors import ModelError
from buildtool.plan.place.arena import Item, Problem
from buildtool.plan.place.instance import MOST_ITEMS

MOST_BYTES = 1 << 20  # of a file
_NEEDED = ("id", "lower", "upper", "size")
_KNOWN = (*_NEEDED, "alignment", "offset")
_NUMBER = re.compile(r"-?[0-9]{1,15}")


@dataclass(frozen=True)
class Table:
    """A problem, and the names of its buffers in the file's order."""

    names: tuple[str, ...]
    problem: Problem


def read_problem(data: bytes, *, path: str = "") -> Table:
    """Returns the problem in a file's bytes.

    Raises ModelError if the bytes are not such a table. The error has `path` and the line.
    """
    if len(data) > MOST_BYTES:
        raise ModelError(f"the file has more than {MOST_BYTES} bytes", path=path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelError("it is not a text file", path=path, line=line) from None
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    items: dict[str, Item] = {}
    try:
        columns = _columns(next(rows, []))
        for row in rows:
            if not row:
                continue
            if len(row) != len(columns):
                raise ModelError(f"the line has {len(row)} values, the table {len(columns)} columns")
            values = {column: value.strip() for column, value in zip(columns, row, strict=True)}
            if values["id"] in items:
                raise ModelError(f"the id '{values['id']}' occurs twice")
            if len(items) == MOST_ITEMS:
                raise ModelError(f"the table has more than {MOST_ITEMS} buffers")
            try:
                items[values["id"]] = _item(values)
            except _ValueError as error:
                before = row[: columns.index(error.name)]
                has_quotes = b'"' in data.splitlines()[rows.line_num - 1]
                column = 0 if has_quotes else len(",".join([*before, ""])) + 1
                raise ModelError(error.text, column=column) from None
    except csv.Error as error:
        raise ModelError(f"it is not a table: {error}", path=path, line=rows.line_num) from None
    except ModelError as error:
        raise error.at(path=path, line=max(rows.line_num, 1)) from None
    return Table(tuple(items), Problem(tuple(items.values())))


class _ValueError(ModelError):
    """An error about a wrong value. `name`: the value's column."""

    def __init__(self, text: str, column: str) -> None:
        super().__init__(text)
        self.name = column


def _columns(row: Sequence[str]) -> list[str]:
    columns = [name.strip().lower() for name in row]
    hint = f"the first line names the columns: {', '.join(_NEEDED)}, and optionally alignment, offset"
    for name in _NEEDED:
        if name not in columns:
            raise ModelError(f"there is no column '{name}'", hint=hint)
    for name in columns:
        if name not in _KNOWN:
            raise ModelError(f"the column '{name}' is not known", hint=hint)
        if columns.count(name) > 1:
            raise ModelError(f"the column '{name}' occurs twice", hint=hint)
    return columns


def _item(values: dict[str, str]) -> Item:
    lower, upper, size = (_number(values, name) for name in ("lower", "upper", "size"))
    alignment = _number(values, "alignment") if "alignment" in values else 1
    offset = _number(values, "offset") if values.get("offset") else None
    if lower >= upper:
        raise ModelError(f"the buffer ends at {upper}, but begins only at {lower}")
    if size < 0:
        raise ModelError(f"a size of {size} bytes is below 0")
    if alignment < 1:
        raise ModelError(f"an alignment of {alignment} bytes is below 1")
    if offset is not None and (offset < 0 or offset % alignment):
        raise ModelError(f"the offset {offset} is not a multiple of {alignment}, 0 or above")
    return Item(lower, upper, size, alignment, offset)


def _number(values: dict[str, str], name: str) -> int:
    if not _NUMBER.fullmatch(values[name]):
        text = f"{name} is '{values[name][:40]}', but has to be a whole number of up to 15 digits"
        raise _ValueError(text, name)
    return int(values[name])


def write_solution(table: Table, offsets: Sequence[int]) -> bytes:
    """Returns the table with every buffer's offset, as a file's bytes.

    It has the column `alignment` only if some alignment is not 1.
    """
    items = table.problem.items
    aligned = any(item.alignment != 1 for item in items)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_NEEDED, *(["alignment"] if aligned else []), "offset"])
    for name, item, offset in zip(table.names, items, offsets, strict=True):
        alignment = [item.alignment] if aligned else []
        writer.writerow([name, item.lower, item.upper, item.size, *alignment, offset])
    return text.getvalue().encode()
