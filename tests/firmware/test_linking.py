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
    assert all(word in caught.value.text for word in (f"memory '{code}'", "too small", "it needs"))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("base", "role", "size", "model", "words"),
    [
        ("cortex-m4", "weights", 4096, "autoencoder", "weight image"),
        ("cortex-m55", "arena", 8192, "resnet8", "arena"),
    ],
)
def test_plans_that_do_not_fit_are_refused_before_anything_is_compiled(
    tmp_path, base, role, size, model, words
):
    memory = getattr(load_board(base), role)
    board = own_board(tmp_path, f"[memory.{memory}]\nsize = {size}", base)
    with pytest.raises(PlanError, match=words) as caught:
        handle({"kind": "build", "model": model, "board": board})
    assert caught.value.hint


@pytest.mark.slow
def test_a_network_with_six_megabytes_of_weights_runs():
    run = exact("mobilenetv2:size=32,alpha=1.4", "cortex-m55", {"strategy": "layerwise"})
    assert len(run.sources.image.data) > 6_000_000
