"""Traces: parts of tensors are joined, parts that no operator needs are left out, the rest is compared."""

import struct

import numpy as np
import pytest

from buildtool.base.errors import ToolError
from buildtool.firmware.levels import HOST
from buildtool.firmware.run.compare import difference
from buildtool.firmware.run.execute import read_outcome
from buildtool.target.types import RunResult
from buildtool.zoo.drawn import NetBuilder


@pytest.fixture
def graph():
    net = NetBuilder(0)
    x = net.input((1, 2, 2, 3))
    return net.graph([net.conv(x, 4)])


def _read(data, sets, graph):
    """The outcome of firmware that wrote this trace."""
    report = f"sets={sets}\nguard_ok=1\narena_high_water=8\n".encode()
    outputs = bytes(16 * sets)
    files = {"trace.bin": data, "report.txt": report, "output.bin": outputs}
    return read_outcome(graph, RunResult(files, ""), sets, "cc 1", HOST)


def _record(tensor, offset, data):
    return struct.pack("<III", tensor, offset, len(data)) + bytes(data)


def test_wrong_traces_are_errors(graph):
    out = graph.outputs[0]
    whole = _record(out, 0, range(16))
    for data, sets, words in (
        (_record(out, 9, range(8)), 1, "outside its tensor"),
        (whole + _record(out, 4, [4, 5, 7]), 1, "computed twice has different"),
        (_record(out, 4, range(4, 10)) + _record(out, 8, range(9, 17)), 1, "computed twice has different"),
        (whole * 3, 2, "incomplete"),
        (_record(99, 0, range(8)), 1, "incomplete"),
        (whole + _record(out, 0, range(8)), 2, "different parts"),
        (whole[:-1], 1, "cut off"),
        (whole + whole[:5], 1, "cut off"),
    ):
        with pytest.raises(ToolError, match=words):
            _read(data, sets, graph)


def test_only_what_was_computed_is_compared(graph):
    out = graph.outputs[0]
    outcome = _read(_record(out, 4, [7] * 8), 1, graph)
    (trace,), partial = outcome.traces, outcome.partial
    assert partial == {out: bytes([0] * 4 + [1] * 8 + [0] * 4)}
    expected = np.full((1, 2, 2, 4), 7, np.int8)
    assert difference(graph, 0, trace, {out: expected}, partial) == []
    assert difference(graph, 0, trace, {out: expected})[0].elements == 8
    expected.reshape(-1)[5] = -3
    (wrong,) = difference(graph, 0, trace, {out: expected}, partial)
    assert (wrong.elements, wrong.first, wrong.max_abs) == (1, 5, 10)
