"""Networks of int16 activations through the whole road: every tensor equals LiteRT's reference kernels."""

import itertools

import pytest
import widenets

from buildtool.api import handle
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite import operators
from buildtool.graph.tflite.flat import BUILTIN_NAMES
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import DType

slow = pytest.mark.slow
NETWORKS = {"audio": widenets.audio, "image": widenets.image}


def _validated(graph, folder, board, options, toolchain="", inputs=2):
    model = folder / "wide.tflite"
    model.write_bytes(write_model(graph))
    answer = handle(
        {
            "kind": "validate",
            "model": str(model),
            "board": board,
            "toolchain": toolchain,
            "reference": "litert",
            "tensors": True,
            "inputs": inputs,
            "seed": 5,
            "options": options,
        }
    )
    assert answer["exact"], answer["first_difference"]
    assert answer["arena_high_water"] <= answer["arena_bytes"]
    return answer


def test_the_network_has_every_operator_of_int16():
    """But for the aliases' and the edges' all that the reader takes."""
    graph = read_model(write_model(widenets.every_wide_operator()))
    of_int16 = {str(op.kind) for op in graph.ops if DType.INT16 in _types(graph, op)}
    edges = {"DEQUANTIZE", "RESHAPE"}
    assert of_int16 >= {BUILTIN_NAMES[code] for code in operators.INT16} - edges - {"PADV2"}


def _types(graph, op):
    return {graph.tensors[t].dtype for t in (*op.inputs, *op.outputs) if t >= 0}


@pytest.mark.parametrize(
    ("board", "toolchain", "batch"),
    [
        ("cortex-m4", "clang", 1),
        *(
            pytest.param(*run, marks=slow)
            for run in (
                ("cortex-m55", "clang", 2),
                ("qemu-virt-rv32", "clang", 1),
            )
        ),
    ],
)
def test_every_operator_of_int16_equals_the_reference(board, toolchain, batch, tmp_path):
    graph = widenets.every_wide_operator(batch=batch)
    answer = _validated(graph, tmp_path, board, {"strategy": "layerwise"}, toolchain)
    assert answer["tensors_compared"] >= 40
    assert answer["output_values"] > 150  # different bytes, of 256


@pytest.mark.parametrize(
    ("network", "board"),
    [
        pytest.param(*run, marks=slow)
        for run in (
            ("image", "host"),
            ("image", "cortex-m55"),
            ("audio", "cortex-m4"),
            ("audio", "cortex-m55"),
        )
    ],
)
def test_a_streamed_network_of_int16_equals_the_reference(network, board, tmp_path):
    """The image comes row by row, and the plan is the one of least memory: rings, windows and sums."""
    graph = NETWORKS[network]()
    answer = _validated(graph, tmp_path, board, {"image": "stream", "objective": "ram"})
    made = rewrite(graph)
    sizes = [made.tensors[t].size for t in made.activations()]
    assert answer["arena_bytes"] < (max(sizes) if network == "image" else sum(sizes))
    assert answer["output_values"] > 5


def test_an_arena_counts_two_bytes_a_value(tmp_path):
    """Of the same network in int16, layer by layer, twice the bytes of live tensors."""
    graph = widenets.audio()
    model = tmp_path / "wide.tflite"
    model.write_bytes(write_model(graph))
    answer = handle(
        {"kind": "plan", "model": str(model), "board": "host", "options": {"strategy": "layerwise"}}
    )
    sizes = [graph.tensors[t].elements * 2 for t in graph.activations()]
    pairs = [a + b for a, b in itertools.pairwise(sizes)]
    assert max(sizes) <= answer["arena_bytes"] <= max(pairs) + 64
