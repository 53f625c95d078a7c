"""Where items can lie at all, by what else has to fit beside them: a bound before and inside of the search.

In a section that is nearly full nothing can be left free but its slack, the capacity less what lies in it.
So below an item lies a subset of the others, and as much waste as the slack at the most: its offset is
one of their subset sums, or above it by the slack at the most. An output and an input that cannot lie
side by side there overlap, as far as that needs, and what is known of one holds for the other. Along a
chain of regions, each of whose outputs lies over its input, this shows soon what a search by branches
shows late: that no offsets go together.

The sets hold for every placement, so nothing is lost by a search that keeps to them. They are found in C
(allowed.c); tests/oracles/allowed_twin.py is the same in Python.
"""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import load
from buildtool.plan.place.instance import Instance

Sets = npt.NDArray[np.uint64]  # [item, word]: bit k of word w stands for the offset of 64 * w + k units

MOST_UNITS = 1 << 13  # of capacity: the sets are as long
MOST_MEMBERS = 512  # items
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


_C = load(
    __file__,
    "allowed",
    1,
    {
        "allowed_scratch": (ctypes.c_size_t, ctypes.POINTER(_Problem)),
        "allowed_find": (ctypes.c_int32, ctypes.POINTER(_Problem)),
    },
)


def is_small(instance: Instance, capacity: int) -> bool:
    """Whether a problem is small enough for sets of offsets."""
    return capacity <= MOST_UNITS and len(instance.items) <= MOST_MEMBERS


def allowed_offsets(instance: Instance, capacity: int) -> Sets | None:
    """The offsets that are left to each item at a capacity (in units); None where nothing fits."""
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
    sets = np.empty(_C.allowed_scratch(ctypes.byref(problem)), np.uint64)
    problem.sets = sets.ctypes.data
    return found if _C.allowed_find(ctypes.byref(problem)) else None
