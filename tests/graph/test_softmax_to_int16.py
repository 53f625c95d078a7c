"""SOFTMAX from int8 to int16, then QUANTIZE to int32, as at the end of keyword spotters, equal LiteRT."""

import numpy as np
import pytest
from boardruns import file_of, validated
from flatfiles import FileOperator, FileTensor, write
from litert import run

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model

SHARE = 1 / 65536


def network(
    rows: int, count: int, scale: float, beta: float, out: float = SHARE, zero: int = -32768
) -> bytes:
    tensors = [
        FileTensor((rows, count), scale=scale, zero=5),
        FileTensor((rows, count), "int16", scale=out, zero=zero),
        FileTensor((rows, count), "int32", scale=SHARE, zero=0),
    ]
    operators = [
        FileOperator("SOFTMAX", [0], [1], "SoftmaxOptions", {"Beta": beta}),
        FileOperator("QUANTIZE", [1], [2], "QuantizeOptions"),
    ]
    return write(tensors, operators, [0], [2])


@pytest.mark.parametrize("seed", range(12))
def test_shares_are_litert_s(seed) -> None:
    rng = np.random.default_rng(seed)
    count, scale = int(rng.choice([1, 2, 3, 12, 100, 511])), float(np.exp(rng.uniform(-6, 0)))
    data = network(4, count, scale, float(rng.choice([1.0, 0.5, 2.0])))
    x = rng.integers(-128, 128, (4, count)).astype(np.int8)
    x[0] = x[0, 0]
    graph = read_model(data)
    values, expected = execute(graph, [x]), run(data, [x])
    for t, value in values.items():
        index = graph.tensors[t].source.index
        if index:
            assert np.array_equal(value, expected[index]), index


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (network(1, 512, 0.1, 1.0), "rows of more than 511"),
        (network(1, 4, 0.1, 1.0, zero=0), "1/65536, its zero point -32768"),
        (network(1, 4, 0.1, 1.0, out=1 / 32768), "1/65536, its zero point -32768"),
    ],
)
def test_softmaxes_that_litert_does_not_run_are_refused(data, words) -> None:
    with pytest.raises((ModelError, UnsupportedError), match=words):
        read_model(data)


@pytest.mark.slow
def test_firmware_computes_them(tmp_path) -> None:
    answer = validated(file_of(network(3, 12, 0.05, 1.0), tmp_path), "cortex-m4", {}, inputs=3)
    assert answer["output_values"] > 20
