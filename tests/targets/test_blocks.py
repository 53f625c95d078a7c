"""Blocks of code that QEMU's plugin counts, and memories that it watches, against small programs.

tests/targets/probe/probe.c has the code: multiplies, loads of several words and a run over memory. Arm's
manual of the Cortex-M4 has its cycles (DDI 0439, table 3-1): MUL, SUBS, CMP, MOV 1; LDM of N words 1 + N; a
branch 1, and 1 + P where it is taken, P from 1 to 3, which the board's file takes for 2.
"""

from functools import cache
from pathlib import Path

import pytest
from buildtool_plugins.qemu import counting
from probe import ARM, one_set, plugin, probe, run

from buildtool.base.errors import ToolError
from buildtool.base.session import Session
from buildtool.firmware.run.cycles import find_timer, timed
from buildtool.target.executed import OUTSIDE, Executed, Ran, Waited, Work
from buildtool.target.registry import load_board
from buildtool.target.types import RunRequest, RunResult

LOOP = 50  # of multiplies
PASSES, WORDS = 2, 64  # of operator 2
SLOW = """
extends = "cortex-m4"
[memory.psram]
wait_cycles = 6
"""


@cache
def counted(board: str, tool: str, action: str) -> RunResult:
    return executed(board, probe(board if not board.endswith(".toml") else "cortex-m4", tool), action)


def executed(board: str, elf: Path, action: str) -> RunResult:
    target = load_board(board)
    request = RunRequest(
        {"input.bin": one_set(action)}, ("output.bin", "report.txt"), count=True, blocks=True
    )
    return plugin(target).run(target, elf, request)


def of(result: RunResult) -> Executed:
    assert result.executed is not None
    return result.executed


@pytest.mark.parametrize(("board", "tool"), [*ARM, pytest.param("hifive1", "clang")])
def test_instructions_are_those_that_the_plain_counter_counts(board, tool):
    plain = run(board, probe(board, tool), one_set("count"), count=True)
    result = counted(board, tool, "count")
    assert (result.counts, result.total_instructions) == (plain.counts, plain.total_instructions)
    assert result.files == plain.files


def test_blocks_add_up_to_the_instructions():
    found = of(counted("cortex-m4", "clang", "timed"))
    sizes = [thumb_instructions(code) for code in found.blocks]
    for who, instructions in [(0, 1 + LOOP * 6), (1, 1 + 10 * 3), (2, 1 + PASSES * (1 + 3 * WORDS + 2))]:
        assert sum(ran.times * sizes[ran.block] for ran in found.work[who].ran) == instructions


def thumb_instructions(code: bytes) -> int:
    number = place = 0
    while place < len(code):
        place += 4 if code[place + 1] >> 3 >= 0x1D else 2
        number += 1
    assert place == len(code)
    return number


def test_taken_branches_are_counted_where_they_are_taken():
    work = of(counted("cortex-m4", "clang", "timed")).work
    taken = {who: sum(ran.taken for ran in work[who].ran) for who in (0, 1, 2)}
    assert taken == {0: LOOP - 1, 1: 9, 2: PASSES * (WORDS - 1) + PASSES - 1}


def test_cycles_are_those_of_the_cores_manual():
    board, session = load_board("cortex-m4"), Session()
    timer = find_timer(board)
    if isinstance(timer, str):
        pytest.skip(f"needs llvm-mca: {timer}")
    timing = timed(of(counted("cortex-m4", "clang", "timed")), board, timer, session)
    refill = 2
    multiplies = timing.parts[0]
    assert (multiplies.pipeline, multiplies.words, multiplies.branches) == (
        1 + LOOP * (4 + 1 + 1),
        0,
        (LOOP - 1) * refill,
    )
    several = timing.parts[1]
    assert several.cycles == 1 + 10 * ((1 + 4) + 1 + 1) + 9 * refill
    assert several.words == 10 * (4 - 1)  # a load of one word, which the model knows, takes 1 + 1
    assert timing.total.cycles == sum(parts.cycles for parts in timing.parts.values())
    assert set(timing.parts) == {0, 1, 2, OUTSIDE}


@pytest.mark.parametrize(
    ("more", "waits"),
    [
        # Every load waits, the LDM four times.
        ("", {1: 10 * 4 * 6, 2: PASSES * WORDS * 6}),
        # A bus of 16 bits: a word is two beats.
        ("bus_bits = 16\nbeat_cycles = 3", {1: 40 * 9, 2: PASSES * WORDS * 9}),
        # A line is four beats. Eight lines hold half of it: the first is there already, then none is.
        ('cache = "small"\n[cache.small]\nline_bytes = 16\ndata_bytes = 128', {1: 9, 2: (15 + 16) * 9}),
        # In sixteen lines all of it is there the second time.
        ('cache = "l"\n[cache.l]\nline_bytes = 16\ndata_bytes = 256\nways = 4', {1: 9, 2: 15 * 9}),
        # A cache for code alone holds no data.
        ('cache = "l"\n[cache.l]\nline_bytes = 16\ncode_bytes = 256', {1: 240, 2: PASSES * WORDS * 6}),
    ],
)
def test_waiting_for_data_is_what_the_model_of_the_memory_says(tmp_path, more, waits):
    path = tmp_path / "slow.toml"
    path.write_text(SLOW + more)
    work = of(executed(str(path), probe("cortex-m4", "clang"), "timed")).work
    for who, cycles in {0: 0, **waits}.items():
        assert work[who].waited == (Waited("psram", 0, cycles),)


def test_code_is_fetched_by_words_of_the_bus_or_once_by_lines(tmp_path):
    path, found = tmp_path / "slow.toml", []
    for more in ("", 'cache = "l"\n[cache.l]\nline_bytes = 16\ncode_bytes = "1K"'):
        path.write_text(SLOW.replace("psram", "flash") + more)
        (wait,) = of(executed(str(path), probe("cortex-m4", "clang"), "timed")).work[0].waited
        assert (wait.memory, wait.data) == ("flash", 0)
        found.append(wait.code)
    by_words, by_lines = found
    loop = 4 * 4 + 2 * 2  # bytes: a MUL of two bytes or four, SUBS and BNE
    assert LOOP * 6 * (loop // 2 // 4) <= by_words <= LOOP * 6 * (loop // 4 + 2)
    assert by_lines in (9, 2 * 9, 3 * 9)


def test_a_stand_in_is_watched_where_it_has_the_memory():
    board = load_board("stm32h747i-disco")
    assert counting.arguments(board) == [
        "cache=32:16384:16384:4",
        f"memory=0:{2 << 20}:8:0",
        f"memory={0x60000000}:{512 << 10}:8:0",
        f"memory={0x60100000}:{288 << 10}:4:0",
    ]


TEXT = b"""\
0 12
invokes 2
total 12
block 0 4096 00bf00bf
block 1 4100 00bf
block 2 4102 fee7
block 3 8192 7047
ran 0 0 6 0
ran 0 1 6 0
ran 0 2 7 3
ran -1 2 1 0
ran -1 0 2 0
ran -1 1 2 0
"""


def test_blocks_that_run_only_together_are_one():
    """The third is entered from elsewhere, too; the fourth did not run in an invoke."""
    found = counting.parse_blocks(TEXT, load_board("cortex-m4"))
    assert found.blocks == (bytes.fromhex("00bf00bf00bf"), bytes.fromhex("fee7"))
    assert found.work == {
        OUTSIDE: Work((Ran(0, 2, 0), Ran(1, 1, 0))),
        0: Work((Ran(0, 6, 0), Ran(1, 7, 3))),
    }
    assert found.invokes == 2


@pytest.mark.parametrize("line", [b"block 4 12 0x\n", b"ran 0 1 2\n", b"reads 0 0 1 1 1\n"])
def test_a_line_that_cannot_be_read_is_refused(line):
    with pytest.raises(ToolError, match="counting plugin wrote"):
        counting.parse_blocks(TEXT + line, load_board("cortex-m4"))


def test_counts_that_are_cut_off_are_refused():
    with pytest.raises(ToolError, match="cut off"):
        counting.parse_blocks(TEXT.replace(b"block 0", b"block 7"), load_board("cortex-m4"))
