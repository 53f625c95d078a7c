"""Networks of SVDF and LSTM on boards, over a sequence of invokes with a reset: LiteRT says what is right."""

import pytest
import recurrentnets

from buildtool.api import handle
from buildtool.graph.tflite.writer import write_model

INVOKES = 4
slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("network", "board"),
    [
        pytest.param("every_part", "cortex-m4", marks=slow),
        pytest.param("every_part", "cortex-m55", marks=slow),
        pytest.param("wake_word", "cortex-m55", marks=slow),
        ("every_part", "host"),
    ],
)
def test_every_invoke_equals_litert(network, board, tmp_path):
    model = tmp_path / f"{network}.tflite"
    model.write_bytes(write_model(getattr(recurrentnets, network)()))
    answer = handle(
        {
            "kind": "validate",
            "model": str(model),
            "board": board,
            "reference": "litert",
            "tensors": True,
            "inputs": INVOKES,
            "seed": 5,
            "options": {"strategy": "layerwise"},
        }
    )
    assert answer["exact"], answer["first_difference"]
    assert (answer["resets"], answer["inputs_equal"]) == (1, INVOKES)
    assert answer["state_bytes"] > 0
    assert answer["arena_high_water"] <= answer["arena_bytes"]
