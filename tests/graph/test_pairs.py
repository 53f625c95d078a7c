"""Comparisons, quotients, roots and SELECT in corner cases and as lookups."""

import numpy as np
import pytest
from litert import run
from samplefiles import Sheet, Tensor

from buildtool.base.errors import BuildtoolError, ToolError, UnsupportedError
from buildtool.base.modes import Reference
from buildtool.firmware.run.compare import referrer
from buildtool.graph.consistency import check_graph
from buildtool.graph.limits import MAX_EXPONENTIALS, MAX_SQUARES
from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Attrs, DType, Op, OpKind, QuotientAttrs
from buildtool.target.catalogue import constants_bytes, operands, select
from buildtool.target.registry import load_target
from buildtool.zoo.drawn import NetBuilder, quant

ALL_BYTES = np.arange(-128, 128).astype(np.int8)


def compute(kind, *quants, values=(), attrs=None, out=None):
    """Returns an operator's outputs for all bytes of its first input; `values` are its other inputs."""
    net = NetBuilder(1)
    inputs = [net.input((256,), q=q) for q in quants]
    y = net.op(kind, inputs, attrs or Attrs(), out or quant(0.05, 3))
    graph = net.graph([y])
    return execute(graph, [ALL_BYTES, *values])[y].astype(int)


def test_a_quotient_by_zero_is_the_end_of_the_range():
    zero = np.full(256, 9, np.int8)
    outputs = compute(OpKind.DIV, quant(0.1, -5), quant(0.1, 9), values=[zero], attrs=QuotientAttrs())
    assert outputs.tolist() == [-128 if x < -5 else 3 if x == -5 else 127 for x in range(-128, 128)]


@pytest.mark.parametrize("wraps", [False, True])
def test_a_tiny_quotient_wraps_or_is_zero(wraps):
    """The result is that of LiteRT's shift by 32 bits or more, or the nearest number, which is 0."""
    quants, large = (quant(0.01, 0), quant(1.0, -128)), np.full(256, 127, np.int8)
    attrs = QuotientAttrs(wraps=wraps)
    assert compute(OpKind.DIV, *quants, values=[large], attrs=attrs, out=quant(0.2, 0)).any() == wraps


def test_the_root_of_a_negative_value_is_the_least_output():
    roots, inverse = (compute(kind, quant(0.1, 20)) for kind in (OpKind.SQRT, OpKind.RSQRT))
    assert set(roots[: 128 + 20]) == set(inverse[: 128 + 20]) == {-128}
    assert inverse[128 + 20] == 127


@pytest.mark.parametrize("board", ["cortex-m55", "qemu-virt-rv32"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    "kind", [OpKind.MAXIMUM, OpKind.SQUARED_DIFFERENCE, OpKind.DIV, OpKind.LESS, OpKind.SELECT_V2]
)
def test_a_pair_with_one_constant_element_is_a_lookup(board, first, kind):
    net = NetBuilder(2)
    x, one = net.input((1, 4, 5, 6)), net.constant((1,))
    if kind is OpKind.SELECT_V2:
        y = net.select(net.pair(OpKind.LESS, x, one), net.constant((1,)), net.constant((1, 1)))
    else:
        attrs = QuotientAttrs() if kind is OpKind.DIV else Attrs()
        truth = kind is OpKind.LESS
        dtype, q = (DType.BOOL, None) if truth else (DType.INT8, quant(0.5, 0))
        y = net.op(kind, (one, x) if first else (x, one), attrs, q, dtype)
    graph, target = net.graph([y]), load_target(board)
    kernel = select(target, graph, graph.ops[-1])
    assert kernel.packing == "lut"
    assert constants_bytes(kernel, graph, graph.ops[-1]) == 256
    (operand,) = operands(kernel, graph, graph.ops[-1])
    assert not graph.tensors[operand].is_constant


@pytest.mark.parametrize(
    ("kind", "most"), [(OpKind.L2_NORMALIZATION, MAX_SQUARES), (OpKind.LOG_SOFTMAX, MAX_EXPONENTIALS)]
)
def test_rows_whose_sums_may_not_fit_are_refused(kind, most):
    for size in (most, most + 1):
        net = NetBuilder(4)
        graph = net.graph([net.normalise(kind, net.input((1, size)))])
        if size == most:
            check_graph(graph)
            wide = np.full((1, size), -128, np.int8)
            execute(graph, [wide])
        else:
            with pytest.raises(UnsupportedError, match=f"more than {most}"):
                check_graph(graph)


@pytest.mark.parametrize("scale", [2.0**-26, 2.0**-25, 15.9, 16.0])
def test_a_log_softmax_takes_the_scales_that_it_has_factors_for(scale):
    net = NetBuilder(4)
    y = net.normalise(OpKind.LOG_SOFTMAX, net.input((1, 8), q=quant(scale, 3)))
    data = write_model(net.graph([y]))
    if scale in (2.0**-26, 16.0):
        with pytest.raises(UnsupportedError, match="below 16"):
            read_model(data)
    else:
        values = np.arange(-128, 128, 32).astype(np.int8).reshape(1, 8)
        graph = read_model(data)
        np.testing.assert_array_equal(execute(graph, [values])[y], run(data, [values])[y])


def test_a_comparison_of_scales_from_one_on_is_refused():
    net = NetBuilder(5)
    x = net.input((4,), q=quant(1.0, -128))
    with pytest.raises(UnsupportedError, match="scale of 1 or more"):
        check_graph(net.graph([net.pair(OpKind.LESS, x, net.constant((1,)))]))


@pytest.mark.parametrize("kind", [OpKind.LOGICAL_AND, OpKind.LOGICAL_NOT, OpKind.SELECT_V2])
def test_truth_values_are_demanded(kind):
    net = NetBuilder(6)
    x = net.input((4,))
    inputs = {OpKind.LOGICAL_AND: (x, x), OpKind.LOGICAL_NOT: (x,), OpKind.SELECT_V2: (x, x, x)}[kind]
    out = net.tensor((4,), None, DType.BOOL)
    net.ops.append(Op(kind, inputs, (out,)))
    with pytest.raises(BuildtoolError, match="expected bool"):
        check_graph(net.graph([out]))


def test_one_truth_value_of_the_file_is_a_constant_operand():
    """It has no dimensions, as converters write `x and True`. Every byte except 0 is true."""
    sheet = Sheet()
    x = sheet.add(Tensor((4,), "bool", scale=None))
    one = sheet.add(Tensor((), "bool", np.array(7, np.uint8), scale=None))
    y = sheet.apply("LOGICAL_AND", [x, one], (4,), dtype="bool", scale=None)
    graph = read_model(sheet.bytes([x], [y]))
    value = np.array([True, False, True, False])
    np.testing.assert_array_equal(execute(graph, [value])[graph.outputs[0]], value)


def test_a_condition_that_chooses_slices_is_refused():
    sheet = Sheet()
    condition = sheet.add(Tensor((3,), "bool", scale=None))
    a, b = sheet.add(Tensor((3, 4))), sheet.add(Tensor((3, 4)))
    y = sheet.apply("SELECT", [condition, a, b], (3, 4))
    with pytest.raises(UnsupportedError, match="whole slices"):
        read_model(sheet.bytes([condition, a, b], [y]))


def test_an_error_says_where_litert_stops():
    net = NetBuilder(7)
    x = net.input((256,), q=quant(0.1, 0))
    y = net.op(OpKind.SQRT, (x,), Attrs(), quant(0.1, 0))
    graph = net.graph([y])
    with pytest.raises(ToolError, match=r"LiteRT stops: .*non-negative"):
        referrer(Reference.LITERT, write_model(graph), graph, graph)([ALL_BYTES], False)
