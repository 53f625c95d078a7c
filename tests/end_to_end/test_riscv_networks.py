"""Whole networks on RISC-V: every tensor equals the reference; image row by row in the HiFive1's 16 KB."""

import pytest
from needs import needs_shared

from buildtool import cli
from buildtool.service import handle

RAM = 16384


def shared(name):
    return str(needs_shared(f"models/{name}.tflite"))


def validated(model, board, **options):
    return handle(
        {
            "kind": "validate",
            "model": model,
            "board": board,
            "tensors": True,
            "inputs": 2,
            "seed": 9,
            "options": options,
        }
    )


@pytest.mark.parametrize(
    "board",
    [
        "qemu-virt-rv32",
        "qemu-virt-rv32v",
        pytest.param("qemu-virt-rv32v256", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("mlperf_vww96", marks=pytest.mark.slow),
        pytest.param("mlperf_resnet8", marks=pytest.mark.slow),
        "mlperf_kws",
    ],
)
def test_a_trained_network_equals_the_reference_in_every_tensor(name, board):
    answer = validated(shared(name), board, strategy="layerwise")
    assert answer["exact"], answer["first_difference"]
    assert answer["level"] == "emulated"
    assert answer["arena_high_water"] <= answer["arena_bytes"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mcunet_vww5", "mbv2_w035_144_random"])
def test_a_streamed_network_runs_in_the_16_kilobytes_of_the_hifive1(name):
    answer = validated(shared(name), "hifive1", image="stream")
    assert answer["exact"], answer["first_difference"]
    assert answer["stack_high_water"] + answer["arena_high_water"] < RAM


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mcunet_vww5", "mbv2_w035_144"])
def test_the_command_line_shows_that_it_runs_there(name, capsys):
    words = ["validate", name, "--board", "hifive1", "--image", "stream", "--tensors"]
    assert cli.run(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{name} on hifive1 (emulated, clang")
    assert lines[-1] == "EQUAL to the bit"
    (touched,) = (line for line in lines if line.startswith("arena: "))
    arena, _, stack = (int(word.replace(",", "")) for word in touched.split() if word[0].isdigit())
    assert arena + stack < RAM


def test_a_network_that_does_not_fit_there_is_told_what_binds_and_what_would_help(tmp_path, capsys):
    out = tmp_path / "built"
    assert cli.run(["build", "mcunet_vww5", "--board", "hifive1", "--out", str(out)]) == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert "available on 'hifive1'" in error
    assert "too many [PLAN]" in error
    assert "image stream" in hint
    assert not out.exists()


def test_firmware_for_the_esp32_c3_is_built(tmp_path, capsys):
    assert cli.run(["build", "ds_cnn", "--board", "esp32-c3", "--out", str(tmp_path / "built")]) == 0
    assert "flash" in capsys.readouterr().out
    assert (tmp_path / "built" / "ds_cnn.bin").stat().st_size > 0
