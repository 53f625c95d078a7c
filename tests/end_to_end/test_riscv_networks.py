"""Whole networks on RISC-V: every tensor equals the reference; image row by row in the HiFive1's 16 KB."""

from pathlib import Path

import pytest

from buildtool.service import handle

MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"
RAM = 16384


def shared(name):
    path = MODELS / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"../shared/models/{name}.tflite is not there")
    return str(path)


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
