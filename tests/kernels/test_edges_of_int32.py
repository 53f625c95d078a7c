"""Sums at the limits of int32, and beyond: LiteRT, the reference and the plain kernels agree.

The plain kernels trap on signed overflow here. Layers whose sums may not fit in int32 are refused.
"""

import ctypes
import dataclasses
import itertools
from ctypes import byref, c_void_p

import numpy as np
import pytest
from ckernels import View, call, packed, run_plain
from hostfamily import on_host
from kernelcases import Case, quant, unary
from litert import run_graph
from loaded import load_target
from placement import run_whole
from widecases import conv, dense, depthwise, extreme

from buildtool.base.errors import UnsupportedError
from buildtool.graph.consistency import check_op
from buildtool.graph.limits import MAX_EXPONENTIALS, MAX_MEAN, MAX_SQUARES, MAX_TAPS, MAX_WIDE_MEAN
from buildtool.graph.reference import execute
from buildtool.graph.types import Activation, Attrs, DType, MeanAttrs, OpKind, Pad, PoolAttrs, SoftmaxAttrs
from buildtool.target.catalogue import select
from buildtool.zoo.drawn import NetBuilder

INT8, INT16 = DType.INT8, DType.INT16


def transposed(channels):
    net = NetBuilder(0)
    y = net.transpose_conv(net.input((1, 1, 2, channels)), 2, kernel=(1, 1), stride=(1, 1), same=False)
    return Case(net.graph([y]), (np.zeros((1, 1, 2, channels), np.int8),))


def from_zero_point(case, zero_point):
    tensors = list(case.graph.tensors)
    tensors[0] = dataclasses.replace(tensors[0], quant=quant(tensors[0].quant.scale, zero_point))
    return dataclasses.replace(case, graph=dataclasses.replace(case.graph, tensors=tuple(tensors)))


def one(kind, attrs, shape, out, values, dtype=INT8, **more):
    return unary(kind, attrs, shape, values, out=out, dtype=dtype, **more)


def check(case):
    """Checks that the reference and the plain kernel give LiteRT's result."""
    check_op(case.graph, case.op)
    values = [np.ascontiguousarray(value) for value in case.inputs]
    expected = run_graph(case.graph, values)[case.op.outputs[0]]
    np.testing.assert_array_equal(execute(case.graph, values)[case.op.outputs[0]], expected)
    np.testing.assert_array_equal(run_plain(case.graph, values[0]), expected)


def refused(case, words):
    with pytest.raises(UnsupportedError, match=words):
        check_op(case.graph, case.op)


MOST = {
    "conv": lambda: conv((1, 2), MAX_TAPS, 3),
    "dense": lambda: dense(MAX_TAPS, 3),
    "depthwise": lambda: depthwise((300, 300), 2, (300, 300)),
    "transposed": lambda: transposed(MAX_TAPS),
}


@pytest.mark.parametrize("kind", sorted(MOST))
@pytest.mark.parametrize("zero_point", [-128, 127])
def test_as_many_products_as_are_accepted(kind, zero_point):
    """The sum of products up to 255 * 128 exceeds an int32: LiteRT's sum wraps around, and so do ours."""
    edge_case = from_zero_point(extreme(MOST[kind](), -128, -128 if zero_point == 127 else 127), zero_point)
    expected = run_graph(edge_case.graph, edge_case.inputs)[edge_case.op.outputs[0]]
    np.testing.assert_array_equal(
        execute(edge_case.graph, list(edge_case.inputs))[edge_case.op.outputs[0]], expected
    )
    np.testing.assert_array_equal(run_whole(edge_case), expected)


FAMILIES = {
    "cortex_m_dsp": "cortex-m4",
    "riscv": "qemu-virt-rv32",
    "mul32": "esp8266",
    "xcore_vpu": "xcore",
}


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_same_of_families_that_compile_here(family):
    """Their C code, with traps for undefined behaviour, equals the plain kernels."""
    most = {
        **MOST,
        "depthwise": lambda: depthwise((18724, 9), 4, (18724, 7)),
        "taps": lambda: conv((1, 4), 9, 4),
    }
    del most["transposed"]  # only the plain kernel computes it
    for kind, zero_point in itertools.product(sorted(most), (-128, 127)):
        edge_case = from_zero_point(
            extreme(most[kind](), -128, -128 if zero_point == 127 else 127), zero_point
        )
        with on_host(FAMILIES[family], family):
            run_whole(edge_case)


@pytest.mark.parametrize("side", [(256, 255), (256, 256), (300, 300), (1, 70000)])
@pytest.mark.parametrize("value", [-32768, 32767])
def test_a_mean_of_any_number_of_int16(side, value):
    full = one(OpKind.MEAN, MeanAttrs((1, 2), True), (1, *side, 1), (1, 1, 1, 1), value, INT16)
    check(full)
    half = np.where(np.arange(side[1]) % 3, value, 100)[None, None, :, None]
    check(one(OpKind.MEAN, MeanAttrs((1, 2), True), (1, *side, 1), (1, 1, 1, 1), half, INT16))
    by_parts(full)


def by_parts(case):
    """Computes the same mean row by row: nn_accumulate_s16, then nn_mean_sums_s16."""
    (values,) = case.inputs
    _, rows, columns, _ = values.shape
    row, out, sums = np.ascontiguousarray(values[0, :1]), np.zeros(1, np.int16), np.zeros(1, np.int32)
    view = View(row.ctypes.data, columns * 2, 2, 1, columns, 0, rows, columns, 1)
    for y in range(rows):
        window = (ctypes.c_int32 * 4)(y, y + 1, 0, columns)
        call("nn_accumulate_s16", byref(view), byref(window), c_void_p(sums.ctypes.data))
    kernel = select(load_target("host"), case.graph, case.op)
    block = packed(case.graph, case.op, kernel).ctypes.data
    call("nn_mean_sums_s16", c_void_p(block), c_void_p(sums.ctypes.data), 1, c_void_p(out.ctypes.data))
    assert out[0] == run_graph(case.graph, [np.ascontiguousarray(values)])[1].item()


def test_a_mean_of_as_many_int8_as_are_accepted():
    shape = (1, 65534, 128, 1)
    assert shape[1] * shape[2] <= MAX_MEAN < shape[1] * (shape[2] + 1)
    check(one(OpKind.MEAN, MeanAttrs((1, 2), True), shape, (1, 1, 1, 1), -128, points=(127, 0)))
    more = (1, 65536, 128, 1)
    refused(one(OpKind.MEAN, MeanAttrs((1, 2), True), more, (1, 1, 1, 1), 0), "8388608 values in a mean")


@pytest.mark.parametrize("value", [-32768, 32767])
def test_an_average_of_as_many_int16_as_are_accepted(value):
    def average(columns):
        attrs = PoolAttrs((255, columns), (1, 1), Pad(), Activation.NONE)
        return one(OpKind.AVERAGE_POOL_2D, attrs, (1, 255, columns, 1), (1, 1, 1, 1), value, INT16)

    assert MAX_WIDE_MEAN == 255 * 257
    check(average(257))
    refused(average(258), "65790 values in a mean, more than 65535")


@pytest.mark.parametrize("value", [-128, 127])
def test_as_many_squares_as_are_accepted(value):
    def norm(count):
        shape, more = (1, 1, 1, count), {"scales": (1.0, 1 / 128), "points": (-1 - value, 0)}
        return one(OpKind.L2_NORMALIZATION, Attrs(), shape, shape, value, **more)

    check(norm(MAX_SQUARES))
    refused(norm(MAX_SQUARES + 1), "rows of more than 33025")


def test_rows_of_softmax_as_long_as_are_accepted():
    def logarithms(count, value):
        shape, more = (1, 1, 1, count), {"scales": (0.5, 1 / 16), "points": (0, 127)}
        return one(OpKind.LOG_SOFTMAX, Attrs(), shape, shape, value, **more)

    def wide(count, value):
        shape = (1, 1, 1, count)
        return one(OpKind.SOFTMAX, SoftmaxAttrs(), shape, shape, value, INT16, scales=(0.5, 1 / 32768))

    for value in (-128, 127):
        check(logarithms(MAX_EXPONENTIALS, value))
    refused(logarithms(MAX_EXPONENTIALS + 1, 0), "more than 4095")
    for value in (-32768, 32767):
        check(wide(MAX_WIDE_MEAN, value))
    refused(wide(MAX_WIDE_MEAN + 1, 0), "more than 65535")
