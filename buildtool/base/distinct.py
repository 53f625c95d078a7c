"""Distinct numbers of an array, without numpy.ma (np.unique imports it in 60 ms); the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


class Distinct(NamedTuple):
    """The numbers, ascending; of each, the position where it comes first, and how often it comes."""

    values: npt.NDArray[Any]
    first: npt.NDArray[np.intp]
    counts: npt.NDArray[np.intp]


def distinct(numbers: npt.NDArray[Any]) -> Distinct:
    """Returns what np.unique returns for an array of one dimension."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    begins = np.concatenate((np.zeros(min(1, len(ordered)), np.intp), begins))
    return Distinct(ordered[begins], order[begins], np.diff(begins, append=len(ordered)))


def undominated(items: Iterable[T], key: Callable[[T], tuple[Any, ...]]) -> list[T]:
    """The items that no other equals or beats in the first two numbers of `key`, by that key."""
    kept: list[T] = []
    least = math.inf
    for one in sorted(items, key=key):
        if key(one)[1] < least:
            kept.append(one)
            least = key(one)[1]
    return kept
