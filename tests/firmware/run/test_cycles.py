"""Estimates of cycles: sums of parts, for operators and in total, and which times are cached."""

from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from needs import needs_shared

from buildtool.api import handle
from buildtool.base.session import Session
from buildtool.firmware.run.cycles import Parts, find_timer, time_blocks
from buildtool.fronts.texts import profile as text_of
from buildtool.target.executed import OUTSIDE, BlockRuns, BlockTime, Executed, MemoryWait, Work
from buildtool.target.registry import load_board


@dataclass
class Ruler:
    """A timer: half a cycle per byte, and a load of three words in each block of four bytes."""

    identity: str = "a ruler"
    asked: list[bytes] = field(default_factory=list)

    def time(self, blocks):
        self.asked += blocks
        return [BlockTime(Fraction(len(b), 2), (), (3,) if len(b) == 4 else ()) for b in blocks]


EXECUTED = Executed(
    (b"1", b"4444", b"666666"),
    {
        0: Work((BlockRuns(0, 5, 2), BlockRuns(1, 10, 0)), (MemoryWait("flash", 7, 11),)),
        1: Work((BlockRuns(1, 1, 1), BlockRuns(2, 3, 3))),
        OUTSIDE: Work((BlockRuns(0, 1, 0),)),
    },
)


def test_parts_are_times_by_counts_and_whole_numbers():
    """On the Cortex-M4, a refill takes two cycles, and each further one of three words takes one."""
    timing = time_blocks(EXECUTED, load_board("cortex-m4"), Ruler(), Session())
    assert timing.parts == {
        0: Parts(pipeline=23, words=20, branches=4, code=7, data=11),  # 22.5 is rounded up
        1: Parts(pipeline=11, words=2, branches=8),
        OUTSIDE: Parts(pipeline=1),
    }
    assert timing.taken == 6
    assert timing.total == Parts(35, 22, 12, 7, 11)
    assert timing.total.cycles == 87


def total(parts):
    assert parts is not None
    return parts["pipeline"] + parts["words"] + parts["branches"] + parts["code"] + parts["data"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "board",
    ["cortex-m4", *(pytest.param(b, marks=pytest.mark.slow) for b in ("nucleo-f412zg",))],
)
def test_the_cycles_of_a_network_are_the_sum_of_its_parts(board):
    if isinstance(timer := find_timer(load_board(board)), str):
        pytest.skip(f"needs llvm-mca: {timer}")
    model = str(needs_shared("models/mlperf_kws.tflite"))
    answer = handle({"kind": "profile", "model": model, "board": board, "options": {"strategy": "layerwise"}})
    how, rows = answer["estimated_by"], answer["per_operator"]
    assert (answer["cycles_are"], answer["no_cycles"], answer["seconds"]) == ("estimated", "", None)
    assert how is not None
    assert all(row["cycles"] == total(row["parts"]) for row in rows)
    assert answer["cycles"] == sum(row["cycles"] for row in rows) + how["between"] == total(how["parts"])
    assert answer["cycles"] > answer["instructions"] // 2  # no core here does more than two a cycle
    clock = load_board(board).clock_hz
    assert answer["estimated_ms"] == answer["cycles"] / clock * 1000
    waits = {wait["memory"]: wait["code"] + wait["data"] for wait in how["waits"]}
    assert sum(waits.values()) == how["parts"]["code"] + how["parts"]["data"]
    if board == "nucleo-f412zg":
        # Every byte of the weights is read once at least, in lines of 16 bytes that take 3 cycles.
        assert waits["flash"] > answer["flash_bytes"] / 16 * 3
    text = text_of.text(answer)
    assert f"cycles are an estimate, not measured: {answer['cycles']:,} of them" in text
    assert timer.identity in text
