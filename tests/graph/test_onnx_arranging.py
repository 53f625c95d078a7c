"""Expand, places of extremes, and products with constants: what no graph of ours is written as."""

import numpy as np
import pytest
from graphs import inputs_for
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnx.reader import read_qdq
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import OpKind

SCALE = 0.125  # exact as a float, so that QDQ networks of moves alone have no rounding


def network(nodes, outputs, constants=(), shape=(1, 3, 4, 5)):
    """`nodes` on the quantised input `x`; (model, graph)."""
    tensors = [*constants, ("scale", np.float32(SCALE)), ("zero", np.int8(0))]
    edges = [
        helper.make_node("QuantizeLinear", ["image", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["x"]),
    ]
    made = helper.make_graph(
        [*edges, *nodes],
        "net",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in tensors],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 9
    return model, rewrite(read_qdq(model.SerializeToString()))


def run_both(model, graph, seed=0):
    """(outputs by onnx.reference, our outputs), from the same integers."""
    (values,) = inputs_for(graph, seed)
    real = (values.transpose(0, 3, 1, 2) if values.ndim == 4 else values).astype(np.float32) * SCALE
    made = execute(graph, [values])
    return ReferenceEvaluator(model).run(None, {"image": real}), [made[t] for t in graph.outputs]


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keep", [0, 1])
def test_places_of_extremes_end_a_network(kind, axis, keep):
    node = helper.make_node(kind, ["x"], ["y"], axis=axis, keepdims=keep)
    model, graph = network([node], [("y", TensorProto.INT64)])
    (theirs,), (ours,) = run_both(model, graph)
    theirs = theirs.transpose(0, 2, 3, 1) if theirs.ndim == 4 else theirs
    np.testing.assert_array_equal(ours, theirs.reshape(ours.shape), strict=True)
    classes = axis == 1  # the dimension that lies last
    assert [op.kind for op in graph.ops].count(OpKind.TRANSPOSE) == (0 if classes or keep else 1)


def test_an_expand_repeats():
    nodes = [
        helper.make_node("Expand", ["x", "shape"], ["y"]),
        helper.make_node("Expand", ["y", "more"], ["z"]),
    ]
    constants = [("shape", np.array([2, 1, 3, 4, 5])), ("more", np.array([1]))]
    outputs = helper.make_node("Identity", ["z"], ["out"])
    model, graph = network([*nodes, outputs], [("out", TensorProto.FLOAT)], constants)
    (theirs,), (ours,) = run_both(model, graph)
    np.testing.assert_array_equal(ours, np.rint(theirs / SCALE).astype(np.int8))


def test_a_place_goes_into_no_operator():
    nodes = [helper.make_node("ArgMax", ["x"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    with pytest.raises(UnsupportedError, match="network output"):
        network(nodes, [("z", TensorProto.INT64)])


def test_indices_that_are_computed_are_refused():
    nodes = [helper.make_node("Gather", ["x", "x"], ["y"])]
    with pytest.raises(UnsupportedError, match="indices is not constant"):
        network(nodes, [("y", TensorProto.FLOAT)])


def test_a_product_with_an_asymmetric_constant_is_one_of_two_operands():
    zero, data = np.int8(100), np.arange(-128, -108, dtype=np.int8).reshape(5, 4)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scale", "off"], ["real"]),
        helper.make_node("MatMul", ["x", "real"], ["y"]),
        helper.make_node("QuantizeLinear", ["y", "wide", "zero"], ["stored"]),
        helper.make_node("DequantizeLinear", ["stored", "wide", "zero"], ["z"]),
    ]
    constants = [("w", data), ("off", zero), ("wide", np.float32(50.0))]
    model, graph = network(nodes, [("z", TensorProto.FLOAT)], constants, (1, 7, 5))
    assert [op.kind for op in graph.ops] == [OpKind.BATCH_MATMUL]
    (theirs,), (ours,) = run_both(model, graph)
    assert np.abs(ours - np.rint(theirs / 50.0)).max() <= 1


@pytest.mark.parametrize(
    ("kind", "other"), [("Expand", np.array([7, 3, 4, 5])), ("MatMul", np.ones((2, 2, 5, 6), np.float32))]
)
def test_what_does_not_broadcast_is_said_so(kind, other):
    quantised = [] if kind == "Expand" else [
        helper.make_node("QuantizeLinear", ["other", "scale", "zero"], ["stored"]),
        helper.make_node("DequantizeLinear", ["stored", "scale", "zero"], ["operand"]),
    ]  # fmt: skip
    node = helper.make_node(kind, ["x", "operand" if quantised else "other"], ["y"])
    with pytest.raises(ModelError, match="do not broadcast"):
        network([*quantised, node], [("y", TensorProto.FLOAT)], [("other", other)], (3, 3, 4, 5))
