"""The plain kernels equal LiteRT to the bit: whole, in pieces from rings, as parts, and over their input."""

from collections import Counter

import numpy as np
import pytest
from ckernels import catalogue
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcases import windowed
from largecases import grouped
from litert import run_graph
from placement import WAYS, check_placements, run_over, run_whole

from buildtool.plan.schedule.overlap import distance
from buildtool.target.types import Contract

EXAMPLES = settings(max_examples=40, derandomize=True, deadline=None)
KINDS = windowed | {"grouped": grouped()}
NEVER_OVER_INPUTS = {"dense", "resize", "transpose_convolution"}
SLOW = {"resize", "transpose_convolution", "prelu", "normalisation"}


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] if k in SLOW else []) for k in sorted(KINDS)]
)
def test_every_placement_gives_litert_s_bytes(kind):
    """Whatever lies around in memory; nothing is written but the output."""
    ways = Counter()

    @EXAMPLES
    @given(case=KINDS[kind], seed=st.integers(0, 999))
    def run(case, seed):
        expected = run_graph(case.graph, case.inputs)[case.op.outputs[0]]
        ways.update(check_placements(case, seed, catalogue()[case.op.kind].overlap, expected))

    run()
    assert set(ways) == set(WAYS) - ({"over"} if kind in NEVER_OVER_INPUTS else set())


def test_an_output_put_right_on_its_input_goes_wrong_where_a_distance_is_due():
    """So the test above can fail: it really runs kernels over their inputs."""
    wrong = 0

    @settings(max_examples=16, derandomize=True, deadline=None, database=None)
    @given(case=windowed["convolution"])
    def count(case):
        nonlocal wrong
        if distance(case.graph, case.op, case.op.inputs[0], Contract.ROW):
            wrong += not np.array_equal(run_over(case, 0, 0), run_whole(case))

    count()
    assert wrong > 0
