"""Exact search for arena offsets, in C; tests/oracles/search_twin.py is the same in Python, node for node.

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
- Where it is known which offsets an item can have at all (see `allowed`), its level is the next of these.
- The levels, and who has been passed over, say all about what can still be done. States that failed
  are remembered, by 128 bits of hash, for later branches and runs.

Permitted overlaps are neighbours at less than the item's size; what they can share is taken off the
sums. An item with such a permission is not passed over by equal offsets, since the two may be equal.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from buildtool.base.compiled import load
from buildtool.plan.place.allowed import Sets
from buildtool.plan.place.instance import ARRAYS, Instance


class _Problem(ctypes.Structure):
    """struct search_problem."""

    _fields_ = (
        *(
            (name, ctypes.c_int32)
            for name in ("items", "sections", "links", "shares", "capacity", "table_bits")
        ),
        *((name, ctypes.c_void_p) for name in ARRAYS),
        ("table", ctypes.c_void_p),
        ("allowed", ctypes.c_void_p),
        ("words", ctypes.c_int32),
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
    """Runs on one instance at one capacity (in units); what is known to fail is kept from run to run.

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
        order_array = np.array(order, dtype=np.int32)
        offsets = np.zeros(self._count, dtype=np.int32)
        nodes = ctypes.c_int64(0)
        verdict = _C.search_run(
            ctypes.byref(self._problem),
            order_array.ctypes.data,
            crowded,
            limit,
            self._memory.ctypes.data,
            offsets.ctypes.data,
            ctypes.byref(nodes),
        )
        return Outcome(Verdict(verdict), tuple(offsets.tolist()), nodes.value)
