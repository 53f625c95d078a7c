"""The kernels on 16 bits equal a twin made of the instructions' descriptions, and stay within their bounds.

On this machine, through the C model of the vector unit, in every placement that plans give them.
"""

import functools

import numpy as np
import pytest
from extremecases import windowed as extreme
from hostfamily import on_host
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kernelcases import windowed as small
from placement import WAYS, run_placed
from vectorcases import windowed as large
from vpu16_twin import expected

from buildtool.emit.blocks import clamp
from buildtool.emit.bounds import bound
from buildtool.emit.packing import loaded
from buildtool.graph.reference import execute_op
from buildtool.modes import Requantise
from buildtool.target.catalogue import select
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_board, make_target

FAMILY = "xcore_vpu16"
PACKING = loaded(kernels_root() / FAMILY / "packing.py")
NAMES = ("convolution", "depthwise", "dense")
KINDS = {
    f"{size} {name}": cases[name]
    for size, cases in (("small", small), ("large", large), ("extreme", extreme))
    for name in NAMES
    if name in cases
}
EXAMPLES = settings(
    max_examples=40, derandomize=True, deadline=None, database=None, phases=(Phase.explicit, Phase.generate)
)


@functools.cache
def target():
    return make_target(load_board("xcore"), requantise=Requantise.VPU16)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_kernels_equal_the_twin_wherever_they_are_placed(kind):
    rounded = different = 0

    @EXAMPLES
    @given(case=KINDS[kind], how=st.sampled_from(WAYS), seed=st.integers(0, 999))
    def run(case, how, seed):
        nonlocal rounded, different
        graph, op = case.graph, case.op
        variant = select(target(), graph, op)
        if not variant.sources[0].startswith(FAMILY):
            return
        factors, proven = PACKING.factors_of(graph, op), bound(graph, op, variant)
        want = expected(graph, op, case.inputs[0], factors, clamp(graph, op, op.attrs.activation))
        with on_host("xcore", FAMILY, target()):
            made = run_placed(case, how, seed, variant.overlap)
        np.testing.assert_array_equal(made, want)
        (exact,) = execute_op(graph, op, {op.inputs[0]: case.inputs[0]})
        off = int(np.abs(made.astype(int) - exact).max())
        assert off <= (proven.steps if proven else 0)
        rounded += proven.rounded if proven else 0
        different += off

    run()
    assert rounded > 40
