"""How many threads share a call: the board's key, the option, and what depends on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from loaded import own_board

from buildtool.api import handle
from buildtool.base.errors import TargetError, UsageError
from buildtool.target.catalogue import for_core
from buildtool.target.choice import with_threads
from buildtool.target.digest import planning_digest
from buildtool.target.registry import load_board, make_target
from buildtool.target.types import KernelVariant


def test_a_board_says_how_many_there_are_and_the_compiler_learns_it(tmp_path: Path) -> None:
    core = load_board(own_board(tmp_path, '[core]\nthreads = 3\ndefines = ["X=1"]', "host")).core
    assert core.threads == 3 and core.defines == ("X=1", "NN_THREADS=3")
    assert load_board("host").core.defines == ()


@pytest.mark.parametrize("value", ["0", "17", "true", '"2"', "1.5"])
def test_a_number_that_no_core_has_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(TargetError, match=r"core\.threads: must be a whole number from 1 to 16"):
        load_board(own_board(tmp_path, f"[core]\nthreads = {value}", "host"))


def test_the_macro_is_buildtool_s_own(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="NN_THREADS is buildtool's own macro"):
        load_board(own_board(tmp_path, '[core]\ndefines = ["NN_THREADS=4"]', "host"))


def test_the_option_takes_no_more_than_the_board_has() -> None:
    board = load_board("xcore")
    assert with_threads(board, None) is board
    few = with_threads(board, 2)
    assert few.core.threads == 2 and few.core.defines == ("NN_THREADS=2",)
    assert board.estimate and few.estimate
    assert few.estimate.macs_per_second == board.estimate.macs_per_second * 2 // 5
    with pytest.raises(UsageError, match="6 threads are asked for, and board 'xcore' has 5"):
        with_threads(board, 6)
    with pytest.raises(UsageError, match="whose core has one thread") as caught:
        handle({"kind": "plan", "model": "ds_cnn", "board": "host", "threads": 2})
    assert caught.value.option == "threads"


def test_plans_for_another_number_are_others() -> None:
    board = load_board("xcore")
    targets = [make_target(with_threads(board, threads)) for threads in (1, 2, 5)]
    assert len({planning_digest(target) for target in targets}) == 3


def test_formulas_of_kernels_see_the_number() -> None:
    kernel = KernelVariant(
        "ADD", "k", "f", ("x/k.c",), when="threads > 1", scratch="threads * cin", cost="oh // threads"
    )
    (found,) = for_core([kernel], load_board("host").core.threaded(4))
    assert (found.when, found.scratch, found.cost) == ("4 > 1", "4 * cin", "oh // 4")


def test_a_build_s_commands_name_the_number_that_was_asked_for() -> None:
    asked = {"kind": "describe", "board": "xcore", "model": "ds_cnn"}
    words = handle({**asked, "threads": 2})["commands"]["validate"]
    assert words[words.index("--threads") + 1] == "2"
    assert "--threads" not in handle(asked)["commands"]["validate"]
    compiled = [place["file"]["path"] for g in handle(asked)["groups"] for place in g["sources"]]
    assert any(path.endswith("runtime/nn_parallel.c") for path in compiled)
