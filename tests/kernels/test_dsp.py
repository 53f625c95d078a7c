"""The DSP kernels equal their plain twins to the bit, in the emulators, in every placement."""

import ckernels
import kernelcases
import numpy as np
import pytest
from boardcalls import recording
from extremecases import windowed as extreme
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelboard import Call, Memory
from kernelcases import means
from kernelcases import windowed as small
from placement import WAYS, run_placed
from vectorcases import windowed as large

from buildtool.emit.packing import pack
from buildtool.graph.reference import execute
from buildtool.graph.strided import reduction
from buildtool.graph.types import OpKind
from buildtool.target.catalogue import select

KINDS = {
    **{f"small {kind}": small[kind] for kind in ("convolution", "dense", "elementwise", "pool")},
    **{f"large {kind}": strategy for kind, strategy in large.items() if kind != "depthwise"},
    "extremes": kernelcases.pairs((OpKind.MAXIMUM, OpKind.MINIMUM)),
    **extreme,
}
IMAGES = (("cortex-m4", "clang"), ("cortex-m4", "gcc"), ("mps2-an500", "gcc"), ("mps2-an505", "clang"))
slow = pytest.mark.slow


def record(recorder, kind, count):
    @settings(max_examples=count, derandomize=True, deadline=None, database=None)
    @given(case=KINDS[kind], how=st.sampled_from(WAYS), seed=st.integers(0, 999))
    def collect(case, how, seed):
        run_placed(case, how, seed, select(recorder.target, case.graph, case.op).overlap)

    collect()


def recorded(kinds, count):
    """The kinds' calls, as the plain kernels made them."""
    with recording("cortex-m4", "cortex_m_dsp") as recorder:
        for kind in kinds:
            before = recorder.kernels.total()
            record(recorder, kind, count)
            # A third of the elementwise cases are SUB, which the plain kernel serves.
            assert recorder.kernels.total() - before >= count // 2, kind
    return recorder


@pytest.mark.slow
def test_every_placement_leaves_the_same_bytes():
    recorder = recorded(sorted(KINDS), 15)
    recorder.check("clang")
    assert recorder.kernels.total() > 200
    assert len(recorder.kernels) >= 9, "some kernel was never called"


@slow
@pytest.mark.parametrize("part", range(3))
def test_many_cases_on_every_emulated_core_from_either_compiler(part):
    """Every core and every compiler; one core from both, because the cores' instructions are the same."""
    recorder = recorded(sorted(KINDS)[part::3], 60)
    for board, toolchain in IMAGES:
        recorder.check(toolchain, board)


def mean_geometry(case):
    """The words of an nn_reduce_geometry."""
    walk = reduction(case.graph, case.op)
    words = [len(walk.outer), len(walk.inner)]
    for pairs in (walk.outer, walk.inner):
        for i in (0, 1):
            words += [pair[i] for pair in pairs] + [0] * (6 - len(pairs))
    return words


@pytest.mark.parametrize("toolchain", ["clang", pytest.param("gcc", marks=slow)])
def test_means_over_any_axes(toolchain):
    calls, places, wanted = [], [], []

    @settings(max_examples=40, derandomize=True, deadline=None, database=None)
    @given(case=means())
    def collect(case):
        memory = Memory(len(calls))
        arguments = [
            memory.words(*mean_geometry(case)),
            memory.put(pack(case.graph, case.op, ckernels.catalogue()["MEAN"])),
        ]
        arguments.append(memory.put(case.inputs[0], align=1))
        result = execute(case.graph, case.inputs)[case.op.outputs[0]]
        places.append(memory.room(result.size, align=1))
        wanted.append(result)
        calls.append(Call("nn_mean_s8_dsp", (*arguments, places[-1]), memory))

    collect()
    with recording("cortex-m4", "cortex_m_dsp") as recorder:
        done = recorder.firmware(toolchain).run(calls)
    for one, place, result in zip(done, places, wanted, strict=True):
        np.testing.assert_array_equal(one.array(place, result.shape), result)
        assert set(one.changed()) <= set(range(place.offset, place.offset + result.size))
