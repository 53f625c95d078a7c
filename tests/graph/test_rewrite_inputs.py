"""RESHAPE and TRANSPOSE at an input: the input takes the order that the network wants."""

import litert
import numpy as np
import pytest

from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import DType, OpKind, TransposeAttrs
from buildtool.zoo.drawn import NetBuilder


def _transposed(net, x, perm):
    return net.move(OpKind.TRANSPOSE, x, [net.shape(x)[p] for p in perm], TransposeAttrs(perm))


def _network(shape, *moves, dtype=DType.INT8, also=False):
    """A convolution of what some moves make of the input: shapes to take, or permutations."""
    net = NetBuilder(8)
    given = net.input(shape, dtype)
    x = net.requantize(given) if dtype is DType.FLOAT32 else given
    for move in moves:
        x = (
            _transposed(net, x, move)
            if sorted(move) == [*range(len(move))]
            else net.move(OpKind.RESHAPE, x, move)
        )
    outputs = [net.conv(x, 3, kernel=(2, 2))]
    return net.graph([*outputs, net.unary(OpKind.TANH, given)] if also else outputs)


@pytest.mark.parametrize(
    ("shape", "moves", "wanted", "perm"),
    [
        ((1, 3, 5, 4), [(0, 2, 3, 1)], (1, 5, 4, 3), (0, 2, 3, 1)),
        ((1, 3, 5, 4), [(0, 3, 2, 1)], (1, 4, 5, 3), (0, 3, 2, 1)),
        ((1, 60), [(1, 5, 6, 2)], (1, 5, 6, 2), ()),
        ((5, 6), [(1, 5, 6, 1)], (1, 5, 6, 1), ()),
        ((1, 60), [(1, 3, 5, 4), (0, 2, 3, 1)], (1, 5, 4, 3), (0, 2, 3, 1)),
    ],
)
def test_the_input_is_what_the_network_wants(shape, moves, wanted, perm):
    graph = _network(shape, *moves)
    turned = rewrite(read_model(write_model(graph)))
    (op,), (index,) = turned.ops, turned.inputs
    tensor = turned.tensors[index]
    assert (op.kind, tensor.shape, tensor.source.perm) == (OpKind.CONV_2D, wanted, perm)
    given = np.random.default_rng(3).integers(-128, 128, shape).astype(np.int8)
    ordered = (
        given.reshape(moves[0] if len(moves) > 1 else tensor.shape) if not perm or len(moves) > 1 else given
    )
    ordered = ordered.transpose(perm) if perm else ordered
    expected = litert.run_graph(graph, [given])[graph.outputs[0]]
    np.testing.assert_array_equal(execute(turned, [ordered])[turned.outputs[0]], expected)


@pytest.mark.parametrize(
    ("shape", "move", "options"),
    [
        ((1, 3, 5, 4), (0, 2, 3, 1), {"also": True}),  # something reads the file's order
        ((1, 60), (1, 5, 6, 2), {"also": True}),
        ((1, 4, 5, 3), (1, 5, 4, 3), {}),  # an image stays the image that it is
    ],
)
def test_other_inputs_stay(shape, move, options):
    turned = rewrite(read_model(write_model(_network(shape, move, **options))))
    assert turned.tensors[turned.inputs[0]].shape == shape


def test_a_float_input_in_another_order_is_int8_in_the_network_s():
    turned = rewrite(read_model(write_model(_network((1, 3, 5, 4), (0, 2, 3, 1), dtype=DType.FLOAT32))))
    tensor = turned.tensors[turned.inputs[0]]
    assert (tensor.shape, tensor.dtype) == ((1, 5, 4, 3), DType.INT8)
