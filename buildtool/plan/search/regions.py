"""The best way to reach a cut within a limit of bytes, best first, backwards from its last region's end.

A label is a partial region, from some boundary to its end: bytes of the rings so far, the largest of
the blocks' windows, the weight so far, and the rows that it still needs from the producer before it.
Labels that need the same rows compete: one that is no better in anything than another is dropped. The
next label to be continued is the one whose weight is least, with the least that everything before it can
cost added; so the first region that is no dearer than all labels left is the best.

The search is in C (labels.c), which reads the tables of a network as arrays of numbers.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from buildtool.base.compiled import load, struct
from buildtool.base.modes import InPlace
from buildtool.plan.search.blocks import Form
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.tables import Tables
from buildtool.plan.types import Region

Weights = ctypes.Array[ctypes.c_int64]

INFINITE = 1 << 62  # above every weight and every number of bytes: there is no way, or no limit
FAILED = -INFINITE - 1  # the weight of a form where asking for it failed

_Extra = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


# labels_problem
_Problem = struct(
    (ctypes.c_int64, "count alignment follows_rows limit"),
    (ctypes.c_void_p, "elements cuts forms besides sections rows best version"),
    (_Extra, "extra"),
)
# labels_region
_Region = struct(
    (ctypes.c_int64, "most_bytes round end enough most_labels"),
    (ctypes.c_int64, "weight least labels first bytes extra blocks"),
)
_C = load(
    __file__,
    "labels",
    3,
    {
        "labels_new": (ctypes.c_void_p, ctypes.POINTER(_Problem)),
        "labels_free": (None, ctypes.c_void_p),
        "labels_run": (ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(_Region), ctypes.c_void_p),
    },
)


class Candidate(NamedTuple):
    """A region of elements [first, end): bytes, and its blocks (none: one element in one step)."""

    first: int
    end: int
    bytes: int
    block_forms: tuple[Form, ...]

    def region(self, e: Elements) -> Region:
        """The region in the plan's terms."""
        if not self.block_forms:
            return e.region_of(self.first)
        return Region(tuple(form.group for form in self.block_forms))


class CutResult(NamedTuple):
    """What a search for one cut has found: the least weight of a way there, and the last region of that way.

    `least`: a weight that no way there is below, the same unless the search was ended; `first`: where that
    region begins, -1 if there is none; `extra`: its weight beyond its elements' own; `forms`: its blocks by
    their numbers.
    """

    weight: int
    least: int
    labels: int
    first: int = -1
    bytes: int = 0
    extra: int = 0
    forms: tuple[int, ...] = ()


class Regions:
    """Searches for the regions of one network within limits of bytes.

    `best`, `version`: shared with the caller, who changes them as it goes from cut to cut.
    """

    def __init__(self, tables: Tables, limit: int, best: Weights, version: Weights) -> None:
        e, arrays = tables.e, tables.arrays
        self._errors = errors = list[BaseException]()
        self._shared = best, version, arrays  # alive as long as C reads them

        def extra(form: int, wanted: int) -> int:
            """Called by C: returns the weight of a form if only `wanted` rows are needed."""
            try:
                return tables.extra(tables.form(form), wanted)
            except BaseException as error:  # it cannot pass through C: `search` raises it
                errors.append(error)
                return FAILED

        self._extra = _Extra(extra)
        problem = _Problem(
            e.count,
            e.alignment,
            e.in_place == InPlace.ROWS,
            limit,
            *(array.ctypes.data for array in arrays),
            ctypes.addressof(best),
            ctypes.addressof(version),
            self._extra,
        )
        self._blocks = np.zeros(e.count + 1, np.int64)
        self._handle = _C.labels_new(ctypes.byref(problem))
        if not self._handle:
            raise MemoryError

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _C.labels_free(self._handle)

    def search(self, most_bytes: int, round_: int, end: int, enough: int, most_labels: int) -> CutResult:
        """The best way to the cut at `end`; ends at once at one of weight `enough`, which none can be below.

        `round_` counts the limits; `most_labels`: labels after which it is ended with the best way so far.
        """
        r = _Region(most_bytes, round_, end, enough, most_labels)
        status = _C.labels_run(self._handle, ctypes.byref(r), self._blocks.ctypes.data)
        if self._errors:
            raise self._errors[0]
        if status:
            raise MemoryError
        forms = tuple(self._blocks[: max(0, r.blocks)].tolist())
        return CutResult(r.weight, r.least, r.labels, r.first, r.bytes, r.extra, forms)
