"""Finds the best way to a cut within a limit in bytes, by best-first search backwards from a region's end.

A cut is a position between operators. A label is a partial region, from some boundary between its groups to
its end: the bytes of its rings so far, the largest of its windows, the weight so far, and the rows that it
still needs from the producer before it. Labels that need the same rows compete: a label that is better in no
number than another one is dropped. The label to extend next is the one with the least sum of its weight and a
lower bound of the weight before it. So the first complete region that is no heavier than all remaining labels
is the best one.

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

INFINITE = 1 << 62  # above every weight and every number of bytes: no way, or no limit
FAILED = -INFINITE - 1  # returned for the weight of a form if Python raised an error

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
    5,
    {
        "labels_new": (ctypes.c_void_p, ctypes.POINTER(_Problem)),
        "labels_free": (None, ctypes.c_void_p),
        "labels_run": (ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(_Region), ctypes.c_void_p),
    },
)


class Candidate(NamedTuple):
    """A region of elements [first, end), with its bytes and the forms of its blocks.

    Without forms it is one element that runs alone.
    """

    first: int
    end: int
    bytes: int
    block_forms: tuple[Form, ...]

    def region(self, e: Elements) -> Region:
        """Returns the region as plans describe it."""
        if not self.block_forms:
            return e.region_of(self.first)
        return Region(tuple(form.group for form in self.block_forms))


class CutResult(NamedTuple):
    """The result of the search for one cut: the best way to it, and the last region of this way.

    weight: of the way, beyond that of its elements run one by one.
    least: a lower bound of that weight; equal to it unless the search ended early.
    labels: how many labels were made.
    first: the region's first element; -1 if no way was found.
    bytes: of the region.
    extra: how much more the region weighs than its elements run one by one.
    forms: the numbers of its block forms.
    """

    weight: int
    least: int
    labels: int
    first: int = -1
    bytes: int = 0
    extra: int = 0
    forms: tuple[int, ...] = ()


class Regions:
    """Searches for the regions of one network within limits in bytes, in C.

    `limit`: the largest extra weight of a way. The arrays `best` and `version` are shared with the caller,
    who updates them after each cut. For each cut, `best` has the extra weight of the best way to it, and
    `version` the last round in which the weight of an earlier cut rose.
    """

    def __init__(self, tables: Tables, limit: int, best: Weights, version: Weights) -> None:
        e, arrays = tables.e, tables.arrays
        self._errors = errors = list[BaseException]()
        self._shared = best, version, arrays  # keeps them alive while C reads them

        def extra(form: int, wanted: int) -> int:
            """Returns the extra weight of a form if `wanted` rows are needed. C calls this."""
            try:
                return tables.extra(tables.form(form), wanted)
            except BaseException as error:  # errors cannot pass through C: `search` raises it
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
        """Finds the best way to the cut at `end` within `most_bytes` bytes.

        round_: how many limits there were so far.
        enough: a lower bound of the weight; the search ends with a way of this weight.
        most_labels: after this many labels the search ends with the best way so far.
        """
        r = _Region(most_bytes, round_, end, enough, most_labels)
        status = _C.labels_run(self._handle, ctypes.byref(r), self._blocks.ctypes.data)
        if self._errors:
            raise self._errors[0]
        if status:
            raise MemoryError
        forms = tuple(self._blocks[: max(0, r.blocks)].tolist())
        return CutResult(r.weight, r.least, r.labels, r.first, r.bytes, r.extra, forms)
