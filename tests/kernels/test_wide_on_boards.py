"""On emulated boards, int16 kernels give the reference's bytes: random layers, pairs and poolings."""

import dataclasses
import functools

import numpy as np
import pytest
from boardcalls import BOARDS, recording
from loaded import load_target
from wholecalls import whole_call

from buildtool.graph.types import Activation, OpKind
from buildtool.target.catalogue import select
from buildtool.zoo.drawn import WideNetBuilder

COUNT = 15  # of each kind
CHANNELS = (1, 3, 4, 8, 15, 16, 21)


def draw_image(net, most=7):
    return 1, *(int(n) for n in net.rng.integers(1, most, 2)), int(net.rng.choice(CHANNELS))


def draw_activation(net):
    return net.rng.choice([Activation.NONE, Activation.NONE, Activation.RELU, Activation.RELU6])


def pair(net, kind):
    """Any operand may lack rows, columns or channels; sometimes the sum is scaled up."""
    shape = draw_image(net)
    shapes = [tuple(1 if net.rng.random() < p else n for n in shape) for p in net.rng.permuted([0.0, 0.3])]
    a, b = map(net.input, shapes)
    y = net.elementwise(kind, a, b, draw_activation(net))
    if net.rng.random() < 0.3:
        net.tensors[y] = dataclasses.replace(net.tensors[y], quant=net.random_quant(net.scale(y) / 40))
    return y


def pool(net, kind):
    """Windows of one element, of few, and of more than have a quick quotient."""
    shape = (1, 20, 19, 5) if net.rng.random() < 0.2 else draw_image(net, 9)
    kernel = tuple(int(net.rng.integers(1, min(n, 4) + 1)) for n in shape[1:3]) if shape[3] != 5 else (20, 19)
    stride = tuple(int(n) for n in net.rng.integers(1, 3, 2))
    return net.pool(kind, net.input(shape), kernel, stride, bool(net.rng.integers(2)), draw_activation(net))


def layer(net, kind):
    if kind is OpKind.FULLY_CONNECTED:
        inputs = int(net.rng.choice([net.rng.integers(1, 70), 600, 1100], p=[0.8, 0.1, 0.1]))
        return net.dense(net.input((2, inputs)), int(net.rng.integers(1, 40)))
    if kind is OpKind.TRANSPOSE_CONV:
        kernel, stride = (tuple(int(n) for n in net.rng.integers(1, 4, 2)) for _ in range(2))
        x = net.input(draw_image(net, 5))
        return net.transpose_conv(x, int(net.rng.integers(1, 10)), kernel=kernel, stride=stride, same=True)
    depthwise, dilation = kind is OpKind.DEPTHWISE_CONV_2D, int(net.rng.integers(1, 3))
    image = draw_image(net) if depthwise or net.rng.random() < 0.8 else (1, 2, 5, 120)  # sums of 64 bits
    groups = int(net.rng.choice([n for n in (1, 1, 2, 3, 5) if image[3] % n == 0]))
    return net.conv(
        net.input(image),
        0 if depthwise else groups * int(net.rng.integers(1, 10)),
        groups=1 if depthwise else groups,
        kernel=tuple(int(n) for n in net.rng.integers(1, 4, 2)),
        stride=(1, 1) if dilation > 1 else tuple(int(n) for n in net.rng.integers(1, 3, 2)),
        dilation=(dilation, dilation),
        same=True,
        depth_multiplier=int(net.rng.choice([1, 1, 2, 3, 7])) if depthwise else 0,
        activation=draw_activation(net),
        bias=bool(net.rng.integers(2)),
    )


WEIGHTED = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.FULLY_CONNECTED, OpKind.TRANSPOSE_CONV)
MAKERS = {
    **dict.fromkeys((OpKind.ADD, OpKind.SUB, OpKind.MUL), pair),
    **dict.fromkeys((OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D), pool),
    **dict.fromkeys(WEIGHTED, layer),
}


def draw_values(rng, shape):
    style = rng.integers(4)
    ends = np.array([-32768, 32767], np.int16)
    if style < 2:
        return np.full(shape, ends[style]) if style else rng.choice(ends, shape)
    return rng.integers(-32768, 32768, shape).astype(np.int16)


def cases():
    """Yields (graph, inputs) of one operator."""
    for kind, make in MAKERS.items():
        for seed in range(COUNT):
            net = WideNetBuilder(seed)
            graph = net.graph([make(net, kind)])
            yield graph, [draw_values(net.rng, graph.tensors[t].shape) for t in graph.inputs]


@functools.cache
def calls(family):
    target = load_target(BOARDS[family])
    own = [
        (graph, inputs) for graph, inputs in cases() if serves(family, select(target, graph, graph.ops[0]))
    ]
    return [whole_call(target, graph, inputs, seed) for seed, (graph, inputs) in enumerate(own)]


def serves(family, kernel):
    return kernel.sources[0].startswith(family + "/")


@pytest.mark.parametrize(
    ("family", "toolchain", "least"),
    [
        ("cortex_m_mve", "clang", 9 * COUNT),
        pytest.param("cortex_m_mve", "gcc", 9 * COUNT, marks=pytest.mark.slow),
        pytest.param("cortex_m_dsp", "clang", 6 * COUNT, marks=pytest.mark.slow),
        pytest.param("riscv", "", 6 * COUNT, marks=pytest.mark.slow),
        pytest.param("riscv_v", "", 6 * COUNT, marks=pytest.mark.slow),
    ],
)
def test_int16_kernels_equal_the_reference(family, toolchain, least):
    with recording(family) as recorder:
        firmware = recorder.firmware(toolchain)
    found = calls(family)
    assert len(found) >= least
    for whole, result in zip(found, firmware.run([whole.call for whole in found]), strict=True):
        assert whole.left(result) == whole.wanted, whole.kernel.name
