"""Reads the labels of a data set, a class for each input, from .npy, .npz, text or CSV files."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from buildtool.base.errors import UsageError
from buildtool.base.files import File
from buildtool.firmware.datasets.arrays import Array, Member, members, parse_npy

MOST_BYTES = 1 << 28
LABELS = ("labels", "label", "y", "y_test", "targets")  # names of an archive's array of labels
_KINDS = "labels are a .npy or .npz file of whole numbers, or .txt or .csv with one for each input"


def of_inputs(file: File, names: Sequence[str], classes: Sequence[str] = ()) -> tuple[int, ...]:
    """Returns the class number of each input, read from a file.

    The file has a label for each of the inputs `names`, in their order; a table with two columns has the
    inputs' names too. `classes` are the names of the classes, for labels that are words. Raises UsageError
    for a file that does not fit.
    """
    suffix = file.path.lower().rpartition(".")[2]
    if suffix == "csv":
        return _read_table(file, names, classes)
    if suffix in ("npy", "npz"):
        with file.opened("the labels", MOST_BYTES) as data:
            array: Array | Member
            if suffix == "npz":
                array = _find_labels(members(data, file.path, "the labels"), file.path)
            else:
                array = parse_npy(data.read(), file.path, "the array of labels")
            return of_array(array, len(names), file.path, classes)
    return _read_words(lines(file), len(names), file.path, classes)


def lines(file: File) -> list[str]:
    """Returns the lines of a text file that are not empty."""
    return [line.strip() for line in _decode(file).splitlines() if line.strip()]


def _decode(file: File) -> str:
    """Returns the text of a file; raises UsageError where it is not text."""
    try:
        return file.read("the labels", MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("the labels are not text", path=file.path, hint=_KINDS) from None


def of_array(array: Array | Member, count: int, path: str, classes: Sequence[str] = ()) -> tuple[int, ...]:
    """Returns the class numbers in an array of `count` labels, which are whole numbers or names of
    `classes`.
    """
    shape = array.shape
    hint = "labels.argmax(axis=1) if they are one-hot" if len(shape) == 2 and min(shape) > 1 else ""
    if math.prod(shape) != count or hint:
        raise _make_count_error(f"of shape {shape}", count, path, hint)
    if isinstance(array, Member):
        array = array.whole()
    flat = array.reshape(-1)
    if array.dtype.kind == "U":
        return _read_words([str(word) for word in flat], count, path, classes)
    whole = np.issubdtype(array.dtype, np.integer)
    if not whole and np.issubdtype(array.dtype, np.floating) and np.isfinite(flat).all():
        whole = bool(np.array_equal(np.round(flat.astype(np.float64)), flat))
    if not whole:
        raise UsageError("the labels are not whole numbers", path=path, hint=_KINDS)
    numbers = [int(value) for value in flat]
    if min(numbers, default=0) < 0:
        which = numbers.index(min(numbers)) + 1
        raise UsageError(f"label {which:,} is below 0: {min(numbers)}", path=path, hint=_KINDS)
    return tuple(numbers)


def _find_labels(arrays: Mapping[str, Member], path: str) -> Member:
    """Returns the array of an archive that has the labels: the one with a known name, or the only one."""
    for name in LABELS:
        if name in arrays:
            return arrays[name]
    if len(arrays) != 1:
        text = f"the archive has the arrays {', '.join(arrays) or 'none'}: which of them are labels?"
        raise UsageError(text, path=path, hint=f"name one of them '{LABELS[0]}'")
    return next(iter(arrays.values()))


def _read_words(words: Sequence[str], count: int, path: str, classes: Sequence[str]) -> tuple[int, ...]:
    """Returns the class number for each of the words, which are numbers or names of `classes`."""
    if len(words) != count:
        raise _make_count_error(f"{len(words):,}", count, path)
    number = {name: index for index, name in enumerate(classes)}
    labels = []
    for place, word in enumerate(words, 1):
        if word in number:
            labels.append(number[word])
        elif word.isascii() and word.isdecimal() and len(word) < 10:
            labels.append(int(word))
        else:
            kind = "the name of a class" if classes else "a whole number"
            raise UsageError(f"label {place:,}, '{word[:40]}', is not {kind}", path=path, hint=_KINDS)
    return tuple(labels)


def _read_table(file: File, names: Sequence[str], classes: Sequence[str]) -> tuple[int, ...]:
    """Returns the class numbers of the inputs, read from a CSV file.

    One column has the classes in the inputs' order. Two columns have an input's name and its class.
    """
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(_decode(file))) if any(row)]
    except csv.Error as error:
        raise UsageError(f"the labels are not a table: {error}", path=file.path, hint=_KINDS) from None
    widths = {len(row) for row in rows}
    if widths == {1}:
        words = [row[0] for row in rows]
        has_title = len(words) == len(names) + 1 and not words[0].isdecimal()
        return _read_words(words[1:] if has_title else words, len(names), file.path, classes)
    if widths != {2}:
        text = "the table of labels has neither one column (label) nor two (input's name, label)"
        raise UsageError(text, path=file.path, hint=_KINDS)
    by_name = dict(row for row in rows)
    if len(by_name) < len(rows):
        twice = Counter(name for name, _ in rows).most_common(1)[0][0]
        raise UsageError(f"the table of labels has two rows for '{twice}'", path=file.path)
    missing = [name for name in names if name not in by_name]
    if missing:
        text = f"{len(missing):,} of {len(names):,} inputs have no label, such as '{missing[0]}'"
        hint = "the first column has the inputs' names: folder/file.png"
        raise UsageError(text, path=file.path, hint=hint)
    return _read_words([by_name[name] for name in names], len(names), file.path, classes)


def _make_count_error(labels: str, count: int, path: str, hint: str = "") -> UsageError:
    text = f"the labels ({labels}) do not match the {count:,} inputs"
    return UsageError(text, path=path, hint=hint or _KINDS)
