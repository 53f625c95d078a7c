"""Firmware that does not fit its board's memories, and large networks that do."""

import pytest
from boardruns import exact
from loaded import own_board

from buildtool.api import handle
from buildtool.base.errors import PlanError, ToolError
from buildtool.target.registry import load_board


@pytest.mark.parametrize("toolchain", ["clang", pytest.param("gcc", marks=pytest.mark.slow)])
def test_code_that_does_not_fit_names_the_memory_and_what_is_missing(tmp_path, toolchain):
    code = load_board("cortex-m4").code
    board = own_board(tmp_path, f"[memory.{code}]\nsize = {2048}", "cortex-m4")
    with pytest.raises(ToolError) as caught:
        handle({"kind": "build", "model": "autoencoder", "board": board, "toolchain": toolchain})
    assert f"memory '{code}'" in caught.value.text
    assert "too small" in caught.value.text
    assert "needed" in caught.value.text
    assert caught.value.hint


def test_weights_that_do_not_fit_are_refused_before_anything_is_compiled(tmp_path):
    weights = load_board("cortex-m4").weights
    board = own_board(tmp_path, f"[memory.{weights}]\nsize = {4096}", "cortex-m4")
    with pytest.raises(PlanError, match="weight image"):
        handle({"kind": "build", "model": "autoencoder", "board": board})


def test_an_arena_that_does_not_fit_is_refused_before_anything_is_compiled(tmp_path):
    arena = load_board("cortex-m55").arena
    board = own_board(tmp_path, f"[memory.{arena}]\nsize = {8 << 10}", "cortex-m55")
    with pytest.raises(PlanError) as caught:
        handle({"kind": "build", "model": "resnet8", "board": board})
    assert caught.value.hint


@pytest.mark.slow
def test_a_network_with_six_megabytes_of_weights_runs():
    run = exact("mobilenetv2:size=32,alpha=1.4", "cortex-m55", {"strategy": "layerwise"})
    assert len(run.sources.image.data) > 6_000_000
