"""How fast a board's file says its core and memories are."""

import pytest

from buildtool.base.errors import TargetError
from buildtool.target.registry import board_names, load_board
from buildtool.target.speeds import Cache, Pipeline, Speed, streamed

FAST = """
extends = "nucleo-f412zg"
[memory.sdram]
kind = "ram"
base = 0xD0000000
size = "8M"
wait_cycles = 6
bus_bits = 16
beat_cycles = 2
[emulator]
kind = "qemu-system-arm"
machine = "mps2-an386"
bases = { flash = 0, sdram = 0x21000000 }
"""


def load(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_board(str(path))


def test_speeds_caches_pipeline_and_bases_arrive(tmp_path):
    board = load(tmp_path, FAST)
    assert board.pipeline is not None
    assert board.pipeline == Pipeline("cortex-m4", 2, board.pipeline.source, 1)
    assert board.memory("sdram").speed == Speed(6, 16, 2)
    assert board.memory("flash").speed == Speed(3, 128, 1, "art")
    assert board.cache_of(board.memory("flash")) == Cache("art", 16, 128, 1024)
    assert board.cache_of(board.memory("sdram")) is None
    assert board.emulator is not None
    assert board.emulator.bases == (("flash", 0), ("sdram", 0x21000000))


def test_an_access_waits_for_its_first_beat_and_for_each_further_one():
    slow = Speed(wait_cycles=7, bus_bits=64)
    assert [slow.access(size) for size in (1, 8, 9, 32)] == [7, 7, 8, 10]
    assert Speed(6, 16, 2).access(4) == 6 + 2
    assert Speed(0).access(4) == 0


def test_reading_in_order_costs_a_line_at_a_time_or_a_word_at_a_time():
    cached, line = Speed(7, 64, 1, "l1"), Cache("l1", 32, 4096, 4096, 4)
    assert streamed(cached, line) == 10 / 32
    assert streamed(Speed(6, 16, 2), None) == 8 / 4
    assert streamed(None, None) == 0


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("wait_cycles = 6\n", "", "memory.sdram.bus_bits: it says nothing without wait_cycles"),
        ("bus_bits = 16", "bus_bits = 24", "memory.sdram.bus_bits: must be a power of two from 8 to 1024"),
        ("bus_bits = 16", 'cache = "l1"', "memory.sdram.cache: there is no cache 'l1'"),
        ("flash = 0,", "flsh = 0,", "unknown key 'emulator.bases.flsh'"),
        ("flash = 0,", "flash = 0x20010000,", "emulator.bases.flash: "),
        ("flash = 0,", "flash = 0xFFFFFFF0,", "emulator.bases.flash: 0xfffffff0 leaves no 32-bit"),
        ("[emulator]", "[cache.l1]\nline_bytes = 24\n[emulator]", "cache.l1.line_bytes: must be a power"),
        (
            "[emulator]",
            "[cache.l1]\nline_bytes = 32\ndata_bytes = 96\nways = 4\n[emulator]",
            "cache.l1.data_bytes: 96 are no whole number of sets of lines",
        ),
        ("[emulator]", "[pipeline]\nmodel = 3\n[emulator]", "pipeline.model: must be a string"),
        ("[emulator]", "[pipeline]\ntaken_branch_cycles = -1\n[emulator]", "pipeline.taken_branch_cycles"),
    ],
)
def test_a_speed_that_cannot_be_is_refused(tmp_path, old, new, says):
    assert old in FAST
    with pytest.raises(TargetError) as caught:
        load(tmp_path, FAST.replace(old, new))
    assert says in str(caught.value)


def test_a_board_that_names_a_model_says_by_whose_word_its_branches_are_counted():
    named = [board for board in map(load_board, board_names()) if board.pipeline]
    assert len(named) > 6
    for board in named:
        assert board.pipeline is not None
        assert board.pipeline.source
        assert board.core.isa.startswith(("armv7e-m", "armv8", "rv32"))
