"""How many threads of a core share the work of a kernel's call.

A board says how many there are at most ([core] threads); a user may have fewer used. The number is written
into the formulas of kernels (see `catalogue.for_core`), and compiled code learns it as the macro NN_THREADS.
"""

from __future__ import annotations

import dataclasses

from buildtool.base.errors import UsageError, suggest
from buildtool.target.types import Board, Core

MACRO = "NN_THREADS"


def threaded(core: Core, threads: int) -> Core:
    """The core with so many threads at work, which its macros say; without a macro where it is one."""
    own = tuple(define for define in core.defines if define.partition("=")[0] != MACRO)
    return dataclasses.replace(
        core, threads=threads, defines=(*own, f"{MACRO}={threads}") if threads > 1 else own
    )


def with_threads(board: Board, threads: int | None) -> Board:
    """The board with `threads` of its threads at work (None: all); UsageError if it has fewer or just one."""
    most = board.core.threads
    if threads is None:
        return board
    if most == 1:
        raise UsageError(
            f"it has no effect on board '{board.name}', whose core has one thread",
            option="threads",
            hint=suggest(threads=None),
        )
    if threads > most:
        raise UsageError(
            f"{threads} threads are asked for, and board '{board.name}' has {most}",
            option="threads",
            hint=suggest(threads=most),
        )
    estimate = board.estimate
    if estimate is not None and threads < most:
        rate = estimate.macs_per_second * threads // most
        source = f"{estimate.source}, {threads} of {most} threads"
        estimate = dataclasses.replace(estimate, macs_per_second=rate, source=source)
    return dataclasses.replace(board, core=threaded(board.core, threads), estimate=estimate)
