"""Constants that boards load in slices of output channels, as few as kernels take: every tensor is exact."""

import pytest
from boardruns import exact, file_of
from loaded import own_board
from uint8nets import Sheet

from buildtool.zoo.drawn import NetBuilder, WideNetBuilder

slow = pytest.mark.slow
LEAST = {"strategy": "layerwise", "objective": "ram"}


def layers(builder=NetBuilder):
    """Convolutions and dense layers whose weights are most of their bytes; odd numbers of channels."""
    net = builder(9)  # some channels of the third layer need exact sums in the DSP family
    x = net.conv(net.input((1, 9, 8, 3)), 19, kernel=(3, 3), same=True)
    x = net.conv(net.conv(x, 44), 37, kernel=(3, 3), stride=(2, 2), same=True)
    return net.graph([net.dense(net.dense(net.flatten(x), 43), 20)])


def uint8_layers():
    """The same of uint8, with filters whose zero point is not that of int8."""
    s = Sheet(4)

    def convolution(x, channels, kernel, zero, depthwise=False):
        _, rows, columns, inputs = s.tensors[x].shape
        w = s.weights((1 if depthwise else channels, kernel, kernel, inputs), zero)
        words = "Depthwise" if depthwise else ""
        options = {"Padding": 0, "StrideH": 1, "StrideW": 1} | ({"DepthMultiplier": 1} if depthwise else {})
        kind, out = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", (1, rows, columns, channels)
        return s.apply(
            kind, [x, w, s.bias(channels, x, w)], out, f"{words}Conv2DOptions", options, scale=0.05
        )

    x = s.tensor((1, 4, 4, 160), 0.0078, 128)
    y = convolution(convolution(convolution(x, 160, 3, 110, depthwise=True), 49, 1, 122), 40, 3, 151)
    flat = s.apply("RESHAPE", [y, s.ints(1, 640)], (1, 640), "ReshapeOptions", scale=0.05)
    w = s.weights((30, 640), 131)
    return s.bytes(
        [x], [s.apply("FULLY_CONNECTED", [flat, w, s.bias(30, flat, w)], (1, 30), "FullyConnectedOptions")]
    )


@slow
@pytest.mark.parametrize(
    ("base", "memory", "network", "most"),
    [
        ("cortex-m4", "weights", layers(), {"conv2d_direct_dsp": 2, "fully_connected_dsp": 6}),
        ("cortex-m4", "weights", layers(WideNetBuilder), {"fully_connected_s16_dsp": 4}),
        ("cortex-m55", "ddr", layers(), {"fully_connected_mve": 12}),
        ("cortex-m0plus", "weights", layers(), {"fully_connected_mul32": 4}),
        ("qemu-virt-rv32", "weights", layers(), {"fully_connected_riscv": 8}),
        (
            "cortex-m4",
            "weights",
            uint8_layers(),
            {"fully_connected_offset_reference": 2, "conv2d_offset_reference": 2},
        ),
        ("xcore", "", layers(), {"fully_connected_vpu": 2}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_slices_are_exact_on_every_family(tmp_path, base, memory, network, most):
    board = own_board(tmp_path, f"[memory.{memory}]\nbandwidth = 50000000", base) if memory else base
    plan = exact(file_of(network, tmp_path), board, LEAST, inputs=2).plan
    sliced = {plan.kernels[load.op]: load.channels for load in plan.loads if load.channels}
    assert len(sliced) >= 2
    assert all(0 < sliced.get(name, 0) <= width for name, width in most.items()), sliced
