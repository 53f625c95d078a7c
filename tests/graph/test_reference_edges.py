"""Corner cases of the executor that random graphs rarely reach, compared with LiteRT where possible."""

from dataclasses import replace

import numpy as np
import pytest
from graphs import inputs_for
from litert import check, run_graph

from buildtool.base.errors import ModelError, UsageError
from buildtool.graph.ops import TABLE_KINDS
from buildtool.graph.reference import execute, table
from buildtool.graph.types import OpKind, Quantization, SoftmaxAttrs
from buildtool.zoo.drawn import NetBuilder, quant


@pytest.mark.parametrize("pattern", ["random", "least", "greatest", "extremes"])
def test_sums_of_more_products_than_fit_float32(pattern):
    net = NetBuilder(0)
    x = net.input((1, 5, 5, 90))
    y = net.conv(x, 6, kernel=(3, 3), same=True)
    graph = net.graph([net.dense(net.flatten(y), 4), net.dense(x, 3)])
    check(graph, inputs_for(graph, 1, pattern))


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_dense_layer_rounds_once_and_halves_away_from_zero(per_channel):
    net = NetBuilder(0)
    x = net.input((64, 3), q=quant(0.5))
    y = net.dense(x, 5, per_channel=per_channel)
    weights, bias, out = (net.tensors[i] for i in (1, 2, y))
    count = len(weights.quant.scales)
    # scales are powers of two: sums are multiples of half an output step, so halves occur
    half, quarter = (Quantization((s,) * count, (0,) * count) for s in (0.5, 0.25))
    net.tensors[1] = replace(weights, quant=half, data=weights.data % 5 - 2)
    net.tensors[2] = replace(bias, quant=quarter, data=bias.data % 64)
    net.tensors[y] = replace(out, quant=quant(0.5))
    graph = net.graph([y])
    x_values = np.random.default_rng(0).integers(-20, 20, (64, 3)).astype(np.int8)
    sums = x_values.astype(int) @ net.tensors[1].data.T.astype(int) + net.tensors[2].data
    assert (sums % 2).any()
    check(graph, [x_values])


def test_a_filter_with_a_zero_point():
    net = NetBuilder(3)
    x = net.input((2, 30))
    y = net.dense(x, 4)
    weights = net.tensors[1]
    net.tensors[1] = replace(weights, quant=quant(weights.quant.scale, 9))
    graph = net.graph([y])
    check(graph, inputs_for(graph, 2))


@pytest.mark.parametrize("shape", [(1, 40, 33, 3), (1, 1, 1, 5), (2, 9, 300, 1)])
@pytest.mark.parametrize("axes", [(1, 2), (1,), (2, 3), (0, 1, 2, 3), (3,)])
def test_means_over_few_and_many_elements(shape, axes):
    net = NetBuilder(5)
    graph = net.graph([net.mean(net.input(shape), axes, keep_dims=len(axes) % 2 == 0)])
    for pattern in ("random", "least", "greatest"):
        check(graph, inputs_for(graph, 7, pattern))


def test_tables_of_all_256_bytes():
    for kind in sorted(TABLE_KINDS - {OpKind.LOGICAL_NOT, OpKind.LOOKUP}):
        for seed in range(20):
            net = NetBuilder(seed)
            x = net.input((256,))
            y = net.requantize(x) if kind is OpKind.QUANTIZE else net.unary(kind, x)
            graph = net.graph([y])
            every = np.arange(256, dtype=np.uint8)
            values = run_graph(graph, [every.view(np.int8)])
            inputs = values.get(graph.ops[-1].inputs[0], every).view(np.uint8)  # roots have another input
            outputs = table(graph, graph.ops[-1])[inputs]
            np.testing.assert_array_equal(outputs, values[y].view(np.uint8), f"{kind} {seed}")


def test_softmax_of_an_even_row_gives_zero_probabilities():
    # LiteRT aborts if the sum of exponentials is 512 or more; 1/600 rounds to 0 steps of 1/256
    net = NetBuilder(0)
    graph = net.graph([net.softmax(net.input((1, 600), q=quant(0.1)))])
    values = execute(graph, [np.full((1, 600), 3, np.int8)])
    np.testing.assert_array_equal(values[1], np.full((1, 600), -128, np.int8))


def test_wrong_inputs_are_refused():
    net = NetBuilder(0)
    graph = net.graph([net.softmax(net.input((1, 4)))])
    with pytest.raises(UsageError):
        execute(graph, [])
    with pytest.raises(UsageError):
        execute(graph, [np.zeros((1, 5), np.int8)])
    with pytest.raises(UsageError):
        execute(graph, [np.zeros((1, 4), np.uint8)])


def test_an_error_names_the_operator():
    net = NetBuilder(0)
    x = net.input((1, 4), q=quant(2.0**-40))
    graph = net.graph([net.op(OpKind.SOFTMAX, (x,), SoftmaxAttrs(), quant(1 / 256, -128))])
    with pytest.raises(ModelError) as caught:
        execute(graph, [np.zeros((1, 4), np.int8)])
    assert caught.value.operator == "#0 SOFTMAX"
