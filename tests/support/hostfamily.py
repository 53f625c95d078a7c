"""Runs a family's kernels on this machine and compares them with the plain kernels.

    with on_host("cortex-m4", "cortex_m_dsp") as family:
        run_pieces(case, seed, columns=True)
    assert family.kernels.total()

For families whose instructions have a model in C. Undefined behaviour traps. Scratch has exactly the size of
the catalogue's formula, with guards around it. Operators that another family serves run there. `comparing`
does the same for any family: see `boardcalls` for those that an emulator runs.
"""

import contextlib
import ctypes
import dataclasses
import functools
import mmap
from collections import Counter
from collections.abc import Iterator, Sequence
from ctypes import CDLL, c_void_p

import ckernels
import numpy as np
import placement
import pytest
from boardcalls import BOARDS, Recorder, blocks_of, recording
from ckernels import KERNELS, View, of_an_operator
from loaded import load_target

from buildtool.graph.types import Graph, Op
from buildtool.target.catalogue import select
from buildtool.target.registry import load_board, make_target
from buildtool.target.types import Argument, KernelVariant, Target

ALIGNMENT = 16


@functools.cache
def library(family: str, threads: int = 1) -> CDLL:
    """Returns the library of the family's kernels and the plain ones that they call.

    Several threads share each call, also the smallest ones.
    """
    files = sorted((KERNELS / family).glob("*.c"))
    if threads == 1:
        return ckernels.compile_library([*files, *ckernels.sources()])
    flags = (f"-DNN_THREADS={threads}", "-DNN_FORK_ISSUES=1")
    files.append(KERNELS / "runtime/nn_parallel.c")
    return ckernels.compile_library(files, flags, libraries=[ckernels.library()._name])


class Family:
    """A family's kernels as a board's catalogue selects them. `kernels` counts calls.

    `target` replaces the board's target; calls are then not compared with plain ones.
    """

    def __init__(self, board: str, family: str, threads: int = 1, target: Target | None = None) -> None:
        self.family, self.threads, self.compares = family, threads, target is None
        self.target = target or load_target(board)
        if threads > 1:  # the board with this family alone
            loaded = load_board(board)
            core = dataclasses.replace(loaded.core, families=(family,)).with_threads(threads)
            self.target = make_target(dataclasses.replace(loaded, core=core))
        self.select = of_an_operator(functools.partial(select, self.target))
        self.kernels: Counter[str] = Counter()

    def compute(
        self, graph: Graph, op: Op, inputs: Sequence[View], out: View, window: tuple[int, int, int, int]
    ) -> None:
        """Does what ckernels.compute does."""
        variant = self.select(graph, op)
        if not variant.sources[0].startswith(self.family + "/"):
            ckernels.compute(graph, op, inputs, out, window)
            return
        self.kernels[variant.name] += 1
        blocks = blocks_of([*inputs, out])
        before = [ctypes.string_at(first, end - first) for first, end in blocks]
        self._call(variant, graph, op, [*inputs, out], window)
        if not self.compares:
            return
        results = [ctypes.string_at(first, end - first) for first, end in blocks]
        for (first, end), data in zip(blocks, before, strict=True):
            ctypes.memmove(first, data, end - first)
        ckernels.compute(graph, op, inputs, out, window)
        expected = [ctypes.string_at(first, end - first) for first, end in blocks]
        assert results == expected, f"{variant.name}, window {window}: not what the plain kernel leaves"

    def check(self, toolchain: str, board: str = "") -> None:
        """Does nothing: `compute` has compared the calls already."""

    def _call(
        self,
        variant: KernelVariant,
        graph: Graph,
        op: Op,
        views: Sequence[View],
        window: tuple[int, int, int, int],
    ) -> None:
        arguments = ckernels.arguments_of(graph, op, variant, views, window)
        size = ckernels.scratch_size(variant, graph, op, window[3] - window[2])
        room = placement.Room(np.random.default_rng(len(self.kernels)), size + ALIGNMENT)
        start = -room.middle.ctypes.data % ALIGNMENT
        scratch, rest = room.middle[start : start + size], room.middle[start + size :]
        behind = rest.copy()
        if op.kind in ckernels.TAKES_SCRATCH:
            arguments.append(c_void_p(scratch.ctypes.data))
        if Argument.CHANNEL in variant.call:
            arguments.append(0)
        function = getattr(library(self.family, self.threads), variant.symbol)
        function.restype = None
        function(*arguments)
        room.check_guards()
        assert np.array_equal(rest, behind), f"{variant.name} wrote behind its {size} bytes of scratch"


@contextlib.contextmanager
def on_host(board: str, family: str, threads: int = 1, target: Target | None = None) -> Iterator[Family]:
    """Lets placements run `board`'s kernels of `family`, each call with `threads` threads."""
    kernels = Family(board, family, threads, target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "compute", kernels.compute)
        yield kernels


@contextlib.contextmanager
def comparing(family: str) -> Iterator[Recorder | Family]:
    """Compares a family's kernels with the plain ones: at each call, or when `check` is called."""
    if family in BOARDS:
        with recording(family) as recorder:
            yield recorder
    else:
        with on_host("xcore", family, 5) as kernels:
            yield kernels


def before_nothing(array: np.ndarray) -> np.ndarray:
    """Returns a copy that ends directly before a page without read permission."""
    pages = -(-array.nbytes // mmap.PAGESIZE)
    room = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    start = pages * mmap.PAGESIZE
    address = ctypes.addressof(ctypes.c_char.from_buffer(room)) + start
    assert ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, 0) == 0
    copy = np.frombuffer(room, np.int8, array.nbytes, start - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy
