"""ONNX's Max, Min, Neg, Sqrt, Elu, LogSoftmax and quotients: read, and within a step of onnx.reference."""

import numpy as np
import pytest
from onnxnets import Qdq, compared, kinds, read

from buildtool.base.errors import UnsupportedError

SHAPE = (1, 4, 5, 6)


def check(net, y, scale, zero, most=1):
    graph, steps = compared(net.model([net.q(y, scale, zero)]))
    assert steps.max() <= most
    return graph


@pytest.mark.parametrize(("kind", "made"), [("Max", "MAXIMUM"), ("Min", "MINIMUM")])
def test_the_larger_or_smaller_of_several_tensors_and_numbers(kind, made):
    net = Qdq(SHAPE)
    other = net.q(net.conv(net.x, 4, 4), 0.08, 11)
    row = net.const(np.linspace(-2, 2, 4).reshape(4, 1, 1), np.float32)
    graph = check(net, net.node(kind, [net.x, other, row, net.const(0.7, np.float32)]), 0.07, -5)
    assert kinds(graph).count(made) == 3


@pytest.mark.parametrize(
    ("kind", "made", "scale", "zero"),
    [
        ("Neg", "MUL", 0.05, 3),
        ("Sqrt", "SQRT", 0.02, -128),
        ("Elu", "ELU", 0.05, -90),
        ("LogSoftmax", "LOG_SOFTMAX", 1 / 16, 127),
        ("Reciprocal", "DIV", 0.1, -128),
    ],
)
def test_a_function_of_one_tensor(kind, made, scale, zero):
    net = Qdq(SHAPE)
    x = net.x
    if kind in ("Sqrt", "Reciprocal"):  # of numbers above 0 alone
        x = net.q(net.node("Max", [x, net.const(0.2, np.float32)]), 0.05, -128)
    graph = check(net, net.node(kind, [x], **({"axis": 1} if kind == "LogSoftmax" else {})), scale, zero)
    assert made in kinds(graph)


def test_a_quotient_of_two_tensors():
    net = Qdq(SHAPE)
    divisor = net.q(net.node("Exp", [net.q(net.conv(net.x, 4, 4), 0.03, 0)]), 0.1, -128)
    divisor = net.q(net.node("Max", [divisor, net.const(0.5, np.float32)]), 0.1, -128)
    graph = check(net, net.node("Div", [net.x, divisor]), 0.06, -2)
    assert kinds(graph)[-1] == "DIV"


def test_a_sum_is_of_two_tensors():
    net = Qdq(SHAPE)
    other = net.q(net.conv(net.x, 4, 4), 0.08, 11)
    assert "ADD" in kinds(check(net, net.node("Sum", [net.x, other]), 0.1, 2))
    net = Qdq(SHAPE)
    with pytest.raises(UnsupportedError, match="Sum of more than two"):
        read(net.model([net.q(net.node("Sum", [net.x, net.x, net.x]))]))


def test_an_elu_of_another_factor_is_refused():
    net = Qdq(SHAPE)
    with pytest.raises(UnsupportedError, match=r"alpha 0\.5"):
        read(net.model([net.q(net.node("Elu", [net.x], alpha=0.5))]))
