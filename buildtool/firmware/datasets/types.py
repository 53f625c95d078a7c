"""What a data set is: inputs of a network by their positions, with names and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildtool.firmware.datasets.arrays import Array


@dataclass(frozen=True)
class DataSet:
    """Inputs of a network, read one by one.

    `names`: of the inputs, as the user knows them. `labels`: a class each, () where there are none;
    `classes`: the classes' names by their numbers, () where only numbers are known. `how`: what became of
    the values of each of the network's inputs, in words. `read` gives the arrays of an input by its
    position; `check` raises UsageError for one that cannot be read, as far as that is cheap to know.
    """

    names: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    how: tuple[str, ...]
    read: Callable[[int], list[Array]]
    check: Callable[[int], None] = lambda _: None
