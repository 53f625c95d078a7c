"""Differences on 16 bits are at most those of the vendor's own kernels, on the same networks and inputs.

An outside check, for whoever has PyPI's xmos-ai-tools (1.4.2): its compiler and its host interpreter. That
simulates the vector unit with a VLASHR that rounds, where the chip's rounds down.
"""

import dataclasses
import subprocess

import numpy as np
import pytest
from needs import needs_package, needs_shared, needs_tool

from buildtool.api import handle
from buildtool.base.modes import Reference
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.run.compare import referrer
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.plan.models import load_model, read_graph

INPUTS = 20
PACKAGE = "xmos_ai_tools.xinterpreters"


def vendors(file, inputs):
    """The outputs of the vendor's interpreter, one an input."""
    with needs_package(PACKAGE).TFLMHostInterpreter() as interpreter:
        interpreter.set_model(model_path=str(file))
        found = []
        for (value,) in inputs:
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
            interpreter.invoke()
            output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
            found.append(output.astype(int).reshape(-1))
    return found


def without(model, count):
    """The network without its last operators."""
    graph = read_model(model)
    ops = graph.ops[: len(graph.ops) - count]
    return write_model(dataclasses.replace(graph, ops=ops, outputs=ops[-1].outputs)) if count else model


@pytest.mark.slow
@pytest.mark.parametrize("left_out", [0, 1])  # the softmax, in which one step may become dozens
@pytest.mark.parametrize("name", ["mlperf_kws", "mlperf_vww96", "mlperf_resnet8"])
def test_differences_are_at_most_the_vendors(name, left_out, tmp_path):
    needs_package(PACKAGE)
    model, program = needs_shared(f"models/{name}.tflite").read_bytes(), needs_tool("xcore-opt")
    path, compiled = tmp_path / "model.tflite", tmp_path / "compiled.tflite"
    path.write_bytes(without(model, left_out))
    subprocess.run([program, "-o", compiled, path], check=True, capture_output=True, timeout=300)
    source, graph = read_graph(load_model(str(path)))
    inputs, largest, values = draw_inputs(graph, INPUTS, 0), 0, 0
    for one, made in zip(inputs, vendors(compiled, inputs), strict=True):
        want = referrer(Reference.LITERT, path.read_bytes(), source, graph)(one, False)[graph.outputs[0]]
        off = np.abs(made - want.reshape(-1))
        largest, values = max(largest, int(off.max())), values + int(np.count_nonzero(off))
    request = {"kind": "validate", "model": str(path), "board": "xcore", "requantise": "vpu16"}
    ours = handle({**request, "inputs": INPUTS, "reference": "litert"})
    told = (ours["max_abs_diff"], ours["elements_different"])
    print(f"{name} less {left_out}: theirs by {largest} in {values} values, ours by {told[0]} in {told[1]}")
    assert ours["within_bounds"] and told[0] <= largest
    assert told[1] <= values or not left_out
