"""ONNX operators that nothing quantises compute in float32, nearly as ONNX's own reference does."""

import numpy as np
import pytest
from islands import ALIASES
from onnx.reference import ReferenceEvaluator
from onnxfloats import CASES, EXACT, FLOAT_UNITS, distance, network, read_floats
from onnxnets import Qdq, read

from buildtool.base.errors import UnsupportedError
from buildtool.graph.floats import MOST_WEIGHTS, touches_floats
from buildtool.graph.ops import ONNX

# Read in float32 too, by rules that need no test of their own: they are parts of others, or do nothing.
PARTS = {
    "Reshape",
    "Squeeze",
    "Unsqueeze",
    "Identity",
    "Dropout",
    "Expand",
    "SpaceToDepth",
    "ReduceMin",
}
INTEGERS_ONLY = {"ConvTranspose", "ArgMax", "ArgMin"}


def evaluate(model, feed):
    return ReferenceEvaluator(model).run(None, feed)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_as_exact_as_onnx_s_reference(name):
    model = network(name)
    graph = read_floats(model)
    assert all(touches_floats(graph, op) or op.kind in ALIASES for op in graph.ops)
    assert distance(model, evaluate) <= (0 if name in EXACT else FLOAT_UNITS)


def test_every_operator_with_a_float_form_is_tried():
    tried = {node.op_type for name in CASES for node in network(name).graph.node}
    assert tried | PARTS | INTEGERS_ONLY == set(ONNX)
    assert not tried & INTEGERS_ONLY


# ---- islands in integer networks -----------------------------------------------------------------------


# ---- what is refused ---------------------------------------------------------------------------------


def _large(net):
    return net.node("MatMul", [net.node("Exp", [net.x]), net.const(np.zeros((24, 500)), np.float32)])


REFUSED = {  # name -> (what adds the output; words of the error)
    "int8 weights on floats": (
        lambda net: net.node("MatMul", [net.node("Exp", [net.x]), net.weights((24, 4))]),
        ("the float result of", "Exp", "which", "MatMul", "is not quantised"),
    ),
    "int8 weights whose result is float": (
        lambda net: net.node("Exp", [net.node("MatMul", [net.x, net.weights((24, 4))])]),
        ("the float result of", "MatMul", "is not quantised"),
    ),
    "a place of floats": (
        lambda net: net.node("ArgMax", [net.node("Exp", [net.x])]),
        ("ArgMax", "not quantised"),
    ),
    "many weights": (_large, ("12,000 float32 weights", f"at most {MOST_WEIGHTS - 1:,}")),
    "another Elu": (lambda net: net.node("Elu", [net.node("Exp", [net.x])], alpha=0.5), ("alpha 0.5",)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_float_form_is_refused_with_its_place(name):
    build, words = REFUSED[name]
    net = Qdq((1, 24))
    with pytest.raises(UnsupportedError) as caught:
        read(net.model([build(net)]))
    text = caught.value.message()
    assert all(word in text for word in words), text
    assert caught.value.operator and caught.value.hint


def test_a_large_float_network_is_refused_with_the_line_that_quantises_it():
    net = Qdq((1, 200))
    net.nodes.clear()
    model = net.model([net.node("MatMul", ["image", net.const(np.zeros((200, 60)), np.float32)])])
    with pytest.raises(UnsupportedError, match="12,") as caught:
        read(model)
    assert "buildtool quantize net.onnx --data DATA" in caught.value.hint


def test_a_large_float_network_with_unknown_operators_is_not_told_to_quantise_alone():
    """onnxruntime, which quantises, does not run them either."""
    net = Qdq((1, 200))
    net.nodes.clear()
    y = net.node("MatMul", [net.node("iRMSNorm", ["image"]), net.const(np.zeros((200, 60)), np.float32)])
    with pytest.raises(UnsupportedError, match=r"12,002 weights.*these operators .*: iRMSNorm") as caught:
        read(net.model([y]))
    assert "buildtool quantize" not in caught.value.hint
