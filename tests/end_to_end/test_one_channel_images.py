"""A network whose first layer multiplies the one channel of its image runs on SIMD kernels, exactly."""

import pytest

from buildtool.api import handle
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation
from buildtool.zoo.drawn import NetBuilder

BOARDS = ("cortex-m55", "cortex-m4", "qemu-virt-rv32", "qemu-virt-rv32v")
SIMD_AT_MOST = 16  # instructions a multiplication; the plain depthwise kernel takes about 36


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """As 96x96x1 MobileNets begin: a depth multiplier of 8, stride 2, a 1 x 1 convolution."""
    net = NetBuilder(7)
    x = net.input((1, 24, 22, 1))
    y = net.conv(
        x, 0, kernel=(3, 3), stride=(2, 2), same=True, depth_multiplier=8, activation=Activation.RELU
    )
    y = net.conv(y, 16, activation=Activation.RELU)
    path = tmp_path_factory.mktemp("model") / "one_channel.tflite"
    path.write_bytes(write_model(net.graph([net.softmax(net.dense(net.flatten(y), 4))])))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
def test_every_tensor_is_exact_and_the_layer_is_fast(model, board):
    options = {"strategy": "layerwise"}
    request = {"model": model, "board": board, "options": options}
    answer = handle({"kind": "validate", "reference": "litert", "tensors": True, "inputs": 2, **request})
    assert answer["exact"], answer["first_difference"]
    assert answer["tensors_compared"] >= 4
    first = handle({"kind": "profile", **request})["per_operator"][0]
    assert first["operator"] == "CONV_2D"
    assert first["instructions"] < SIMD_AT_MOST * first["macs"]
