"""Opens recordings for a network on a moving window.

Each recording is cut into hops: the rows by which the window moves in one invoke. Hops of one recording
follow one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError
from buildtool.base.files import File
from buildtool.firmware.datasets import labels
from buildtool.firmware.datasets.arrays import MOST_INPUT_BYTES, Array, DataSet, members, parse_npy
from buildtool.firmware.datasets.opened import CLASSES, MOST_BYTES, open_for_inputs

if TYPE_CHECKING:
    from buildtool.graph.types import Tensor
    from buildtool.options.values import DataOptions


def open_recordings(
    wanted: DataOptions, fed: Tensor, choose: Callable[[int, int], Sequence[int]]
) -> tuple[DataSet, int]:
    """Opens recordings of equal length as a data set of hops. Returns it, and the number of hops in a
    recording.

    `fed` is the input of a hop (the new rows of one invoke), an image with one row per moment. A recording
    has any number of such rows; those after its last whole hop are left out. `choose` gets the number of
    recordings and the hops of each, and returns the positions of the hops that will be read. Raises
    UsageError if the data do not fit.
    """
    hop = fed.shape[1]
    rows = _count_rows(wanted.file, fed)
    if rows < hop:
        text = f"a recording of {rows:,} rows, and a hop takes {hop:,}"
        raise UsageError(text, path=wanted.file.path)
    recording = replace(fed, shape=(1, rows, *fed.shape[2:]))
    hops = rows // hop

    def chosen(count: int) -> list[int]:
        return sorted({at // hops for at in choose(count, hops)})

    whole = open_for_inputs(wanted, (recording,), chosen)
    latest: dict[int, Array] = {}

    def read(at: int) -> list[Array]:
        number, place = divmod(at, hops)
        if number not in latest:
            latest.clear()
            latest[number] = whole.read(number)[0]
        return [latest[number][:, place * hop : (place + 1) * hop]]

    return DataSet(
        tuple(f"{name}, hop {place}" for name in whole.names for place in range(hops)),
        tuple(label for label in whole.labels for _ in range(hops)),
        whole.classes,
        tuple(f"{how}, {hops:,} hops of each recording" for how in whole.how),
        read,
        lambda at: whole.check(at // hops),
    ), hops


def _count_rows(file: File, fed: Tensor) -> int:
    """Returns the number of rows of a recording: of those in an archive, or of the first file in a folder."""
    row = math.prod(fed.shape[2:])
    if file.data is None and Path(file.path).is_dir():
        first = next((path for path in sorted(Path(file.path).rglob("*.npy"))), None)
        if first is None:
            text = "recordings are .npy files, and the folder has none"
            raise UsageError(text, path=file.path, hint="numpy.save makes such a file")
        data = File(str(first)).read("the input", MOST_INPUT_BYTES)
        shape, path = parse_npy(data, str(first)).shape, str(first)
    else:
        with file.opened("the data set", MOST_BYTES) as opened:
            arrays = members(opened, file.path)
        names = [name for name in arrays if name not in (*labels.LABELS, CLASSES)]
        named = arrays.get(fed.name) or (arrays[names[0]] if names else None)
        shape, path = (named.shape[1:] if named else ()), file.path
    size = math.prod(shape)
    if not shape or size % row:
        text = f"a recording has shape {shape}; the network takes rows of {row:,} values"
        raise UsageError(text, path=path, hint=f"recordings of shape (rows, {row:,})")
    return size // row
