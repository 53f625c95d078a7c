"""Cores without long multiplication, unaligned accesses, floating point or even multiplication, in emulators.

Every tensor equals LiteRT's reference kernels.
"""

import pytest
from boardruns import exact, file_of, validated
from everyop import every_operator, every_wide_operator

from buildtool.target.registry import load_board

LAYERWISE = {"strategy": "layerwise"}
CORES = [
    *(("cortex-m0plus", "gcc"), ("cortex-m3", "clang"), ("cortex-m85", "clang")),
    *(("qemu-virt-rv32ec", "clang"), ("qemu-virt-rv64", "clang")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("board", "toolchain"), CORES)
def test_every_operator(board, toolchain, tmp_path):
    outcome = exact(file_of(every_operator(batch=1), tmp_path), board, LAYERWISE, toolchain=toolchain).outcome
    assert len(outcome.traces[0]) >= 36


@pytest.mark.slow
@pytest.mark.parametrize("board", ["cortex-m0plus", "qemu-virt-rv32ec", "qemu-virt-rv64"])
def test_every_operator_of_int16(board, tmp_path):
    answer = validated(file_of(every_wide_operator(batch=1), tmp_path), board, LAYERWISE, toolchain="clang")
    assert answer["tensors_compared"] >= 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "board", "ram"), [("ds_cnn", "microbit", 16 << 10), ("magic_wand", "ch32v003", 2 << 10)]
)
def test_a_network_in_the_memory_of_a_chip(name, board, ram):
    run = exact(name, board, {"image": "stream"}, inputs=2)
    assert run.level == "emulator"
    assert run.outcome.arena_high_water + run.outcome.stack_high_water < ram
    own = load_board(board)
    assert own.memory(own.data).size == ram
