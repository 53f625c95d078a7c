import subprocess

import pytest
from buildtool_plugins.qemu import counting
from buildtool_plugins.tools.find import find_clang, find_host_compiler
from elftools.elf.elffile import ELFFile
from probe import ARM, RISCV, ROOT, XTENSA, kernels_root, load_board, one_set, plugin, probe, report, run

from buildtool.base import programs
from buildtool.base.errors import ToolError
from buildtool.base.session import Session, working
from buildtool.base.store.cache import Cache
from buildtool.firmware.run.cycles import find_timer, time_blocks
from buildtool.target.executed import OUTSIDE, BlockRuns, MemoryWait, Work
from buildtool.target.types import RunRequest

# Operator 3 of the cores that have it: movs, dls, then 10 times nop and le; four vector instructions.
OWN = {"cortex-m55": 2 + 2 * 10, "qemu-virt-rv32v": 4, "qemu-virt-rv32v256": 4}


MORE = [("cortex-m0plus", "clang"), ("qemu-virt-rv32v256", "clang")]


@pytest.mark.parametrize(("board", "tool"), [*ARM, *RISCV, *MORE, *XTENSA])
def test_counts_are_those_of_the_hand_written_assembly(board, tool):
    """The numbers follow from tests/targets/probe/probe.c: markers do not count, skipped instructions do."""
    result = run(board, probe(board, tool), one_set("count"), count=True)
    loop = 1 + 2 * 100  # movs, then 100 times subs and bne
    expected = {70: loop + 1, 4095: 4} | ({3: OWN[board]} if board in OWN else {})
    assert result.counts == expected
    assert result.total_instructions == sum(expected.values()) + 2  # nops between two operators
    assert report(result)["guard_ok"] == 1


@pytest.mark.parametrize("board", ["cortex-m4", "cortex-m0plus"])
def test_a_marker_before_an_instruction_that_straddles_two_pages_is_seen(board):
    elf = probe(board, "clang")
    assert run(board, elf, one_set("straddle"), count=True).counts == {69: 1}


def test_counts_are_summed_over_the_sets_and_the_same_in_every_run():
    elf = probe("cortex-m4", "clang")
    results = [run("cortex-m4", elf, *[one_set("count")] * 3, count=True) for _ in range(2)]
    assert [r.total_instructions for r in results] == [3 * (202 + 4 + 2)] * 2
    assert [r.counts for r in results] == [{70: 3 * 202, 4095: 3 * 4}] * 2


def test_a_run_without_an_invoke_is_refused_rather_than_counted_as_nothing():
    with pytest.raises(ToolError, match="no invoke was counted") as caught:
        run("cortex-m4", probe("cortex-m4", "clang"), one_set("echo"), count=True)
    assert "holds no network" in caught.value.hint


def test_the_counting_plugin_is_compiled_once_and_no_altered_one_is_loaded(tmp_path, monkeypatch):
    """It has a cache namespace, as compiled objects have."""
    commands = []
    run = programs.subprocess.run

    def counted(command, **keywords):
        commands.append(command)
        return run(command, **keywords)

    def made():
        keeper = Cache(tmp_path / "cache", "code")
        with working(Session(keeper=keeper)):
            built = counting.counting_plugin().read_bytes()
        keeper.flush()
        return built

    monkeypatch.setattr(programs.subprocess, "run", counted)
    monkeypatch.setattr(programs, "current_session", programs.current_session.real)
    first = made()
    assert made() == first
    assert sum("-MD" in command for command in commands) == 1
    (entry,) = (tmp_path / "cache" / "programs").glob("*/*")
    entry.write_bytes(entry.read_bytes()[:-9] + b"something")
    assert made() == first
    assert sum("-MD" in command for command in commands) == 2


@pytest.mark.parametrize(
    ("isa", "flags"),
    [("arm", ["--target=arm-none-eabi", "-mcpu=cortex-m4"]), ("riscv", ["--target=riscv32", "-mno-relax"])],
)
def test_markers_are_decoded_on_every_architecture(isa, flags, tmp_path):
    """The plugin runs on this machine over assembled markers, without QEMU."""
    clang = find_clang().path
    code, driver = tmp_path / "code.o", tmp_path / "driver"
    markers = [*flags, "-O1", f"-I{kernels_root() / 'include'}", "-c", ROOT / "markers.c"]
    subprocess.run([clang, *markers, "-o", code], check=True)
    with code.open("rb") as file:
        (tmp_path / "code.bin").write_bytes(ELFFile(file).get_section_by_name(".text.markers").data())
    flags = (f'-DPLUGIN="{counting.SOURCE}"', "-Wall", "-Werror")
    subprocess.run([find_host_compiler(), *flags, ROOT / "drive_count.c", "-o", driver], check=True)
    subprocess.run([driver, isa, "code.bin"], check=True, cwd=tmp_path)
    counts, total = counting.parse_counts((tmp_path / "counts.txt").read_bytes())
    assert counts == {0: 1, 63: 2, 64: 3, 4095: 4}
    assert total == 1 + 2 + 3 + 4 + 1


# ---- blocks of code ----------------------------------------------------------------------------------


LOOP = 50  # multiplies
PASSES, WORDS = 2, 64  # in operator 2
SLOW = """
extends = "cortex-m4"
[memory.psram]
wait_cycles = 6
"""


def counted(board, tool, action, elf=None):
    target, files = load_board(board), {"input.bin": one_set(action)}
    request = RunRequest(files, ("output.bin", "report.txt"), count=True, blocks=True)
    return plugin(target).run(target, elf or probe(board, tool), request)


def timed_blocks(board="cortex-m4"):
    """Returns what the probe's timed action executed; `board` may be a file for the same firmware image."""
    return counted(board, "clang", "timed", probe("cortex-m4", "clang")).executed


@pytest.mark.parametrize(("board", "tool"), [*ARM, pytest.param("hifive1", "clang")])
def test_instructions_are_those_that_the_plain_counter_counts(board, tool):
    plain = run(board, probe(board, tool), one_set("count"), count=True)
    result = counted(board, tool, "count")
    assert (result.counts, result.total_instructions) == (plain.counts, plain.total_instructions)
    assert result.files == plain.files


def test_taken_branches_are_counted_where_they_are_taken():
    work = timed_blocks().work
    taken = {who: sum(ran.taken for ran in work[who].ran) for who in (0, 1, 2)}
    assert taken == {0: LOOP - 1, 1: 9, 2: PASSES * (WORDS - 1) + PASSES - 1}


def test_cycles_are_those_of_the_cores_manual():
    board, session = load_board("cortex-m4"), Session()
    timer = find_timer(board)
    if isinstance(timer, str):
        pytest.skip(f"needs llvm-mca: {timer}")
    timing = time_blocks(timed_blocks(), board, timer, session)
    refill = 2
    multiplies = timing.parts[0]
    assert (multiplies.pipeline, multiplies.words) == (1 + LOOP * (4 + 1 + 1), 0)
    assert multiplies.branches == (LOOP - 1) * refill
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
        # A line is four beats. Eight lines hold half of the data: only the first line is cached already.
        ('cache = "small"\n[cache.small]\nline_bytes = 16\ndata_bytes = 128', {1: 9, 2: (15 + 16) * 9}),
        # Sixteen lines hold all the data, which is cached in the second pass.
        ('cache = "l"\n[cache.l]\nline_bytes = 16\ndata_bytes = 256\nways = 4', {1: 9, 2: 15 * 9}),
        # A cache for code holds no data.
        ('cache = "l"\n[cache.l]\nline_bytes = 16\ncode_bytes = 256', {1: 240, 2: PASSES * WORDS * 6}),
    ],
)
def test_waiting_for_data_is_what_the_model_of_the_memory_says(tmp_path, more, waits):
    path = tmp_path / "slow.toml"
    path.write_text(SLOW + more)
    work = timed_blocks(str(path)).work
    for who, cycles in {0: 0, **waits}.items():
        assert work[who].waited == (MemoryWait("psram", 0, cycles),)


def test_code_is_fetched_by_words_of_the_bus_or_once_by_lines(tmp_path):
    path, waits = tmp_path / "slow.toml", []
    for more in ("", 'cache = "l"\n[cache.l]\nline_bytes = 16\ncode_bytes = "1K"'):
        path.write_text(SLOW.replace("psram", "flash") + more)
        (wait,) = timed_blocks(str(path)).work[0].waited
        assert (wait.memory, wait.data) == ("flash", 0)
        waits.append(wait.code)
    by_words, by_lines = waits
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
    """The third block is also entered from elsewhere; the fourth did not run in an invoke."""
    executed = counting.parse_blocks(TEXT, load_board("cortex-m4"))
    assert executed.blocks == (bytes.fromhex("00bf00bf00bf"), bytes.fromhex("fee7"))
    assert executed.work == {
        OUTSIDE: Work((BlockRuns(0, 2, 0), BlockRuns(1, 1, 0))),
        0: Work((BlockRuns(0, 6, 0), BlockRuns(1, 7, 3))),
    }
    assert executed.invokes == 2


@pytest.mark.parametrize("line", [b"block 4 12 0x\n", b"ran 0 1 2\n", b"reads 0 0 1 1 1\n"])
def test_a_line_that_cannot_be_read_is_refused(line):
    with pytest.raises(ToolError, match="counting plugin wrote"):
        counting.parse_blocks(TEXT + line, load_board("cortex-m4"))


def test_counts_that_are_cut_off_are_refused():
    with pytest.raises(ToolError, match="cut off"):
        counting.parse_blocks(TEXT.replace(b"block 0", b"block 7"), load_board("cortex-m4"))
