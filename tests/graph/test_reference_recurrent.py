"""SVDF and LSTM over sequences of invokes: the reference executor and the written file equal LiteRT."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrentnets import (
    digit_rows,
    drawn_lstm,
    drawn_svdf,
    expected,
    inputs_for_steps,
    keyword_svdf,
    sequence,
    wake_word,
)

from buildtool.graph.consistency import check_graph
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model

seeds = st.integers(0, 2**31 - 1)


def _check_against_litert(graph, steps, seed):
    check_graph(graph)
    model = write_model(graph)
    parsed, inputs = read_model(model), inputs_for_steps(graph, steps, seed)
    reference = sequence(model, inputs)
    for results in (expected(graph, inputs), expected(parsed, inputs)):
        for ours, theirs in zip(results, reference, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(a, b)


@settings(max_examples=15)
@given(seed=seeds)
def test_svdf_equals_litert_over_a_sequence(seed):
    _check_against_litert(drawn_svdf(seed), 6, seed)


@pytest.mark.slow
@settings(max_examples=14)
@given(seed=seeds)
def test_an_lstm_with_any_parts_equals_litert_over_a_sequence(seed):
    _check_against_litert(drawn_lstm(seed), 3, seed)


@pytest.mark.parametrize("network", [keyword_svdf, wake_word, digit_rows])
def test_networks_of_several_layers_equal_litert(network):
    _check_against_litert(network(), 5, 1)
