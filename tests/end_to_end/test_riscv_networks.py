"""Whole networks on RISC-V: every tensor equals the reference; image row by row in the HiFive1's 16 KB."""

import pytest
from boardruns import exact
from needs import needs_shared

from buildtool.fronts.cli import main as cli

RAM = 16384


def shared(name):
    return str(needs_shared(f"models/{name}.tflite"))


# The boards by turns: every network on each kind of core, every board with a network of pools and residuals.
@pytest.mark.parametrize(
    ("name", "board"),
    [
        *(
            pytest.param(*run, marks=pytest.mark.slow)
            for run in [
                ("mlperf_kws", "qemu-virt-rv32"),
                ("mlperf_kws", "qemu-virt-rv32v"),
                ("mlperf_vww96", "qemu-virt-rv32"),
                ("mlperf_vww96", "qemu-virt-rv32v256"),
                ("mlperf_resnet8", "qemu-virt-rv32"),
                ("mlperf_resnet8", "qemu-virt-rv32v"),
                ("mlperf_resnet8", "qemu-virt-rv32v256"),
            ]
        ),
    ],
)
def test_a_trained_network_equals_the_reference_in_every_tensor(name, board):
    assert exact(shared(name), board, {"strategy": "layerwise"}, inputs=2).level == "emulator"


@pytest.mark.slow
def test_a_streamed_network_runs_in_the_16_kilobytes_of_the_hifive1():
    run = exact(shared("mbv2_w035_144_random"), "hifive1", {"image": "stream"})
    assert run.outcome.stack_high_water + run.outcome.arena_high_water < RAM


@pytest.mark.slow
def test_the_command_line_shows_that_it_runs_there(capsys):
    name = "mcunet_vww5"
    words = ["validate", name, "--board", "hifive1", "--image", "stream", "--tensors"]
    assert cli.run(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{name} on hifive1 (emulated, clang")
    assert lines[-1].startswith("EQUAL to LiteRT")
    (touched,) = (line for line in lines if line.startswith("arena: "))
    arena, _, stack = (int(word.replace(",", "")) for word in touched.split() if word[0].isdigit())
    assert arena + stack < RAM


@pytest.mark.slow
def test_a_network_that_does_not_fit_there_is_told_what_binds_and_what_would_help(tmp_path, capsys):
    out = tmp_path / "built"
    assert cli.run(["build", "mcunet_vww5", "--board", "hifive1", "--out", str(out)]) == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert "available on 'hifive1'" in error
    assert "too many [PLAN]" in error
    assert "image stream" in hint
    assert not out.exists()


@pytest.mark.slow
def test_firmware_for_the_esp32_c3_is_built(tmp_path, capsys):
    assert cli.run(["build", "ds_cnn", "--board", "esp32-c3", "--out", str(tmp_path / "built")]) == 0
    assert "flash" in capsys.readouterr().out
    assert (tmp_path / "built" / "ds_cnn.bin").stat().st_size > 0
