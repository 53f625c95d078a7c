"""Runs a family's kernels on this machine where `placement` would run the plain ones.

    with on_host("cortex-m4", "cortex_m_dsp") as family:
        run_pieces(case, seed, columns=True)

For families whose instructions have a model in C. Undefined behaviour traps; scratch has exactly the bytes
that the catalogue's formula gives, with guards around it. Operators that fall to another family run there.
"""

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from ctypes import CDLL, byref, c_int32, c_void_p

import ckernels
import numpy as np
import placement
from ckernels import KERNELS, View, of_an_operator
from loaded import load_target

from buildtool.graph.types import Graph, Op
from buildtool.target.catalogue import scratch_bytes, select
from buildtool.target.registry import load_board, make_target
from buildtool.target.types import Argument, Board, Target

ALIGNMENT = 16
_scratch_bytes = of_an_operator(scratch_bytes)


@functools.cache
def library(family: str, threads: int = 1) -> CDLL:
    """The family's kernels, and the plain ones that they call; `threads` share a call, even the smallest."""
    files = sorted((KERNELS / family).glob("*.c"))
    if threads == 1:
        return ckernels.compile_library([*files, *ckernels.sources()])
    flags = (f"-DNN_THREADS={threads}", "-DNN_FORK_ISSUES=1", ckernels.library()._name)
    return ckernels.compile_library([*files, KERNELS / "runtime/nn_parallel.c"], flags)


class Family:
    """A family's kernels as a board's catalogue chooses them; `used` counts calls by kernel."""

    def __init__(self, board: str, family: str, threads: int = 1, target: Target | None = None) -> None:
        self.family, self.threads = family, threads
        plain = target or load_target(board)
        self.target = plain if threads == 1 else make_target(_threaded(board, family, threads))
        self.select = of_an_operator(functools.partial(select, self.target))
        self.used: Counter[str] = Counter()

    def compute(
        self, graph: Graph, op: Op, inputs: Sequence[View], out: View, window: tuple[int, int, int, int]
    ) -> None:
        """As ckernels.compute."""
        variant = self.select(graph, op)
        if not variant.sources[0].startswith(self.family + "/"):
            ckernels.compute(graph, op, inputs, out, window)
            return
        self.used[variant.name] += 1
        block, shape = ckernels.packed(graph, op, variant), ckernels.geometry(graph, op)
        arguments: list[object] = [] if shape is None else [byref(shape)]
        if len(block):
            arguments.append(c_void_p(block.ctypes.data))
        arguments += [byref(view) for view in (*inputs, out)] + [byref((c_int32 * 4)(*window))]
        size = _scratch_bytes(variant, graph, op, window[3] - window[2])
        room = placement.Room(np.random.default_rng(len(self.used)), size + ALIGNMENT)
        start = -room.middle.ctypes.data % ALIGNMENT
        scratch, rest = room.middle[start : start + size], room.middle[start + size :]
        behind = rest.copy()
        if Argument.SCRATCH in variant.call:
            arguments.append(c_void_p(scratch.ctypes.data))
        if Argument.CHANNEL in variant.call:
            arguments.append(0)
        function = getattr(library(self.family, self.threads), variant.symbol)
        function.restype = None
        function(*arguments)
        room.check_guards()
        assert np.array_equal(rest, behind), f"{variant.name} wrote behind its {size} bytes of scratch"


def _threaded(board: str, family: str, threads: int) -> Board:
    """The board with this family alone, and with this many threads."""
    found = load_board(board)
    core = dataclasses.replace(found.core, families=(family,))
    return dataclasses.replace(found, core=core.threaded(threads))


@contextlib.contextmanager
def on_host(board: str, family: str, threads: int = 1, target: Target | None = None) -> Iterator[Family]:
    """While it lasts, placements run `board`'s kernels of `family`, each call by `threads` threads.

    `target`: the board with other kernels, for one thread.
    """
    chosen = Family(board, family, threads, target)
    plain = placement.compute
    placement.compute = chosen.compute
    try:
        yield chosen
    finally:
        placement.compute = plain
