"""Ranges of rows or columns that an operator makes, call after call, and how many of them are kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from buildtool.plan.schedule.axis import Axis, Numbers


class Ranges(NamedTuple):
    """Half-open ranges along one axis: range n goes from low[n] to high[n]. Some ranges may be empty."""

    low: Numbers
    high: Numbers

    def read(self, axis: Axis, size: int) -> Ranges:
        """Returns the input range that each of these output ranges reads along `axis`.

        `size`: how many elements the input has along the axis.
        """
        return Ranges(*axis.read(self.low, self.high, size))

    @property
    def length(self) -> int:
        """Returns the sum of the ranges' lengths."""
        return int((self.high - self.low).sum())

    @property
    def longest(self) -> int:
        """Returns the length of the longest range, at least 0."""
        return max(0, int((self.high - self.low).max(initial=0)))

    def without_empty(self) -> Ranges:
        """Returns the ranges that are not empty."""
        nonempty = self.low < self.high
        return self if nonempty.all() else Ranges(self.low[nonempty], self.high[nonempty])


def in_steps(made: int, step: int, first: int = 0) -> Ranges:
    """Returns one range of rows for each step, of `step` rows each (the last one may be shorter).

    The rows go from `first` to before `made`.
    """
    low = np.arange(first, made, step)
    return Ranges(low, np.minimum(low + step, made))


def all_of(size: int) -> Ranges:
    """Returns one range of all `size` elements."""
    return Ranges(np.array([0]), np.array([size]))


def column_gains(ends: Numbers, read_from: Numbers | None = None) -> tuple[Ranges, Numbers]:
    """Returns which columns of a tensor each hand-off makes, and the first one that it or a later one makes.

    ends: for each hand-off, one past the last column that is needed when it ends.
    read_from: for each hand-off, the first column that is read in it or later. Columns before this are not
        made. If it is None, all columns are made.
    """
    reached = np.maximum.accumulate(np.maximum(ends, 0))
    first = np.concatenate((np.zeros(1, np.int64), reached[:-1]))
    if read_from is not None:
        first = np.maximum(first, read_from)
    return Ranges(np.minimum(first, reached), reached), first


def held(made: Ranges, readers: Iterable[tuple[Axis, Ranges]]) -> int:
    """Returns how many columns of a tensor its window needs, so that each stays until its last read.

    made: the columns that each hand-off makes.
    readers: the column axis of each reader in the group, and the columns that the reader makes.

    Within a hand-off, readers run after the tensor's maker. The result is at least 1. Rows instead of
    columns, with steps instead of hand-offs, are counted in the same way if no row is made twice.
    """
    calls = np.flatnonzero(made.low < made.high)
    lowest = made.low[calls]
    for axis, own in readers:
        reads = np.flatnonzero(own.low < own.high)
        following = np.searchsorted(reads, calls)
        is_read = following < len(reads)
        first = np.maximum(axis.begin, axis.lows(own.low[reads[following[is_read]]]))
        lowest[is_read] = np.minimum(lowest[is_read], first)
    return max(1, int((made.high[calls] - lowest).max(initial=0)))
