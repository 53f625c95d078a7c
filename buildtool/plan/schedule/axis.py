"""What an output element (row or column) reads along one axis: a window with a fixed stride, or a table."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import PlanError

Numbers = npt.NDArray[np.int64]
N = TypeVar("N", npt.NDArray[np.int32], npt.NDArray[np.int64])


@dataclass(frozen=True)
class Axis:
    """What an output element reads along one axis: a window that moves by a fixed stride.

    Output element q reads input elements [q * stride - pad, q * stride - pad + kernel). `kernel` counts the
    gaps of a dilation. Elements are rows or columns.
    """

    kernel: int = 1
    stride: int = 1
    pad: int = 0

    def low(self, q: int) -> int:
        """Returns the first input element that output element q reads; it may be negative."""
        return q * self.stride - self.pad

    def high(self, q: int) -> int:
        """Returns one past the last input element that output elements below q read.

        It may be beyond the input's end.
        """
        return (q - 1) * self.stride - self.pad + self.kernel

    def lows(self, q: N) -> N:
        """Returns `low` for an array of output elements."""
        return q * self.stride - self.pad

    def highs(self, q: N) -> N:
        """Returns `high` for an array of output elements."""
        return (q - 1) * self.stride - self.pad + self.kernel

    def read(self, low: N, high: N, size: int) -> tuple[N, N]:
        """Returns the ranges of `size` input elements that the output ranges [low, high) read.

        A range is empty if the output range is empty, or reads nothing but padding.
        """
        begin, end = self.begin, self.reach(size)
        first = np.minimum(end, np.maximum(begin, self.lows(low)))
        after = np.minimum(end, np.maximum(begin, self.highs(high)))
        return first, np.where(low < high, after, first)

    def extent(self, n: int) -> int:
        """Returns how many input elements n neighbouring output elements read, padding included."""
        return (n - 1) * self.stride + self.kernel

    @property
    def begin(self) -> int:
        """Returns the first input element that windows read.

        It is above 0 if the first windows lie in the padding, and the next one leaves out elements.
        """
        return max(0, self.low(max(0, (self.pad - self.kernel) // self.stride + 1)))

    def reach(self, size: int) -> int:
        """Returns one past the last of `size` input elements that windows read.

        It is less than `size` if windows leave out the last elements, and the next one lies in the padding.
        """
        return max(0, min(size, self.high(-(-(size + self.pad) // self.stride))))

    def meets(self, n: int, size: int) -> bool:
        """Returns whether each of n output elements reads some of `size` input elements, not only padding."""
        return self.high(1) > 0 and self.low(n - 1) < size

    def ready(self, made: int) -> int:
        """Returns how many output elements can be made of the first `made` input elements; may be below 0."""
        return (made + self.pad - self.kernel) // self.stride + 1

    def after(self, earlier: Axis) -> Axis:
        """Returns the axis of two operators in a row: first the operator of `earlier`, then this one.

        If `earlier` is a table, this axis has to be a table, too, or a window of one element with stride 1.
        Otherwise PlanError is raised, because the number of output elements is not known (see `tabulate`).
        """
        if isinstance(earlier, AxisTable):
            if self != Axis():
                raise PlanError("an up-sampling runs in a group of its own")
            return earlier
        return Axis(
            (self.kernel - 1) * earlier.stride + earlier.kernel,
            self.stride * earlier.stride,
            self.pad * earlier.stride + earlier.pad,
        )


@dataclass(frozen=True)
class AxisTable(Axis):
    """A table of what each output element reads: input elements [first[q], end[q]) for output element q.

    Both lists are in ascending order. The table describes an operator whose windows do not move by a whole
    stride, for example one that enlarges its input. The ranges lie within the input and may be empty.
    `kernel`, `stride` and `pad` have no meaning.
    """

    first: tuple[int, ...] = ()
    end: tuple[int, ...] = ()

    def low(self, q: int) -> int:
        """Returns the first input element that output element q or a later one reads."""
        return self.first[max(0, q)] if q < len(self.first) else self.end[-1]

    def high(self, q: int) -> int:
        """Returns one past the last input element that output elements below q read."""
        return self.end[min(q, len(self.end)) - 1] if q > 0 else 0

    def lows(self, q: N) -> N:
        """Returns `low` for an array of output elements."""
        return self._lows[np.clip(q, 0, len(self.first))].astype(q.dtype)

    def highs(self, q: N) -> N:
        """Returns `high` for an array of output elements."""
        return self._highs[np.clip(q, 0, len(self.end))].astype(q.dtype)

    def extent(self, n: int) -> int:
        """Returns the largest number of input elements that n neighbouring output elements read."""
        q = np.arange(len(self.first))
        return int((self.highs(q + n) - self._lows[:-1]).max())

    @property
    def begin(self) -> int:
        """Returns 0: ranges have no elements in front of the first."""
        return 0

    def reach(self, size: int) -> int:
        """Returns `size`: no range goes beyond it."""
        return size

    def meets(self, n: int, size: int) -> bool:
        """Returns True: an element that reads nothing is no hindrance."""
        return True

    def ready(self, made: int) -> int:
        """Returns how many output elements can be made of the first `made` input elements."""
        return bisect_right(self.end, made)

    def after(self, earlier: Axis) -> AxisTable:
        """Returns the table of two operators in a row: first the operator of `earlier`, then this one.

        The table may end beyond the input of `earlier`.
        """
        return table(
            np.maximum(0, earlier.lows(np.array(self.first, np.int64))),
            np.maximum(0, earlier.highs(np.array(self.end, np.int64))),
        )

    @cached_property
    def _lows(self) -> Numbers:
        return np.array([*self.first, self.end[-1]], np.int64)

    @cached_property
    def _highs(self) -> Numbers:
        return np.array([0, *self.end], np.int64)


def table(first: Numbers, end: Numbers) -> AxisTable:
    """Returns a table of what each output element reads: input elements [first[q], end[q]).

    Ranges are widened where needed, so that both lists are in ascending order.
    """
    lows = np.minimum.accumulate(first[::-1])[::-1]
    ends = np.maximum.accumulate(np.maximum(end, lows))
    return AxisTable(first=tuple(lows.tolist()), end=tuple(ends.tolist()))


def tabulate(axis: Axis, elements: int, size: int) -> AxisTable:
    """Returns an axis as a table, for `elements` output elements and an input of `size` elements."""
    if isinstance(axis, AxisTable):
        return axis
    q = np.arange(elements, dtype=np.int64)
    return table(np.clip(axis.lows(q), 0, size), np.clip(axis.highs(q + 1), 0, size))


def union(a: Axis, b: Axis) -> Axis:
    """Returns an axis that covers what both axes read.

    The two have the same stride, or are tables of the same length.
    """
    if isinstance(a, AxisTable) and isinstance(b, AxisTable):
        return table(
            np.minimum(np.array(a.first, np.int64), b.first), np.maximum(np.array(a.end, np.int64), b.end)
        )
    pad = max(a.pad, b.pad)
    return Axis(max(a.kernel - a.pad, b.kernel - b.pad) + pad, a.stride, pad)
