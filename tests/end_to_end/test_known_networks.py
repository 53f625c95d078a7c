"""Trained and zoo networks on every board: every tensor equals LiteRT's; arenas as published."""

import pytest
from boardruns import exact
from needs import needs_shared

from buildtool.api import handle
from buildtool.base.errors import UnsupportedError

FILES = (
    "mbv2_w035_144_random",
    "mcunet_320k_imagenet",
    "mcunet_vww5",
    "mlperf_ad",
    "mlperf_kws",
    "mlperf_resnet8",
    "mlperf_vww96",
    "mobilenetv2_160",
)
EMULATED = ("cortex-m4", "cortex-m55")

# Arena bytes layer by layer without anything in place, as published for these files (PADs folded).
ARENAS = {
    "mobilenetv2_160": 768_000,
    "mlperf_vww96": 55_296,
    "mcunet_320k_imagenet": 340_736,
    "mlperf_resnet8": 49_152,
    "mlperf_kws": 16_000,
}


def shared(name):
    return str(needs_shared(f"models/{name}.tflite"))


LAYERWISE = {"strategy": "layerwise"}
# Without limits the best plan is layer by layer; with these it streams.
STREAMED = {"strategy": "best", "objective": "ram", "image": "stream"}
DENSE = "mlperf_ad"  # has no rows to be read one by one: its best plan is always layer by layer


def validate(model, board, toolchain="", inputs=3, options=LAYERWISE):
    answer = handle(
        {
            "kind": "validate",
            "model": model,
            "board": board,
            "toolchain": toolchain,
            "reference": "litert",
            "tensors": True,
            "inputs": inputs,
            "seed": 20,
            "options": options,
        }
    )
    assert answer["exact"], answer["first_difference"]
    assert answer["reference"]["name"] == "litert"
    assert answer["inputs"] == inputs
    assert answer["output_values"] >= 2
    assert answer["arena_high_water"] <= answer["arena_bytes"]
    return answer


@pytest.mark.parametrize("name", ARENAS)
def test_the_arena_is_as_large_as_published(name):
    options = {"strategy": "layerwise", "in_place": "none"}
    (verdict,) = handle({"kind": "analyze", "model": shared(name), "boards": ["host"], "options": options})[
        "boards"
    ]
    assert verdict["arena_bytes"] == verdict["arena_bound_bytes"] == ARENAS[name]


def test_the_float_network_is_refused_with_a_reason():
    with pytest.raises(UnsupportedError) as caught:
        handle({"kind": "validate", "model": shared("mlperf_vww96_float"), "board": "host"})
    message = str(caught.value)
    assert "mlperf_vww96_float.tflite" in message
    assert "float" in message
    assert caught.value.hint


def test_a_trained_network_is_exact_on_an_emulated_board():
    answer = validate(shared("mlperf_kws"), "cortex-m4", inputs=1)
    assert answer["level"] == "emulator"
    assert answer["tensors_compared"] >= 12


# By turns: every network runs whole on the host and on one of the emulated boards, and streamed on the other
# one. The dense one, which is never streamed, runs on all. What the host streams are random networks
# (test_random_networks.py) and those of branches.
WHOLE = {name: EMULATED if name == DENSE else EMULATED[n % 2 :][:1] for n, name in enumerate(FILES)}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_trained_networks_are_exact(name):
    exact(shared(name), "host", LAYERWISE, inputs=3)
    for board in WHOLE[name]:
        exact(shared(name), board, LAYERWISE)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FILES if name != DENSE])
def test_trained_networks_in_the_least_memory_are_exact(name):
    (board,) = set(EMULATED) - set(WHOLE[name])
    run = exact(shared(name), board, STREAMED)
    assert any(region.is_streamed for region in run.plan.regions)


@pytest.mark.slow
def test_the_zoo_s_largest_network_is_exact():
    """Its topology is a trained one's, as those of most others are (tests/zoo)."""
    exact("mobilenetv2", "host", LAYERWISE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlperf_resnet8", "mlperf_kws"])
def test_the_other_compiler_s_firmware_is_exact(name):
    assert "gcc" in validate(shared(name), "cortex-m4", "gcc")["compiler"]
