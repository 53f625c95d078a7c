"""Whole networks: written as QDQ ONNX from the same integers, they are read as the .tflite's own graph."""

import numpy as np
import pytest
from onnxexport import Style, export
from zoo_networks import ALL, built

from buildtool.graph.onnx.reader import read_qdq
from buildtool.graph.rewrite import rewrite
from buildtool.graph.topology import topology_digest

STYLES = {
    "signed": Style(),
    "unsigned": Style(
        opset=21,
        unsigned=True,
        quantised_edges=True,
        float_bias=True,
        float_weights=True,
        matmul=True,
        flat=True,
    ),
}


def check_equal(a, b):
    """Equal up to the tensors' names and numbers."""
    assert topology_digest(a) == topology_digest(b)
    for first, second in zip(a.ops, b.ops, strict=True):
        assert first.attrs == second.attrs
        pairs = zip((*first.inputs, *first.outputs), (*second.inputs, *second.outputs), strict=True)
        for s, t in pairs:
            if s >= 0:
                check_equal_tensors(a.tensors[s], b.tensors[t])


def check_equal_tensors(one, other):
    assert one.quant.scales == other.quant.scales
    assert one.quant.zero_points == other.quant.zero_points
    assert (one.shape, one.dtype, one.is_constant) == (other.shape, other.dtype, other.is_constant)
    if one.is_constant:
        np.testing.assert_array_equal(one.data, other.data)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", ALL)
def test_a_network_is_the_graph_of_the_tflite_file(name, style):
    graph = built(name)
    found = read_qdq(export(graph, STYLES[style]).SerializeToString())
    check_equal(rewrite(found, lookups=False), rewrite(graph, lookups=False))


def test_reading_twice_gives_the_same():
    data = export(built("ds_cnn")).SerializeToString()
    a, b = read_qdq(data), read_qdq(data)
    assert [t.name for t in a.tensors] == [t.name for t in b.tensors]
    check_equal(a, b)


def test_inputs_and_outputs_have_the_file_s_names():
    model = export(built("resnet8"))
    graph = read_qdq(model.SerializeToString())
    assert [graph.tensors[t].name for t in graph.inputs] == [value.name for value in model.graph.input]
    assert [graph.tensors[t].name for t in graph.outputs] == [value.name for value in model.graph.output]
    assert all(op.index >= 0 for op in graph.ops)
