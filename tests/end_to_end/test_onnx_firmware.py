"""QDQ ONNX networks as firmware: compiled, run, and equal to LiteRT's reference kernels in every tensor.

LiteRT runs the .tflite file that is written from the graph that was read.
"""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from boardruns import exact
from drawnnets import small_networks
from everyop import every_operator
from hypothesis import given, settings
from hypothesis import strategies as st
from nativebatch import BATCHES, assert_exact, prepare
from onnxexport import NotExpressible, Style, export
from onnxnets import Qdq, read
from paths import ROOT
from zoo_networks import built

from buildtool.api import handle
from buildtool.base.errors import UnsupportedError, UsageError
from buildtool.fronts.cli import main as cli
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model

UNSIGNED = Style(opset=21, unsigned=True, float_bias=True, float_weights=True, matmul=True, flat=True)
ZOO = "mobilenetv2:size=32,alpha=0.35,classes=10"


def _save(model, folder):
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)


def _run_exact(model, folder, board="host", strategy="layerwise"):
    """Runs the model on the board and compares every tensor."""
    return exact(_save(model, folder), board, {"strategy": strategy}, inputs=2)


def _every_operator(style):
    return export(rewrite(read_model(write_model(every_operator(onnx=True))), lookups=False), style)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "style", "strategy"),
    [
        ("cortex-m4", UNSIGNED, "layerwise"),
        ("cortex-m55", Style(opset=20), "best"),
    ],
)
def test_every_operator_equals_the_reference(board, style, strategy, tmp_path):
    run = _run_exact(_every_operator(style), tmp_path, board, strategy)
    assert len(run.outcome.traces[0]) >= 36
    (*_, answers) = run.outcome.outputs
    assert sum(len(set(raw)) for raw in answers.values()) > 80


def test_a_zoo_network_from_onnx_is_the_firmware_of_its_tflite(tmp_path):
    """The same plan and weights, whichever file they come from."""
    onnx.save(export(built("resnet8")), tmp_path / "net.onnx")
    (tmp_path / "net.tflite").write_bytes(write_model(built("resnet8")))
    emitted = [
        handle({"kind": "emit", "model": str(tmp_path / f"net.{suffix}"), "board": "cortex-m4"})["files"]
        for suffix in ("onnx", "tflite")
    ]
    for name in ("net_weights.bin", "net.plan"):
        assert emitted[0][name] == emitted[1][name]


@pytest.mark.slow
def test_a_zoo_network_is_exact(tmp_path):
    _run_exact(export(built(ZOO), UNSIGNED), tmp_path, "cortex-m4", strategy="best")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "board"), [("classifier_qoperator", "cortex-m4"), ("shuffle_symmetric", "cortex-m55")]
)
def test_networks_as_onnxruntime_writes_them_are_exact(name, board, tmp_path):
    path = ROOT / f"tests/support/onnxrecorded/{name}.onnx"
    _run_exact(onnx.load(path), tmp_path, board, strategy="best")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "board", "tensors"),
    [
        ("transformer_islands", "qemu-virt-rv32", 50),
        ("plain_asymmetric", "cortex-m4", 6),
    ],
)
def test_what_no_tflite_file_has_equals_the_executor(name, board, tensors):
    """Erf of float32, and filters of int8 operators with a zero point."""
    model = str(ROOT / f"tests/support/onnxrecorded/{name}.onnx")
    answer = handle({"kind": "validate", "model": model, "board": board, "tensors": True, "inputs": 2})
    assert answer["exact"] and answer["tensors_compared"] >= tensors, answer["first_difference"]
    with pytest.raises(UnsupportedError, match=r"tflite|not written") as caught:
        handle({"kind": "validate", "model": model, "board": board, "reference": "litert"})
    assert "numpy" in caught.value.hint


@pytest.mark.slow
def test_a_float_network_with_erf_is_exact(tmp_path):
    net = Qdq((1, 3, 9, 7), opset=20)
    net.nodes.clear()
    y = net.node(
        "Relu", [net.node("Conv", ["image", net.const(net.rng.normal(size=(5, 3, 3, 3)), np.float32)])]
    )
    y = net.node("Erf", [net.node("LayerNormalization", [y, net.const(np.ones(5), np.float32)])])
    model = _save(net.model([net.node("Softmax", [y], axis=1)]), tmp_path)
    answer = handle({"kind": "validate", "model": model, "board": "host", "tensors": True, "inputs": 2})
    assert answer["exact"], answer["first_difference"]


@pytest.mark.slow
def test_a_float_island_equals_litert_to_the_bit(tmp_path):
    """LiteRT runs the .tflite that is written from the graph: a layer normalisation has no exp or tanh."""
    net = Qdq((1, 6, 8), opset=17)
    y = net.node(
        "LayerNormalization", [net.x, *(net.const(net.rng.normal(size=8), np.float32) for _ in "ab")]
    )
    model = net.model([net.q(net.node("MatMul", [net.q(y, 0.03, 4), net.weights((8, 5))]), 0.1)])
    _run_exact(model, tmp_path, "cortex-m4")


# ---- random networks -----------------------------------------------------------------------------------

_styles = st.builds(Style, unsigned=st.booleans(), quantised_edges=st.booleans(), flat=st.booleans())


@st.composite
def _read_networks(draw, count):
    """Graphs as read from ONNX files."""
    graphs = []
    while len(graphs) < count:
        drawn = read_model(write_model(draw(small_networks(firmware=True, max_blocks=4))))
        graph = rewrite(drawn, lookups=False)  # ONNX has no operator for a table
        try:
            graphs.append(read(export(graph, draw(_styles))))
        except NotExpressible:
            continue
    return graphs


@pytest.mark.slow
@settings(BATCHES)
@given(graphs=_read_networks(10))
def test_random_networks_are_exact(graphs, tmp_path_factory):
    jobs = [prepare(graph, f"n{i}", seed=i) for i, graph in enumerate(graphs)]
    assert_exact(jobs, tmp_path_factory.mktemp("batch"))


# ---- what TFLite does not say ----------------------------------------------------------------------------


def _residual_stem(pool, scale=0.05):
    """As PyTorch's residual networks begin: windows padded on all sides."""
    net = Qdq((1, 3, 12, 12))
    y = net.node("Relu", [net.conv(net.x, 3, 8, kernel=7, strides=[2, 2])])
    y = net.node(pool, [net.q(y, scale, -100)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = net.q(net.conv(net.q(y, scale, -100), 8, 8))
    return net.model([net.q(net.node("Flatten", [net.node("GlobalAveragePool", [y])]))])


@pytest.mark.parametrize("strategy", ["layerwise", pytest.param("best", marks=pytest.mark.slow)])
def test_a_maximum_padded_on_all_sides(strategy, tmp_path):
    _run_exact(_residual_stem("MaxPool"), tmp_path, strategy=strategy)


@pytest.mark.slow
def test_an_average_padded_on_all_sides_is_compared_with_the_executor(tmp_path):
    request = {"kind": "validate", "model": _save(_residual_stem("AveragePool"), tmp_path), "board": "host"}
    answer = handle({**request, "reference": "numpy", "tensors": True, "inputs": 2})
    assert answer["exact"], answer["first_difference"]
    with pytest.raises(UnsupportedError, match="has SAME or VALID padding") as caught:
        handle({**request, "reference": "litert"})
    assert "reference=numpy" in caught.value.hint


# ---- commands ----------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    return _save(export(built("ds_cnn"), UNSIGNED), tmp_path)


@pytest.mark.slow
def test_every_command_takes_such_a_file(file, tmp_path, capsys):
    tflm = str(tmp_path / "planned.tflite")
    assert cli.run(["plan", file, "--board", "cortex-m4"]) == 0
    assert cli.run(["plan", file, "--emit", "tflm", "--out", tflm]) == 0
    assert cli.run(["front", file, "--board", "cortex-m4"]) == 0
    assert cli.run(["profile", file, "--board", "host"]) == 0
    assert cli.run(["build", file, "--board", "host", "--out", str(tmp_path / "out")]) == 0
    assert cli.run(["analyze", file, "--board", "cortex-m4"]) == 0
    assert re.search(r"^on cortex-m4 .*bytes needed", capsys.readouterr().out, re.MULTILINE)
    assert read_model(Path(tflm).read_bytes()).ops
    assert (tmp_path / "out/net.elf").is_file()


def test_without_a_board_its_memory_is_counted(file, capsys):
    assert cli.run(["analyze", file]) == 0
    assert "QuantizeLinear" in capsys.readouterr().out


def test_an_image_with_its_channels_first_is_refused_with_the_remedy(tmp_path):
    model, image = tmp_path / "net.onnx", tmp_path / "image.npy"
    onnx.save(export(built("resnet8")), model)
    request = {"kind": "validate", "model": str(model), "board": "host", "input": str(image)}
    np.save(image, np.zeros((1, 3, 32, 32), np.float32))
    with pytest.raises(UsageError, match="the network takes") as caught:
        handle(request)
    assert "channels come last" in caught.value.hint
    np.save(image, np.zeros((1, 32, 32, 3), np.uint8))
    with pytest.raises(UsageError, match="uint8") as caught:
        handle(request)
    assert "array ^ 128" in caught.value.hint
