"""Arena problems in the form that the exact search needs: whole units, sections of time, distances.

A section is an interval of time with more live bytes than just before and just after it: items that fit in
the sections fit everywhere. Items that are never live or have no size are left out, because nothing collides
with them.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import load
from buildtool.base.errors import UnsupportedError
from buildtool.plan.place.arena import Problem

Int32s = npt.NDArray[np.int32]

_FACTS = 6  # numbers that instance.c returns besides arrays

MOST_ITEMS = 1024  # neighbours and work grow with the square
MOST_UNITS = 1 << 29  # what all items and alignments add up to, so that sums stay in 32 bits


@dataclass(frozen=True)
class Instance:
    """A problem in units of `unit` bytes; arrays are indexed by item unless said otherwise.

    items: positions in Problem.items.
    capped: whether some permissions are not used in full, so that finding no placement proves nothing.
        (Negative distances count as 0. Items that may all lie at one offset, because their permissions form a
        cycle, are not all placed there.)
    sections: their number.
    first, last: the item is live in the sections from `first` to before `last`.
    pinned: the item's fixed offset, or -1.
    floor: the lowest offset at which the item does not collide with pinned items.
    low: the smallest distance of a neighbour that lies above the item.
    loose: 1 if the item has a permission to overlap.
    twin: the previous item that is equal in everything, or -1.
    start, neighbour: item i's neighbours (items that are live together with it) are at start[i] to start[i +
        1] of `neighbour`.
    above: if the neighbour lies above item i, their offsets differ by at least this.
    below: if item i lies above the neighbour, their offsets differ by at least this.
    share_output, share_input: by permission: its two items.
    share_first, share_last: by permission: the sections in which both items are live.
    share_units: by permission: how many units the two items can share.
    share_distance: by permission: its distance.
    order: the items in the first order of `solver.runs`, where that is known.
    """

    unit: int
    items: tuple[int, ...]
    capped: bool
    sections: int
    first: Int32s
    last: Int32s
    size: Int32s
    alignment: Int32s
    pinned: Int32s
    floor: Int32s
    low: Int32s
    loose: Int32s
    twin: Int32s
    start: Int32s
    neighbour: Int32s
    above: Int32s
    below: Int32s
    share_output: Int32s
    share_input: Int32s
    share_first: Int32s
    share_last: Int32s
    share_units: Int32s
    share_distance: Int32s
    order: tuple[int, ...] = ()

    @cached_property
    def _search_arrays(self) -> dict[str, Int32s]:
        return {name: np.ascontiguousarray(getattr(self, name)) for name in SEARCHED}

    @cached_property
    def addresses(self) -> dict[str, int]:
        """Returns array -> its address in memory, for the arrays that the search reads.

        The addresses are valid as long as the instance lives.
        """
        return {name: array.ctypes.data for name, array in self._search_arrays.items()}


ARRAYS = tuple(field.name for field in fields(Instance) if field.type == "Int32s")
SEARCHED = ARRAYS[:-1]  # the arrays that the search reads: all but the distances of shares

_C = load(
    __file__,
    "instance",
    2,
    {
        "instance_compile": (
            *(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p),
            *(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
        )
    },
)


def compile_problem(problem: Problem) -> Instance:
    """Returns the instance of a problem. Raises UnsupportedError for too many items or too large sizes."""
    count, permitted = len(problem.items), len(problem.permissions)
    if count > MOST_ITEMS:
        raise UnsupportedError(f"the exact search takes {MOST_ITEMS} items, the problem has {count}")
    rows = [
        (x.lower, x.upper, size, x.alignment, -1 if x.offset is None else x.offset)
        for x, size in zip(problem.items, problem.sizes, strict=True)
    ]
    scratch = np.empty(4 * count + permitted + _FACTS, np.int64)
    memory = np.empty(12 * count + 1 + 6 * permitted + 3 * count * max(0, count - 1), np.int32)
    facts, unit = scratch.ctypes.data, problem.granule
    try:
        items = np.array(rows, np.int64)
        permissions = np.array([(p.output, p.input, p.distance) for p in problem.permissions], np.int64)
    except OverflowError:
        fits = False
    else:
        fits = _C.instance_compile(
            *(count, permitted, items.ctypes.data, permissions.ctypes.data, unit),
            *(facts, facts + 8 * _FACTS, memory.ctypes.data),
        )
        unit = int(scratch[0])
    if not fits:
        raise UnsupportedError(f"sizes and offsets add up to {MOST_UNITS:,} units of {unit} bytes or more")
    live, sections, links, shares, capped = scratch[1:_FACTS].tolist()
    column = memory[: 11 * count].reshape(11, count)[:, :live]
    start, rest = memory[11 * count :][: live + 1], memory[12 * count + 1 :]
    share = rest[: 6 * permitted].reshape(6, permitted)[:, :shares]
    link = rest[6 * permitted :][: 3 * links].reshape(3, links)
    order = tuple(column[10].tolist())
    return Instance(
        unit=unit,
        items=tuple(column[0].tolist()),
        capped=bool(capped),
        sections=sections,
        order=() if -1 in order else order,
        **dict(zip(ARRAYS, (*column[1:10], start, *link, *share), strict=True)),
    )
