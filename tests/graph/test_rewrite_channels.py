"""Moves of channels become what runs row by row, or is not made at all, and no byte changes."""

import pytest
from graphs import inputs_for, patterns, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import rewritten
from namednets import shuffled

from buildtool.graph.types import (
    Activation,
    OpKind,
    PadAttrs,
    ShuffleAttrs,
    SliceAttrs,
    WidenedAttrs,
)
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder


@st.composite
def widened_sums(draw):
    """ADD of an image and one that is padded on one side or both, with its zero point or another value.

    Of int8 or of int16, whose zero point is 0.
    """
    wide = draw(st.booleans())
    net = (WideNetBuilder if wide else NetBuilder)(draw(seeds))
    height, width, channels = (draw(st.integers(1, 5)) for _ in range(3))
    before, behind = draw(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(any))
    x = net.input((1, height, width, channels))
    whole = net.input((1, height, width, before + channels + behind))
    value = draw(st.one_of(st.just(net.tensors[x].quant.zero_point), st.integers(-128, 127)))
    paddings = ((0, 0), (0, 0), (0, 0), (before, behind))
    padded = net.move(OpKind.PAD, x, net.shape(whole), PadAttrs(paddings, value=value))
    operands = draw(st.permutations([padded, whole]))
    return net.graph([net.elementwise(OpKind.ADD, *operands, draw(st.sampled_from(list(Activation))))])


@settings(derandomize=True, deadline=None, max_examples=20)
@given(graph=widened_sums(), seed=seeds, pattern=patterns)
def test_a_sum_reads_what_was_padded_as_it_is(graph, seed, pattern):
    (op,) = rewritten(graph, inputs_for(graph, seed, pattern)).ops
    assert op.kind is OpKind.ADD
    assert isinstance(op.attrs, WidenedAttrs)


def _padded(paddings, *, shape=(1, 4, 5, 3), kind=OpKind.ADD, also=False, other=None):
    """Kinds of the operators that are left of a sum with a padded operand."""
    net = NetBuilder(4)
    padded = net.pad(net.input(shape), paddings)
    other = net.input(net.shape(padded)) if other is None else net.constant(other)
    outputs = [net.elementwise(kind, padded, other), *([padded] if also else [])]
    graph = net.graph(outputs)
    return [op.kind for op in rewritten(graph, inputs_for(graph, 1)).ops]


CHANNELS = ((0, 0), (0, 0), (0, 0), (1, 2))


def test_what_is_read_elsewhere_or_otherwise_is_padded():
    assert _padded(CHANNELS) == [OpKind.ADD]
    assert _padded(CHANNELS, also=True) == [OpKind.PAD, OpKind.ADD]
    assert _padded(CHANNELS, kind=OpKind.MUL) == [OpKind.PAD, OpKind.MUL]
    assert _padded(CHANNELS, kind=OpKind.SUB) == [OpKind.PAD, OpKind.SUB]
    assert _padded(CHANNELS, other=(6,)) == [OpKind.PAD, OpKind.ADD]
    assert _padded(((0, 0), (1, 0), (0, 0), (1, 2))) == [OpKind.PAD, OpKind.ADD]
    assert _padded(((0, 0), (0, 0), (2, 1)), shape=(4, 5, 3)) == [OpKind.PAD, OpKind.ADD]


@pytest.mark.parametrize(("count", "groups"), [(2, 2), (3, 4), (4, 6)])
def test_a_split_becomes_slices_and_a_shuffle_one_operator(count, groups):
    net = NetBuilder(5)
    x = shuffled(net, net.input((1, 3, 4, 12)), groups)
    graph = net.graph(net.split(x, count))
    turned = rewritten(graph, inputs_for(graph, 2))
    assert [type(op.attrs) for op in turned.ops] == [ShuffleAttrs, *[SliceAttrs] * count]


@pytest.mark.parametrize(
    ("shape", "axis"), [((1, 4, 6, 4), 2), ((2, 3, 3, 4), 3), ((1, 1, 1, 4), 3), ((6, 4), 1)]
)
def test_other_splits_stay(shape, axis):
    net = NetBuilder(6)
    graph = net.graph(net.split(net.input(shape), 2, axis))
    assert [op.kind for op in rewritten(graph, inputs_for(graph, 3)).ops] == [OpKind.SPLIT]
