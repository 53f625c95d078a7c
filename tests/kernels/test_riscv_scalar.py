"""The scalar RISC-V kernels equal LiteRT to the bit: whole, in pieces from rings, and over their input."""

import functools
from ctypes import byref, c_int32, c_void_p

import ckernels
import numpy as np
import placement
import pytest
from ckernels import KERNELS, compile_library, constants, geometry
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from kernelcases import _weighted, activations, channels, convolutions, dense, seeds, zero_points
from litert import run_graph
from placement import run_over, run_pieces, run_whole

from buildtool.emit.packing import pack
from buildtool.graph.types import DepthwiseAttrs, OpKind, Pad
from buildtool.plan.overlap import distance
from buildtool.target.catalogue import features, load_catalogue, scratch_bytes
from buildtool.target.expression import evaluate
from buildtool.target.types import Contract

EXAMPLES = settings(
    max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)
FAMILY = "riscv"


@functools.cache
def variants():
    return load_catalogue(KERNELS / FAMILY / "catalogue.toml")


@functools.cache
def library():
    """The compiler's own loops: what is written in assembly is for the core alone."""
    return compile_library(sorted((KERNELS / FAMILY).glob("*.c")))


def variant_for(graph, op):
    known = features(graph, op)
    return next((v for v in variants() if v.op == op.kind and evaluate(v.when, known)), None)


def compute(graph, op, inputs, out, window):
    """As ckernels.compute, with this family's kernel; its scratch is full of noise."""
    variant = variant_for(graph, op)
    block = constants(pack(graph, op, variant.packing))
    shape = geometry(graph, op)
    scratch = np.random.default_rng(3).integers(-128, 128, scratch_bytes(variant, graph, op) + 128, np.int8)
    start = -scratch.ctypes.data % 16 + 48
    end = start + scratch_bytes(variant, graph, op)
    before = scratch.copy()
    arguments = [] if shape is None else [byref(shape)]
    arguments += [c_void_p(block.ctypes.data), *(byref(view) for view in (*inputs, out))]
    arguments += [byref((c_int32 * 4)(*window)), c_void_p(scratch.ctypes.data + start)]
    function = getattr(library(), variant.symbol)
    function.restype = None
    function(*arguments)
    assert np.array_equal(scratch[:start], before[:start]), "wrote below its scratch"
    assert np.array_equal(scratch[end:], before[end:]), "wrote above its scratch"


@pytest.fixture(autouse=True)
def this_family(monkeypatch):
    monkeypatch.setattr(placement, "compute", compute)
    assert ckernels.compute is not compute


@st.composite
def depthwise_3x3(draw):
    """Any size, stride and padding; rows may be dilated."""
    sh, sw = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    dh = draw(st.integers(1, 2)) if sh == 1 else 1
    h, w = draw(st.integers(1, 12)), draw(st.integers(1, 16))
    pads = draw(st.tuples(*[st.integers(0, 3)] * 4))
    pads = (pads[0], max(pads[1], 2 * dh + 1 - h - pads[0]), pads[2], max(pads[3], 3 - w - pads[2]))
    out = ((h + pads[0] + pads[1] - 2 * dh - 1) // sh + 1, (w + pads[2] + pads[3] - 3) // sw + 1)
    c = draw(channels)
    return _weighted(
        np.random.default_rng(draw(seeds)),
        (draw(zero_points), draw(zero_points)),
        *(draw(st.booleans()), True),
        *((1, h, w, c), (1, 3, 3, c), 3, (1, *out, c)),
        OpKind.DEPTHWISE_CONV_2D,
        DepthwiseAttrs((sh, sw), (dh, 1), Pad(*pads), draw(activations), 1),
    )


kinds = pytest.mark.parametrize(
    "cases", [convolutions(), depthwise_3x3(), dense()], ids=["convolution", "depthwise", "dense"]
)


def served(data, cases):
    case = data.draw(cases)
    assume(variant_for(case.graph, case.op) is not None)
    return case


@kinds
@EXAMPLES
@given(data=st.data())
def test_a_whole_tensor_in_one_call(cases, data):
    case = served(data, cases)
    np.testing.assert_array_equal(run_whole(case), run_graph(case.graph, case.inputs)[case.op.outputs[0]])


@kinds
@EXAMPLES
@given(data=st.data())
def test_windows_from_rings_in_both_directions(cases, data):
    case = served(data, cases)
    whole = run_whole(case)
    for columns in (False, True):
        pieces = run_pieces(case, data.draw(st.integers(0, 999)), columns=columns)
        np.testing.assert_array_equal(pieces, whole)


@pytest.mark.parametrize("cases", [convolutions(), depthwise_3x3()], ids=["convolution", "depthwise"])
@EXAMPLES
@given(data=st.data())
def test_the_output_over_the_input_at_the_promised_distance(cases, data):
    case = served(data, cases)
    assert variant_for(case.graph, case.op).overlap is Contract.ROW
    apart = distance(case.graph, case.op, case.op.inputs[0], Contract.ROW)
    assume(apart is not None)
    np.testing.assert_array_equal(run_over(case, 0, apart), run_whole(case))
