"""Differences on 16 bits are at most those of the vendor's own kernels, on the same networks and inputs.

An outside check, for whoever has PyPI's xmos-ai-tools (1.4.2): its compiler and its host interpreter. That
simulates the vector unit with a VLASHR that rounds, where the chip's rounds down.
"""

import subprocess

import numpy as np
import pytest
from needs import needs_package, needs_shared, needs_tool

from buildtool.modes import Reference
from buildtool.service import handle
from buildtool.service.emulation.compare import reference
from buildtool.service.emulation.inputs import seeded
from buildtool.service.pipeline.models import load_model, read_graph

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
            found.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).copy())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlperf_kws", "mlperf_vww96", "mlperf_resnet8"])
def test_differences_are_at_most_the_vendors(name, tmp_path):
    needs_package(PACKAGE)
    path, program = needs_shared(f"models/{name}.tflite"), needs_tool("xcore-opt")
    compiled = tmp_path / "compiled.tflite"
    subprocess.run([program, "-o", compiled, path], check=True, capture_output=True, timeout=300)
    source, graph = read_graph(load_model(str(path)))
    inputs = seeded(graph, INPUTS, 0)
    theirs, values = 0, 0
    for one, made in zip(inputs, vendors(compiled, inputs), strict=True):
        (want,) = (
            reference(Reference.LITERT, path.read_bytes(), source, graph, one)[t] for t in graph.outputs
        )
        off = np.abs(made.astype(int).reshape(-1) - want.reshape(-1))
        theirs, values = max(theirs, int(off.max())), values + int(np.count_nonzero(off))
    request = {"kind": "validate", "model": str(path), "board": "xcore", "requantise": "vpu16"}
    ours = handle({**request, "inputs": INPUTS, "reference": "litert"})
    print(f"{name}: theirs differ by {theirs} in {values}, ours by {ours['max_abs_diff']} in", end=" ")
    print(ours["elements_different"])
    assert ours["within_bounds"]
    assert ours["max_abs_diff"] <= theirs and ours["elements_different"] <= values
