"""Exact search for arena offsets, in C (search.c).

Items are placed from the bottom up, in the order of their offsets. Each lies as low as the items placed
before it allow; this offset is its level. Items with equal offsets follow an order of preference. At least
one lowest placement can be built in this way: one in which no single item could move lower. So:

- An item has been passed over if its level is below the offset of the item placed last (or equal to it, and
  the item comes first). It has to wait until a later item lies below it and supports it. That later item must
  overlap the place where the waiting item could lie now, or else the waiting item would lie there.
- No item is placed so high that a waiting item would fit completely below it.
- Of items that are equal in everything the first one is placed first.
- In every section of time the waiting items have to fit above the lowest level, and above every higher
  threshold t: the items that cannot begin below t end at t plus the sum of their sizes at the earliest. So an
  item that is too high to be the lowest one of its section waits for an item that can be.
- Parts of the problem whose items share no time are searched separately; if one part fails, the others do not
  matter. A run may then give the items of a part another order of preference: first the item in one of whose
  sections most bytes wait to be placed.
- Where the possible offsets of an item are known (see `find_allowed_offsets`), its level is the next one of
  them.
- The levels, and which items have been passed over, are the whole state. Failed states are remembered by 128
  bits of hash, for later branches and runs.

Permitted overlaps are neighbours at a distance below the item's size; the bytes that they can share are
subtracted from the sums. An item with such a permission is not passed over by an equal offset, since the two
offsets may be equal.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import load, struct
from buildtool.plan.place.instance import SEARCHED, Instance

Sets = npt.NDArray[np.uint64]  # [item, word]: bit k of word w stands for the offset of 64 * w + k units

MOST_UNITS = 1 << 13  # units of capacity, which is the length of the sets
MOST_MEMBERS = 512  # items with sets of offsets
WORD = 64  # bits
_ARRAYS = (
    "first last size alignment pinned share_output share_input share_first share_last share_units "
    "share_distance"
).split()

# struct allowed_problem
_Sets = struct(
    (ctypes.c_int32, "items sections shares capacity"),
    (ctypes.c_void_p, " ".join([*_ARRAYS, "slack paired sets found"])),
)
# struct search_problem
_Problem = struct(
    (ctypes.c_int32, "items sections links shares capacity table_bits"),
    (ctypes.c_void_p, " ".join([*SEARCHED, "table allowed"])),
    (ctypes.c_int32, "words"),
)

_ALLOWED = load(
    __file__,
    "allowed",
    1,
    {
        "allowed_scratch": (ctypes.c_size_t, ctypes.POINTER(_Sets)),
        "allowed_find": (ctypes.c_int32, ctypes.POINTER(_Sets)),
    },
)
_C = load(
    __file__,
    "search",
    3,
    {
        "search_memory": (ctypes.c_size_t, ctypes.POINTER(_Problem)),
        "search_run": (
            *(ctypes.c_int32, ctypes.POINTER(_Problem), ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64),
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)),
        ),
    },
)


def is_small(instance: Instance, capacity: int) -> bool:
    """Returns whether a problem is small enough for `find_allowed_offsets`. `capacity` is in units."""
    return capacity <= MOST_UNITS and len(instance.items) <= MOST_MEMBERS


def find_allowed_offsets(instance: Instance, capacity: int) -> Sets | None:
    """Returns the possible offsets of each item at a capacity (in units); None if nothing fits.

    The slack of a section is the capacity minus the sizes in it. In a nearly full section a subset of the
    other items lies below an item, with free space of at most the slack. So the item's offset is one of their
    subset sums, or at most the slack above one. If an output and an input cannot lie side by side, they
    overlap, and the offsets of one restrict the offsets of the other. Along a chain of regions whose outputs
    lie over their inputs, this shows soon that no offsets are consistent; a search by branches would show it
    late. The sets hold for every placement, so a search within them loses nothing. They are computed in C
    (allowed.c).
    """
    count = len(instance.items)
    offsets = np.empty((count, capacity // WORD + 1), np.uint64)
    slack, paired = np.empty(instance.sections, np.int64), np.empty(count, np.int32)
    arrays = {name: np.ascontiguousarray(getattr(instance, name)) for name in _ARRAYS}
    arrays |= {"slack": slack, "paired": paired, "found": offsets}
    problem = _Sets(
        items=count,
        sections=instance.sections,
        shares=len(instance.share_output),
        capacity=capacity,
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    sets = np.empty(_ALLOWED.allowed_scratch(ctypes.byref(problem)), np.uint64)
    problem.sets = sets.ctypes.data
    return offsets if _ALLOWED.allowed_find(ctypes.byref(problem)) else None


class Verdict(enum.IntEnum):
    """How a run of the search ended."""

    FOUND = 1  # a placement within the capacity
    IMPOSSIBLE = 2  # proven: nothing fits
    LIMIT = 3  # too many nodes


@dataclass(frozen=True)
class Outcome:
    """The end of a run. `offsets`: of the instance's items, in units; valid only if the verdict is FOUND."""

    verdict: Verdict
    offsets: tuple[int, ...]
    nodes: int


class Search:
    """Runs of the search on one instance at one capacity (in units). Failed states are kept from run to run.

    `table_bits`: 2 to this power is the number of states that the table of failed states holds. `allowed`:
    the possible offsets, where they are known.
    """

    def __init__(
        self, instance: Instance, capacity: int, table_bits: int, allowed: Sets | None = None
    ) -> None:
        self._count = len(instance.items)
        self._instance = instance  # whose arrays the search reads
        self._table = np.zeros(2 << table_bits, dtype=np.uint64)
        self._allowed = np.empty((0, 0), np.uint64) if allowed is None else allowed
        self._problem = _Problem(
            items=self._count,
            sections=instance.sections,
            links=len(instance.neighbour),
            shares=len(instance.share_output),
            capacity=capacity,
            table_bits=table_bits,
            table=self._table.ctypes.data,
            allowed=self._allowed.ctypes.data,
            words=self._allowed.shape[1],
            **instance.addresses,
        )
        self._memory = np.empty(_C.search_memory(ctypes.byref(self._problem)) // 8, dtype=np.uint64)

    def run(self, order: Sequence[int], limit: int, crowded: bool = False) -> Outcome:
        """Searches once, with the items in this order of preference. The search ends after `limit` nodes.

        `crowded`: whether the items of a part get another order when the problem separates into parts. Then
        the item comes first in one of whose sections most units wait to be placed; `order` decides between
        equals.
        """
        items = np.array(order, dtype=np.int32)
        offsets = np.zeros(self._count, dtype=np.int32)
        nodes = ctypes.c_int64(0)
        verdict = _C.search_run(
            *(ctypes.byref(self._problem), items.ctypes.data, crowded, limit),
            *(self._memory.ctypes.data, offsets.ctypes.data, ctypes.byref(nodes)),
        )
        return Outcome(Verdict(verdict), tuple(offsets.tolist()), nodes.value)
