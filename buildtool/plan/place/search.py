"""Exact search for arena offsets, in C (search.c).

Items are placed from the bottom up, each as low as the ones placed before let it lie (its level), and
in the order of their offsets; equal offsets in the order of preference. Some lowest placement can be
built like that, one in which no item could move to a lower place with the others where they are. So:

- An item whose level is below the last offset (or equal, and it comes first) has been passed over:
  it has to wait until one placed later lies below it, and supports it. And that one must come to lie
  where the item could lie now, or else the item would be there.
- Nothing is placed so high that a waiting item would fit completely below it.
- Of items that are the same in everything the first is placed first.
- In every section what waits fits above the lowest level, at every threshold: the items that cannot
  begin below t end at t plus the sum of their sizes at the earliest. So an item that is too high to
  be the lowest of its section waits for one that can be.
- Items that share no time any more are searched apart; if one part fails, its siblings do not matter.
- A run may order parts anew as they fall apart: by the most that waits in one of an item's sections.
- Where it is known which offsets an item can have at all (see `find_allowed_offsets`), its level is the next
  of these.
- The levels, and which items have been passed over, are the whole state. States that failed are
  remembered, by 128 bits of hash, for later branches and runs.

Permitted overlaps are neighbours at less than the item's size; what they can share is taken off the
sums. An item with such a permission is not passed over by equal offsets, since the two may be equal.
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

MOST_UNITS = 1 << 13  # of capacity: the sets are as long
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
    """Whether a problem is small enough for sets of offsets."""
    return capacity <= MOST_UNITS and len(instance.items) <= MOST_MEMBERS


def find_allowed_offsets(instance: Instance, capacity: int) -> Sets | None:
    """The offsets that are left to each item at a capacity (in units); None where nothing fits.

    In a section that is nearly full nothing can be left free but its slack, the capacity less what lies in
    it. So below an item lies a subset of the others, and as much waste as the slack at most: its offset is
    one of their subset sums, or above it by the slack at most. An output and an input that cannot lie side by
    side there overlap, as far as that needs, and what is known of one holds for the other. Along a chain of
    regions, each of whose outputs lies over its input, this shows soon what a search by branches shows late:
    that no offsets go together. The sets hold for every placement, so nothing is lost by a search that keeps
    to them. They are found in C (allowed.c); tests/oracles/allowed_twin.py is the same in Python.
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
    """How a run ended."""

    FOUND = 1
    IMPOSSIBLE = 2  # proven: nothing fits
    LIMIT = 3  # too many nodes


@dataclass(frozen=True)
class Outcome:
    """The end of a run; `offsets` in units, of the instance's items, mean something only if FOUND."""

    verdict: Verdict
    offsets: tuple[int, ...]
    nodes: int


class Search:
    """Runs on one instance at one capacity (in units); states that fail are kept from run to run.

    `allowed`: the offsets to keep to, where they are known.
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
        """One run with items in this order of preference, ended after `limit` nodes.

        `crowded`: what falls apart is ordered anew by the most that waits in an item's sections, and
        `order` decides between equals.
        """
        items = np.array(order, dtype=np.int32)
        offsets = np.zeros(self._count, dtype=np.int32)
        nodes = ctypes.c_int64(0)
        verdict = _C.search_run(
            *(ctypes.byref(self._problem), items.ctypes.data, crowded, limit),
            *(self._memory.ctypes.data, offsets.ctypes.data, ctypes.byref(nodes)),
        )
        return Outcome(Verdict(verdict), tuple(offsets.tolist()), nodes.value)
