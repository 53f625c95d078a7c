"""Whole networks on the emulated ESP8266: every tensor equals the reference, and kernels are worth having."""

import pytest
from boardruns import exact
from needs import needs_shared, needs_tool

from buildtool.api import handle

PLAIN = 'extends = "esp8266"\n[core]\nname = "lx106"\nfamilies = ["reference"]\n'


@pytest.fixture(autouse=True)
def tools():
    needs_tool("xtensa-lx106-elf-gcc")
    needs_tool("qemu-system-xtensa")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [("mlperf_kws", {"strategy": "layerwise"}), ("mlperf_kws", {"image": "stream"}), ("mcunet_vww5", {})],
)
def test_a_trained_network_equals_the_reference_in_every_tensor(name, options):
    run = exact(str(needs_shared(f"models/{name}.tflite")), "esp8266", options)
    assert run.level == "emulator"
    assert run.outcome.arena_high_water + run.outcome.stack_high_water < 80 << 10


@pytest.mark.slow
def test_the_kernels_take_seven_tenths_of_the_plain_ones_instructions_at_most(tmp_path):
    plain = tmp_path / "plain8266.toml"
    plain.write_text(PLAIN)
    counted = {}
    for board in ("esp8266", str(plain)):
        request = {
            "kind": "profile",
            "model": "resnet8",
            "board": board,
            "options": {"strategy": "layerwise"},
        }
        for one in handle(request)["per_operator"]:
            key = (board, one["operator"])
            counted[key] = counted.get(key, 0) + one["instructions"]
    for kind in ("CONV_2D", "ADD", "AVERAGE_POOL_2D", "FULLY_CONNECTED"):
        assert counted["esp8266", kind] <= 0.7 * counted[str(plain), kind], kind
