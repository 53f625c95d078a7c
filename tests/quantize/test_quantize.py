"""`buildtool quantize`: float networks become integer networks, and what is refused."""

import contextlib
import importlib.util
import itertools
import json
import shlex

import numpy as np
import pytest
from flatfiles import FileOperator, FileTensor, write
from needs import needs_package
from zeronet import small

from buildtool.base.errors import from_data
from buildtool.fronts.cli import main as cli
from buildtool.options import BAZEL, CMAKE, spell
from buildtool.plan.models import load_model, read_graph
from buildtool.quantize import run
from buildtool.quantize.losses import Losses

X = np.linspace(-3, 3, 60, dtype=np.float32)
SIZES = (1, 16, 16, 1)  # dense layers with RELU, like the sine of TFLM's hello_world


def layers(seed=0, sizes=SIZES):
    """Returns (weights [out, in], bias) of each layer, float32."""
    random = np.random.default_rng(seed)
    pairs = itertools.pairwise(sizes)
    return [
        (random.normal(0, 0.7, (out, n)).astype(np.float32), random.normal(0, 0.3, out).astype(np.float32))
        for n, out in pairs
    ]


def narrow(weights, kind):
    """Returns a hybrid network's weights: (values, scales, axis). float16 has no scales."""
    if kind == "float16":
        return weights.astype(np.float16), None, 0
    axes = None if kind == "int8" else 1  # "channels": a scale for each output
    scale = np.abs(weights).max(axis=axes, keepdims=True).astype(np.float32) / np.float32(127)
    return np.round(weights / scale).astype(np.int8), scale.reshape(-1), 0


def float_file(kind="float32", seed=0, sizes=SIZES):
    """Returns the network's file. `kind` says how it has its weights: float32, int8, channels or float16."""
    tensors = [FileTensor((1, 1), "float32", scale=None, name="x")]
    operators = []

    def add(tensor):
        tensors.append(tensor)
        return len(tensors) - 1

    value = 0
    for number, (weights, bias) in enumerate(layers(seed, sizes)):
        name = f"dense{number}"
        data, scales, axis = (weights, None, 0) if kind == "float32" else narrow(weights, kind)
        scale = None if scales is None else scales.tolist()
        zero = 0 if scales is None else [0] * len(scales)
        w = add(FileTensor(data.shape, data.dtype.name, data, scale, zero, axis, name=f"{name}/w"))
        if kind == "float16":
            wide = add(FileTensor(data.shape, "float32", scale=None, name=f"{name}/wide"))
            operators.append(FileOperator("DEQUANTIZE", [w], [wide]))
            w = wide
        b = add(FileTensor(bias.shape, "float32", bias, None, name=f"{name}/b"))
        out = add(FileTensor((1, len(bias)), "float32", scale=None, name=name))
        options = {"FusedActivationFunction": int(number < len(sizes) - 2)}
        operators.append(
            FileOperator("FULLY_CONNECTED", [value, w, b], [out], "FullyConnectedOptions", options)
        )
        value = out
    return write(tensors, operators, [0], [value])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with float networks and data, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for kind in ("float32", "channels"):
        (tmp_path / f"{kind}.tflite").write_bytes(float_file(kind))
    refused = float_file(sizes=(1, 100, 100, 1))  # it has too many float32 weights to run as it is
    (tmp_path / "large.tflite").write_bytes(refused)
    (tmp_path / "int8.tflite").write_bytes(small())
    np.savez(tmp_path / "data.npz", x=X.reshape(-1, 1, 1))
    return tmp_path


def command(words, capsys):
    """The exit status of a command, its answer or error (JSON), and what it printed on standard error."""
    status = cli.run([*shlex.split(words), "--json"])
    both = capsys.readouterr()
    return status, json.loads(both.out), both.err


def refusal(words, capsys):
    """The error of a command: its text and its hints."""
    status, answer, _ = command(words, capsys)
    assert status in (1, 2)
    return answer["error"]["text"], [from_data(answer["error"]).help(spell)]


# ---- whole runs ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_line_of_the_refusal_makes_a_network_that_is_equal_on_a_board(folder, capsys):
    needs_package("ai_edge_quantizer")
    assert cli.run(["plan", "large.tflite", "-b", "cortex-m4"]) == 1
    line = capsys.readouterr().err.strip().partition("buildtool quantize ")[2]
    assert line == "large.tflite --data DATA -o large_int8.tflite"
    words = f"quantize {line.replace('DATA', 'data.npz')}"
    status, answer, err = command(f"{words} -b cortex-m4", capsys)
    assert (status, err) == (0, "")  # the libraries' own words are not shown
    (lost,) = answer["lost"]["outputs"]
    assert lost["sqnr_db"] > 25 and lost["max_abs"] < lost["largest"] / 10
    assert answer["planned"]["arena_bytes"] > 0 and answer["calibrated"] == answer["inputs"] == len(X)
    made = (folder / "large_int8.tflite").read_bytes()
    assert command(words, capsys)[0] == 0
    assert (folder / "large_int8.tflite").read_bytes() == made
    words = "validate large_int8.tflite -b cortex-m4 --tensors --reference litert --inputs 3 --daemon off"
    status, answer, _ = command(words, capsys)
    assert status == 0 and answer["within_bounds"]


@pytest.mark.slow
def test_a_hybrid_network_becomes_one_of_int16(folder, capsys):
    needs_package("ai_edge_quantizer")
    words = "quantize channels.tflite --data data.npz -o out.tflite --activations int16"
    status, answer, _ = command(words, capsys)
    assert status == 0 and answer["lost"]["outputs"][0]["sqnr_db"] > 35
    graph, _ = read_graph(load_model(str(folder / "out.tflite")))
    assert {str(graph.tensors[t].dtype) for t in (*graph.inputs, *graph.outputs)} == {"int16"}


@pytest.mark.slow
def test_an_onnx_network_takes_the_same_channels_last_data_before_and_after(folder, capsys):
    needs_package("onnxruntime")
    import onnx
    from onnxrecorded.make import SHAPE, classifier

    onnx.save(classifier(), "net.onnx")
    random, (_, channels, rows, columns) = np.random.default_rng(2), SHAPE
    images = random.normal(size=(12, rows, columns, channels)).astype(np.float32)
    np.savez("images.npz", x=images, y=random.integers(0, 10, 12))
    status, answer, err = command("quantize net.onnx --data images.npz -o out.onnx -b cortex-m4", capsys)
    assert (status, err) == (0, "")
    lost = answer["lost"]
    assert lost["outputs"][0]["sqnr_db"] > 15 and lost["float"]["inputs"] == 12
    words = "validate out.onnx -b host --data images.npz --reference-only --daemon off"
    status, accuracy, _ = command(words, capsys)
    assert status == 0
    assert accuracy["accuracy"]["reference"]["correct"] == lost["quantised"]["correct"]


@pytest.mark.slow
def test_a_child_that_ends_is_told_and_nothing_is_written(folder, capsys, monkeypatch):
    needs_package("ai_edge_quantizer")
    real = run.running

    @contextlib.contextmanager
    def ending(*words, **more):
        with real(*words, **more) as child:
            asked = child.ask

            def ask(message):
                if message[0] == "quantise":
                    child.process.kill()
                return asked(message)

            monkeypatch.setattr(child, "ask", ask)
            yield child

    monkeypatch.setattr(run, "running", ending)
    before = sorted(folder.iterdir())
    text, _ = refusal("quantize float32.tflite --data data.npz -o out.tflite", capsys)
    assert text.startswith("ai-edge-quantizer was ended by signal 9")
    assert sorted(folder.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["int8", "channels", "float16"])
def test_hybrid_weights_become_the_floats_that_they_stand_for(kind):
    needs_package("ai_edge_quantizer")
    from buildtool.quantize.litert import Network

    exact = []
    for weights, bias in layers():
        data, scales, _ = narrow(weights, kind)
        wide = data.astype(np.float32)
        exact.append((wide if scales is None else wide * scales[:, None], bias))
    network = Network(float_file(kind), "int8")
    for value in (-2.5, 0.1, 1.7):
        x = np.array([[value]], np.float32)
        (got,) = network.run([x])
        for number, (weights, bias) in enumerate(exact):
            x = x @ weights.T + bias
            x = np.maximum(x, 0) if number < 2 else x
        np.testing.assert_allclose(got, x, rtol=1e-5, atol=1e-6)


def one_operator(kind, constant):
    """A file of an operator on an input and a constant; another input is not read."""
    names = ("x", "k", "y", "other")
    k = np.array([constant, 1], np.float32)
    tensors = [FileTensor((1, 2), "float32", k if name == "k" else None, None, name=name) for name in names]
    options = (f"{kind.title()}Options", {})
    return write(tensors, [FileOperator(kind, [0, 1], [2], *options)], [0, 3], [2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constant", "most", "text", "hint"),
    [
        (np.inf, 1, "the constant 'k' has values that are not finite", ""),
        (1, 3e38, "the values of 'x' are too large", ""),
        (1, 2e38, "the values of 'x' are too large, or too far apart", ""),
        (1, 1, "no operator reads a float32 network input", "remove this input"),
    ],
)
def test_what_cannot_be_quantised_is_named(folder, capsys, constant, most, text, hint):
    needs_package("ai_edge_quantizer")
    (folder / "net.tflite").write_bytes(one_operator("MUL", constant))
    values = np.array([[[-most, most]]], np.float32)
    np.savez(folder / "values.npz", x=values, other=values)
    told, hints = refusal("quantize net.tflite --data values.npz -o out.tflite", capsys)
    assert text in told and hint in hints[0] and bool(hint) == bool(hints[0])
    assert not (folder / "out.tflite").exists()


# ---- without the libraries ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "text", "hint"),
    [
        ("float32.tflite -o out.tflite", "quantising needs data", "random values"),
        ("float32.tflite -o out.tflite --data data.npz --sizes-only", "no effect with a data set", ""),
        ("float32.tflite -o out.tflite --sizes-only --limit 3", "no effect without a data set", ""),
        ("int8.tflite -o out.tflite --sizes-only", "the network is quantised already", "plan it as it is"),
        ("ds_cnn -o out.tflite --sizes-only", "the network is quantised already", "plan it as it is"),
        ("float32.tflite -o out.onnx --sizes-only", "is a .tflite file, too", "--out out.tflite"),
        ("float32.tflite -o float32.tflite --sizes-only", "would overwrite it", "another file"),
        ("float32.tflite -o out.tflite --sizes-only -b mars", "unknown board 'mars'", "buildtool boards"),
        ("absent.tflite -o out.tflite --sizes-only", "there is no such file", ""),
        ("float32.tflite -o folder.tflite --sizes-only", "cannot write: Is a directory", ""),
        ("float32.tflite -o data.npz/out.tflite --sizes-only", "cannot write: ", ""),
    ],
)
def test_what_is_refused_at_once_writes_nothing(folder, capsys, words, text, hint):
    (folder / "folder.tflite").mkdir()
    before = sorted(folder.iterdir())
    told, hints = refusal(f"quantize {words}", capsys)
    assert text in told and (not hint or any(hint in one for one in hints))
    assert sorted(folder.iterdir()) == before


def test_a_missing_library_is_named_with_the_line_that_installs_it(folder, capsys, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if "quantizer" in name else real(name))
    text, hints = refusal("quantize float32.tflite -o out.tflite --data data.npz", capsys)
    assert "ai-edge-quantizer, which is not installed" in text and hints == ["pip install ai-edge-quantizer"]


def test_each_front_is_told_how_to_name_the_quantised_network(folder):
    from buildtool.base.errors import UnsupportedError

    with pytest.raises(UnsupportedError) as caught:
        read_graph(load_model(str(folder / "large.tflite")))
    out = folder / "large_int8.tflite"
    assert f"hint: MODEL {out}; quantise it: buildtool quantize {folder}" in caught.value.message(*CMAKE)
    assert f'hint: model = "{out}"; quantise it: ' in caught.value.message(*BAZEL)


def test_losses_are_those_of_the_real_values():
    from buildtool.zoo.drawn import NetBuilder, quant

    net = NetBuilder(0)
    graph = net.graph([net.input((1, 4), q=quant(0.5, 2))])
    losses = Losses((graph.tensors[0],), 0, "", [3, 1])
    exact = np.array([[0.0, 1.0, 2.0, 3.1]], np.float32)
    losses.add([exact], [np.array([[2, 4, 6, 8]], np.int8)])  # 0, 1, 2, 3
    losses.add([exact], [np.array([[2, 9, 6, 8]], np.int8)])  # 0, 3.5, 2, 3
    answer = losses.answer()
    (one,) = answer["outputs"]
    assert one["max_abs"] == pytest.approx(2.5) and one["mean_abs"] == pytest.approx((0.1 + 2.5 + 0.1) / 8)
    signal, noise = 2 * (1 + 4 + 3.1**2), 0.1**2 + 2.5**2 + 0.1**2
    assert one["sqnr_db"] == pytest.approx(10 * np.log10(signal / noise), rel=1e-5)
    assert (answer["float"]["correct"], answer["quantised"]["correct"], answer["agree"]) == (1, 2, 1)
