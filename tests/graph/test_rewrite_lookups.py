"""Operators that are a function of one byte become one lookup with LiteRT's outputs, bit for bit."""

import dataclasses

import numpy as np
import pytest
from graphs import inputs_for, patterns, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import rewritten

from buildtool.base.errors import BuildtoolError, UnsupportedError
from buildtool.graph.consistency import check_graph
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, DType, OpKind
from buildtool.zoo.drawn import NetBuilder

SHAPE = (2, 3, 4, 5)
CURVES = (
    *(OpKind.LOGISTIC, OpKind.TANH, OpKind.HARD_SWISH, OpKind.RELU, OpKind.RELU6, OpKind.LEAKY_RELU),
    *(OpKind.ABS, OpKind.EXP, OpKind.GELU, OpKind.NEG, OpKind.RELU_N1_TO_1, OpKind.QUANTIZE),
    *(OpKind.PRELU, OpKind.SELECT_V2),
)
PAIRS = (OpKind.MAXIMUM, OpKind.MINIMUM, OpKind.SQUARED_DIFFERENCE)
SUMS = (OpKind.ADD, OpKind.SUB, OpKind.MUL, OpKind.DIV)


def _curve(net, kind, x):
    if kind is OpKind.PRELU:
        return net.prelu(x, (1, 1, 1))
    if kind is OpKind.SELECT_V2:  # with truth values as intermediate bytes
        condition = net.pair(OpKind.GREATER, net.unary(OpKind.TANH, x), net.constant((1,)))
        return net.select(condition, net.unary(OpKind.TANH, x), net.constant((1,)))
    return net.requantize(x) if kind is OpKind.QUANTIZE else net.unary(kind, x)


def _join(net, kind, a, b, activation=Activation.NONE):
    return net.pair(kind, a, b) if kind in PAIRS else net.elementwise(kind, a, b, activation)


@st.composite
def functions(draw):
    """Draws operators that read each other, one input and scalar constants. The last one is the output."""
    net = NetBuilder(draw(seeds))
    tensors = [net.input(SHAPE)]
    for _ in range(draw(st.integers(2, 6))):
        a, b = (draw(st.sampled_from(tensors[-3:])) for _ in range(2))
        if draw(st.booleans()):
            tensors.append(_curve(net, draw(st.sampled_from(CURVES)), a))
            continue
        if draw(st.booleans()):
            b = net.constant((1,))
        kind = draw(st.sampled_from(PAIRS + SUMS))
        a, b = (b, a) if kind in SUMS and draw(st.booleans()) else (a, b)
        tensors.append(_join(net, kind, a, b, draw(st.sampled_from(list(Activation)))))
    return net.graph(tensors[-1:])


@settings(derandomize=True, deadline=None, max_examples=40)
@given(graph=functions(), seed=seeds, pattern=patterns)
def test_a_function_of_one_tensor_equals_litert(graph, seed, pattern):
    after = rewritten(graph, inputs_for(graph, seed, pattern))
    kinds = [op.kind for op in after.ops]
    assert OpKind.LOOKUP not in kinds[:-1]
    assert len(kinds) == 1 or set(kinds) <= {OpKind.ADD, OpKind.SUB, OpKind.RESHAPE}
    assert after.ops[-1].index == len(graph.ops) - 1  # the index of the last operator in the file


def _swish(net, x):
    return net.elementwise(OpKind.MUL, x, net.unary(OpKind.LOGISTIC, x))


def _with_output(net, x):
    """The intermediate value is also an output."""
    gate = net.unary(OpKind.LOGISTIC, x)
    return [net.elementwise(OpKind.MUL, x, gate), gate]


def _with_reader(net, x):
    gate = net.unary(OpKind.LOGISTIC, x)
    return [net.elementwise(OpKind.MUL, x, gate), net.mean(gate)]


NO_FUNCTION = {
    "one curve": lambda net, x: [net.unary(OpKind.LOGISTIC, x)],
    "one product with a constant": lambda net, x: [net.elementwise(OpKind.MUL, x, net.constant((1,)))],
    "sums alone": lambda net, x: [
        net.elementwise(OpKind.ADD, net.elementwise(OpKind.ADD, x, x), net.constant((1,)))
    ],
    "constants of several elements": lambda net, x: [
        net.unary(OpKind.TANH, net.elementwise(OpKind.MUL, x, net.constant((5,))))
    ],
    "two tensors": lambda net, x: [net.elementwise(OpKind.MUL, x, net.unary(OpKind.TANH, net.input(SHAPE)))],
    "a gate": lambda net, x: [
        net.elementwise(OpKind.MUL, x, net.unary(OpKind.LOGISTIC, net.mean(x, keep_dims=True)))
    ],
    "an output in between": _with_output,
    "a reader elsewhere": _with_reader,
}


@pytest.mark.parametrize("name", NO_FUNCTION)
def test_other_operators_stay(name):
    net = NetBuilder(4)
    graph = net.graph(NO_FUNCTION[name](net, net.input(SHAPE)))
    after = rewritten(graph, inputs_for(graph, 1, "random"))
    assert [op.kind for op in after.ops] == [op.kind for op in graph.ops]


def _damage(op=None, table=None):
    net = NetBuilder(4)
    graph = rewrite(net.graph([_swish(net, net.input(SHAPE))]))
    ops = tuple(dataclasses.replace(one, **(op or {})) for one in graph.ops)
    place = graph.ops[0].inputs[1]
    tensors = tuple(
        dataclasses.replace(t, **(table or {})) if i == place else t for i, t in enumerate(graph.tensors)
    )
    return dataclasses.replace(graph, ops=ops, tensors=tensors)


def test_a_lookup_without_a_table_is_refused():
    check_graph(_damage())
    short = np.zeros(255, np.int8)
    for graph in (
        _damage(op={"inputs": (0,)}),
        _damage(table={"data": None}),
        _damage(table={"shape": (255,), "data": short}),
        _damage(table={"dtype": DType.INT32, "data": np.broadcast_to(np.int32(1), (256,))}),
    ):
        with pytest.raises(BuildtoolError):
            check_graph(graph)


def test_a_lookup_is_not_written_to_a_file():
    with pytest.raises(UnsupportedError, match="no operator for LOOKUP"):
        write_model(_damage())
