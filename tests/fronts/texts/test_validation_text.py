"""What `validate` says of several inputs and outputs: counts over all of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from buildtool.base.modes import Requantise
from buildtool.firmware.run import validation
from buildtool.firmware.run.compare import difference
from buildtool.firmware.run.execute import Outcome
from buildtool.firmware.run.levels import HOST
from buildtool.fronts.texts import validation as report
from buildtool.plan.models import load_model, read_graph
from buildtool.target.types import RunResult

LITERT = {
    "name": "litert",
    "version": "2.3.0",
    "text": "LiteRT 2.3.0's reference kernels",
    "inputs_by_own_executor": 0,
    "why": "",
}


def outcome(outputs):
    return Outcome(outputs, [], {}, {}, 8, None, "cc 1", HOST, RunResult({}, ""))


@pytest.fixture
def answered(monkeypatch):
    """The answer for a run of ds_cnn whose outputs (rows of 12 bytes) are compared with zeros."""
    monkeypatch.setattr(validation, "facts", lambda made: {"estimated": None, "note": ""})
    _, graph = read_graph(load_model("ds_cnn"))
    (out,) = graph.outputs

    def answer(*rows):
        run = outcome([{out: np.array(row, np.int8).tobytes()} for row in rows])
        want = {out: np.zeros((1, 12), np.int8)}
        found = [d for n, one in enumerate(run.outputs) for d in difference(graph, n, one, want)]
        plan = SimpleNamespace(strategy="layerwise", arena_bytes=8, state_bytes=0)
        board = SimpleNamespace(name="host", emulator=None)
        target = SimpleNamespace(board=board, requantise=Requantise.EXACT)
        made = SimpleNamespace(graph=graph, model=SimpleNamespace(name="m"), target=target, plan=plan)
        return validation._answer(made, LITERT, [[]] * len(rows), [False] * len(rows), [run], found, [], 1)

    return answer


def test_every_input_counts(answered):
    zeros = [0] * 12
    answer = answered(zeros, [3] * 5 + [0] * 7, zeros, [0, -9] + [0] * 10)
    assert (answer["inputs"], answer["inputs_equal"], answer["elements_different"]) == (4, 2, 6)
    assert answer["output_values"] == 3  # 0, 3 and -9: the first input has one of them alone
    assert report.verdict(answer).startswith(
        "DIFFERENT from LiteRT 2.3.0's reference kernels by up to 9: 4 inputs, 2 equal, 2 differ in 6 "
        "values; first in input 1 at #12 SOFTMAX"
    )


def test_what_is_equal_throughout_says_so(answered):
    answer = answered([0] * 12, [0] * 12)
    assert (answer["exact"], answer["inputs_equal"], answer["elements_different"]) == (True, 2, 0)
    assert report.verdict(answer) == "EQUAL to LiteRT 2.3.0's reference kernels, to the bit"
    other = {**LITERT, "text": "buildtool's own executor", "why": "for LiteRT's kernels: \n install it"}
    said = "EQUAL to buildtool's own executor, to the bit (for LiteRT's kernels:   install it)"
    assert report.verdict({**answer, "reference": other}) == said
