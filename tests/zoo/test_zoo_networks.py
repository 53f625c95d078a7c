"""Every network runs in LiteRT, equals the reference executor to the bit, and uses its int8 ranges."""

import numpy as np
import pytest
from litert import run
from zoo_networks import ALL, built, file, fresh_inputs, runs

from buildtool.graph.reference import execute
from buildtool.graph.types import Activation, OpKind, Quantization
from buildtool.zoo import seeded
from buildtool.zoo.builder import Builder, Window


@pytest.mark.parametrize("name", ALL)
def test_every_tensor_equals_litert(name):
    graph, data = built(name), file(name)
    for x, values in zip(fresh_inputs(name), runs(name), strict=True):
        expected = run(data, [x])
        for index in graph.activations():
            assert np.array_equal(values[index], expected[index]), graph.tensors[index].name


def saturated(values, quant, kind):
    """The share of values at the ends of int8. Zeros of a ReLU (or an image's black) do not count.

    The lowest value of a hard swish does not count either, as it has it for a whole range of inputs.
    """
    top = np.mean(values == 127)
    ends_below = quant.zero_point == -128 or kind is OpKind.HARD_SWISH
    return top if ends_below else top + np.mean(values == -128)


@pytest.mark.parametrize("name", ALL)
def test_activations_spread_over_int8_without_saturating(name):
    graph = built(name)
    for op in graph.ops:
        tensor = graph.tensors[op.outputs[0]]
        values = np.concatenate([one[op.outputs[0]].ravel() for one in runs(name)]).astype(int)
        if op.kind in (OpKind.SOFTMAX, OpKind.PAD) or tensor.elements < 64:
            continue  # few values show no spread, and the border of a PAD is all zeros
        assert saturated(values, tensor.quant, op.kind) < 0.02, tensor.name
        assert values.max() - values.min() >= 96, tensor.name
        # products have longer tails than their factors
        product = op.kind in (OpKind.MUL, OpKind.HARD_SWISH)
        assert values.std() >= (8 if product else 12), tensor.name
        assert np.mean(values == tensor.quant.zero_point) < 0.7, tensor.name


def test_calibration_saw_what_the_network_computes():
    images = np.stack([seeded.noise(f"image/{i}", (8, 8, 3)) for i in range(3)])
    b = Builder("net", "net", (8, 8, 3), Quantization((0.01,), (-5,)), images)
    x = b.conv(b.input, 8, Window((3, 3), (2, 2)), Activation.RELU6, "conv")
    y = b.depthwise(x, Window((2, 2)), Activation.NONE, "depthwise")
    z = b.mean(
        b.add(y, b.conv(x, 8, Window((2, 2)), Activation.RELU, "c"), Activation.NONE, "a"), (1, 2), "m"
    )
    out = b.softmax(b.dense(z, 4, Activation.NONE, "d"), "s")
    graph = b.graph([out])
    for sample, image in enumerate(images):
        values = execute(graph, [image[None]])
        for index in graph.activations():
            assert np.array_equal(values[index][0], b.values(index)[sample])
