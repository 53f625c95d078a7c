"""Operators of TFLM's signal library in firmware, a front end over hundreds of windows, and their judge."""

import importlib.util

import numpy as np
import pytest
from needs import needs_package
from signalnets import CHANNELS, drawn_signals, front_end, sounds

from buildtool.api import handle
from buildtool.graph.tflite.writer import write_model

BOARDS = ["host", *(pytest.param(board, marks=pytest.mark.slow) for board in ("cortex-m4", "qemu-virt-rv32"))]


def written(graph, tmp_path):
    path = tmp_path / f"{graph.name}.tflite"
    path.write_bytes(write_model(graph))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
def test_every_operator_on_inputs_of_all_magnitudes(board, tmp_path):
    """A sequence of 8 invokes, a reset, and 8 more."""
    needs_package("tflite_micro")
    for seed in (0, 5):
        graph = drawn_signals(seed)
        inputs = sounds(graph, 16, seed)
        names = [graph.tensors[t].name for t in graph.inputs]
        data = tmp_path / "sounds.npz"
        np.savez(data, **{name: np.stack(values) for name, *values in zip(names, *inputs, strict=True)})
        model = written(graph, tmp_path)
        request = {"kind": "validate", "model": model, "board": board, "data": str(data), "sequence": 8}
        answer = handle(request)
        assert answer["exact"] and answer["reference"]["name"] == "tflm"
        assert answer["inputs"] == 16 and not answer["reference"]["inputs_by_own_executor"]


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS[:2])
def test_a_front_end_over_hundreds_of_windows(board, tmp_path):
    needs_package("tflite_micro")
    request = {"kind": "validate", "model": written(front_end(), tmp_path), "board": board}
    answer = handle(request | {"inputs": 240, "sequence": 200, "tensors": True})
    assert answer["exact"], answer["first_difference"]
    assert answer["reference"]["name"] == "tflm" and answer["reference"]["why"] == ""
    assert (answer["inputs_equal"], answer["resets"]) == (240, 1)
    assert answer["tensors_compared"] > 15 and answer["output_values"] > 50
    assert answer["state_bytes"] == 4 * CHANNELS


def test_without_tflm_our_executor_judges_and_says_how_to_get_it(tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "tflite_micro" else real(name, *more)
    )
    answer = handle({"kind": "validate", "model": written(front_end(), tmp_path), "board": "host"})
    assert answer["exact"] and answer["reference"]["name"] == "numpy"
    assert answer["reference"]["why"].endswith("interpreter: pip install tflite-micro")
