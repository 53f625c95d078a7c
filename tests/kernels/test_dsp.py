"""The DSP kernels equal their plain twins to the bit, in the emulators, in every placement."""

import pytest
from boardcalls import recording
from extremecases import windowed as extreme
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcases import windowed as small
from placement import WAYS, run_placed
from vectorcases import windowed as large

from buildtool.target.catalogue import select

KINDS = {
    **{f"small {kind}": small[kind] for kind in ("convolution", "dense", "elementwise", "pool")},
    **{f"large {kind}": strategy for kind, strategy in large.items() if kind != "depthwise"},
    **extreme,
}
slow = pytest.mark.slow


def record(recorder, kind, count):
    @settings(max_examples=count, derandomize=True, deadline=None, database=None)
    @given(case=KINDS[kind], how=st.sampled_from(WAYS), seed=st.integers(0, 999))
    def collect(case, how, seed):
        run_placed(case, how, seed, select(recorder.target, case.graph, case.op).overlap)

    collect()


def repeat(board, toolchain, kinds, count):
    """The kinds' calls in one emulator run."""
    with recording(board, "cortex_m_dsp") as recorder:
        for kind in kinds:
            record(recorder, kind, count)
    recorder.check(toolchain)
    return recorder.kernels


@pytest.mark.parametrize("toolchain", ["clang", pytest.param("gcc", marks=slow)])
def test_every_placement_leaves_the_same_bytes(toolchain):
    used = repeat("cortex-m4", toolchain, sorted(KINDS), 15)
    assert sum(used.values()) > 200
    assert len(used) >= 9, "some kernel was never called"


@slow
@pytest.mark.parametrize("toolchain", ["clang", "gcc"])
@pytest.mark.parametrize("board", ["cortex-m4", "mps2-an500", "mps2-an505"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_many_cases_on_every_emulated_core(board, toolchain, kind):
    assert sum(repeat(board, toolchain, [kind], 60).values()) > 40
