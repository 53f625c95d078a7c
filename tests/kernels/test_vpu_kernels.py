"""The vector unit's kernels equal their plain twins to the bit, through the model of the unit."""

from collections import Counter

import numpy as np
import pytest
from extremecases import windowed as extreme
from guarded import before_nothing
from hostfamily import on_host
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcases import Case
from kernelcases import windowed as small
from loaded import load_target
from placement import WAYS, run_placed, run_whole
from vectorcases import windowed as large
from widecases import conv, elementwise, pool

from buildtool.graph.types import OpKind
from buildtool.target.catalogue import select

BOARD, FAMILY = "xcore", "xcore_vpu"
KINDS = {
    **{f"small {kind}": small[kind] for kind in ("convolution", "dense")},
    **{f"large {kind}": large[kind] for kind in ("convolution", "depthwise", "dense")},
    **extreme,
}
FAST = {"small convolution"}
kinds = pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[] if k in FAST else [pytest.mark.slow]) for k in sorted(KINDS)]
)


def examples(count):
    return settings(max_examples=count, derandomize=True, deadline=None, database=None)


@kinds
def test_every_placement_gives_the_same_bytes(kind):
    used = 0

    @examples(40)
    @given(case=KINDS[kind], how=st.sampled_from(WAYS), seed=st.integers(0, 999))
    def run(case, how, seed):
        nonlocal used
        expected = run_whole(case)
        with on_host(BOARD, FAMILY) as family:
            contract = select(family.target, case.graph, case.op).overlap
            result = run_placed(case, how, seed, contract)
        np.testing.assert_array_equal(result, expected)
        used += sum(family.used.values())

    run()
    assert used > 20


@pytest.mark.slow
def test_nothing_is_read_behind_an_input():
    """The unit loads 32 bytes at a time; a program that reads behind the input dies here."""
    used = Counter()
    loading = (large[kind] for kind in ("convolution", "depthwise", "dense", "elementwise", "pool"))

    def check(case):
        expected = run_whole(case)
        guarded = Case(case.graph, tuple(before_nothing(values) for values in case.inputs))
        with on_host(BOARD, FAMILY) as family:
            np.testing.assert_array_equal(run_whole(guarded), expected)
        used.update(family.used)

    @examples(60)
    @given(case=st.one_of(*loading, small["table"]))
    def run(case):
        check(case)

    run()
    check(conv((5, 6), 8, 12, (3, 3)))
    check(conv((5, 6), 32, 24, (3, 3), groups=2))
    check(conv((3, 4), 36, 51, (1, 2), groups=3))
    check(elementwise(OpKind.ADD, (3, 5), 36, 36))
    check(pool(OpKind.MAX_POOL_2D, (3, 5), 36))
    check(pool(OpKind.AVERAGE_POOL_2D, (3, 5), 20))
    kernels = {v.name for v in load_target(BOARD).kernels if v.sources[0].endswith("_vpu.c")}
    assert kernels - used.keys() <= {"mean_vpu"}, "which takes addresses: test_xcore_lanes.py"
