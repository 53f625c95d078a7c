"""ONNX files: shapes, folding of constants, quantised pairs, and files that are refused."""

import math

import lightonnx
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.onnx.flow import read_onnx


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs, [output], **attributes)


def small(batch=1, rows=8):
    """Returns a network of a convolution, a normalisation, a ReLU and a reshape."""
    nodes = [
        node("Conv", ["x", "w"], "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["a", "scale", "bias", "mean", "var"], "b"),
        node("Relu", ["b"], "c"),
        node("Reshape", ["c", "shape"], "d"),
    ]
    constants = [constant("w", np.zeros((4, 3, 3, 3), np.float32)), constant("shape", np.array([0, -1]))]
    constants += [constant(n, np.zeros(4, np.float32)) for n in ("scale", "bias", "mean", "var")]
    return model(nodes, [info("x", [batch, 3, rows, 8])], [info("d", None)], constants)


def read(proto, **options):
    return read_onnx(proto.SerializeToString(), path="m.onnx", **options)


def sizes(flow):
    return [flow.values[v].size for v in flow.activations()]


@pytest.mark.slow
def test_batch_and_image_size_are_the_callers():
    plain = sizes(read(small()))
    assert sizes(read(small(), batch=3)) == [3 * n for n in plain]
    assert sizes(read(small(), size=(16, 12)))[:2] == [4 * 3 * 16 * 12, 4 * 4 * 16 * 12]
    assert sizes(read(small(batch="N", rows="H"), size=(8, 8))) == plain
    with pytest.raises(UnsupportedError, match="dimension 2 of an input is open") as caught:
        read(small(rows="H"))
    assert "--size" in caught.value.hint


def test_operators_on_constants_are_folded():
    nodes = [
        node("ConstantOfShape", ["shape"], "w"),
        node("Transpose", ["w"], "t", perm=[1, 0]),
        node("Shape", ["x"], "s"),
        node("MatMul", ["x", "t"], "y"),
        node("Reshape", ["y", "s2"], "z"),
        node("Gather", ["s", "zero"], "unused", axis=0),
    ]
    constants = [constant(name, value) for name, value in (("shape", [6, 5]), ("s2", [-1]), ("zero", 0))]
    flow = read(model(nodes, [info("x", [2, 5])], [info("z", [12])], constants))
    assert [op.kind for op in flow.ops] == ["MatMul", "Reshape"]
    assert [flow.values[v].size for v in flow.weights()] == [4 * 30]


@pytest.mark.parametrize("name", lightonnx.NAMES[::2])
def test_shapes_are_those_that_onnx_itself_infers(name):
    """The total size of the activations follows from onnx's shapes of all results that are not constant."""
    file = onnx.load(lightonnx.path(name))
    inferred = onnx.shape_inference.infer_shapes(file, strict_mode=True).graph
    shapes = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (*inferred.input, *inferred.value_info, *inferred.output)
    }
    fixed = {t.name for t in file.graph.initializer}
    total = sum(4 * math.prod(shapes[v.name]) for v in file.graph.input if v.name not in fixed)
    for n in file.graph.node:
        if all(i in fixed for i in n.input):
            fixed.update(n.output)
        else:
            total += 4 * math.prod(shapes[n.output[0]])
    flow = read(file)
    assert sum(sizes(flow)) == total


def unknown_operator(proto):
    proto.graph.node[2].op_type = "Mystery"
    proto.graph.node[2].domain = "nobody"
    proto.opset_import.add(domain="nobody", version=1)


def control_flow(proto):
    body = helper.make_graph([node("Relu", ["q"], "r")], "body", [], [info("r", [1])])
    proto.graph.node.append(helper.make_node("If", ["c"], ["e"], then_branch=body, else_branch=body))


BROKEN = [
    (lambda p: p.graph.node[1].input.__setitem__(0, "nowhere"), ModelError, "no earlier operator makes"),
    (lambda p: p.graph.node[2].output.__setitem__(0, "a"), ModelError, "already|failed"),
    (lambda p: p.graph.initializer[0].dims.__setitem__(0, -4), ModelError, "shape"),
    (lambda p: setattr(p.graph.initializer[0], "data_type", 77), UnsupportedError, "type 77"),
    (lambda p: setattr(p.graph.output[0], "name", "nowhere"), ModelError, "no operator makes"),
    (unknown_operator, UnsupportedError, "does not determine its shape"),
    (control_flow, UnsupportedError, "control flow"),
    (lambda p: p.ClearField("graph"), ModelError, "no graph"),
    (lambda p: p.graph.ClearField("node"), ModelError, "no operators"),
]


@pytest.mark.parametrize(("change", "error", "says"), BROKEN)
def test_errors_say_what_is_wrong(change, error, says):
    proto = small()
    change(proto)
    with pytest.raises(error, match=says) as caught:
        read(proto)
    assert caught.value.path == "m.onnx"


@pytest.mark.parametrize("claimed", [1 << 20, 1 << 60])
def test_constants_may_claim_any_size_without_costing_it(claimed):
    proto = small()
    proto.graph.initializer[0].ClearField("raw_data")
    proto.graph.initializer[0].dims[0] = claimed
    if claimed < 1 << 50:
        flow = read(proto)
        assert max(flow.values[v].size for v in flow.weights()) == claimed * 27 * 4
    else:
        with pytest.raises(ModelError, match="bytes"):
            read(proto)


@pytest.mark.slow
def test_damaged_bytes_give_a_network_or_an_error():
    data = small().SerializeToString()
    draw = np.random.default_rng(5)
    for _ in range(8):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[draw.integers(0, len(data))] = draw.integers(0, 256)
        try:
            flow = read_onnx(bytes(damaged))
        except BuildtoolError:
            continue
        assert flow.ops


@pytest.mark.parametrize("data", [b"", b"\x08", b"not a model", b"\xff" * 100])
def test_other_files_are_refused(data):
    with pytest.raises(ModelError):
        read_onnx(data)
