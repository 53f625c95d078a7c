"""Runs on data sets: the number of inputs for the firmware, comparisons, counts, and the answer."""

import json
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from litert import run
from needs import needs_package, needs_shared, needs_tool

from buildtool import zoo
from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.base.errors import ToolError, UsageError
from buildtool.firmware.run import dataset
from buildtool.firmware.run.dataset import Estimate
from buildtool.firmware.run.judge import Judge
from buildtool.fronts.cli import main as cli
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

NET, SHAPE, CLASSES, COUNT = "ds_cnn", (49, 10, 1), 12, 9


@pytest.fixture(scope="module")
def arrays():
    random = np.random.default_rng(5)
    x = random.integers(-128, 128, (COUNT, *SHAPE)).astype(np.int8)
    return {"x": x, "labels": random.integers(0, CLASSES, COUNT)}


@pytest.fixture(scope="module")
def predicted(arrays):
    """The classes that LiteRT itself predicts for the same values."""
    model = zoo.build(NET)
    return [int(list(run(model, [x[None]]).values())[-1].argmax()) for x in arrays["x"]]


@pytest.fixture(scope="module")
def file(tmp_path_factory, arrays):
    path = tmp_path_factory.mktemp("data") / "set.npz"
    np.savez(path, **arrays)
    return str(path)


def ask(file, board="host", **more):
    return handle({"kind": "validate", "model": NET, "board": board, "data": file, **more})


def count_pairs(labels, found):
    return dict(Counter(zip(labels, found, strict=True)))


def cells(answer):
    return {(c["label"], c["predicted"]): c["inputs"] for c in answer["accuracy"]["confusion"]}


def check(answer, labels, predicted):
    """Checks that the accuracy of an answer is that of LiteRT's predictions."""
    correct = int((labels == np.array(predicted)).sum())
    figures = answer["accuracy"]
    assert figures["reference"] == {"inputs": len(labels), "correct": correct, "top1": correct / len(labels)}
    assert cells(answer) == count_pairs(labels.tolist(), predicted)
    for row in figures["classes"]:
        predictions, want = np.array(predicted) == row["label"], labels == row["label"]
        both = int((predictions & want).sum())
        assert (row["predicted"], row["inputs"], row["correct"]) == (predictions.sum(), want.sum(), both)
        assert row["precision"] == (both / predictions.sum() if predictions.any() else None)
        assert row["recall"] == (both / want.sum() if want.any() else None)


@pytest.mark.slow
def test_the_reference_alone_is_run_where_that_is_asked_and_its_accuracy_is_litert_s(
    file, arrays, predicted, monkeypatch
):
    monkeypatch.setenv("PATH", "")  # neither compiler nor emulator
    monkeypatch.delenv("BUILDTOOL_CLANG", raising=False)
    answer = ask(file, "cortex-m4", reference_only=True)
    assert (answer["inputs"], answer["firmware"], answer["exact"]) == (COUNT, None, None)
    assert answer["accuracy"]["predictor"] == "reference" and answer["accuracy"]["firmware"] is None
    check(answer, arrays["labels"], predicted)
    with pytest.raises(ToolError):
        ask(file, "cortex-m4")


@pytest.fixture
def starts(monkeypatch):
    """The number of inputs of each start of the firmware."""
    counts, real = [], dataset.execute
    monkeypatch.setattr(dataset, "execute", lambda *a, **more: counts.append(len(a[2])) or real(*a, **more))
    return counts


@pytest.mark.slow
def test_all_inputs_go_through_the_firmware_in_one_start_and_equal_the_reference(
    file, arrays, predicted, starts
):
    answer = ask(file)
    assert starts == [COUNT]
    assert answer["exact"] and answer["within_bounds"] and answer["differing"] == []
    firmware = answer["firmware"]
    assert (firmware["inputs"], firmware["inputs_equal"], firmware["level"]) == (COUNT, COUNT, "host")
    assert answer["accuracy"]["predictor"] == "firmware"
    assert answer["accuracy"]["firmware"] == answer["accuracy"]["reference"]
    check(answer, arrays["labels"], predicted)
    assert 0 < firmware["arena_high_water"] <= firmware["arena_bytes"]


@pytest.mark.slow
def test_a_part_goes_through_the_firmware_and_what_differs_is_named(file, starts, monkeypatch, capsys):
    """Here the reference is wrong in one value of one input, instead of the firmware."""
    real = Judge.refer
    wrong = np.load(file)["x"][4]

    def refer_wrongly(judge, inputs, reset):
        tensors = dict(real(judge, inputs, reset))
        if (inputs[0][0] == wrong).all():
            last = max(tensors)
            tensors[last] = tensors[last].copy()
            tensors[last].reshape(-1)[3] ^= 4
        return tensors

    monkeypatch.setattr(Judge, "refer", refer_wrongly)
    monkeypatch.setattr(dataset, "MOST_INPUTS", 3)  # of a start: of 8 inputs there are three
    line = ["validate", NET, "-b", "host", "--data", file, "--daemon", "off"]
    status = cli.run([*line, "--through-firmware", "8"])
    output = capsys.readouterr().out
    assert (status, starts) == (1, [3, 3, 2])
    assert "through the firmware: 8 inputs; through the reference alone: 1" in output
    assert "reference kernels by up to 4: 8 inputs, 7 equal, 1 differs in 1 value\n  input 4 at #" in output
    assert "1 element, from element 3 on" in output


@pytest.mark.slow
def test_limits_of_accuracy_end_with_a_status(file, capsys):
    line = ["validate", NET, "-b", "host", "--data", file, "--daemon", "off", "--reference-only"]
    for limit, status in (("top1<0%", 0), ("top1<100%", 1), ("recall<0.0,precision<1%", 1)):
        assert cli.run([*line, "--json", "--fail-if", limit]) == status
        exceeded = json.loads(capsys.readouterr().out)["exceeded"]
        assert bool(exceeded) == bool(status) and all(one in limit for one in exceeded)
    for limit, words in (("top1", "not a limit"), ("top2<3%", "no figure 'top2'"), ("top1<70", "above 1")):
        assert cli.run([*line, "--fail-if", limit]) == 2
        assert words in capsys.readouterr().err
    assert cli.run(["validate", NET, "-b", "host", "--fail-if", "top1<1%"]) == 2


def several(tmp_path):
    """A request for a network with two inputs and three outputs, of which two have no row of classes."""
    net = NetBuilder(0)
    a, b = net.input((1, 4, 4, 3)), net.input((1, 4, 4, 3))
    boxes = net.conv(net.elementwise(OpKind.ADD, a, b), 6)
    row = net.dense(net.flatten(boxes), 5)
    graph = net.graph([boxes, row, net.dense(row, 1)])
    (tmp_path / "net.tflite").write_bytes(write_model(graph))
    random = np.random.default_rng(2)
    values = {name: random.integers(-128, 128, (3, 4, 4, 3)).astype(np.int8) for name in "ab"}
    np.savez(tmp_path / "set.npz", **values, y=np.array([0, 1, 4]))
    paths = {"model": str(tmp_path / "net.tflite"), "data": str(tmp_path / "set.npz")}
    return {"kind": "validate", "board": "host", **paths}, graph


@pytest.mark.slow
def test_a_network_with_several_inputs_and_outputs_has_its_classes_in_one_of_them(tmp_path):
    request, graph = several(tmp_path)
    answer = handle(request)
    assert answer["exact"] and [fed["how"] for fed in answer["fed"]] == ["int8 as they are"] * 2
    boxes, row, single = (graph.tensors[t].name for t in graph.outputs)
    assert answer["accuracy"]["output"] == row and answer["accuracy"]["firmware"]["inputs"] == 3
    for name, words in (
        (boxes, "not a single row"),
        (single, "a single value"),
        ("no", "has no output 'no'"),
    ):
        with pytest.raises(UsageError, match=words) as caught:
            handle({**request, "scores": name, "reference_only": True})
        assert caught.value.option == "scores"


@pytest.mark.slow
def test_a_network_without_classes_is_compared_and_has_no_accuracy(tmp_path, capsys):
    request, graph = several(tmp_path)
    one = Graph(graph.name, graph.tensors, graph.ops[:2], graph.inputs, graph.outputs[:1])
    (tmp_path / "net.tflite").write_bytes(write_model(one))
    line = ["validate", request["model"], "-b", "host", "--data", request["data"], "--daemon", "off"]
    assert cli.run(line) == 0
    output = capsys.readouterr().out
    assert "top-1: none, because the output " in output and output.endswith(
        "'s reference kernels, to the bit: 3 inputs\n"
    )
    assert cli.run([*line, "--fail-if", "top1<1%", "--reference-only"]) == 2
    assert "there is no accuracy: the output " in capsys.readouterr().err


def test_labels_beyond_the_classes_are_refused(tmp_path):
    for name, label, more in (("a", CLASSES, {}), ("b", 0, {"classes": np.array(["x"] * (CLASSES + 1))})):
        np.savez(tmp_path / f"{name}.npz", x=np.zeros((1, *SHAPE), np.int8), y=np.array([label]), **more)
        with pytest.raises(UsageError, match="12"):
            ask(str(tmp_path / f"{name}.npz"), reference_only=True)


@pytest.mark.parametrize(
    ("more", "option"),
    [
        ({"inputs": 3}, "inputs"),
        ({"input": "/x.npy"}, "input"),
        ({"tensors": True}, "tensors"),
        ({"seed": 3}, "seed"),
        ({"through_firmware": 0}, "through_firmware"),
        ({"through_firmware": "most"}, "through_firmware"),
        ({"reference_only": True, "through_firmware": 3}, "through_firmware"),
        ({"reference_only": True, "sanitize": True}, "sanitize"),
        ({"resize": "shrink"}, "resize"),
        ({"data": None, "labels": "/x.npy"}, "labels"),
        ({"data": None, "limit": 3}, "limit"),
    ],
)
def test_what_has_no_effect_is_refused(more, option):
    request = {"kind": "validate", "model": NET, "board": "host", "data": "/set.npz", **more}
    with pytest.raises(UsageError) as caught:
        parse({name: value for name, value in request.items() if value is not None})
    assert caught.value.option == option


def test_an_hour_decides_how_many_inputs_go_through_the_firmware():
    second = Estimate(dataset.EMULATED, dataset.EMULATED)
    assert dataset.through(3600, second) == 3600
    assert dataset.through(3601, second) == 600  # ten minutes' worth
    assert dataset.through(10, Estimate(400 * dataset.EMULATED, dataset.EMULATED)) == 1
    assert dataset.through(10**6, None) == 10**6  # a board has its own speed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "more"),
    [("cortex-m55", {}), ("esp8266", {}), ("cortex-m4", {"wire": "serial"})],
)
def test_inputs_stream_into_every_kind_of_firmware(board, more, tmp_path):
    if board == "esp8266":
        needs_tool("xtensa-lx106-elf-gcc")
    request, _ = several(tmp_path)
    answer = handle({**request, **more, "board": board})
    assert answer["exact"] and answer["firmware"]["inputs"] == 3
    assert answer["firmware"]["level"] == "emulator"
    assert answer["accuracy"]["firmware"] == answer["accuracy"]["reference"]
    assert answer["share"]["instructions"] > 0 and not answer["share"]["counted"]  # a second needs no count


@pytest.mark.slow
def test_instructions_are_counted_before_an_emulator_is_busy_for_long(tmp_path, monkeypatch):
    request, _ = several(tmp_path)
    monkeypatch.setattr(dataset, "EMULATED", 1)
    answer = handle({**request, "board": "cortex-m4"})
    instructions = handle({"kind": "profile", "model": request["model"], "board": "cortex-m4"})[
        "instructions"
    ]
    share = answer["share"]
    assert share["counted"] and share["by"] == "estimate"
    assert (
        abs(share["instructions"] - instructions) < instructions / 100
    )  # other inputs: a branch here and there
    assert share["seconds"] == 3 * share["instructions"]
    assert answer["firmware"]["inputs"] < answer["inputs"]


@pytest.mark.slow
def test_a_published_network_on_photographs_of_its_classes(tmp_path):
    """ResNet8 of MLPerf Tiny on CIFAR-10 is far above chance only if labels, pixels and scale are right."""
    needs_package("PIL")
    model, photos = needs_shared("models/mlperf_resnet8.tflite"), tmp_path / "photos"
    with tarfile.open(needs_shared("data/cifar10_test.tar.xz")) as archive:
        for member in archive:
            if not member.name.startswith("airplane"):
                break
            if member.isfile() and int(Path(member.name).stem) < 20:
                content = archive.extractfile(member)
                assert content is not None
                (photos / member.name).parent.mkdir(parents=True, exist_ok=True)
                (photos / member.name).write_bytes(content.read())
    names = tmp_path / "names.txt"
    names.write_text("airplane automobile bird cat deer dog frog horse ship truck".replace(" ", "\n"))
    request = {"kind": "validate", "model": str(model), "board": "cortex-m4", "data": str(photos)}
    answer = handle({**request, "labels": str(names)})
    assert answer["exact"] and answer["firmware"]["inputs"] == 20
    assert answer["accuracy"]["firmware"]["top1"] > 0.5


def test_names_of_a_data_set_are_shown_and_do_nothing(tmp_path, arrays, capsys):
    """The names of classes and of the file cannot move a terminal's cursor or begin a line."""
    path = str(tmp_path / "set\x1b[31m.npz")
    np.savez(path, **arrays, classes=np.array([f"a{i}\n\x1b[31m\u202e" for i in range(CLASSES)]))
    assert cli.run(["validate", NET, "-b", "host", "--data", path, "--reference-only"]) == 0
    text = capsys.readouterr().out
    assert "a3  [31m" in text and not {one for one in text if not one.isprintable()} - {"\n"}
