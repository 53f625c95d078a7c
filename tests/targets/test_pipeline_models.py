"""LLVM's models of cores: blocks as text, llvm-mca's reports, and older versions of it."""

from dataclasses import replace
from fractions import Fraction

import pytest
from buildtool_plugins.tools import find
from buildtool_plugins.tools import llvm_mca as llvm
from paths import script

from buildtool.base.errors import ToolError
from buildtool.firmware.run.cycles import find_timer
from buildtool.target.executed import BlockTime
from buildtool.target.registry import load_board

MUL = bytes.fromhex("4043")  # muls r0, r0, r0
NOP = bytes.fromhex("00bf")
LDM4 = bytes.fromhex("90e81e00")  # ldm.w r0, {r1, r2, r3, r4}
LDRD = bytes.fromhex("d0e90012")  # ldrd r1, r2, [r0]
PUSH = bytes.fromhex("30b5")  # push {r4, r5, lr}
IT_NE, MOV_NE = bytes.fromhex("18bf"), bytes.fromhex("0120")  # it ne; movne r0, #1
ITT_NE = bytes.fromhex("1cbf")  # itt ne
VPSTTT, VLDRBT = bytes.fromhex("31fe4d4f"), bytes.fromhex("94ed001e")  # vpsttt; vldrbt.u8 q0, [r4]
LE = bytes.fromhex("0ff005c8")  # le lr, some label before
CALLS = [bytes.fromhex("00f000f8"), bytes.fromhex("9847")]  # bl; blx r3


@pytest.fixture(scope="module")
def timer_of():
    def find_one(board):
        timer = find_timer(load_board(board))
        if isinstance(timer, str):
            pytest.skip(f"needs llvm-mca: {timer}")
        assert isinstance(timer, llvm.LlvmMca)
        return timer

    return find_one


def test_dependent_multiplies_take_a_cycle_each_on_the_m4_and_two_on_the_m7(timer_of):
    blocks = [MUL * n for n in (1, 3, 10)]
    assert [time.cycles for time in timer_of("cortex-m4").time(blocks)] == [1, 3, 10]
    assert [time.cycles for time in timer_of("mps2-an500").time(blocks)] == [2, 6, 20]


@pytest.mark.parametrize("board", ["cortex-m4", "mps2-an500", "mps2-an505", "cortex-m55"])
def test_a_call_takes_no_longer_than_the_instructions_that_it_issues(timer_of, board):
    """Alone, llvm-mca would count 100 cycles."""
    assert all(0 < time.cycles <= 4 for time in timer_of(board).time([NOP + call for call in CALLS]))


def test_loads_and_stores_of_several_words_are_told_apart(timer_of):
    (time,) = timer_of("cortex-m4").time([LDM4 + LDRD + PUSH + NOP])
    assert time.words == (2, 3, 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ldm r0!, {r1, r2, r3, r4}", 4),
        ("ldmdb r0, {r1, r2}", 2),
        ("vpush {d8, d9, d10}", 6),
        ("vldmia r0!, {s0, s1, s2}", 3),
        ("strd r0, r1, [sp, #8]", 2),
        ("pop.w {r4, r5, r6, pc}", 4),
        ("ldr r0, [r1]", 0),
        ("vldrb.u8 q0, [r0], #16", 0),
        ("push {r4}", 1),
    ],
)
def test_words_of_an_instruction(text, words):
    assert llvm._moved_words(text) == words


def test_a_condition_is_cut_to_the_instructions_of_the_block(timer_of):
    blocks = [NOP + IT_NE, MOV_NE, IT_NE + MOV_NE, ITT_NE + MOV_NE]
    timer = timer_of("cortex-m4")
    assert timer.disassemble(blocks) == [
        ["nop"],
        ["movs r0, #1"],
        ["it ne", "movne r0, #1"],
        ["it ne", "movne r0, #1"],
    ]
    assert all(time.cycles > 0 for time in timer.time(blocks))


def test_helium_s_conditions_are_cut_too(timer_of):
    (text,) = timer_of("cortex-m55").disassemble([VPSTTT + VLDRBT])
    assert [line.partition(" ")[0] for line in text] == ["vpst", "vldrbt.u8"]


@pytest.mark.parametrize("flags", [(llvm.SKIP,), ()], ids=["skips by itself", "older"])
def test_an_instruction_without_a_model_takes_no_time_and_is_named(timer_of, flags):
    """Versions before 20 have no flag for that: the instruction is removed from the text."""
    timer = replace(timer_of("cortex-m55"), skips=flags)
    assert timer.time([NOP * 4 + LE, NOP * 4, LE]) == [
        BlockTime(Fraction(4), ("le",)),
        BlockTime(Fraction(4)),
        BlockTime(Fraction(0), ("le",)),
    ]


def test_a_blocks_time_does_not_depend_on_its_neighbours(timer_of):
    timer = timer_of("hifive1")
    add, multiply = bytes.fromhex("0505"), bytes.fromhex("33055502")  # addi a0, a0, 1; mul a0, a0, t0
    together = timer.time([add, multiply, add + multiply])
    assert together == [timer.time([block])[0] for block in (add, multiply, add + multiply)]
    assert together[0].cycles == 1
    assert timer.time([]) == []


def test_bytes_that_are_no_instruction_take_no_time_and_disturb_no_other_block(timer_of):
    nothing = bytes.fromhex("ffffffff")
    times = timer_of("hifive1").time([nothing, bytes.fromhex("0505")])
    assert [time.cycles for time in times] == [0, 1]


def test_reports_of_several_versions_are_read():
    old = "\n[0] Code Region - b3\n\nIterations:        20\nInstructions:      20\nTotal Cycles:      21\n"
    new = old.replace("b3", "b14").replace("21", "22") + "Total uOps:        20\n\nDispatch Width:    1\n"
    assert llvm._parse_report(old + new) == {3: 21, 14: 22}


def fake_clang(folder, number, monkeypatch):
    """Sets a PATH with nothing but a clang."""
    script(folder / f"clang-{number}", f"echo 'clang version {number}.1.0'")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv(find.CLANG_VARIABLE, raising=False)


def test_a_missing_llvm_mca_is_a_reason_with_the_line_that_installs_it(tmp_path, monkeypatch):
    fake_clang(tmp_path, 19, monkeypatch)
    reason = find_timer(load_board("cortex-m4"))
    assert isinstance(reason, str)
    assert "llvm-mca-19" in reason
    assert "apt-get install llvm-19" in reason


def test_a_version_that_counts_100_cycles_for_calls_is_refused(tmp_path, monkeypatch):
    fake_clang(tmp_path, 18, monkeypatch)
    reason = find_timer(load_board("cortex-m4"))
    assert isinstance(reason, str)
    assert "100 cycles for each call" in reason
    assert "apt-get install clang-19 llvm-19" in reason


@pytest.mark.parametrize(("number", "skips"), [(19, ()), (22, (llvm.SKIP,))])
def test_llvm_mca_is_the_one_of_clangs_number(tmp_path, monkeypatch, number, skips):
    fake_clang(tmp_path, number, monkeypatch)
    for name in ("llvm-mca-16", f"llvm-mca-{number}", f"llvm-mc-{number}"):
        script(tmp_path / name, "")
    timer = find_timer(load_board("cortex-m4"))
    assert isinstance(timer, llvm.LlvmMca)
    assert timer.mca == str(tmp_path / f"llvm-mca-{number}")
    assert timer.skips == skips
    assert timer.identity == f"llvm-mca {number}.1.0, -mcpu=cortex-m4"


def test_what_llvm_mca_refuses_is_said(timer_of):
    timer = timer_of("cortex-m4")
    timer = replace(timer, isa=replace(timer.isa, options=("-no-such-option",)))
    with pytest.raises(ToolError, match="cannot time the code"):
        timer.time([NOP])


@pytest.mark.parametrize(
    ("board", "why"),
    [
        *((board, "names no model of its core's pipeline") for board in ("qemu-virt-rv32", "esp8266")),
        *((board, "runs on this machine") for board in ("host", "xcore")),
    ],
)
def test_a_core_without_a_model_gives_the_reason(board, why):
    reason = find_timer(load_board(board))
    assert isinstance(reason, str)
    assert why in reason
