"""Networks whose calls five threads share, with ThreadSanitizer: exact, and without a race."""

from __future__ import annotations

from pathlib import Path

import pytest

from buildtool.api import handle
from buildtool.firmware.run import validation
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, OpKind
from buildtool.zoo.drawn import NetBuilder

# No piece is too small to be shared.
WATCHED = ("-fsanitize=thread", "-g1", "-O1", "-DNN_FORK_ISSUES=1")


@pytest.fixture(scope="module")
def residual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network with depthwise layers and sums over their input, poolings, a mean and a dense layer."""
    net = NetBuilder(4)
    x = net.conv(net.input((1, 22, 18, 3)), 16, kernel=(3, 3), stride=(2, 2), same=True)
    for _ in range(2):
        y = net.conv(x, 48, activation=Activation.RELU6)
        y = net.conv(y, 48, kernel=(3, 3), same=True, depth_multiplier=1, activation=Activation.RELU6)
        x = net.elementwise(OpKind.ADD, x, net.conv(y, 16))
    x = net.pool(OpKind.AVERAGE_POOL_2D, net.conv(x, 32), (2, 2), (2, 2))
    path = tmp_path_factory.mktemp("residual") / "residual.tflite"
    path.write_bytes(write_model(net.graph([net.softmax(net.dense(net.mean(x), 10))])))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"image": "stream", "objective": "ram"}], ids=["whole", "streamed"])
def test_a_network_is_exact_and_has_no_races(
    residual: Path, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "SANITIZERS", WATCHED)
    request = {"kind": "validate", "model": str(residual), "board": "xcore", "toolchain": "clang"}
    answer = handle({**request, "sanitize": True, "inputs": 2, "options": options})
    assert answer["exact"] and answer["inputs_equal"] == 2


def test_the_plan_counts_each_thread_s_scratch(residual: Path) -> None:
    """So that the pieces' scratch is apart, and inside it."""
    found = {}
    for threads in (1, 2, 5):
        request = {"kind": "plan", "model": str(residual), "board": "xcore", "threads": threads}
        buffers = handle({**request, "options": {"strategy": "layerwise"}})["buffers"]
        found[threads] = [buffer["size"] for buffer in buffers if buffer["kind"] == "scratch"]
    assert found[1] and found[2] == [2 * size for size in found[1]]
    assert found[5] == [5 * size for size in found[1]]
