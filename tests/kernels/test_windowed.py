"""The plain kernels equal LiteRT to the bit: whole, in pieces from rings, as parts, and over their input."""

import numpy as np
import pytest
from ckernels import catalogue
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernelcases import windowed
from litert import run_graph
from placement import run_over, run_parts, run_pieces, run_whole

from buildtool.plan.schedule.overlap import distance
from buildtool.target.types import Contract

EXAMPLES = settings(max_examples=50, derandomize=True, deadline=None)
kinds = pytest.mark.parametrize("kind", sorted(windowed))
overlapping = pytest.mark.parametrize(
    "kind", ["convolution", "depthwise", "elementwise", "pool", "prelu", "softmax", "table"]
)


def expected(case):
    return run_graph(case.graph, case.inputs)[case.op.outputs[0]]


@kinds
@EXAMPLES
@given(data=st.data())
def test_a_whole_tensor_in_one_call(kind, data):
    case = data.draw(windowed[kind])
    np.testing.assert_array_equal(run_whole(case), expected(case))


@kinds
@EXAMPLES
@given(data=st.data())
def test_rows_from_a_ring_that_holds_no_more_than_the_window_needs(kind, data):
    case = data.draw(windowed[kind])
    whole_output = run_whole(case)
    np.testing.assert_array_equal(
        run_pieces(case, data.draw(st.integers(0, 999)), columns=False), whole_output
    )


@kinds
@EXAMPLES
@given(data=st.data())
def test_windows_of_rows_and_columns_from_rings_in_both_directions(kind, data):
    case = data.draw(windowed[kind])
    whole_output = run_whole(case)
    np.testing.assert_array_equal(
        run_pieces(case, data.draw(st.integers(0, 999)), columns=True), whole_output
    )


@kinds
@EXAMPLES
@given(data=st.data())
def test_parts_of_the_channels_of_wider_tensors(kind, data):
    """Whatever the other channels hold; the memory between the output's pixels stays as it was."""
    case, seed = data.draw(windowed[kind]), data.draw(st.integers(0, 999))
    whole_output = run_whole(case)
    for filler in range(2):
        np.testing.assert_array_equal(run_parts(case, seed, filler=filler), whole_output)
        pieces = run_pieces(case, seed, columns=bool(seed % 2), wide=True, filler=filler)
        np.testing.assert_array_equal(pieces, whole_output)


@overlapping
@EXAMPLES
@given(data=st.data())
def test_the_output_over_the_input_at_the_promised_distance(kind, data):
    case = data.draw(windowed[kind])
    contract = catalogue()[case.op.kind].overlap
    assert contract is not Contract.NONE
    operand = data.draw(st.integers(0, len(case.inputs) - 1))
    apart = distance(case.graph, case.op, case.op.inputs[operand], contract)
    assume(apart is not None)
    np.testing.assert_array_equal(run_over(case, operand, apart), run_whole(case))


def test_an_output_put_right_on_its_input_goes_wrong_where_a_distance_is_due():
    """So the test above can fail: it really runs kernels over their inputs."""
    wrong = 0

    @settings(max_examples=30, derandomize=True, deadline=None, database=None)
    @given(case=windowed["convolution"])
    def count(case):
        nonlocal wrong
        if distance(case.graph, case.op, case.op.inputs[0], Contract.ROW):
            wrong += not np.array_equal(run_over(case, 0, 0), run_whole(case))

    count()
    assert wrong > 0
