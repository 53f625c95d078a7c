"""Errors of refused ONNX networks give problem, place and remedy. Damaged files end in bounded time."""

import random
import sys
import time
from functools import partial

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnxexport import export
from onnxnets import Qdq, many_operators, read
from zoo_networks import built

from buildtool.base.errors import BuildtoolError, ModelError, ToolError, UnsupportedError
from buildtool.graph.onnx import build
from buildtool.graph.onnx.reader import read_qdq


def refused(model, kind=UnsupportedError):
    with pytest.raises(kind) as caught:
        read(model)
    assert caught.value.path == "net.onnx"
    return caught.value


# ---- floats between integers -------------------------------------------------------------------------


def _unquantised(net, name):
    """Returns (network outputs, the tensor named in the error, words of its text, words of its operator)."""
    if name == "weights":
        w = net.const(np.zeros((6, 4)), np.float32)
        return [net.q(net.node("MatMul", [net.x, w]))], w, "weights", "MatMul"
    first = net.conv(net.x, 3, 4)
    if name == "an output":
        return [first], first, "", "Conv"
    second = net.conv(first, 4, 4)
    return [net.q(second)], first, "Conv", second


@pytest.mark.parametrize("name", ["weights", "an output", "a result"])
def test_the_first_tensor_that_is_not_quantised_is_named(name):
    net = Qdq((1, 3, 6, 6))
    outputs, tensor, words, operator = _unquantised(net, name)
    error = refused(net.model(outputs))
    assert error.tensor == tensor
    assert words in error.text
    assert operator in error.operator
    assert "quantise" in error.hint


# ---- operators that no kernel computes, or that do not fit --------------------------------------------


def _per_channel(net):
    params = [np.full(6, 0.1), np.zeros(6, np.int8)]
    y = net.node("QuantizeLinear", [net.node("Relu", [net.x]), *params], axis=3)
    return net.node("DequantizeLinear", [y, *params], axis=3)


def _in_blocks(net):
    weights = [np.zeros((6, 4), np.int8), np.full((3, 4), 0.1), np.zeros((3, 4), np.int8)]
    return net.node("MatMul", [net.x, net.node("DequantizeLinear", weights, axis=0, block_size=2)])


def _asymmetric(zero, kind="Conv"):
    """Returns a function that adds a convolution with weights of these zero points."""

    def build(net):
        weights = net.const(np.arange(9, dtype=np.uint8).reshape(3, 3, 1, 1))
        scale = np.full(np.shape(zero), 0.01)
        return net.node(kind, [net.x, net.dq(weights, scale, zero, "uint8", axis=0)])

    return build


def _branching(net):
    branch = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "b", [], [])
    return net.node("If", [True], then_branch=branch, else_branch=branch)


def _on_x(kind, *more, **attributes):
    """Returns a function that adds an operator on the input and `more` operands."""
    return lambda net: net.node(kind, [net.x, *more], **attributes)


def _twice(kind, count=2):
    return lambda net: net.node(kind, [net.x] * count)


def _stored_with(scale, zero, dtype=np.float32):
    """Returns a function that adds an activation quantised with these parameters."""

    def build(net):
        params = [net.const(scale, dtype), zero]
        return net.dq(net.node("QuantizeLinear", [net.node("Relu", [net.x]), *params]))

    return build


def _weights_with(zero):
    return lambda net: net.node(
        "MatMul", [net.x, net.node("DequantizeLinear", [np.zeros((6, 4), np.int8), 0.1, zero])]
    )


WIDE = {"pads": [1] * 4, "strides": [3, 3], "count_include_pad": 1, "ceil_mode": 1, "kernel_shape": [4, 4]}
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"}
DOUBLED = [1.0, 1.0, 2.0, 2.0]
REFUSED = {  # name -> (function that adds a tensor, which is then quantised; words of the error)
    "16 bits": (lambda net: net.q(net.node("Relu", [net.x]), 0.1, 0, "int16"), "int16"),
    "an input in two scales": (lambda net: net.node("Add", [net.x, net.q("image", 0.07, 1)]), "two ways"),
    "an activation's channels": (_per_channel, "per channel"),
    "weights in blocks": (_in_blocks, "block"),
    "weights by inputs": (lambda net: net.node("MatMul", [net.x, net.weights((6, 4), 0)]), "output channels"),
    "two scales": (lambda net: net.dq(net.quantize(net.node("Relu", [net.x]), 0.1), 0.2), "another scale"),
    "another domain": (_on_x("Relu", domain="my.own"), "my.own"),
    "control flow": (_branching, "control flow"),
    "a dilated pool": (_on_x("MaxPool", kernel_shape=[2, 2], dilations=[2, 2]), "pool without dilations"),
    "cubic": (_on_x("Resize", "", DOUBLED, mode="cubic"), "mode cubic"),
    "wrapped": (_on_x("Pad", [0, 0, 1, 1, 0, 0, 1, 1], mode="wrap"), "mode wrap"),
    "an average that counts padding": (_on_x("AveragePool", **WIDE), "ceil_mode"),
    "three summands": (_twice("Sum", 3), "Sum of more than two"),
    "an Elu's factor": (_on_x("Elu", alpha=0.5), "alpha 0.5"),
    "computed indices": (_twice("Gather"), "indices is not constant"),
    "a place that is read": (lambda net: net.node("Relu", [net.node("ArgMax", [net.x])]), "network output"),
    "scales known at run time": (lambda net: net.node("DynamicQuantizeLinear", [net.x], 3)[0], "statically"),
    "weights with several zero points": (_asymmetric([200, 128, 100]), "symmetric"),
    "a zero point in a transposed convolution": (_asymmetric(200, "ConvTranspose"), "symmetric"),
    "pixels that TFLite never takes": (_on_x("Resize", "", DOUBLED, **NEAREST), "other pixels"),
    "an Expand that does not broadcast": (_on_x("Expand", [7, 3, 4, 5]), "do not broadcast"),
    "a MatMul that does not broadcast": (
        lambda net: net.node("MatMul", [net.x, net.weights((2, 2, 6, 6))]),
        "do not broadcast",
    ),
    "a Pad of terabytes": (_on_x("Pad", [0, 0, 0, 0, 0, 0, 1 << 40, 1 << 40]), "a tensor of shape"),
    "an Expand to terabytes": (_on_x("Expand", [1 << 40, 3, 6, 6]), "a tensor of shape"),
    **{
        f"{where}, a zero point of {zero}": (build(zero), "a zero point of float32")
        for zero in (0.0, np.nan, 1e30)
        for where, build in [("activation", partial(_stored_with, 0.1)), ("weights", _weights_with)]
    },
    **{
        f"a scale of {scale}": (_stored_with(scale, np.int8(0), np.float64), "not finite")
        for scale in (1e300, np.nan)
    },
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", REFUSED)
def test_what_no_kernel_computes_is_refused(name):
    build, words = REFUSED[name]
    net = Qdq((1, 3, 6, 6), opset=21)
    error = refused(net.model([net.q(build(net), 0.05, 3)]), (UnsupportedError, ModelError))
    assert words in f"{error.text}: {error.hint}"
    assert error.tensor or "zero point of" not in words


# ---- operators and files ----------------------------------------------------------------------------


def _unknown(net):
    return net.q(net.node("Det", [net.q(net.node("Einsum", [net.x], equation="ij->ij"))]))


def _relu(net):
    return net.q(net.node("Relu", [net.x]))


@pytest.mark.parametrize(
    ("opset", "add", "words", "hint"),
    [
        (19, _unknown, ("2 operators are not supported", "Einsum", "Det"), "Conv"),
        *((opset, _relu, (f"opset {opset}",), "10 to 25") for opset in (1, 9, 99)),
    ],
)
def test_operators_and_opsets_that_are_not_read(opset, add, words, hint):
    net = Qdq((1, 12), opset=opset)
    error = refused(net.model([add(net)]))
    assert all(word in error.text for word in words)
    assert hint in error.hint


def test_an_open_batch_is_one_and_another_open_dimension_is_refused():
    net = Qdq((1, 3, 6, 6))
    dims = net.inputs[0].type.tensor_type.shape.dim
    y = net.q(net.conv(net.x, 3, 4))
    dims[0].dim_param = "N"
    assert read(net.model([y])).tensors[0].shape == (1, 6, 6, 3)
    dims[2].dim_param = "rows"
    error = refused(net.model([y]))
    assert "dimension 2" in error.text
    assert error.tensor == "image"


def test_weights_in_another_file():
    net = Qdq((1, 12))
    model = net.model([net.q(net.node("MatMul", [net.x, net.weights((12, 4))]))])
    for tensor in model.graph.initializer:
        if len(tensor.dims) == 2:
            tensor.data_location = TensorProto.EXTERNAL
    error = refused(model)
    assert "another file" in error.text
    assert "save" in error.hint


def test_without_the_onnx_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ToolError, match="onnx is not installed") as caught:
        read_qdq(b"", path="net.onnx")
    assert "pip install onnx" in caught.value.hint


# ---- damage -----------------------------------------------------------------------------------------


def survives(data):
    """Checks that the reader returns a graph or raises a BuildtoolError within 20 seconds."""
    start = time.process_time()
    try:
        read_qdq(data, path="net.onnx")
    except BuildtoolError as error:
        assert error.path == "net.onnx"
        assert error.text
    assert time.process_time() - start < 20


def test_a_file_cut_off_anywhere():
    data = export(built("resnet8")).SerializeToString()
    for size in range(0, len(data), len(data) // 150):
        survives(data[:size])


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=150)
@given(seed=st.integers(0, 1 << 30))
def test_fields_changed_anywhere(seed):
    """Swaps names, replaces attributes and shapes, and removes, doubles or moves operators."""
    model, rng = many_operators(), random.Random(seed)
    for _ in range(rng.randint(1, 6)):
        _mutate(model.graph, rng)
    survives(model.SerializeToString())


_NUMBERS = [-(1 << 63), -(1 << 31), -7, -1, 0, 1, 2, 3, 1 << 20, (1 << 31) - 1, (1 << 63) - 1]


def _mutate(graph, rng):
    node = rng.choice(graph.node)
    names = [name for n in graph.node for name in (*n.input, *n.output)]
    match rng.randrange(9):
        case 0 if node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice(names)
        case 1:
            node.output[0] = rng.choice(names)
        case 2:
            node.op_type = rng.choice(graph.node).op_type
        case 3:
            _mutate_attribute(node, rng)
        case 4:
            tensor = rng.choice(graph.initializer)
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
            shape = rng.choice([(), (1,), (4,), (2, 2), (1 << 12,), (1 << 10, 2)])
            numbers = _NUMBERS[3:9] if dtype.kind == "i" else [0, -1, 1e-40, 1e38, np.nan]
            array = np.full(shape, rng.choice(numbers)).astype(dtype)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        case 5:
            tensor = rng.choice(graph.initializer)
            tensor.dims[:] = [abs(rng.choice(_NUMBERS)) % (1 << 62) for _ in range(rng.randrange(4))]
        case 6:
            graph.node.remove(node)
        case 7:
            graph.node.insert(rng.randrange(len(graph.node)), node)
        case 8:
            dim = rng.choice(graph.input[0].type.tensor_type.shape.dim)
            dim.dim_value = rng.choice(_NUMBERS)


def _mutate_attribute(node, rng):
    if not node.attribute:
        node.attribute.append(helper.make_attribute(rng.choice(["axis", "group", "axis", "strides"]), 3))
        return
    attribute = rng.choice(node.attribute)
    if attribute.type == onnx.AttributeProto.INTS:
        size = rng.choice([len(attribute.ints), rng.randrange(6)])
        attribute.ints[:] = [rng.choice(_NUMBERS) for _ in range(size)]
    elif attribute.type == onnx.AttributeProto.INT:
        attribute.i = rng.choice(_NUMBERS)
    else:
        attribute.type = rng.randrange(12)


@pytest.mark.slow
def test_operators_without_end():
    """7000 activations in a row, each with a reshape, are quantised only at the end."""
    net = Qdq((1, 12))
    y = net.x
    for _ in range(7000):
        y = net.node("Relu", [net.node("Reshape", [y, [1, 12]])])
    survives(net.model([net.q(y)]).SerializeToString())


def test_operators_in_a_circle():
    net = Qdq((1, 12), opset=21)
    step = net.const(0.1, np.float32)
    nodes = [
        helper.make_node("QuantizeLinear", ["b", step], ["a"]),
        helper.make_node("DequantizeLinear", ["a", step], ["b"]),
    ]
    y = net.node("Mul", [net.x, "b"])
    net.nodes += nodes
    assert refused(net.model([net.q(y)]), ModelError).tensor == "b"
    net.nodes = [*nodes, *net.nodes]
    assert refused(net.model([y]), ModelError).operator


def test_weights_that_are_used_again_and_again(monkeypatch):
    """A constant of 1 MiB in the file would become 16 MiB in memory; 10 MiB are allowed."""
    monkeypatch.setattr(build, "MOST_BYTES", 10 << 20)
    net = Qdq((1, 1024))
    data = net.const(np.zeros((1024, 1024), np.int8))
    y = net.x
    for _ in range(16):
        y = net.q(net.node("MatMul", [y, net.dq(data, 0.01)]))
    assert "bytes" in refused(net.model([y])).text


@pytest.mark.parametrize("wrong", ["maker", "order", "twice"])
def test_names_that_lead_nowhere(wrong):
    net = Qdq((1, 12))
    y = net.q(net.node("Relu", [net.x if wrong != "maker" else "nobody"]))
    if wrong == "order":
        net.nodes.reverse()
    if wrong == "twice":
        net.nodes.append(net.nodes[-1])
    error = refused(net.model([y]), ModelError)
    assert error.operator
    assert error.tensor
