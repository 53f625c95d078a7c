"""The whole firmware of a network stays small beside its weights."""

import pytest

from buildtool.api import handle
from buildtool.target.registry import load_board

TFLM = 190_000  # bytes of the same network's code with TensorFlow Lite Micro and CMSIS-NN


@pytest.mark.parametrize("board", ["cortex-m4", pytest.param("cortex-m55", marks=pytest.mark.slow)])
def test_a_mobilenets_code_is_a_quarter_of_an_interpreters(board):
    answer = handle(
        {"kind": "build", "model": "mobilenetv1_025_96", "board": board, "options": {"strategy": "layerwise"}}
    )
    code = load_board(board).code
    sections = next(memory["sections"] for memory in answer["sizes"] if memory["memory"] == code)
    sizes = {s["name"]: s["bytes"] for s in sections if not s["name"].startswith(".nn_")}
    assert {".text", ".rodata"} <= set(sizes)
    assert 4 * sum(sizes.values()) <= TFLM
