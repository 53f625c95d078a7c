"""The Helium kernels equal their plain twins to the bit, in the emulator, in every placement."""

import pytest
from boardcalls import recording
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcases import windowed as small
from placement import run_over, run_pieces, run_whole
from vectorcases import windowed as large

from buildtool.plan.overlap import distance
from buildtool.target.catalogue import select

KINDS = {
    **{f"small {kind}": strategy for kind, strategy in small.items()},
    **{f"large {kind}": strategy for kind, strategy in large.items()},
}
SERVED = sorted(set(KINDS) - {"small transpose_convolution", "small prelu", "small softmax", "small resize"})


def examples(count):
    return settings(max_examples=count, derandomize=True, deadline=None, database=None)


def place(recorder, case, how, seed):
    """Runs a case in one of the ways that plans do."""
    if how == "whole":
        run_whole(case)
    elif how == "over":
        contract = select(recorder.target, case.graph, case.op).overlap
        apart = distance(case.graph, case.op, case.op.inputs[seed % len(case.inputs)], contract)
        if apart is not None:
            run_over(case, seed % len(case.inputs), apart)
    else:
        run_pieces(case, seed, columns=how == "windows")


def record(recorder, kind, count):
    @examples(count)
    @given(
        case=KINDS[kind], how=st.sampled_from(["whole", "over", "rows", "windows"]), seed=st.integers(0, 999)
    )
    def collect(case, how, seed):
        place(recorder, case, how, seed)

    collect()


@pytest.mark.parametrize("toolchain", ["clang", pytest.param("gcc", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", SERVED)
def test_every_placement_leaves_the_same_bytes(kind, toolchain):
    with recording("cortex-m55", "cortex_m_mve") as recorder:
        record(recorder, kind, 25)
    assert len(recorder.recorded) >= 15
    recorder.check(toolchain)
