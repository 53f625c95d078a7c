"""The vector unit's kernels read nothing behind their inputs: a program that does dies here."""

from collections import Counter

import numpy as np
import pytest
from boardcalls import collect
from groupcases import grouped
from guarded import before_nothing
from hostfamily import on_host
from kernelcases import Case
from kernelcases import windowed as small
from loaded import load_target
from placement import run_whole
from vectorcases import windowed as large
from widecases import conv, elementwise, pool

from buildtool.graph.types import OpKind

BOARD, FAMILY = "xcore", "xcore_vpu"


@pytest.mark.slow
def test_nothing_is_read_behind_an_input():
    """The unit loads 32 bytes at a time."""
    used = Counter()
    loading = [large[kind] for kind in ("convolution", "depthwise", "dense", "elementwise", "pool")]

    def check(case):
        expected = run_whole(case)
        guarded = Case(case.graph, tuple(before_nothing(values) for values in case.inputs))
        with on_host(BOARD, FAMILY) as family:
            np.testing.assert_array_equal(run_whole(guarded), expected)
        used.update(family.used)

    for strategy in (*loading, small["table"], grouped()):
        collect(strategy, 12, check)
    check(conv((5, 6), 8, 12, (3, 3)))
    check(conv((5, 6), 32, 24, (3, 3), groups=2))
    check(conv((3, 4), 36, 51, (1, 2), groups=3))
    check(elementwise(OpKind.ADD, (3, 5), 36, 36))
    check(pool(OpKind.MAX_POOL_2D, (3, 5), 36))
    check(pool(OpKind.AVERAGE_POOL_2D, (3, 5), 20))
    kernels = {v.name for v in load_target(BOARD).kernels if v.sources[0].endswith("_vpu.c")}
    assert kernels - used.keys() <= {"mean_vpu"}, "which takes addresses: test_xcore_lanes.py"
