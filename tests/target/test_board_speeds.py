"""The speeds of cores and memories in board files, and memories for the arena."""

import pytest
from loaded import own_board
from mistakes import mistakes

from buildtool.base.errors import TargetError, UsageError
from buildtool.plan.summary.fit import available_bytes, rooms
from buildtool.target.choice import arena_memories, suggest_larger_memories, with_arena_in
from buildtool.target.registry import load_board
from buildtool.target.speeds import Cache, Pipeline, Speed
from buildtool.target.types import KEPT_FOR_GLOBALS

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


MISTAKES = r"""
wait_cycles = 6\n |  | memory.sdram.bus_bits: it has no effect without wait_cycles
bus_bits = 16 | bus_bits = 24 | memory.sdram.bus_bits: must be a power of two from 8 to 1024
bus_bits = 16 | cache = "l1" | memory.sdram.cache: there is no cache 'l1'
flash = 0, | flsh = 0, | unknown key 'emulator.bases.flsh'
flash = 0, | flash = 0x20010000, | emulator.bases.flash:
flash = 0, | flash = 0xFFFFFFF0, | bytes at 0xfffffff0 are not a 32-bit
[emulator] | [cache.l1]\nline_bytes = 24\n[emulator] | cache.l1.line_bytes: must be a power
[emulator] | [cache.l1]\nline_bytes = 32\ndata_bytes = 96\nways = 4\n[emulator] | data_bytes: 96 is not
[emulator] | [pipeline]\nmodel = 3\n[emulator] | pipeline.model: must be a string
[emulator] | [pipeline]\ntaken_branch_cycles = -1\n[emulator] | pipeline.taken_branch_cycles
"""


@mistakes(MISTAKES)
def test_a_speed_that_cannot_be_is_refused(tmp_path, old, new, says, hint):
    assert old in FAST
    with pytest.raises(TargetError) as caught:
        load(tmp_path, FAST.replace(old, new))
    assert says in str(caught.value) and hint == ""


# ---- memories of the arena ---------------------------------------------------------------------------


SMALL = """
extends = "mps2-an500"
[memory.sram]
size = "64K"
[memory.psram]
size = "16K"
"""


def refusal(board, names):
    with pytest.raises(UsageError) as caught:
        with_arena_in(board, names)
    assert caught.value.option == "arena_in"
    return caught.value


def test_in_the_memory_of_the_stack_the_stack_is_taken_off():
    board = with_arena_in(load_board("mps2-an500"), "sram")
    assert board.arena == "sram"
    assert available_bytes(board) == board.memory("sram").size - board.stack_bytes - KEPT_FOR_GLOBALS
    both = with_arena_in(load_board("mps2-an500"), "sram, psram")
    assert both.holders == ("sram", "psram")
    assert rooms(both) == (
        board.memory("sram").size - board.stack_bytes - KEPT_FOR_GLOBALS,
        board.memory("psram").size,
    )


def test_what_is_reserved_stays_in_the_memory_that_the_file_names(tmp_path):
    board = load_board(own_board(tmp_path, 'reserved_bytes = "64K"', "mps2-an500"))
    psram = board.memory("psram").size
    assert rooms(with_arena_in(board, "psram,sram"))[0] == psram - 65536
    assert rooms(with_arena_in(board, "sram,psram"))[1] == psram - 65536
    assert rooms(with_arena_in(board, "sram")) == (
        board.memory("sram").size - board.stack_bytes - KEPT_FOR_GLOBALS,
    )


@pytest.mark.parametrize(
    ("board", "names", "why"),
    [
        ("mps2-an500", "dtcm", "memory 'dtcm' does not exist on board 'mps2-an500'"),
        ("mps2-an500", "", "memory '' does not exist on board 'mps2-an500'"),
        ("mps2-an500", "flash", "memory 'flash' cannot hold the arena: programs cannot write it"),
        ("mps2-an500", "sram,weights", "memory 'weights' cannot hold the arena: programs cannot write it"),
        ("mps2-an500", "sram,sram", "names 2 memories; it must name one"),
        ("cortex-m55", "sram,dtcm,sram", "names 3 memories; it must name one"),
        ("xcore", "tile1", "memory 'tile1' cannot hold the arena: only a loader can access it"),
        ("esp8266", "iram", "memory 'iram' cannot hold the arena: it is not in 'arenas'"),
    ],
)
def test_what_cannot_hold_an_arena_is_refused_and_the_others_are_named(board, names, why):
    loaded = load_board(board)
    error = refusal(loaded, names)
    assert why in error.text
    suggested = [dict(hint.settings)["arena_in"] for hint in error.hints]
    assert None in suggested
    assert {name for name in suggested if name} <= set(arena_memories(loaded)) - {loaded.arena}


def test_of_an_arena_that_is_too_large_the_memories_with_room_are_named(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    board = load_board(str(path))
    first, second = rooms(with_arena_in(board, "sram,psram"))

    def told(size):
        return [dict(hint.settings)["arena_in"] for hint in suggest_larger_memories(board, size)]

    assert told(second) == told(first) == ["sram"]
    assert told(first + 1) == []


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('["psram", "flash"]', "'flash' is not a RAM that programs can write"),
        ('["psram", "psram"]', "names a memory twice"),
        ('["sram"]', "must also name the arena's memory 'psram'"),
        ("7", "must be a list of strings"),
    ],
)
def test_a_wrong_list_of_arenas_in_a_boards_file_is_refused(tmp_path, value, why):
    with pytest.raises(TargetError, match=r"roles\.arenas") as caught:
        load_board(own_board(tmp_path, f"[roles]\narenas = {value}", "mps2-an500"))
    assert why in caught.value.text
    assert caught.value.line == 3
