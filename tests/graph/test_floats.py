"""Float islands: the executor equals LiteRT's reference kernels, and islands shrink to what needs floats."""

import litert
import numpy as np
import pytest
from islands import FAMILIES, SPECIAL, UNARY, Islands, every_operator, kinds_of, values, with_float_form

from buildtool.base.errors import UnsupportedError
from buildtool.firmware.run.compare import distance
from buildtool.graph import types as g
from buildtool.graph.floats import MOST_WEIGHTS, curve_bound, curve_units, touches_floats
from buildtool.graph.ops.signal import CUSTOM
from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import DType, OpKind
from buildtool.zoo.drawn import quant

EVERY = np.arange(-128, 128).astype(np.int8).reshape(1, 1, 1, 256)
ENDS = {OpKind.DEQUANTIZE, OpKind.QUANTIZE}


def test_the_networks_have_every_operator_with_a_float_form():
    found = set().union(*(kinds_of(every_operator(family)) for family in FAMILIES))
    # .tflite has no ERF: see test_onnx_floats.py; operators of sound: see test_signal.py
    assert with_float_form() - ENDS - {OpKind.ERF, *CUSTOM} <= found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("shape", "special"), [((1, 4, 3, 6), 0.25), ((2, 5, 4, 8), 0.0)])
def test_operators_equal_litert(family, shape, special):
    graph = every_operator(family, shape=shape)
    given = [values(shape, 3, special if family != "sums" else 0.0)]
    theirs, ours = litert.run_graph(graph, given), execute(graph, given)
    for op in graph.ops:
        for t in op.outputs:
            least = curve_units(op, ours[op.inputs[0]])
            apart = distance(ours[t], theirs[t].reshape(ours[t].shape), least)
            assert apart.max() <= curve_bound(graph, op), op.place


@pytest.mark.parametrize("kind", [OpKind.REDUCE_MAX, OpKind.REDUCE_MIN, OpKind.SUM, OpKind.REDUCE_PROD])
def test_a_reduction_of_one_element_still_changes_nan_and_infinity(kind):
    net = Islands(1)
    x = net.input((2, 1, 8), DType.FLOAT32)
    graph = net.graph([net.reduced(kind, net.unary(OpKind.NEG, x), (1,), False)])
    litert.rewritten(graph, [np.resize(np.array(SPECIAL, np.float32), (2, 1, 8))])


@pytest.mark.parametrize("axes", [(3,), (1, 2), (0, 2), (1, 3), (0, 1, 2, 3)])
def test_long_sums_are_in_the_order_of_memory_also_behind_a_transposition(axes):
    net = Islands(1)
    x = net.input((2, 9, 11, 13), DType.FLOAT32)
    perm, sums = g.TransposeAttrs((0, 2, 3, 1)), []
    for kind in (OpKind.MEAN, OpKind.SUM):
        turned = net.move(OpKind.TRANSPOSE, net.unary(OpKind.NEG, x), attrs=perm)
        sums.append(net.reduced(kind, turned, axes, False))
    litert.rewritten(net.graph(sums), [values((2, 9, 11, 13), 4)])


def island(middle, shape=(1, 1, 1, 256), step=0.02, zero_point=-5):
    """An int8 network with the float32 operators that `middle` adds to a tensor."""
    net = Islands(2)
    x = net.input(shape)
    return net.graph([net.quantize(middle(net, net.dequantize(x)), step, zero_point)])


@pytest.mark.parametrize("kind", UNARY)
def test_a_function_of_one_byte_becomes_a_lookup_that_equals_litert(kind):
    def chain(net, x):
        x = net.pair(OpKind.MUL, x, net.floats([0.37]))
        if kind in (OpKind.SQRT, OpKind.RSQRT, OpKind.LOG):
            x = net.pair(OpKind.ADD, net.unary(OpKind.ABS, x), net.floats([0.01]))
        return net.pair(OpKind.MUL, net.unary(kind, x), x)

    after = litert.rewritten(island(chain), [EVERY])
    assert [op.kind for op in after.ops] == [OpKind.LOOKUP]


def test_conversions_move_beyond_what_only_moves_elements():
    net = Islands(3)
    x = net.dequantize(net.conv(net.input((1, 4, 6, 8)), 8, kernel=(3, 3), same=True))
    planes = net.move(OpKind.TRANSPOSE, x, attrs=g.TransposeAttrs((0, 3, 1, 2)))
    halves = net.split(net.move(OpKind.RESHAPE, planes, (8, 24)), 2, 0)
    first = net.quantize(net.unary(OpKind.TANH, halves[0]), 1 / 128)
    folded = net.move(OpKind.RESHAPE, net.unary(OpKind.NEG, halves[1]), (2, 48))
    graph = net.graph([first, net.quantize(folded, 0.03, 2)])
    given = np.random.default_rng(5).integers(-128, 128, (1, 4, 6, 8)).astype(np.int8)
    after = litert.rewritten(graph, [given])
    assert not any(touches_floats(after, op) for op in after.ops)
    moves = {OpKind.TRANSPOSE, OpKind.RESHAPE, OpKind.SPLIT, OpKind.SLICE}
    assert kinds_of(after) <= {OpKind.CONV_2D, OpKind.LOOKUP} | moves


def test_equal_scales_on_both_sides_of_a_move_leave_no_conversion():
    net = Islands(4)
    halves = net.split(net.dequantize(net.input((1, 6, 8))), 2, 1)
    graph = net.graph([net.quantize(half, 0.03, 2) for half in halves])
    after = litert.rewritten(graph, [np.arange(48).astype(np.int8).reshape(1, 6, 8)])
    assert kinds_of(after) <= {OpKind.SPLIT, OpKind.SLICE, OpKind.RESHAPE}


def dense(inputs, outputs, dtype=np.float32):
    net = Islands(7)
    x = net.input((1, inputs), DType.FLOAT32)
    weights = net.rng.normal(size=(outputs, inputs)).astype(dtype)
    step = None if dtype is np.float32 else quant(0.1)
    filters = net.tensor(weights.shape, step, DType(weights.dtype.name), weights)
    attrs = g.FullyConnectedAttrs()
    return net.graph([net.op(OpKind.FULLY_CONNECTED, [x, filters, net.normal(outputs)], attrs)])


def test_a_float_network_is_read_up_to_a_number_of_weights():
    small = dense(99, 100)  # and 100 biases: 10,000
    text = "float32 activations in a network of 10,000 float32 weights: at most 9,999 run as they are"
    with pytest.raises(UnsupportedError, match=text) as refused:
        read_model(write_model(small))
    assert "buildtool quantize" in str(refused.value)
    graph = litert.rewritten(dense(98, 100), [values((1, 98), 8)])
    assert graph.tensors[graph.inputs[0]].dtype is DType.FLOAT32
    assert sum(t.elements for t in graph.tensors if t.is_constant) < MOST_WEIGHTS


def test_what_has_no_float_form_is_refused():
    with pytest.raises(UnsupportedError, match="hybrid"):
        read_model(write_model(dense(4, 4, np.int8)))
    with pytest.raises(UnsupportedError, match="float32 activations"):
        read_model(write_model(island(lambda net, x: net.unary(OpKind.LOGICAL_NOT, x))))
    net = Islands(9)
    x, y = net.input((1, 4), DType.FLOAT32), net.input((3, 4), DType.FLOAT32)
    graph = net.graph([net.op(OpKind.FULLY_CONNECTED, [x, y, net.normal(3)], g.FullyConnectedAttrs())])
    with pytest.raises(UnsupportedError, match="not constant"):
        read_model(write_model(graph))
