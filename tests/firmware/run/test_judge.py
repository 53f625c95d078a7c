"""The judge of a run: LiteRT in a process of its own, or our executor, and how the answer names it."""

import importlib.util
import json
import signal
from importlib.metadata import version

import numpy as np
import pytest
import statenets
from islands import Islands
from onnxexport import Style, export
from zoo_networks import built

from buildtool.base import child
from buildtool.base.errors import ToolError
from buildtool.base.modes import Reference
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.run.compare import referrer
from buildtool.firmware.run.judge import judging
from buildtool.fronts.cli import main as cli
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Attrs, OpKind
from buildtool.plan.models import load_model, read_graph
from buildtool.zoo.drawn import NetBuilder, quant

KERNELS = f"LiteRT {version('ai-edge-litert')}'s reference kernels"
OWN = "buildtool's own executor"


def run_command(words, capsys):
    """The exit status of a command, and all its output in one line."""
    status = cli.run([*words, "--daemon", "off"])
    both = capsys.readouterr()
    return status, " ".join((both.out + both.err).split())


def judge_inputs(name, which=Reference.AUTO, count=2):
    """A judge's answer after some inputs, and whether its values equal our executor's."""
    model = load_model(name)
    source, graph = read_graph(model)
    own = referrer(Reference.NUMPY, b"", source, graph)
    with judging(which, name) as judge:
        judge.set_network(model, source, graph, every=True)
        equal = True
        for one in draw_inputs(graph, count, 3):
            values, right = judge.refer(one, False), own(one, False)
            equal &= all(np.array_equal(values[t], right[t]) for t in values)
            equal &= values.keys() <= right.keys()
    return dict(judge.answer()), equal


@pytest.fixture
def even_rows(tmp_path):
    """The words of a command with a softmax on a row of even values, at which LiteRT aborts."""
    net = NetBuilder(0)
    graph = net.graph([net.softmax(net.input((1, 600), q=quant(0.1)))])
    (tmp_path / "even.tflite").write_bytes(write_model(graph))
    np.save(tmp_path / "even.npy", np.full((1, 600), 3, np.int8))
    return [str(tmp_path / "even.tflite"), "--board", "host", "--input", str(tmp_path / "even.npy")]


def without_litert(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "ai_edge_litert" else real(name, *more),
    )


def test_litert_judges_where_it_is_installed():
    answer, equal = judge_inputs("ds_cnn")
    own = {"inputs_by_own_executor": 0, "why": "", "curves": None}
    assert equal and answer == {
        "name": "litert",
        "version": version("ai-edge-litert"),
        "text": KERNELS,
        **own,
    }


def test_where_it_is_not_our_executor_judges_and_says_how_to_get_the_other(monkeypatch):
    without_litert(monkeypatch)
    answer, equal = judge_inputs("ds_cnn")
    assert equal
    assert (answer["name"], answer["version"], answer["text"]) == ("numpy", "", OWN)
    assert answer["why"] == "for LiteRT's reference kernels: pip install ai-edge-litert"


def test_asked_for_and_missing_is_an_error_before_anything_is_built(monkeypatch, capsys):
    without_litert(monkeypatch)
    monkeypatch.setattr("buildtool.firmware.run.validation.plan_and_sources", None)  # never called
    status, text = run_command(["validate", "ds_cnn", "--board", "host", "--reference", "litert"], capsys)
    assert status == 1
    assert "LiteRT is not installed" in text and "pip install ai-edge-litert; --reference numpy" in text


def test_onnx_is_judged_by_our_executor_and_it_says_so(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(export(built("ds_cnn"), Style()).SerializeToString())
    answer, equal = judge_inputs(str(path))
    assert equal
    assert answer["text"] == OWN and answer["why"].startswith("LiteRT reads no ONNX; --reference litert uses")
    answer, equal = judge_inputs(str(path), Reference.LITERT)
    assert equal
    assert (answer["text"], answer["why"]) == (KERNELS, "")


@pytest.mark.slow
def test_an_abort_of_litert_costs_the_reference_and_not_the_command(even_rows, capsys):
    status, text = run_command(["validate", *even_rows], capsys)
    assert status == 0
    about = f"LiteRT {version('ai-edge-litert')} was ended by signal 6"
    assert f"EQUAL to {OWN}, to the bit ({about}" in text
    status, text = run_command(["validate", *even_rows, "--reference", "litert"], capsys)
    assert status == 1
    assert "error: LiteRT was ended by signal 6" in text and "--reference numpy" in text


def test_a_machine_without_room_for_another_process_has_our_executor(monkeypatch):
    def full(*words, **more):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(child.subprocess, "Popen", full)
    answer, equal = judge_inputs("ds_cnn")
    assert equal and answer["text"] == OWN
    assert answer["why"] == "LiteRT's process cannot be started: Resource temporarily unavailable"
    with pytest.raises(ToolError, match="cannot be started"):
        judge_inputs("ds_cnn", Reference.LITERT)


def test_what_litert_refuses_to_compute_is_told(tmp_path):
    net = NetBuilder(7)
    x = net.input((256,), q=quant(0.1, 0))
    graph = net.graph([net.op(OpKind.SQRT, (x,), Attrs(), quant(0.1, 0))])
    path = tmp_path / "root.tflite"
    path.write_bytes(write_model(graph))
    answer, equal = judge_inputs(str(path))
    assert equal
    assert answer["text"] == OWN and answer["inputs_by_own_executor"] == 2
    assert answer["why"].startswith(f"LiteRT {version('ai-edge-litert')} stops: ")
    assert "non-negative" in answer["why"]
    with pytest.raises(ToolError, match="LiteRT stops"):
        judge_inputs(str(path), Reference.LITERT)


def test_a_sum_of_floats_and_what_quantize_leaves_undefined(tmp_path):
    """LiteRT judges a SUM of float32, but no QUANTIZE of a quotient by 0."""
    for zero, text in ((1.0, "LiteRT"), (0.0, OWN)):
        net = Islands(3)
        x = net.reduced(OpKind.SUM, net.dequantize(net.input((1, 3, 40))), (1,))
        quotient = net.pair(OpKind.DIV, x, net.floats([zero]))
        path = tmp_path / f"{zero}.tflite"
        path.write_bytes(write_model(net.graph([net.quantize(quotient, 0.1)])))
        answer, equal = judge_inputs(str(path))
        assert equal and answer["text"].startswith(text)
    assert "undefined what QUANTIZE makes of NaN" in answer["why"]


def test_a_judge_that_changes_on_the_way_keeps_the_state(tmp_path, monkeypatch):
    path = tmp_path / "ring.tflite"
    path.write_bytes(statenets.ring_file())
    model = load_model(str(path))
    source, graph = read_graph(model)
    assert source.states and read_model(model.data).states
    own = referrer(Reference.NUMPY, b"", source, graph)
    inputs = draw_inputs(graph, 6, 1)
    with judging(Reference.AUTO, str(path)) as judge:
        judge.set_network(model, source, graph, every=False)
        for number, one in enumerate(inputs):
            if number == 4:  # two inputs after the reset before the third one
                judge._child.child.process.kill()
            values, expected = judge.refer(one, number == 2), own(one, number == 2)
            assert all(np.array_equal(values[t], expected[t]) for t in graph.outputs), number
    answer = judge.answer()
    assert answer["text"] == f"{KERNELS} (2 of 6 inputs: {OWN})"
    assert "was ended by signal 9" in answer["why"]


@pytest.mark.slow
def test_a_judge_that_was_stopped_is_not_waited_for_for_ever(monkeypatch):
    model = load_model("ds_cnn")
    source, graph = read_graph(model)
    with judging(Reference.LITERT, "ds_cnn") as judge:
        judge.set_network(model, source, graph, every=True)
        monkeypatch.setattr(child, "PATIENCE_SECONDS", 0.2)
        judge._child.child.process.send_signal(signal.SIGSTOP)
        with pytest.raises(ToolError, match=r"LiteRT did not answer for 0\.2 s and was ended by signal 9"):
            judge.refer(draw_inputs(graph, 1, 3)[0], False)


@pytest.mark.slow
def test_every_front_that_prints_a_verdict_names_the_judge(capsys):
    _, text = run_command(["validate", "ds_cnn", "--board", "host"], capsys)
    assert text.endswith(f"EQUAL to {KERNELS}, to the bit")
    _, text = run_command(["profile", "ds_cnn", "--board", "host", "--reference", "numpy"], capsys)
    assert f"EQUAL to {OWN}, to the bit (--reference litert" in text
    for command in ("validate", "profile"):
        assert cli.run([command, "ds_cnn", "--board", "host", "--json", "--daemon", "off"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["reference"]["name"] == "litert"
        assert answer["reference"]["version"] == version("ai-edge-litert")
