"""Issues of the vector unit's kernels, counted in its model: one call of a convolution or dense layer.

counts(case)            # Counts(vpu=..., mac=..., scalar=...) of the whole output in one call
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import ckernels
import hostfamily
from ckernels import KERNELS
from hostfamily import on_host
from kernelcases import Case
from placement import run_whole

BOARD, FAMILY = "xcore", "xcore_vpu"


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("vpu", "mac", "scalar")]


@dataclass(frozen=True)
class Counts:
    """Of one call, of one thread: VPU issues, those of them in loops that multiply, and all others."""

    vpu: int
    mac: int
    scalar: int

    @property
    def all(self) -> int:
        """Every issue."""
        return self.vpu + self.scalar


@functools.cache
def _library() -> ctypes.CDLL:
    files = [*sorted((KERNELS / FAMILY).glob("*.c")), *ckernels.sources()]
    return ckernels.compile_library(files, ["-DNN_VPU_COUNT"])


@contextmanager
def _counting() -> Iterator[None]:
    plain = hostfamily.library
    hostfamily.library = lambda *_: _library()  # type: ignore[assignment]
    try:
        yield
    finally:
        hostfamily.library = plain


def counts(case: Case) -> Counts:
    """The issues of a case's whole output."""
    read = _library().nn_vpu_counted
    read.restype = _Counts
    with _counting(), on_host(BOARD, FAMILY) as family:
        before = read()
        run_whole(case)
        after = read()
    assert sum(family.used.values()) == 1
    return Counts(*(int(getattr(after, n)) - int(getattr(before, n)) for n in ("vpu", "mac", "scalar")))
