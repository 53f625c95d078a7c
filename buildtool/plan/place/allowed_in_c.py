"""The sets of `allowed` found in C: beside this file where the package was built."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import load
from buildtool.plan.place.instance import Instance

Sets = npt.NDArray[np.uint64]  # [item, word]: bit k of word w stands for the offset of 64 * w + k units

ABI = 1  # of allowed.c; a library of another one is not used
WORD = 64  # bits
_ARRAYS = (
    *("first", "last", "size", "alignment", "pinned", "share_output", "share_input"),
    *("share_first", "share_last", "share_units", "share_distance"),
)


class _Problem(ctypes.Structure):
    """allowed_problem."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("items", "sections", "shares", "capacity")),
        *((name, ctypes.c_void_p) for name in (*_ARRAYS, "slack", "paired", "sets", "found")),
    )


@cache
def library(path: Path | None = None) -> ctypes.CDLL | None:
    """The compiled allowed.c at `path`, by default the one built with the package; None if there is none."""
    found = load(__file__, "allowed", ABI, path)
    if found is not None:
        found.allowed_scratch.restype = ctypes.c_size_t
        found.allowed_scratch.argtypes = [ctypes.POINTER(_Problem)]
        found.allowed_find.restype = ctypes.c_int32
        found.allowed_find.argtypes = [ctypes.POINTER(_Problem)]
    return found


def as_sets(offsets: Sequence[int], capacity: int) -> Sets:
    """What `allowed_offsets` found, in words."""
    words = capacity // WORD + 1
    data = b"".join(of.to_bytes(8 * words, "little") for of in offsets)
    return np.frombuffer(data, "<u8").astype(np.uint64).reshape(-1, words)


def sets_in_c(lib: ctypes.CDLL, instance: Instance, capacity: int) -> Sets | None:
    """As `allowed_offsets`; None where nothing fits."""
    count = len(instance.items)
    found = np.empty((count, capacity // WORD + 1), np.uint64)
    slack, paired = np.empty(instance.sections, np.int64), np.empty(count, np.int32)
    arrays = {name: np.ascontiguousarray(getattr(instance, name)) for name in _ARRAYS}
    arrays |= {"slack": slack, "paired": paired, "found": found}
    problem = _Problem(
        items=count,
        sections=instance.sections,
        shares=len(instance.share_output),
        capacity=capacity,
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    sets = np.empty(lib.allowed_scratch(ctypes.byref(problem)), np.uint64)
    problem.sets = sets.ctypes.data
    return found if lib.allowed_find(ctypes.byref(problem)) else None
