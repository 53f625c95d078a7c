"""Refused operators together: every kind and every cause is named, each cause with its cure."""

import numpy as np
import pytest
from flatfiles import FileOperator, FileTensor, constant, write

from buildtool.base.errors import UnsupportedError
from buildtool.graph.refusals import together
from buildtool.graph.tflite.reader import read_model


def refusal(tensors, operators, inputs=(0,), outputs=(1,)):
    with pytest.raises(UnsupportedError) as caught:
        read_model(write(tensors, operators, list(inputs), list(outputs)), path="x.tflite")
    return caught.value


def test_two_hundred_operators_are_a_few_lines():
    tensors = [FileTensor((1, 4)) for _ in range(201)]
    kinds = ["ATAN2", "BUCKETIZE", "ATAN2", "UNIQUE"]
    operators = [FileOperator(kinds[i % 4], [i], [i + 1]) for i in range(200)]
    error = refusal(tensors, operators, outputs=[200])
    head, line = error.text.splitlines()
    assert head == "200 operators are not supported:"
    assert line == (
        "  200 x the operator is not supported: 100 ATAN2 (#0, #2, #4, ...), 50 BUCKETIZE (#1, #5, #9, ...), "
        "50 UNIQUE (#3, #7, #11, ...)"
    )
    assert len(error.hints) == 1 and error.hint.startswith("use one of ")


def test_each_cause_has_a_cure_of_its_own():
    tensors = [
        *(
            FileTensor((1, 4), dtype)
            for dtype in ("int8", "uint8", "int8", "int16", "int16", "float32", "float32")
        ),
        *(FileTensor((1, 4)) for _ in range(4)),
        constant(np.zeros((4, 4), np.int8), "int8"),
    ]
    operators = [
        FileOperator("RELU", [1], [2]),
        FileOperator("HARD_SWISH", [3], [4]),
        FileOperator("RELU", [5], [6]),
        FileOperator("CUSTOM", [0], [7], custom="Mine"),
        FileOperator("CUSTOM", [0], [8], custom="FlexErf"),
        FileOperator("BIDIRECTIONAL_SEQUENCE_LSTM", [0], [9]),
        FileOperator("ATAN2", [0], [10]),
    ]
    error = refusal(tensors, operators, [0, 1, 3, 5], [10])
    causes = error.text.splitlines()[1:]
    assert len(causes) == len(error.hints) == 7
    for word, cure in [
        ("uint8", "anew with int8 quantisation"),
        ("int16", "in place of EXPERIMENTAL_TFLITE"),
        ("float32", "quantise the network after training"),
        ("a custom operator", "built-in operators"),
        ("(flex)", "SELECT_TF_OPS"),
        ("with state", "its state as inputs and outputs"),
        ("not supported", "use one of"),
    ]:
        assert any(word in cause for cause in causes), word
        assert any(word in hint.text and cure in hint.text for hint in error.hints), word


def test_one_refusal_stays_as_it_is():
    alone = UnsupportedError("why", operator="#3 COS")
    assert together([alone]) is alone
