"""The distinct numbers of an array, and the Pareto front of items.

np.unique is not used, because it imports numpy.ma, which takes 60 ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


class Distinct(NamedTuple):
    """The distinct numbers in ascending order, with the first position and the count of each number."""

    values: npt.NDArray[Any]
    first: npt.NDArray[np.intp]
    counts: npt.NDArray[np.intp]


def distinct(numbers: npt.NDArray[Any]) -> Distinct:
    """Returns the distinct numbers of a one-dimensional array, as np.unique does."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    begins = np.concatenate((np.zeros(min(1, len(ordered)), np.intp), begins))
    return Distinct(ordered[begins], order[begins], np.diff(begins, append=len(ordered)))


def undominated(items: Iterable[T], key: Callable[[T], tuple[Any, ...]]) -> list[T]:
    """Returns the Pareto front of `items`, sorted by `key`.

    `key` gives a tuple whose first two numbers are minimised. The front has the items that no other item
    beats or equals in both numbers. Of several items with the same numbers it has one.
    """
    front: list[T] = []
    least = math.inf
    for item in sorted(items, key=key):
        if key(item)[1] < least:
            front.append(item)
            least = key(item)[1]
    return front
