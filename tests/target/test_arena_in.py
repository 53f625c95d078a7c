"""The memories that an arena can be in: others of the board, two of them, and what none of them is."""

from __future__ import annotations

from pathlib import Path

import pytest
from loaded import own_board

from buildtool.base.errors import TargetError, UsageError
from buildtool.options.values import TargetChoice
from buildtool.plan.summary.fit import available_bytes, rooms
from buildtool.target.choice import arena_memories, load_target, roomier, with_arena_in
from buildtool.target.digest import planning_digest
from buildtool.target.registry import load_board
from buildtool.target.types import KEPT_FOR_GLOBALS, Board

SMALL = """
extends = "mps2-an500"
[memory.sram]
size = "64K"
[memory.psram]
size = "16K"
"""


def refusal(board: Board, names: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        with_arena_in(board, names)
    assert caught.value.option == "arena_in"
    return caught.value


def test_the_boards_own_memory_leaves_the_board_as_it_is() -> None:
    board = load_board("mps2-an500")
    assert with_arena_in(board, None) is board
    assert with_arena_in(board, "psram") is board


def test_in_the_memory_of_the_stack_the_stack_is_taken_off() -> None:
    board = with_arena_in(load_board("mps2-an500"), "sram")
    assert board.arena == "sram"
    assert available_bytes(board) == board.memory("sram").size - board.stack_bytes - KEPT_FOR_GLOBALS
    both = with_arena_in(load_board("mps2-an500"), "sram, psram")
    assert both.holders == ("sram", "psram")
    assert rooms(both) == (
        board.memory("sram").size - board.stack_bytes - KEPT_FOR_GLOBALS,
        board.memory("psram").size,
    )


def test_what_is_reserved_stays_in_the_memory_that_the_file_names(tmp_path: Path) -> None:
    board = load_board(own_board(tmp_path, 'reserved_bytes = "64K"', "mps2-an500"))
    psram = board.memory("psram").size
    assert rooms(with_arena_in(board, "psram,sram"))[0] == psram - 65536
    assert rooms(with_arena_in(board, "sram,psram"))[1] == psram - 65536
    assert rooms(with_arena_in(board, "sram")) == (
        board.memory("sram").size - board.stack_bytes - KEPT_FOR_GLOBALS,
    )


def test_the_order_of_memories_and_their_number_make_another_target() -> None:
    asked = ["psram", "sram", "psram,sram", "sram,psram"]
    targets = [load_target(TargetChoice("mps2-an500", arena_in=names)) for names in asked]
    assert len({planning_digest(target) for target in targets}) == len(asked)
    assert planning_digest(targets[0]) == planning_digest(load_target(TargetChoice("mps2-an500")))


@pytest.mark.parametrize(
    ("board", "names", "why"),
    [
        ("mps2-an500", "dtcm", "memory 'dtcm' is none of board 'mps2-an500'"),
        ("mps2-an500", "", "memory '' is none of board 'mps2-an500'"),
        ("mps2-an500", "flash", "memory 'flash' cannot hold the arena: programs do not write it"),
        ("mps2-an500", "sram,weights", "memory 'weights' cannot hold the arena: programs do not write it"),
        ("mps2-an500", "sram,sram", "names 2 memories; one, or two that differ"),
        ("cortex-m55", "sram,dtcm,sram", "names 3 memories; one, or two that differ"),
        ("xcore", "tile1", "memory 'tile1' cannot hold the arena: it is reached by a loader"),
        ("esp8266", "iram", "memory 'iram' cannot hold the arena: the board's file does not name it"),
    ],
)
def test_what_cannot_hold_an_arena_is_refused_and_the_others_are_named(
    board: str, names: str, why: str
) -> None:
    known = load_board(board)
    error = refusal(known, names)
    assert why in error.text
    told = [dict(hint.settings)["arena_in"] for hint in error.hints]
    assert None in told
    assert {name for name in told if name} <= set(arena_memories(known)) - {known.arena}


def test_of_an_arena_that_is_too_large_the_memories_with_room_are_named(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    board = load_board(str(path))
    first, second = rooms(with_arena_in(board, "sram,psram"))

    def told(size: int) -> list[object]:
        return [dict(hint.settings)["arena_in"] for hint in roomier(board, size)]

    assert told(second) == told(first) == ["sram"]
    assert told(first + 1) == []


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('["psram", "flash"]', "'flash' is no RAM that programs write"),
        ('["psram", "psram"]', "names a memory twice"),
        ('["sram"]', "has to name the arena's memory 'psram'"),
        ("7", "must be a list of strings"),
    ],
)
def test_a_wrong_list_of_arenas_in_a_boards_file_is_refused(tmp_path: Path, value: str, why: str) -> None:
    with pytest.raises(TargetError, match=r"roles\.arenas") as caught:
        load_board(own_board(tmp_path, f"[roles]\narenas = {value}", "mps2-an500"))
    assert why in caught.value.text
    assert caught.value.line == 3
