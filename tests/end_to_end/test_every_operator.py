"""Every operator kind on every board: one network holds them all."""

import pytest
from everyop import every_operator
from graphs import STATE_KINDS

from buildtool.api import handle
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind

LACKING = {OpKind.ELU}  # LiteRT has no reference kernel of it, and it is a lookup as others are
WITHOUT_CODE = {
    OpKind.DEQUANTIZE,
    OpKind.EXPAND_DIMS,
    OpKind.RESHAPE,
    OpKind.SPLIT,  # of channels it becomes slices; with two images in a batch it is one
    OpKind.SQUEEZE,
    OpKind.BATCH_TO_SPACE_ND,  # made of copies, or part of a convolution
    OpKind.SPACE_TO_BATCH_ND,
}
FAST = [("cortex-m4", "clang", 1)]  # of the other cores the fast tier asks kernel by kernel (tests/kernels)
SLOW = [
    ("cortex-m55", "clang", 1),
    ("qemu-virt-rv32v", "clang", 1),
    ("host", "", 1),
    ("qemu-virt-rv32", "clang", 1),
    ("host", "", 2),
    ("cortex-m4", "gcc", 2),
    ("cortex-m55", "gcc", 2),
]
RUNS = [
    *FAST,
    *(pytest.param(*run, marks=pytest.mark.slow) for run in SLOW),
]


def _kinds(graph):
    return {op.kind for op in graph.ops}


def test_the_network_has_every_operator():
    source = read_model(write_model(every_operator()))
    assert _kinds(source) == set(OpKind) - LACKING - STATE_KINDS
    assert _kinds(source) - _kinds(rewrite(source)) <= WITHOUT_CODE
    assert OpKind.LOOKUP in _kinds(rewrite(source))


@pytest.mark.parametrize(("board", "toolchain", "batch"), RUNS)
def test_every_operator_equals_the_reference(board, toolchain, batch, tmp_path):
    model = tmp_path / "every.tflite"
    model.write_bytes(write_model(every_operator(batch=batch)))
    answer = handle(
        {
            "kind": "validate",
            "model": str(model),
            "board": board,
            "toolchain": toolchain,
            "reference": "litert",
            "tensors": True,
            "inputs": 2,
            "seed": 5,
            "options": {"strategy": "layerwise"},  # which is also the best plan of this network
        }
    )
    assert answer["exact"], answer["first_difference"]
    assert answer["tensors_compared"] >= 36
    assert answer["output_values"] > 80  # of some 130 that there could be
    assert answer["arena_high_water"] <= answer["arena_bytes"]
