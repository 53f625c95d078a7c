"""The data set that a request names, opened; and which of its inputs are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from buildtool.base.errors import UsageError
from buildtool.firmware.datasets import archive, folder, labels
from buildtool.firmware.datasets.arrays import DataSet

if TYPE_CHECKING:
    from buildtool.graph.types import Graph, Tensor
    from buildtool.options.values import Wanted

MOST_BYTES = 1 << 30  # of an archive
Choice = Callable[[int], Sequence[int]]
CLASSES = "classes"  # the name of an archive's array of the classes' names


def opened(wanted: Wanted, graph: Graph, choose: Choice | None = None) -> DataSet:
    """The data set for a network; UsageError for what does not fit it.

    `choose` gives the positions, in ascending order, of those among so many inputs that will be read (None:
    all of them): no others are held in memory.
    """
    inputs = tuple(graph.tensors[t] for t in graph.inputs)
    file = wanted.file
    if file.data is None and Path(file.path).is_dir():
        return folder.opened(wanted, inputs)
    with file.opened("the data set", MOST_BYTES) as data:
        return _of_archive(archive.members(data, file.path), wanted, inputs, choose or range)


def _of_archive(
    found: dict[str, archive.Member], wanted: Wanted, inputs: tuple[Tensor, ...], choose: Choice
) -> DataSet:
    """The arrays of an archive, of which one may hold labels and one the classes' names."""
    path = wanted.file.path
    own = {tensor.name for tensor in inputs}
    name = next((name for name in labels.LABELS if name in found and name not in own), "")
    inner = found.pop(name) if name else None
    named = found.pop(CLASSES) if CLASSES in found and CLASSES not in own else None
    arrays = archive.of_inputs(found, inputs, path)
    counts = [archive.samples(a.shape, t.name, t, path) for a, t in zip(arrays, inputs, strict=True)]
    if len(set(counts)) > 1:
        each = ", ".join(f"{n:,} of '{t.name}'" for n, t in zip(counts, inputs, strict=True))
        raise UsageError(f"the arrays do not hold as many inputs each: {each}", path=path)
    classes = tuple(str(word) for word in named.whole().reshape(-1)) if named is not None else ()
    names = tuple(map(str, range(counts[0])))
    numbers: tuple[int, ...] = ()
    if wanted.labels is not None:
        numbers = labels.of_inputs(wanted.labels, names, classes)
    elif inner is not None:
        numbers = labels.of_array(inner, counts[0], path, classes)
    taken = choose(counts[0])
    pairs = zip(arrays, inputs, strict=True)
    readers = [archive.reader(a.rows(taken), taken, t, wanted.normalise, path) for a, t in pairs]
    how = tuple(words for _, words in readers)
    return DataSet(names, numbers, classes, how, lambda at: [read(at) for read, _ in readers])


def chosen(count: int, limit: int | None, seed: int) -> list[int]:
    """The positions of the inputs that are taken, in order: all, or `limit` at random by `seed`."""
    if limit is None or limit >= count:
        return list(range(count))
    return sorted(int(i) for i in np.random.default_rng(seed).permutation(count)[:limit])
