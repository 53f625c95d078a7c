"""Networks with second passes compute the same as without them, and know which operators they repeat."""

import numpy as np
import pytest
from graphs import inputs_for
from namednets import efficient_net

from buildtool.base.errors import PlanError
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.secondpass import repetitions, with_second_passes
from buildtool.graph.types import SecondPass
from buildtool.plan.schedule.gates import gates


@pytest.fixture(scope="module")
def once():
    return rewrite(efficient_net(16, blocks=3))


@pytest.fixture(scope="module")
def passes(once):
    return [among[0] for among in gates(once, [None] * len(once.ops))]


def test_second_passes_compute_the_same(once, passes):
    twice = with_second_passes(once, passes)
    inputs = inputs_for(once, 3, "random")
    before, after = execute(once, inputs), execute(twice, inputs)
    assert len(passes) > 1
    for one in repetitions(twice):
        for p, q in zip(one.first, one.again, strict=True):
            np.testing.assert_array_equal(after[twice.ops[p].outputs[0]], after[twice.ops[q].outputs[0]])
        assert twice.ops[one.again[-1]].outputs[0] in twice.ops[one.reader].inputs
    np.testing.assert_array_equal(before[once.outputs[0]], after[twice.outputs[0]])


@pytest.mark.parametrize(
    "wrong",
    [
        SecondPass(-1, 2, 8),
        SecondPass(3, 2, 8),
        SecondPass(2, 8, 8),
        SecondPass(0, 3, 1 << 40),
        SecondPass(0, 0, 8),
    ],
)
def test_passes_that_a_network_cannot_have_are_refused(once, wrong):
    with pytest.raises(PlanError, match="second pass"):
        with_second_passes(once, [wrong])
