"""Estimates the cycles of a run: a model of the core gives the time of blocks of code, and corrections are
added.

    cycles = pipeline + words + branches + code + data

`pipeline` is the sum of the blocks' cycles by the model, each times how often the block ran. `words` are the
extra cycles of loads and stores of several words, which the model counts as one word. `branches` are the
cycles of taken branches, by the board's file. `code` and `data` are waits for memories whose speed the file
gives. Each part of an operator is a whole number, so that all sums are exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, cast

import msgpack

from buildtool.base.errors import ToolError
from buildtool.base.session import Namespace, Session
from buildtool.schema.runs import CycleEstimate, CycleParts
from buildtool.target.executed import OUTSIDE, BlockTime, Executed, Work
from buildtool.target.plugin import Timer
from buildtool.target.registry import plugin
from buildtool.target.speeds import Pipeline
from buildtool.target.types import Board, RunResult


class Parts(NamedTuple):
    """The estimated cycles of one or more operators, by cause: the terms of the sum in this module's
    docstring.
    """

    pipeline: int = 0
    words: int = 0
    branches: int = 0
    code: int = 0
    data: int = 0

    @property
    def cycles(self) -> int:
        """The sum of all parts."""
        return sum(self)


@dataclass(frozen=True)
class Timing:
    """The estimated cycles of a run.

    `identity`: the timing model.
    `parts`: the cycles by the operators' positions; those of code between operators are under `OUTSIDE`.
    `taken`: the number of taken branches.
    `skipped`: the names of instructions that the model does not know.
    """

    identity: str
    parts: dict[int, Parts]
    taken: int
    skipped: tuple[str, ...]

    @property
    def total(self) -> Parts:
        """The cycles of the whole run."""
        return Parts(*map(sum, zip(*self.parts.values(), strict=True)))


def find_timer(board: Board) -> Timer | str:
    """Returns the timing model of a board's core, or a text with the reason why there is none."""
    if board.is_native:
        return f"firmware for board '{board.name}' runs on this machine, not on the board's core"
    find = getattr(plugin(board), "timer", None)
    if board.pipeline is None or find is None:
        return f"the file of board '{board.name}' names no model of its core's pipeline, as LLVM has none"
    try:
        return cast(Timer, find(board))
    except ToolError as error:
        return "; ".join([error.text, *map(str, error.hints)])


def time_blocks(executed: Executed, board: Board, timer: Timer, session: Session) -> Timing:
    """Returns the cycles of a run, from the counts of its blocks of code. Raises ToolError if the model
    fails.
    """
    times = block_times(executed.blocks, timer, session)
    pipeline = board.pipeline or Pipeline(timer.identity)
    parts = {op: _sum_parts(work, times, pipeline) for op, work in executed.work.items()}
    taken = sum(ran.taken for work in executed.work.values() for ran in work.ran)
    skipped = {name for time in times for name in time.skipped}
    return Timing(timer.identity, parts, taken, tuple(sorted(skipped)))


def _sum_parts(work: Work, times: Sequence[BlockTime], core: Pipeline) -> Parts:
    pipeline = sum((ran.times * times[ran.block].cycles for ran in work.ran), Fraction())
    return Parts(
        pipeline=int(pipeline + Fraction(1, 2)),
        words=sum(ran.times * sum(map(core.beyond, times[ran.block].words)) for ran in work.ran),
        branches=core.taken_branch_cycles * sum(ran.taken for ran in work.ran),
        code=sum(wait.code for wait in work.waited),
        data=sum(wait.data for wait in work.waited),
    )


def block_times(blocks: Sequence[bytes], timer: Timer, session: Session) -> list[BlockTime]:
    """Returns the time of each block of machine code, from the session, the cache or `Timer.time`.

    The session stores a time for each block. The cache stores the times of all these blocks as one entry.
    """
    unique = sorted(set(blocks))
    digest = hashlib.sha256(msgpack.packb(unique)).hexdigest()
    level = Namespace("blocktimes", _pack, lambda data: _unpack(data, len(unique)))
    parts = {"timer": timer.identity, "blocks": digest}

    def ask() -> list[BlockTime]:
        by_block: dict[bytes, BlockTime] = session.remember("block times", timer.identity, dict)
        new = [block for block in unique if block not in by_block]
        if new:
            session.tell(f"timing {len(new)} blocks of code with {timer.identity}")
            by_block.update(zip(new, timer.time(new), strict=True))
        return [by_block[block] for block in unique]

    rows: list[BlockTime] = session.keep(level, parts, ask)
    times = dict(zip(unique, rows, strict=True))
    return [times[block] for block in blocks]


def _pack(times: list[BlockTime]) -> bytes:
    rows = [[*time.cycles.as_integer_ratio(), time.skipped, time.words] for time in times]
    return cast(bytes, msgpack.packb(rows))


def _unpack(data: bytes, count: int) -> list[BlockTime]:
    times = [
        BlockTime(Fraction(n, d), tuple(map(str, skipped)), tuple(map(int, words)))
        for n, d, skipped, words in msgpack.unpackb(data)
    ]
    if len(times) != count:
        raise ValueError("times of other blocks")
    return times


def in_ms(cycles: int, board: Board) -> float | None:
    """Returns the milliseconds that `cycles` take at the board's clock; None if its frequency is not
    known.
    """
    return cycles / board.clock_hz * 1000 if board.clock_hz else None


def parts_answer(parts: Parts) -> CycleParts:
    """Returns the parts as part of an answer."""
    return cast(CycleParts, parts._asdict())


def estimate(timing: Timing, run: RunResult, board: Board) -> CycleEstimate:
    """Returns the estimated cycles of a run as part of an answer."""
    assert board.pipeline is not None and run.executed is not None
    waits = [wait for work in run.executed.work.values() for wait in work.waited]
    roles = dict.fromkeys((board.code, board.kernels or board.code, board.data, board.arena, board.weights))
    return {
        "model": timing.identity,
        "skipped": list(timing.skipped),
        "source": board.pipeline.source,
        "clock_hz": board.clock_hz,
        "taken_branches": timing.taken,
        "taken_branch_cycles": board.pipeline.taken_branch_cycles,
        "parts": parts_answer(timing.total),
        "between": timing.parts.get(OUTSIDE, Parts()).cycles,
        "waits": [
            {
                "memory": memory.name,
                "code": sum(wait.code for wait in waits if wait.memory == memory.name),
                "data": sum(wait.data for wait in waits if wait.memory == memory.name),
            }
            for memory in board.memories
            if memory.speed
        ],
        "ideal": [name for name in roles if board.memory(name).speed is None],
    }
