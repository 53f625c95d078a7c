"""The executor on int16 activations equals LiteRT's reference kernels, bit for bit."""

from dataclasses import replace

import litert
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from flatfiles import FileOperator, FileTensor, constant
from flatfiles import write as write_file

from buildtool.api.checking.cases import WIDE, network
from buildtool.base.errors import UnsupportedError
from buildtool.base.modes import Reference
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.run.compare import referrer
from buildtool.graph import types as g
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite import pointwise
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import DType, OpKind
from buildtool.zoo.drawn import WideNetBuilder, quant

OF_TFLM = {
    OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM,
    OpKind.SQUARED_DIFFERENCE,
    OpKind.SUM,
}  # LiteRT does not compute them: see test_wide_values
SEEDS = range(4)
EVERY = np.arange(-32768, 32768).astype(np.int16)


def _check_against_litert(graph, inputs):
    """Compares every tensor of the file, and those that remain in the rewritten network."""
    expected = litert.run_graph(graph, inputs)
    parsed = read_model(write_model(graph))
    for network_ in (parsed, rewrite(parsed)):
        for t, value in execute(network_, inputs).items():
            source = network_.tensors[t].source
            if source is not None and source.index in expected:
                reference = expected[source.index]
                np.testing.assert_array_equal(
                    value, reference.transpose(source.perm) if source.perm else reference
                )


@pytest.mark.parametrize("kind", [kind for kind in WIDE if kind not in OF_TFLM])
def test_an_operator_of_int16_equals_litert(kind):
    for seed in SEEDS:
        graph = network(kind, seed, among=seed % 3 == 2, wide=True)
        _check_against_litert(graph, draw_inputs(graph, 1, seed)[0])


@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-13, 3e-4, 0.01])
def test_every_value_through_the_curves(scale):
    """LOGISTIC and TANH of all int16 values, and SOFTMAX of rows of distant or close values."""
    net = WideNetBuilder(1)
    x = net.input((1, 256, 256, 1), q=quant(scale))
    rows = net.move(OpKind.RESHAPE, x, (256, 256))
    curves = [net.unary(OpKind.LOGISTIC, x), net.unary(OpKind.TANH, x)]
    graph = net.graph([*curves, net.softmax(rows), net.softmax(rows, 0.7)])
    random = np.random.default_rng(2)
    for values in (random.permutation(EVERY), random.integers(-900, 900, 65536).astype(np.int16)):
        _check_against_litert(graph, [values.reshape(1, 256, 256, 1)])


def _with_int32_biases(graph):
    tensors = list(graph.tensors)
    for t, tensor in enumerate(tensors):
        if tensor.dtype is DType.INT64:
            tensors[t] = replace(tensor, dtype=DType.INT32, data=tensor.data.astype(np.int32))
    return write_model(replace(graph, tensors=tuple(tensors)))


def test_an_int32_bias_is_read_as_an_int64_bias():
    """LiteRT would parsed its bytes as half as many 64-bit numbers, so LiteRT runs a file with int64."""
    net = WideNetBuilder(7)
    x = net.input((1, 5, 5, 6))
    graph = net.graph([net.dense(net.conv(x, 4, kernel=(3, 3)), 3)])
    parsed, inputs = read_model(_with_int32_biases(graph)), draw_inputs(graph, 1, 3)[0]
    expected = litert.run_graph(graph, inputs)
    for t, value in execute(parsed, inputs).items():
        source = parsed.tensors[t].source
        if source is not None:
            np.testing.assert_array_equal(value, expected[source.index])


def test_additions_that_litert_shifts_are_refused(monkeypatch):
    """It shifts if all three scales are powers of two and the file allows it; otherwise it scales."""
    net = WideNetBuilder(9)
    x, y = (net.input((1, 4, 4, 2), q=quant(2.0**-n)) for n in (10, 11))
    graph = net.graph([net.op(OpKind.SUB, (x, y), g.ElementwiseAttrs(), quant(s)) for s in (2.0**-10, 0.001)])
    _check_against_litert(graph, draw_inputs(graph, 1, 2)[0])
    monkeypatch.setattr(pointwise, "POWERS_OF_TWO", True)
    with pytest.raises(UnsupportedError, match="powers of two"):
        read_model(write_model(graph))
    alone = replace(graph, ops=graph.ops[1:], outputs=graph.outputs[1:])
    _check_against_litert(alone, draw_inputs(alone, 1, 2)[0])


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (lambda net, x: net.unary(OpKind.HARD_SWISH, x), "LiteRT's kernel does not support int16"),
        # LiteRT reads the bytes of alphas as int8.
        (lambda n, x: n.op(OpKind.PRELU, (x, n.constant((1, 1, 2))), quant=quant(0.01)), "expected int8"),
    ],
)
def test_what_has_no_int16_form_is_refused(add, words):
    net = WideNetBuilder(8)
    with pytest.raises(UnsupportedError, match=words):
        read_model(write_model(net.graph([add(net, net.input((1, 4, 4, 2)))])))


@pytest.mark.parametrize("kind", ["CONV_2D", "TRANSPOSE_CONV"])
def test_layers_whose_sums_litert_scales_in_32_bits_are_refused(kind):
    """Their multipliers have 31 bits, those of 64-bit sums 16."""

    def file(bias_type):
        x, out = (FileTensor((1, 4, 4, 2), "int16", scale=scale) for scale in (0.003, 0.007))
        weights = constant(np.ones((2, 1, 1, 2)), "int8", scale=0.02)
        shape = [constant([1, 4, 4, 2])] if kind == "TRANSPOSE_CONV" else []
        tensors = [*shape, *([weights, x] if shape else [x, weights]), out]
        options = {"StrideW": 1, "StrideH": 1, "QuantizedBiasType": getattr(schema.TensorType, bias_type)}
        table = "TransposeConvOptions" if shape else "Conv2DOptions"
        op = FileOperator(kind, range(len(tensors) - 1), [len(tensors) - 1], table, options, version=4)
        return write_file(tensors, [op], [tensors.index(x)], [len(tensors) - 1])

    assert read_model(file("INT64")).ops
    with pytest.raises(UnsupportedError, match="quantized_bias_type INT32"):
        read_model(file("INT32"))


def test_a_depthwise_layer_with_an_int32_bias_is_compared_with_litert():
    """LiteRT refuses such a bias if it would have to read it as int64."""
    net = WideNetBuilder(6)
    graph = net.graph([net.conv(net.input((1, 4, 5, 3)), 0, kernel=(3, 3), depth_multiplier=1)])
    model, inputs = _with_int32_biases(graph), draw_inputs(graph, 1, 2)[0]
    source, modes = read_model(model), (Reference.NUMPY, Reference.LITERT)
    values = [referrer(mode, model, source, source)(inputs, False)[source.outputs[0]] for mode in modes]
    assert np.array_equal(*values)
