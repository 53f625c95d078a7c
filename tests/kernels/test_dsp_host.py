"""The DSP kernels equal their plain twins to the bit: on this machine, by a model of the instructions.

The emulator repeats a part of it with the instructions themselves: test_dsp.py.
"""

import ctypes

import ckernels
import numpy as np
import pytest
from extremecases import windowed as extreme
from hostfamily import library, on_host
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcases import means
from kernelcases import windowed as small
from placement import WAYS, run_placed, run_whole
from vectorcases import windowed as large

from buildtool.emit.packing import pack
from buildtool.graph.strided import reduction
from buildtool.target.catalogue import scratch_bytes, select

BOARD, FAMILY = "cortex-m4", "cortex_m_dsp"
KINDS = {
    **{f"small {kind}": small[kind] for kind in ("convolution", "dense", "elementwise", "pool")},
    **{f"large {kind}": strategy for kind, strategy in large.items() if kind != "depthwise"},
    **extreme,
}
FAST = {
    "small convolution",
    "large dense",
    "large elementwise",
    "large pool",
    "square depthwise",
}
kinds = pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[] if k in FAST else [pytest.mark.slow]) for k in sorted(KINDS)]
)


def examples(count):
    return settings(max_examples=count, derandomize=True, deadline=None, database=None)


def check(case, how, seed):
    """Runs a case as plans do, with the family's kernels, and compares with the plain one's whole output."""
    expected = run_whole(case)
    with on_host(BOARD, FAMILY) as family:
        contract = select(family.target, case.graph, case.op).overlap
        result = run_placed(case, how, seed, contract)
    np.testing.assert_array_equal(result, expected)
    return family.used


@kinds
def test_every_placement_gives_the_same_bytes(kind):
    used = 0

    @examples(60)
    @given(case=KINDS[kind], how=st.sampled_from(WAYS), seed=st.integers(0, 999))
    def run(case, how, seed):
        nonlocal used
        used += sum(check(case, how, seed).values())

    run()
    assert used > 30


@examples(60)
@given(case=means())
def test_a_mean_over_any_axes(case):
    walk = reduction(case.graph, case.op)
    sizes = [[n for n, _ in walk.outer], [s for _, s in walk.outer]]
    sizes += [[n for n, _ in walk.inner], [s for _, s in walk.inner]]
    padded = [value for part in sizes for value in (*part, *([0] * (6 - len(part))))]
    geometry = ckernels.numbers(len(walk.outer), len(walk.inner), *padded)
    block = ckernels.constants(pack(case.graph, case.op, ckernels.catalogue()["MEAN"]))
    x = np.ascontiguousarray(case.inputs[0])
    results = [np.zeros(case.out_shape, np.int8) for _ in range(2)]
    for symbol, result in zip(("nn_mean_s8", "nn_mean_s8_dsp"), results, strict=True):
        addresses = (ctypes.c_void_p(a.ctypes.data) for a in (block, x, result))
        getattr(library(FAMILY), symbol)(ctypes.byref(geometry), *addresses)
    np.testing.assert_array_equal(results[1], results[0])


@examples(200)
@given(case=st.one_of(*(KINDS[kind] for kind in sorted(KINDS))))
def test_the_scratch_twin_gives_what_the_catalogue_says(case):
    with on_host(BOARD, FAMILY) as family:
        variant = select(family.target, case.graph, case.op)
    if variant.scratch == "0":
        return
    twin = getattr(library(FAMILY), variant.symbol + "_scratch_bytes")
    shape = ckernels.geometry(case.graph, case.op)
    first, out = (
        ckernels.whole(np.zeros((1, 1, *t)[-3:], np.int8)) for t in (case.inputs[0].shape, case.out_shape)
    )
    views = [ctypes.byref(first), ctypes.byref(out)]
    asked = twin(*([] if shape is None else [ctypes.byref(shape)]), *views)
    assert asked == scratch_bytes(variant, case.graph, case.op)
