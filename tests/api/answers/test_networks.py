"""Analysis of ONNX and Darknet files: published figures, options, and refused requests."""

import lightonnx
import pytest
from paths import ROOT

from buildtool.api import handle
from buildtool.base.errors import ModelError, UsageError
from buildtool.fronts.cli import main as cli

CFG = ROOT / "benchmarks/networks"


def analysed(path, **options):
    return handle({"kind": "analyze", "model": str(path), "options": options})


# MB of activations, of weights, and of the live bytes: only activations, and with weights at their use (the
# bytes are beside the article's percentages in docs/internals/figures.md).
PUBLISHED = [
    (CFG / "yolo9000.cfg", "separate", 374.2, 195.2, 75.8, 149.8),
    (CFG / "yolo9000.cfg", "fused", 161.1, 195.2, 47.4, 149.8),
    (CFG / "yolov1.cfg", "separate", 176.1, 789.3, 25.7, 462.7),
    (lightonnx.path("bvlc_alexnet"), "separate", 7.8, 243.9, 2.2, 151.1),
    (lightonnx.path("inception_v1"), "separate", 37.2, 28.0, 6.4, 6.4),
    (lightonnx.path("resnet50"), "separate", 150.9, 102.4, 9.6, 10.7),
    (lightonnx.path("shufflenet"), "separate", 57.7, 5.7, 3.1, 3.1),
    (lightonnx.path("vgg19"), "separate", 125.7, 574.7, 25.7, 411.2),
]


# Reading an ONNX file starts a process.
FAST = ("yolo", "light_shufflenet")
IDS = [f"{p.stem}-{o}" for p, o, *_ in PUBLISHED]


@pytest.mark.parametrize(
    ("path", "operators", "activations", "weights", "bound", "loaded"),
    [pytest.param(*row, marks=() if row[0].stem.startswith(FAST) else pytest.mark.slow) for row in PUBLISHED],
    ids=IDS,
)
def test_the_published_table_is_reproduced(path, operators, activations, weights, bound, loaded):
    flash = analysed(path, operators=operators)
    load = analysed(path, operators=operators, weights="load")
    figures = [flash["activation_bytes"], flash["weight_bytes"]]
    figures += [flash["live_bound_bytes"], load["live_bound_bytes"]]
    assert [n / 1e6 for n in figures] == pytest.approx([activations, weights, bound, loaded], abs=0.051)
    assert load["total_bytes"] == flash["activation_bytes"] + flash["weight_bytes"]
    for answer in (flash, load):
        assert answer["planned_bytes"] == answer["live_bound_bytes"]
        assert flash["live_bound_bytes"] < flash["activation_bytes"] / 2
        assert answer["ratio"] == answer["live_bound_bytes"] / answer["total_bytes"]


IN_THE_TABLE = [path.stem.removeprefix("light_") for path, *_ in PUBLISHED]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in lightonnx.NAMES if n not in IN_THE_TABLE])
def test_every_network_of_the_onnx_package_is_planned_at_its_bound(name):
    answer = analysed(lightonnx.path(name))
    assert answer["planned_bytes"] == answer["live_bound_bytes"] < answer["activation_bytes"] / 2


@pytest.mark.slow
def test_a_layer_list_and_an_onnx_file_of_one_network_agree_and_a_best_order_is_found():
    ours, theirs = analysed(CFG / "vgg19.cfg"), analysed(lightonnx.path("vgg19"))
    assert ours["weight_bytes"] == theirs["weight_bytes"]
    assert ours["live_bound_bytes"] == theirs["live_bound_bytes"]
    # the ONNX file has two dropouts and a reshape besides
    assert theirs["activation_bytes"] - ours["activation_bytes"] == 4 * (2 * 4096 + 7 * 7 * 512)

    best = analysed(lightonnx.path("shufflenet"), order="best")
    assert best["order_status"] == "optimal"
    assert round(best["live_bound_bytes"] / 1e6, 3) == 2.885


def test_batch_and_size_scale_activations_alone():
    one, three = analysed(CFG / "yolo9000.cfg"), analysed(CFG / "yolo9000.cfg", batch=3, size="576")
    assert three["activation_bytes"] * 544**2 == one["activation_bytes"] * 3 * 576**2
    assert three["weight_bytes"] == one["weight_bytes"]
    # the figures of an article for this network: 1.45 GB and 255 MB
    assert round((three["activation_bytes"] + three["weight_bytes"]) / 1e9, 2) == 1.45
    assert round(three["live_bound_bytes"] / 1e6) == 255


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"batch": 0}, "0 is not a whole number above 0"),
        ({"size": "axb"}, "'axb' is not rows and columns"),
        ({"size": "1x2x3"}, "'1x2x3' is not rows and columns"),
        ({"size": "0"}, "'0' is not rows and columns"),
        ({"weights": "ram"}, "'ram' is not one of flash, load"),
        ({"operators": "some"}, "'some' is not one of separate, fused"),
        ({"strategy": "best"}, "it has no effect on an ONNX or Darknet file"),
    ],
)
def test_wrong_options_are_refused(options, says):
    with pytest.raises(UsageError, match=says):
        analysed(CFG / "yolov1.cfg", **options)


def test_boards_other_models_and_sizes_that_a_network_cannot_take_are_refused():
    with pytest.raises(UsageError, match="no board runs"):
        handle({"kind": "analyze", "model": str(CFG / "yolov1.cfg"), "boards": ["host"]})
    with pytest.raises(UsageError, match="it is only for ONNX and Darknet files"):
        handle({"kind": "analyze", "model": "ds_cnn", "options": {"batch": 2}})
    with pytest.raises(ModelError, match="do not fit"):
        analysed(lightonnx.path("vgg19"), size="448")


def test_the_command_prints_bytes_beside_ratios(capsys):
    assert cli.run(["analyze", str(CFG / "yolov1.cfg"), "--weights", "load"]) == 0
    out = capsys.readouterr().out
    assert "462,723,072 bytes (47.9 % of all)" in out
    assert cli.run(["analyze", str(CFG / "yolov1.cfg"), "--size", "x", "--json"]) == 2
