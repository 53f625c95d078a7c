"""The scalar RISC-V kernels equal LiteRT to the bit: whole, in pieces from rings, and over their input."""

import functools
from collections import Counter
from ctypes import byref, c_int32, c_void_p

import ckernels
import numpy as np
import placement
import pytest
from ckernels import KERNELS, compile_library, geometry, of_an_operator, packed
from extremecases import unchanging_channels
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from kernelcases import convolutions, dense, elementwise, pools, tables
from litert import run_graph
from placement import WAYS, check_placements
from riscvcases import depthwise_3x3, depthwise_rows, wide

from buildtool.target.catalogue import features, scratch_bytes
from buildtool.target.expression import evaluate
from buildtool.target.family import load_family, resolved

EXAMPLES = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
FAMILY = "riscv"
wanted_scratch = of_an_operator(scratch_bytes)


@functools.cache
def variants():
    return resolved(load_family(KERNELS / FAMILY), [load_family(KERNELS / "reference")])


@functools.cache
def library():
    """The compiler's own loops: what is written in assembly is for the core alone."""
    return compile_library(sorted({KERNELS / s for v in variants() for s in v.sources}))


@of_an_operator
def variant_for(graph, op):
    known = features(graph, op)
    return next((v for v in variants() if v.op == op.kind and evaluate(v.when, known)), None)


def compute(graph, op, inputs, out, window):
    """As ckernels.compute, with this family's kernel; its scratch is full of noise."""
    variant = variant_for(graph, op)
    block, shape = packed(graph, op, variant), geometry(graph, op)
    size = wanted_scratch(variant, graph, op)
    scratch = np.random.default_rng(3).integers(-128, 128, size + 128, np.int8)
    start = -scratch.ctypes.data % 16 + 48
    end = start + size
    before = scratch.copy()
    arguments = [] if shape is None else [byref(shape)]
    arguments += [c_void_p(block.ctypes.data), *(byref(view) for view in (*inputs, out))]
    arguments += [byref((c_int32 * 4)(*window)), c_void_p(scratch.ctypes.data + start)]  # more than some take
    function = getattr(library(), variant.symbol)
    function.restype = None
    function(*arguments)
    assert np.array_equal(scratch[:start], before[:start]), "wrote below its scratch"
    assert np.array_equal(scratch[end:], before[end:]), "wrote above its scratch"


@pytest.fixture(autouse=True)
def this_family(monkeypatch):
    monkeypatch.setattr(placement, "compute", compute)
    assert ckernels.compute is not compute


CASES = {
    "convolution": convolutions(),
    "depthwise": depthwise_3x3(),
    "depthwise of any size": depthwise_rows(),
    "dense": dense(),
    "elementwise": elementwise(),
    "pool": pools(),
    "table": tables(),
    "wide": wide(),
    "unchanging channels": unchanging_channels(),
}


FAST = {"convolution", "depthwise", "dense", "pool", "unchanging channels"}


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[] if k in FAST else [pytest.mark.slow]) for k in CASES]
)
def test_every_placement_gives_litert_s_bytes(kind):
    ways = Counter()

    @EXAMPLES
    @given(case=CASES[kind], seed=st.integers(0, 999))
    def run(case, seed):
        variant = variant_for(case.graph, case.op)
        assume(variant is not None)
        expected = run_graph(case.graph, case.inputs)[case.op.outputs[0]]
        ways.update(check_placements(case, seed, variant.overlap, expected))

    run()
    assert set(ways) == set(WAYS) - ({"over"} if kind == "dense" else set())
