"""The C of DETECTION_POSTPROCESS, and the doubles that it computes with integers."""

import ctypes
import math
from ctypes import byref, c_float, c_int32, c_uint64, c_void_p

import ckernels
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loaded import load_target

from buildtool.api.checking.cases import network
from buildtool.graph.reference import execute_op
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import OpKind
from buildtool.target.catalogue import scratch_bytes, select

KIND = OpKind.DETECTION_POSTPROCESS
SOURCE = """
#include "nn_double.h"
void put(nn_double value, uint64_t *bits, int32_t *exponent);
void product(uint64_t a, uint64_t b, uint64_t *bits, int32_t *exponent);
void sum(uint64_t a, uint64_t b, uint64_t *bits, int32_t *exponent);
float rounded(uint64_t a);
void single(float a, uint64_t *bits, int32_t *exponent);
void put(nn_double value, uint64_t *bits, int32_t *exponent) {
    *bits = value.significand | (uint64_t)value.negative << 63;
    *exponent = value.exponent;
}
void product(uint64_t a, uint64_t b, uint64_t *bits, int32_t *exponent) {
    put(nn_double_product(nn_double_of_bits(a), nn_double_of_bits(b)), bits, exponent);
}
void sum(uint64_t a, uint64_t b, uint64_t *bits, int32_t *exponent) {
    put(nn_double_sum(nn_double_of_bits(a), nn_double_of_bits(b)), bits, exponent);
}
float rounded(uint64_t a) { return nn_double_to_float(nn_double_of_bits(a)); }
void single(float a, uint64_t *bits, int32_t *exponent) {
    put(nn_double_of_float(a), bits, exponent);
}
"""


@pytest.fixture(scope="module")
def doubles(tmp_path_factory):
    path = tmp_path_factory.mktemp("doubles") / "doubles.c"
    path.write_text(SOURCE)
    library = ckernels.compile_library([path])
    library.rounded.restype = c_float

    def call(name, *values):
        bits, exponent = c_uint64(), c_int32()
        getattr(library, name)(*values, byref(bits), byref(exponent))
        significand = bits.value & (1 << 63) - 1
        assert significand % 1024 == 0 and (significand == 0 or significand >> 62)  # 53 bits
        value = math.ldexp(significand >> 10, exponent.value + 10) if significand else 0.0
        return -value if bits.value >> 63 else value

    call.rounded = library.rounded
    return call


def bits_of(value):
    return c_uint64(int(np.float64(value).view(np.uint64)))


def same(a, b):
    return np.float64(a).tobytes() == np.float64(b).tobytes()


SIDES = st.floats(-1e30, 1e30) | st.floats(-4, 4) | st.integers(-(2**54), 2**54).map(float)
NORMAL = SIDES.filter(lambda value: value == 0 or abs(value) > 1e-290)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=400)
@given(a=NORMAL, b=NORMAL, shift=st.integers(-60, 60))
def test_sums_and_products_are_those_of_doubles(doubles, a, b, shift):
    near = math.ldexp(a, shift) if abs(shift) > 3 else -a * (1 + shift * 2.0**-52)
    for other in (b, near):
        if other and abs(other) < 1e-290:
            continue
        assert same(doubles("sum", bits_of(a), bits_of(other)), a + other)
        result = a * other
        if result == 0 or abs(result) > 1e-290:
            assert same(doubles("product", bits_of(a), bits_of(other)), result)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=400)
@given(
    single=st.floats(width=32, allow_nan=False, allow_infinity=False),
    steps=st.integers(-(2**29), 2**29),
    power=st.integers(-40, 20),
)
def test_a_double_becomes_the_nearest_single(doubles, single, steps, power):
    assert same(doubles("single", c_float(single)), single)
    between = int(np.float64(single).view(np.uint64)) + steps * (abs(steps) < 2**28 or single != 0)
    ties = int(np.float64(single).view(np.uint64)) | 1 << 28
    for bits in (max(between, 0), ties):
        value = np.uint64(bits).view(np.float64)
        for one in (value, value * 2.0**power):
            if np.isfinite(one) and (one == 0 or 1e-290 < abs(one) < 3e38):
                expected = np.float32(one)
                assert np.float32(doubles.rounded(bits_of(one))).tobytes() == expected.tobytes()


def run(graph, boxes, scores):
    """Runs the kernel on guarded memory; returns the four outputs."""
    op = graph.ops[-1]
    attrs, kernel = op.attrs, select(load_target("host"), graph, op)
    shape = graph.tensors[op.inputs[1]].shape
    numbers = (attrs.detections, attrs.classes_each, attrs.per_class, int(attrs.regular))
    size, background = boxes.shape[2], shape[2] - attrs.classes
    geometry = ckernels.numbers(shape[1], size, attrs.classes, background, *numbers)
    views = [ckernels.whole(one) for one in (boxes, scores)]
    shapes = [graph.tensors[t].shape for t in op.outputs]
    outputs = [np.full(math.prod(shape) + 4, np.nan, np.float32) for shape in shapes]
    scratch = np.full(scratch_bytes(kernel, graph, op) // 4 + 5, np.nan, np.float32)
    block = ckernels.packed(graph, op, kernel)
    addresses = (c_void_p * 4)(*(one.ctypes.data for one in outputs))
    ckernels.call(
        kernel.symbol,
        *(byref(geometry), c_void_p(block.ctypes.data), byref(views[0]), byref(views[1])),
        *(ctypes.cast(addresses, c_void_p), c_void_p(scratch.ctypes.data)),
    )
    assert np.isnan(scratch[-4:]).all()
    for one in outputs:
        assert np.isnan(one[-4:]).all() and not np.isnan(one[:-4]).any()
    return [one[:-4].reshape(shape) for one, shape in zip(outputs, shapes, strict=True)]


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=80)
@given(seed=st.integers(0, 1 << 30), levels=st.sampled_from((2, 8, 256)))
def test_the_kernel_equals_the_reference_and_stays_in_its_memory(seed, levels):
    graph = rewrite(network(KIND, seed, among=False))
    op, rng = graph.ops[-1], np.random.default_rng(seed)
    assert op.kind is KIND
    boxes, scores = (rng.integers(-128, 128, graph.tensors[t].shape).astype(np.int8) for t in op.inputs[:2])
    scores = scores & np.int8(-(256 // levels) if levels > 2 else -128)  # many ties

    expected = execute_op(graph, op, dict(zip(op.inputs[:2], (boxes, scores), strict=True)))
    for ours, right in zip(run(graph, boxes, scores), expected, strict=True):
        assert ours.tobytes() == right.tobytes()
