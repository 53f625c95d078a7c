"""The check that later stages rely on: it refuses every graph that is invalid, or beyond int32."""

from dataclasses import replace

import numpy as np
import pytest
from widecases import conv, dense, depthwise, pool

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.consistency import check_graph, check_op
from buildtool.graph.limits import MAX_ACTIVATION, MAX_MEAN, MAX_TAPS
from buildtool.graph.types import ConvAttrs, DType, Graph, MeanAttrs, OpKind, Pad, Quantization
from buildtool.zoo.drawn import NetBuilder


def small() -> Graph:
    """input -> CONV_2D -> ADD with the input -> MEAN."""
    net = NetBuilder(1)
    x = net.input((1, 6, 6, 4))
    y = net.elementwise(OpKind.ADD, net.conv(x, 4, kernel=(3, 3), same=True), x)
    return net.graph([net.mean(y)])


def with_op(position: int, **changes):
    def change(graph: Graph) -> Graph:
        ops = [replace(op, **changes) if i == position else op for i, op in enumerate(graph.ops)]
        return replace(graph, ops=tuple(ops))

    return change


def with_tensor(place, **changes):
    """`place` picks the tensor: (operator, "inputs" or "outputs", position)."""

    def change(graph: Graph) -> Graph:
        index = getattr(graph.ops[place[0]], place[1])[place[2]]
        tensors = [replace(t, **changes) if i == index else t for i, t in enumerate(graph.tensors)]
        return replace(graph, tensors=tuple(tensors))

    return change


X, WEIGHTS, BIAS = ((0, "inputs", i) for i in range(3))
CONV_OUT = (0, "outputs", 0)
SUM = (1, "outputs", 0)

CASES = {
    "padding that gives another size": (with_op(0, attrs=ConvAttrs(pad=Pad(1, 0, 1, 1))), "expected"),
    "a stride of 0": (with_op(0, attrs=ConvAttrs(stride=(0, 1))), "not positive"),
    "attributes of another operator": (with_op(0, attrs=MeanAttrs((1,))), "must be ConvAttrs"),
    "axes out of order": (with_op(2, attrs=MeanAttrs((2, 1))), "axes"),
    "an axis beyond the rank": (with_op(2, attrs=MeanAttrs((1, 4))), "axes"),
    "a missing operand": (with_op(1, inputs=(0, -1)), "missing"),
    "too few operands": (with_op(1, inputs=(0,)), "1 inputs"),
    "a tensor index beyond the end": (with_op(1, inputs=(0, 99)), "does not exist"),
    "operators out of order": (lambda g: replace(g, ops=g.ops[::-1]), "before an operator makes it"),
    "an operator twice": (lambda g: replace(g, ops=(*g.ops, g.ops[-1])), "made twice"),
    "an output that nothing makes": (lambda g: replace(g, ops=g.ops[:-1]), "no operator makes"),
    "no input": (lambda g: replace(g, inputs=()), "0 network inputs"),
    "an input twice": (lambda g: replace(g, inputs=g.inputs * 2), "twice"),
    "a constant as an input": (lambda g: replace(g, inputs=(*g.inputs, g.ops[0].inputs[1])), "constant"),
    "an empty dimension": (with_tensor(CONV_OUT, shape=(1, 6, 0, 4)), "without elements"),
    "too many dimensions": (with_tensor(CONV_OUT, shape=(1, 1, 1, 1, 6, 6, 4)), "7 dimensions"),
    "an activation that is not int8": (
        with_tensor(CONV_OUT, dtype=DType.UINT8, quant=Quantization((1.0,), (0,))),
        "uint8, expected int8",
    ),
    "an activation without quantisation": (with_tensor(SUM, quant=None), "without a scale"),
    "a scale of 0": (with_tensor(SUM, quant=Quantization((0.0,), (0,))), "not a finite positive"),
    "an infinite scale": (with_tensor(X, quant=Quantization((float("inf"),), (0,))), "not a finite positive"),
    "a zero point beyond int8": (with_tensor(X, quant=Quantization((1.0,), (128,))), "outside -128..127"),
    "lists of different length": (with_tensor(X, quant=Quantization((1.0,), (0, 0))), "1 scales, 2 zero"),
    "scales far apart": (with_tensor(SUM, quant=Quantization((1e-9,), (0,))), "too far apart"),
    "a long bias": (with_tensor(BIAS, shape=(5,), quant=None, data=np.zeros(5, np.int32)), "bias has shape"),
    "a constant of another shape": (with_tensor(WEIGHTS, shape=(4, 3, 4, 3)), "a constant of int8"),
    "a constant of another type": (with_tensor(WEIGHTS, dtype=DType.INT32), "a constant of int8"),
    "weights that are not constant": (with_tensor(WEIGHTS, data=None), "before an operator makes it"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_broken_graph_is_refused(name: str) -> None:
    change, words = CASES[name]
    graph = change(small())
    with pytest.raises((ModelError, UnsupportedError), match=words):
        check_graph(graph)


def test_errors_name_the_operator_and_the_tensor() -> None:
    graph = with_tensor(SUM, quant=None, name="the sum")(small())
    with pytest.raises(UnsupportedError) as caught:
        check_graph(graph)
    assert (caught.value.operator, caught.value.tensor) == ("#1 ADD", "the sum")


# ---- sums and offsets that may not fit int32; at the limit they are accepted -------------------------


def check_case(case):
    check_op(case.graph, case.op)


def stepping(case, **steps):
    """The case with other strides or dilations, and the same output."""
    graph = case.graph
    op = replace(case.op, attrs=replace(case.op.attrs, **steps))
    return lambda: check_op(graph, op)


@pytest.mark.parametrize("make", [lambda n: conv((1, 1), n, 1), lambda n: dense(n, 1)])
def test_products_in_a_sum(make):
    check_case(make(MAX_TAPS))
    with pytest.raises(UnsupportedError, match="131072 products in a sum, more than 131071"):
        check_case(make(MAX_TAPS + 1))


def test_values_in_a_pooling():
    assert MAX_MEAN == 8388544
    check_case(pool(OpKind.AVERAGE_POOL_2D, (65534, 128), 1))
    with pytest.raises(UnsupportedError, match="8388608 values in a mean, more than 8388544"):
        check_case(pool(OpKind.AVERAGE_POOL_2D, (65536, 128), 1))


@pytest.mark.parametrize("case", [conv((1, 1), 4, 3), depthwise((1, 1), 4, (1, 1))])
@pytest.mark.parametrize("name", ["stride", "dilation"])
@pytest.mark.parametrize("across", [False, True])
def test_a_step_beyond_the_range_of_offsets(case, name, across):
    last = MAX_ACTIVATION // 4 - 1

    def step(n):
        return stepping(case, **{name: (1, n) if across else (n, 1)})

    step(last)()
    with pytest.raises(UnsupportedError, match="2147483648 bytes far, more than 2147483647"):
        step(last + 1)()
