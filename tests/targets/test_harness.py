import struct
from pathlib import Path

import pytest
from paths import TESTS
from probe import ALL, ARM, RISCV, XTENSA, one_set, probe, report, run

from buildtool.base.errors import ToolError

ECHOED = bytes(2 * i for i in range(16))  # range(16) + the weights


@pytest.mark.parametrize(("board", "tool"), ALL)
def test_every_set_of_inputs_gives_its_outputs(board, tool):
    other = bytes(range(200, 216))
    result = run(board, probe(board, tool), one_set("echo"), one_set("echo", echo=other), one_set("echo"))
    expected = bytes((a + i) & 255 for i, a in enumerate(other))
    assert result.files["output.bin"] == ECHOED + expected + ECHOED
    assert report(result)["sets"] == 3
    assert result.text == ""


@pytest.mark.parametrize(("board", "tool"), ALL)
def test_arena_high_water_is_the_end_of_the_highest_byte_written(board, tool):
    runs = (run(board, probe(board, tool), one_set("touch", at)) for at in (3000, 4095))
    assert [report(result)["arena_high_water"] for result in runs] == [3001, 4096]


@pytest.mark.parametrize(("board", "tool"), ALL)
def test_stack_high_water_grows_by_the_bytes_that_are_written(board, tool):
    elf = probe(board, tool)
    small, large = (report(run(board, elf, one_set("stack", n)))["stack_high_water"] for n in (400, 1400))
    # The frame of 4096 bytes is written from its top down, and only written bytes are measured.
    assert large - small == 1000
    # Above them are the frames and saved registers of two calls, and the host's trampoline.
    assert 400 <= small <= 400 + 200


@pytest.mark.parametrize(("board", "tool"), ALL)
def test_a_write_outside_the_arena_is_detected(board, tool):
    for at, says in ((-3, "3 bytes below the arena's start"), (4096 + 5, "5 bytes above the arena's end")):
        with pytest.raises(ToolError, match=says):
            run(board, probe(board, tool), one_set("echo"), one_set("touch", at))


@pytest.mark.slow
def test_a_sanitizer_sees_a_write_outside_the_arena():
    elf = probe("host", "gcc", "-fsanitize=address")
    with pytest.raises(ToolError, match="use-after-poison"):
        run("host", elf, one_set("touch", 4096))
    result = run("host", elf, one_set("echo"))  # the results are the same, but the stack is not measured
    assert result.files["output.bin"] == ECHOED
    assert report(result)["stack_high_water"] == 0


@pytest.mark.parametrize(("board", "tool"), [("host", "gcc"), ("cortex-m4", "clang")])
@pytest.mark.parametrize(
    ("inputs", "timeout", "says"),
    [
        (one_set("status", 5), 60, r"(?s)exit code 2.*invoke gave status 5"),
        (one_set("echo") + b"x", 60, "25 bytes, which is not a whole number of sets"),
        (one_set("loop"), 0.3, r"still running after 0\.3 s"),
    ],
    ids=["status", "inputs", "time"],
)
def test_what_ends_a_run_is_told(board, tool, inputs, timeout, says):
    with pytest.raises(ToolError, match=says):
        run(board, probe(board, tool), inputs, timeout=timeout)


@pytest.mark.parametrize(("board", "tool"), [("host", "gcc"), ("cortex-m55", "gcc")])
def test_a_trace_build_hands_over_every_tensor_in_order(board, tool):
    choice, elf = one_set("echo")[:8], probe(board, tool, "-DNN_TRACE")
    result = run(board, elf, one_set("echo"), one_set("echo"), extra=("trace.bin",))
    trace = struct.pack("<III", 7, 0, 8) + choice + struct.pack("<III", 9, 0, 16) + ECHOED
    assert result.files["trace.bin"] == 2 * trace


# The probe's action and its argument, the exit code, and the message.
ARM_FAULTS = [
    ("wild_store", 0xF0000000, r"10\d", r"\w+ at pc=0x0000[0-9a-f]{4} .* address=0xf0000000"),
    ("undefined", 0, r"10\d", r"UsageFault at pc=0x0000[0-9a-f]{4} .* cfsr=0x00010000"),
    ("divide", 0, r"10\d", r"UsageFault at pc=0x0000[0-9a-f]{4} .* cfsr=0x02000000"),
    ("recurse", 0, r"10\d", r"\w+ after a stack overflow"),
]
RISCV_FAULTS = [
    ("wild_store", 0xF0000000, 107, r"store access fault at pc=0x[0-9a-f]{8} .* address=0xf0000000"),
    ("undefined", 0, 102, r"illegal instruction at pc=0x[0-9a-f]{8} .* mcause=0x00000002"),
    ("recurse", 0, 107, r"store access fault after a stack overflow"),
]
V6M_FAULTS = [
    ("wild_store", 0x21000001, 103, r"HardFault at pc=0x0000[0-9a-f]{4}"),  # not aligned
    ("undefined", 0, 103, r"HardFault at pc=0x0000[0-9a-f]{4}"),
    ("recurse", 0, 103, "HardFault after a stack overflow"),
]
XTENSA_FAULTS = [
    ("wild_store", 0x20000000, 115, "load or store bus error at .* address=0x20000000"),
    ("wild_store", 0x3FFE8001, 109, "unaligned load or store at .* address=0x3ffe8001"),
    ("undefined", 0, 100, "illegal instruction at pc=0x4020[0-9a-f]{4} .* exccause=0x00000000"),
    ("recurse", 0, 165, "debug exception after a stack overflow"),
]
BEHIND_16K = ("wild_store", 0x80004000, r"\d+", "store access fault .* address=0x80004000")  # of the HiFive1
SMALL = str(TESTS / "support/boards/ch32v003-8k.toml")
NO_RAM = [
    (0x80001FFC, 107, "store access fault .* address=0x80001ffc"),
    (0x80004000, 107, "store access fault .* address=0x80004000"),
]
FAULTS = [
    *(pytest.param(*board.values, fault) for board in ARM for fault in ARM_FAULTS),
    *(pytest.param(*RISCV[0].values, fault) for fault in RISCV_FAULTS),
    *(pytest.param(*board.values, fault) for board in XTENSA for fault in XTENSA_FAULTS),
    *(("cortex-m0plus", "clang", fault) for fault in V6M_FAULTS),
    ("hifive1", "clang", BEHIND_16K),
    *((SMALL, "clang", ("wild_store", *fault)) for fault in NO_RAM),
]


@pytest.mark.parametrize(("board", "tool", "fault"), FAULTS)
def test_a_fault_is_reported_with_its_registers(board, tool, fault):
    elf, (action, value, code, says) = probe(board, tool), fault
    with pytest.raises(
        ToolError, match=rf"(?s)on {Path(board).stem} ended with exit code {code}.*fault: {says}"
    ):
        run(board, elf, one_set(action, value), timeout=60)


def test_a_crash_of_the_native_program_is_an_error():
    elf = probe("host", "gcc")
    with pytest.raises(ToolError, match="ended by signal 11"):
        run("host", elf, one_set("wild_store", 16))
