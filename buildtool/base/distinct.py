"""The distinct numbers of an array, without numpy.ma: np.unique imports it, which takes a command 60 ms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Distinct(NamedTuple):
    """The numbers, ascending; of each, the position where it comes first, and how often it comes."""

    values: npt.NDArray[Any]
    first: npt.NDArray[np.intp]
    counts: npt.NDArray[np.intp]


def distinct(numbers: npt.NDArray[Any]) -> Distinct:
    """What np.unique tells of an array of one dimension."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    begins = np.concatenate((np.zeros(min(1, len(ordered)), np.intp), begins))
    return Distinct(ordered[begins], order[begins], np.diff(begins, append=len(ordered)))
