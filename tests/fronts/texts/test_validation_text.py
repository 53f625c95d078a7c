"""The text of `validate` for several inputs: it counts over all of them."""

import numpy as np
import pytest

from buildtool.api import handle
from buildtool.firmware.run.judge import Judge
from buildtool.fronts.texts import validation as report


@pytest.fixture
def answered(monkeypatch):
    """Returns a function that validates ds_cnn against a reference with errors, one row for each input."""

    def answer(*rows):
        refer, outputs = Judge.refer, []

        def spoilt(judge, inputs, reset):
            values = dict(refer(judge, inputs, reset))
            out = next(t for t, value in values.items() if value.shape == (1, 12))
            correct, row = values[out].astype(int), np.array(rows[len(outputs)])
            outputs.append(values[out])
            values[out] = np.where(correct - row < -128, correct + row, correct - row).astype(np.int8)
            return values

        monkeypatch.setattr(Judge, "refer", spoilt)
        asked = {"kind": "validate", "model": "ds_cnn", "board": "host", "inputs": len(rows)}
        return handle(asked), outputs

    return answer


def test_every_input_counts(answered):
    zeros = [0] * 12
    answer, outputs = answered(zeros, [3] * 5 + [0] * 7, zeros, [0, 9] + [0] * 10)
    assert (answer["inputs"], answer["inputs_equal"], answer["elements_different"]) == (4, 2, 6)
    assert answer["output_values"] == len(np.unique(outputs)) > len(np.unique(outputs[0]))
    assert report.verdict(answer).startswith(
        f"DIFFERENT from {answer['reference']['text']} by up to 9: 4 inputs, 2 equal, 2 differ in 6 "
        "values; first in input 1 at #12 SOFTMAX"
    )
