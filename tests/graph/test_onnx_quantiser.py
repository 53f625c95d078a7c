"""Networks written by onnxruntime's quantiser are compared with the values that onnxruntime computes.

tests/support/onnxrecorded/make.py recorded the files. onnxruntime computes in float32.
"""

import numpy as np
import onnx
import pytest
from onnxexport import Style, export
from onnxfloats import FLOAT_UNITS, units
from paths import TESTS
from zoo_networks import SMALL, built

from buildtool.graph.onnx.reader import read_qdq
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.reference import execute_op as computed
from buildtool.graph.rewrite import rewrite
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import DType, OpKind

FOLDER = TESTS / "support/onnxrecorded"
FLOATS = {"transformer_islands": 3}  # float tensors that are compared: FLOAT_UNITS of docs/reference/onnx.md
NAMES = sorted(path.stem for path in FOLDER.glob("*.onnx"))


def load(name):
    """Returns (graph that is planned, onnxruntime's tensors by the graph's tensor numbers).

    They are int8, or float32 where nothing quantises them.
    """
    data = (FOLDER / f"{name}.onnx").read_bytes()
    graph, recorded = rewrite(read_qdq(data)), np.load(FOLDER / f"{name}.npz")
    stored = {}
    for node in onnx.load_from_string(data).graph.node:
        if node.op_type == "QuantizeLinear":
            stored[node.input[0]] = node.output[0]
        elif node.op_type == "DequantizeLinear":  # a network output
            stored[node.output[0]] = node.input[0]
    values = {}
    for t in graph.activations():
        tensor = graph.tensors[t]
        is_float = tensor.dtype is DType.FLOAT32
        key = tensor.name if is_float else stored.get(tensor.name, tensor.name)
        if key in recorded and recorded[key].size == tensor.elements:
            value = recorded[key]
            value = (value ^ 128).view(np.int8) if value.dtype == np.uint8 else value
            image = value.transpose(0, 2, 3, 1) if value.ndim == 4 else value
            value = image if image.shape == tensor.shape else value  # matrices keep the file's order
            values[t] = value.reshape(tensor.shape)
    return graph, values


def test_there_are_networks_of_both_formats():
    kinds = {name: {n.op_type for n in onnx.load(FOLDER / f"{name}.onnx").graph.node} for name in NAMES}
    assert len(NAMES) == 6
    assert "QLinearConv" in kinds["classifier_qoperator"]
    assert "QLinearConv" not in kinds["classifier_int8"]


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_on_onnxruntime_s_values_gives_its_results(name):
    """Results differ by at most one step, and seldom. Averages of few numbers are ties more often."""
    graph, theirs = load(name)
    values = {t: theirs[t] for t in graph.inputs}
    compared, equal, shares, floats = 0, 0, [], 0
    for op in graph.ops:
        for t, ours in zip(op.outputs, computed(graph, op, values), strict=True):
            values[t] = theirs.get(t, ours)
            if t not in theirs or op.kind in ALIAS_KINDS:
                continue
            if graph.tensors[t].dtype is DType.FLOAT32:
                assert units(ours, theirs[t]) <= FLOAT_UNITS, (op.place, graph.tensors[t].name)
                floats += 1
                continue
            steps = np.abs(ours.astype(int) - theirs[t].astype(int))
            assert steps.max() <= 1, (op.place, graph.tensors[t].name)
            compared, equal = compared + steps.size, equal + int((steps == 0).sum())
            if op.kind not in (OpKind.AVERAGE_POOL_2D, OpKind.MEAN, OpKind.QUANTIZE):
                shares.append((steps == 0).mean())
    assert equal >= 0.99 * compared > 1000
    assert np.mean(shares) > 0.98
    assert set(graph.outputs) <= set(theirs)
    assert floats == FLOATS.get(name, 0)


# ---- networks of the zoo -----------------------------------------------------------------------------


ALL_ELSE = dict.fromkeys(
    ["unsigned", "quantised_edges", "float_bias", "float_weights", "matmul", "flat"], True
)
STYLES = (Style(), Style(opset=21, **ALL_ELSE))


def check_equal(a, b):
    """Checks that two graphs are equal except for the tensors' names and numbers."""
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


@pytest.mark.parametrize("name", [*SMALL, "mobilenetv3_small:size=32,classes=10"])
def test_a_network_is_the_graph_of_the_tflite_file(name):
    graph = built(name)
    copy = read_qdq(export(graph, STYLES[len(name) % len(STYLES)]).SerializeToString())
    check_equal(rewrite(copy, lookups=False), rewrite(graph, lookups=False))
