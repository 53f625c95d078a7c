"""How costs and kernels depend on a core: vector registers, windows in the input, threads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded import own_board

from buildtool.api import handle
from buildtool.base.errors import TargetError, UsageError
from buildtool.target.catalogue import for_core
from buildtool.target.choice import with_threads
from buildtool.target.registry import load_board
from buildtool.target.types import KernelVariant
from buildtool.target.variables import taps_met


def counted(outputs, inputs, kernel, stride, dilation, pad):
    met = [
        sum(0 <= i * stride - pad + tap * dilation < inputs for tap in range(kernel)) for i in range(outputs)
    ]
    return sum(met), met.count(kernel)


@given(
    st.integers(0, 14),
    st.integers(1, 14),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(-20, 14),
)
def test_the_taps_are_those_that_are_there(outputs, inputs, kernel, stride, dilation, pad):
    case = (outputs, inputs, kernel, stride, dilation, pad)
    assert taps_met(*case) == counted(*case)


def test_windows_that_a_file_claims_by_the_million_are_not_looked_at_one_by_one():
    assert taps_met(1 << 40, 1 << 40, 1, 1, 1, 0) == (1 << 40, 1 << 40)
    assert taps_met(9, 9, 1 << 40, 1, 1, 1 << 40) == (sum(range(9)), 0)
    assert taps_met(1 << 40, 1 << 41, 1 << 10, 2, 1, 0)[1] == (1 << 40) - (1 << 9) + 1


# ---- threads -----------------------------------------------------------------------------------------


def test_a_board_says_how_many_there_are_and_the_compiler_learns_it(tmp_path):
    core = load_board(own_board(tmp_path, '[core]\nthreads = 3\ndefines = ["X=1"]', "host")).core
    assert core.threads == 3 and core.defines == ("X=1", "NN_THREADS=3")
    assert load_board("host").core.defines == ()


def test_the_macro_is_buildtool_s_own(tmp_path):
    with pytest.raises(TargetError, match="NN_THREADS is buildtool's own macro"):
        load_board(own_board(tmp_path, '[core]\ndefines = ["NN_THREADS=4"]', "host"))


def test_the_option_takes_no_more_than_the_board_has():
    board = load_board("xcore")
    assert with_threads(board, None) is board
    few = with_threads(board, 2)
    assert few.core.threads == 2 and few.core.defines == ("NN_THREADS=2",)
    assert board.estimate and few.estimate
    assert few.estimate.macs_per_second == board.estimate.macs_per_second * 2 // 5
    with pytest.raises(UsageError, match="board 'xcore' has 5 threads, not 6"):
        with_threads(board, 6)
    with pytest.raises(UsageError, match="whose core has one thread") as caught:
        handle({"kind": "plan", "model": "ds_cnn", "board": "host", "threads": 2})
    assert caught.value.option == "threads"


def test_formulas_of_kernels_see_the_number():
    kernel = KernelVariant(
        "ADD", "k", "f", ("x/k.c",), when="threads > 1", scratch="threads * cin", cost="oh // threads"
    )
    (result,) = for_core([kernel], load_board("host").core.with_threads(4))
    assert (result.when, result.scratch, result.cost) == ("4 > 1", "4 * cin", "oh // 4")


def test_a_build_s_commands_name_the_number_that_was_asked_for():
    request = {"kind": "describe", "board": "xcore", "model": "ds_cnn"}
    words = handle({**request, "threads": 2})["commands"]["validate"]
    assert words[words.index("--threads") + 1] == "2"
    assert "--threads" not in handle(request)["commands"]["validate"]
    compiled = [place["file"]["path"] for g in handle(request)["groups"] for place in g["sources"]]
    assert any(path.endswith("runtime/nn_parallel.c") for path in compiled)
