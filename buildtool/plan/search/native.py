"""The search for regions in C: labels.c, given the tables of a network as plain numbers."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np

from buildtool.base.compiled import load
from buildtool.base.modes import InPlace
from buildtool.plan.search.cuts import Cuts
from buildtool.plan.search.lower_bound import INFINITE, Weights
from buildtool.plan.search.regions import Reached
from buildtool.plan.search.tables import Tables

ABI = 3  # of labels.c; a library of another one is not used
FAILED = -INFINITE - 1  # what the weight of a form is said to be where asking for it failed

_Extra = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class _Problem(ctypes.Structure):
    """labels_problem."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("count", "alignment", "follows_rows", "limit")),
        *((name, ctypes.c_void_p) for name in ("elements", "cuts", "forms", "besides", "sections", "rows")),
        ("best", ctypes.c_void_p),
        ("version", ctypes.c_void_p),
        ("extra", _Extra),
    )


class _Region(ctypes.Structure):
    """labels_region."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in (
            *("most_bytes", "round", "end", "enough", "most_labels"),
            *("weight", "least", "labels", "first", "bytes", "extra", "blocks"),
        )
    )


@cache
def library(path: Path | None = None) -> ctypes.CDLL | None:
    """The compiled labels.c at `path`, by default the one built with the package; None if there is none."""
    found = load(__file__, "labels", ABI, path)
    if found is not None:
        found.labels_new.restype = ctypes.c_void_p
        found.labels_new.argtypes = [ctypes.POINTER(_Problem)]
        found.labels_free.restype = None
        found.labels_free.argtypes = [ctypes.c_void_p]
        found.labels_run.restype = ctypes.c_int32
        found.labels_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Region), ctypes.c_void_p]
    return found


class NativeRegions:
    """Searches for the regions of one network within limits of bytes; see `LowerBounds` and `RegionSearch`.

    `best`, `version`: shared with the caller, who changes them as it goes from cut to cut.
    """

    def __init__(self, lib: ctypes.CDLL, cuts: Cuts, limit: int, best: Weights, version: Weights) -> None:
        self._lib, t = lib, cuts.t
        self._errors: list[BaseException] = []
        self._arrays = cuts.columns
        self._best, self._version = best, version
        self._extra = _extra_of(t, self._errors)
        problem = _Problem(
            t.count,
            t.e.alignment,
            t.e.in_place == InPlace.ROWS,
            limit,
            *(array.ctypes.data for array in self._arrays),
            ctypes.addressof(best),
            ctypes.addressof(version),
            self._extra,
        )
        self._blocks = np.zeros(t.count + 1, np.int64)
        self._region = _Region()
        self._handle = lib.labels_new(ctypes.byref(problem))
        if not self._handle:
            raise MemoryError

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._lib.labels_free(self._handle)

    def reach(self, most_bytes: int, round_: int, end: int, enough: int, most_labels: int) -> Reached:
        """The best way to the cut at `end`: see RegionSearch.run."""
        r = self._region
        r.most_bytes, r.round, r.end, r.enough, r.most_labels = (
            most_bytes,
            round_,
            end,
            enough,
            most_labels,
        )
        status = self._lib.labels_run(self._handle, ctypes.byref(r), self._blocks.ctypes.data)
        if self._errors:
            raise self._errors[0]
        if status:
            raise MemoryError
        forms = tuple(self._blocks[: max(0, r.blocks)].tolist())
        return Reached(r.weight, r.least, r.labels, r.first, r.bytes, r.extra, forms)


def _extra_of(t: Tables, errors: list[BaseException]) -> ctypes._FuncPointer:
    """What C asks for the weight of a form of which only some rows are wanted."""

    def extra(form: int, wanted: int) -> int:
        try:
            found = t.form(form)
            return t.extra(found.block, found.form, wanted)
        except BaseException as error:  # it cannot pass through C: `reach` raises it
            errors.append(error)
            return FAILED

    return _Extra(extra)
