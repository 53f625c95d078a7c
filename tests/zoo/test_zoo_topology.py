"""Topologies and work of the networks, against published counts, layer tables and trained files."""

import json

import pytest
from needs import needs_shared
from paths import ROOT
from zoo_networks import built

from buildtool import zoo
from buildtool.graph.macs import op_macs, total_macs
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.types import OpKind

slow = pytest.mark.slow


def shape_lines(graph):
    """One line per operator, without names, weights and quantisation."""
    order = {}
    for index in graph.activations():
        order.setdefault(index, len(order))
    lines = []
    for op in graph.ops:
        fields = [op.kind.value]
        for i in op.inputs + op.outputs:
            if i in order:
                fields.append(f"t{order[i]}{graph.tensors[i].shape}")
            elif i >= 0 and op.kind is not OpKind.ADD and graph.tensors[i].data.ndim > 1:
                fields.append(str(graph.tensors[i].shape))
        lines.append(" ".join((*fields, str(op.attrs))))
    return lines


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("autoencoder", "mlperf_ad.tflite"),
        ("ds_cnn", "mlperf_kws.tflite"),
        ("mobilenetv1_025_96", "mlperf_vww96.tflite"),
        ("resnet8", "mlperf_resnet8.tflite"),
        ("mcunet_vww5", "mcunet_vww5.tflite"),
        pytest.param("mcunet_320k", "mcunet_320k_imagenet.tflite", marks=slow),
        pytest.param("mobilenetv2", "mobilenetv2_160.tflite", marks=slow),
        pytest.param("mobilenetv2:size=144,alpha=0.35", "mbv2_w035_144_random.tflite", marks=slow),
    ],
)
def test_the_rewritten_network_is_that_of_the_trained_file(name, file):
    trained = rewrite(read_model(needs_shared(f"models/{file}").read_bytes()))
    ours = rewrite(built(name))
    assert shape_lines(ours) == shape_lines(trained)
    assert total_macs(ours) == total_macs(trained)


@pytest.mark.parametrize(
    ("name", "file", "head"),
    [
        ("mcunet_vww5", "layers_mit_mcunet_5fps_vww_r80.json", 160 * 2),
        pytest.param("mcunet_320k", "layers_mit_mcunet_320kb_1mb_imagenet_r176.json", 160 * 1000, marks=slow),
        pytest.param("mbv2_w035_144", "layers_mit_mbv2_w035_r144.json", 448 * 1000, marks=slow),
    ],
)
def test_layers_and_macs_are_those_of_the_layer_table(name, file, head):
    table = json.loads(needs_shared(f"layers/{file}").read_text())
    graph = built(name)
    rows = []
    for op in graph.ops:
        if op.kind not in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D) or len(rows) == len(table["layers"]):
            continue
        weights, y = graph.tensors[op.inputs[1]], graph.tensors[op.outputs[0]]
        kind = "conv" if op.kind is OpKind.CONV_2D else "depthwise"
        rows.append((kind, weights.shape[1], op.attrs.stride[0], y.shape[3], y.shape[1], op_macs(graph, op)))
    keys = ("op", "k", "s", "cout", "h_out", "mac")
    assert rows == [tuple(layer[key] for key in keys) for layer in table["layers"]]
    assert total_macs(graph) == table["total_mac_without_head"] + head
    assert sum(op.kind is OpKind.ADD for op in graph.ops) == len(table["residual_adds"])


def parameters(graph):
    return sum(t.elements for t in graph.tensors if t.is_constant)


@slow
def test_mobilenetv2_has_the_published_size():
    graph = built("mobilenetv2")
    assert round(total_macs(graph) / 1e6) == 154  # at 160 x 160
    # Keras: 3,538,984 with four batch normalisation numbers per channel, which fold into one bias.
    normalised = sum(
        graph.tensors[op.outputs[0]].shape[3]
        for op in graph.ops
        if op.kind in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)
    )
    assert parameters(graph) == 3_538_984 - 3 * normalised


@slow
def test_mobilenetv3_has_the_published_size():
    graph = built("mobilenetv3_small")
    assert round(total_macs(graph) / 1e6) == 57  # 56.5 M
    convolutions = [op for op in graph.ops if op.kind in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)]
    outputs = [graph.tensors[op.outputs[0]] for op in convolutions]
    # torchvision: 2,542,856 with two batch normalisation numbers per channel, which fold into one bias.
    # Ours has two more numbers for each of the nine gates, whose operators are written out.
    normalised = sum(t.shape[3] for t in outputs if t.shape[1] > 1)
    assert parameters(graph) == 2_542_856 - normalised + 2 * 9


def test_dense_blocks_add_their_growth():
    graph = built("densenet")
    joined = [t for t in graph.tensors if t.name.endswith("/concat")]
    assert [t.shape[3] for t in joined[:6]] == [36, 48, 60, 72, 84, 96]
    assert [joined[i].shape[1:] for i in (5, 11, 17)] == [(32, 32, 96), (16, 16, 120), (8, 8, 132)]


@slow
def test_the_documents_table_is_what_its_command_prints(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    graphs = {name: built(name) for name in zoo.names()}  # other tests here need most of them too
    monkeypatch.setattr(zoo, "graph", graphs.__getitem__)
    from benchmarks.zoo import table

    assert table() in (ROOT / "docs/start/zoo.md").read_text()
