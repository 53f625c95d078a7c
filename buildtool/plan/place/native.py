"""The search in C: found beside this file where the package was built, and called without copies."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from buildtool.base.compiled import load
from buildtool.plan.place.allowed_in_c import Sets
from buildtool.plan.place.instance import ARRAYS, Instance
from buildtool.plan.place.outcome import Outcome, Verdict

ABI = 3  # of search.c; a library of another one is not used


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


@cache
def library(path: Path | None = None) -> ctypes.CDLL | None:
    """The compiled search.c at `path`, by default the one built with the package; None if there is none."""
    found = load(__file__, "search", ABI, path)
    if found is not None:
        found.search_memory.restype = ctypes.c_size_t
        found.search_memory.argtypes = [ctypes.POINTER(_Problem)]
        found.search_run.restype = ctypes.c_int32
        found.search_run.argtypes = [
            ctypes.POINTER(_Problem),
            ctypes.c_void_p,
            ctypes.c_int32,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_int64),
        ]
    return found


class NativeSearch:
    """Runs on one instance at one capacity (in units); what is known to fail is kept from run to run."""

    def __init__(
        self,
        lib: ctypes.CDLL,
        instance: Instance,
        capacity: int,
        table_bits: int,
        allowed: Sets | None = None,
    ) -> None:
        self._lib, self._count = lib, len(instance.items)
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
        self._memory = np.empty(lib.search_memory(ctypes.byref(self._problem)) // 8, dtype=np.uint64)

    def run(self, order: Sequence[int], limit: int, crowded: bool = False) -> Outcome:
        """See `Search`."""
        order_array = np.array(order, dtype=np.int32)
        offsets = np.zeros(self._count, dtype=np.int32)
        nodes = ctypes.c_int64(0)
        verdict = self._lib.search_run(
            ctypes.byref(self._problem),
            order_array.ctypes.data,
            crowded,
            limit,
            self._memory.ctypes.data,
            offsets.ctypes.data,
            ctypes.byref(nodes),
        )
        return Outcome(Verdict(verdict), tuple(offsets.tolist()), nodes.value)
