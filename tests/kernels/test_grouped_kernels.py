"""Convolutions in groups: every family's kernels leave the bytes of LiteRT, from any view."""

import numpy as np
import pytest
from boardcalls import recording
from groupcases import grouped
from guarded import before_nothing
from hostfamily import on_host
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcases import Case
from litert import run_graph
from placement import WAYS, run_placed, run_whole

from buildtool.target.catalogue import select

# By family: the boards that run its kernels.
BOARDS = {
    "cortex_m_dsp": ["cortex-m4"],
    "cortex_m_mve": ["cortex-m55"],
    "riscv": ["qemu-virt-rv32"],
    "riscv_v": ["qemu-virt-rv32v", "qemu-virt-rv32v256"],
}


@pytest.mark.slow
@pytest.mark.parametrize("family", BOARDS)
def test_groups_of_any_width_leave_the_bytes_of_litert(family):
    with recording(BOARDS[family][0], family) as recorder:

        @settings(max_examples=16, derandomize=True, deadline=None, database=None)
        @given(case=grouped(), how=st.sampled_from(WAYS), seed=st.integers(0, 999))
        def record(case: Case, how, seed):
            expected = run_graph(case.graph, case.inputs)[case.op.outputs[0]]
            np.testing.assert_array_equal(run_whole(case), expected)
            kernel = select(recorder.target, case.graph, case.op)
            assert kernel.sources[0].startswith(family + "/")
            run_placed(case, how, seed, kernel.overlap)

        record()
    assert recorder.kernels.total() >= 30
    for board in BOARDS[family]:
        recorder.check("", board)


@pytest.mark.slow
def test_groups_on_the_vector_unit_read_nothing_behind_an_input():
    used = 0

    @settings(max_examples=12, derandomize=True, deadline=None, database=None)
    @given(case=grouped(), how=st.sampled_from(WAYS), seed=st.integers(0, 999))
    def run(case: Case, how, seed):
        nonlocal used
        expected = run_whole(case)
        guarded = Case(case.graph, tuple(before_nothing(values) for values in case.inputs))
        with on_host("xcore", "xcore_vpu") as family:
            contract = select(family.target, case.graph, case.op).overlap
            placed, whole = run_placed(case, how, seed, contract), run_whole(guarded)
        np.testing.assert_array_equal(placed, expected)
        np.testing.assert_array_equal(whole, expected)
        used += family.used.total()

    run()
    assert used > 24
