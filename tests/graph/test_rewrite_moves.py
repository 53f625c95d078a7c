"""Moves of inputs and channels: the input gets the order that the network needs, and no byte changes."""

import litert
import numpy as np
import pytest
from graphs import inputs_for, patterns, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import rewritten
from namednets import shuffled

from buildtool.graph import types as g
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, DType, OpKind
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder


def _network(shape, *moves, dtype=DType.INT8, also=False):
    """Returns a network of moves of the input (shapes or permutations), then a convolution."""
    net = NetBuilder(8)
    source = net.input(shape, dtype)
    x = net.requantize(source) if dtype is DType.FLOAT32 else source
    for move in moves:
        if sorted(move) == [*range(len(move))]:
            x = net.move(OpKind.TRANSPOSE, x, [net.shape(x)[p] for p in move], g.TransposeAttrs(move))
        else:
            x = net.move(OpKind.RESHAPE, x, move)
    outputs = [net.conv(x, 3, kernel=(2, 2))]
    return net.graph([*outputs, net.unary(OpKind.TANH, source)] if also else outputs)


@pytest.mark.parametrize(
    ("shape", "moves", "ordered_shape", "perm"),
    [
        ((1, 3, 5, 4), [(0, 2, 3, 1)], (1, 5, 4, 3), (0, 2, 3, 1)),
        ((1, 3, 5, 4), [(0, 3, 2, 1)], (1, 4, 5, 3), (0, 3, 2, 1)),
        ((1, 60), [(1, 5, 6, 2)], (1, 5, 6, 2), ()),
        ((5, 6), [(1, 5, 6, 1)], (1, 5, 6, 1), ()),
        ((1, 60), [(1, 3, 5, 4), (0, 2, 3, 1)], (1, 5, 4, 3), (0, 2, 3, 1)),
    ],
)
def test_the_input_takes_the_networks_order(shape, moves, ordered_shape, perm):
    graph = _network(shape, *moves)
    after = rewrite(read_model(write_model(graph)))
    (op,), (index,) = after.ops, after.inputs
    tensor = after.tensors[index]
    assert (op.kind, tensor.shape, tensor.source.perm) == (OpKind.CONV_2D, ordered_shape, perm)
    values = np.random.default_rng(3).integers(-128, 128, shape).astype(np.int8)
    ordered = values
    for move in moves:
        ordered = ordered.transpose(perm) if move == perm else ordered.reshape(move)
    expected = litert.run_graph(graph, [values])[graph.outputs[0]]
    np.testing.assert_array_equal(execute(after, [ordered])[after.outputs[0]], expected)


@pytest.mark.parametrize(
    ("shape", "move", "options"),
    [
        ((1, 3, 5, 4), (0, 2, 3, 1), {"also": True}),  # another operator reads the order of the file
        ((1, 60), (1, 5, 6, 2), {"also": True}),
        ((1, 4, 5, 3), (1, 5, 4, 3), {}),  # a reshape from one image to another
    ],
)
def test_other_inputs_stay(shape, move, options):
    after = rewrite(read_model(write_model(_network(shape, move, **options))))
    assert after.tensors[after.inputs[0]].shape == shape


@st.composite
def widened_sums(draw):
    """Draws an ADD of an image and a padded image, of int8 or int16.

    The PAD is on one side or both, with the zero point or another value.
    """
    wide = draw(st.booleans())
    net = (WideNetBuilder if wide else NetBuilder)(draw(seeds))
    height, width, channels = (draw(st.integers(1, 5)) for _ in range(3))
    before, after = draw(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(any))
    x = net.input((1, height, width, channels))
    other = net.input((1, height, width, before + channels + after))
    value = draw(st.one_of(st.just(net.tensors[x].quant.zero_point), st.integers(-128, 127)))
    paddings = ((0, 0), (0, 0), (0, 0), (before, after))
    padded = net.move(OpKind.PAD, x, net.shape(other), g.PadAttrs(paddings, value=value))
    operands = draw(st.permutations([padded, other]))
    return net.graph([net.elementwise(OpKind.ADD, *operands, draw(st.sampled_from(list(Activation))))])


@settings(derandomize=True, deadline=None, max_examples=20)
@given(graph=widened_sums(), seed=seeds, pattern=patterns)
def test_a_sum_reads_its_operand_without_the_pad(graph, seed, pattern):
    (op,) = rewritten(graph, inputs_for(graph, seed, pattern)).ops
    assert op.kind is OpKind.ADD
    assert isinstance(op.attrs, g.WidenedAttrs)


def _kinds_with_pad(paddings, *, shape=(1, 4, 5, 3), kind=OpKind.ADD, also=False, other=None):
    """Returns the kinds of the operators that a sum with a padded operand is rewritten to."""
    net = NetBuilder(4)
    padded = net.pad(net.input(shape), paddings)
    other = net.input(net.shape(padded)) if other is None else net.constant(other)
    outputs = [net.elementwise(kind, padded, other), *([padded] if also else [])]
    graph = net.graph(outputs)
    return [op.kind for op in rewritten(graph, inputs_for(graph, 1)).ops]


CHANNELS = ((0, 0), (0, 0), (0, 0), (1, 2))


def test_other_readers_keep_the_pad():
    assert _kinds_with_pad(CHANNELS) == [OpKind.ADD]
    assert _kinds_with_pad(CHANNELS, also=True) == [OpKind.PAD, OpKind.ADD]
    assert _kinds_with_pad(CHANNELS, kind=OpKind.MUL) == [OpKind.PAD, OpKind.MUL]
    assert _kinds_with_pad(CHANNELS, kind=OpKind.SUB) == [OpKind.PAD, OpKind.SUB]
    assert _kinds_with_pad(CHANNELS, other=(6,)) == [OpKind.PAD, OpKind.ADD]
    assert _kinds_with_pad(((0, 0), (1, 0), (0, 0), (1, 2))) == [OpKind.PAD, OpKind.ADD]
    assert _kinds_with_pad(((0, 0), (0, 0), (2, 1)), shape=(4, 5, 3)) == [OpKind.PAD, OpKind.ADD]


@pytest.mark.parametrize(("count", "groups"), [(2, 2), (3, 4), (4, 6)])
def test_a_split_becomes_slices_and_a_shuffle_one_operator(count, groups):
    net = NetBuilder(5)
    x = shuffled(net, net.input((1, 3, 4, 12)), groups)
    graph = net.graph(net.split(x, count))
    after = rewritten(graph, inputs_for(graph, 2))
    assert [type(op.attrs) for op in after.ops] == [g.ShuffleAttrs, *[g.SliceAttrs] * count]


@pytest.mark.parametrize(
    ("shape", "axis"), [((1, 4, 6, 4), 2), ((2, 3, 3, 4), 3), ((1, 1, 1, 4), 3), ((6, 4), 1)]
)
def test_other_splits_stay(shape, axis):
    net = NetBuilder(6)
    graph = net.graph(net.split(net.input(shape), 2, axis))
    assert [op.kind for op in rewritten(graph, inputs_for(graph, 3)).ops] == [OpKind.SPLIT]
