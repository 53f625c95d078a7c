"""Overlap distances: the planner's formula and the checker's replay, both held against simulated bytes."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plan_nets import make_target
from zeronet import Net

from buildtool.graph.types import ConvAttrs, OpKind, Pad, PoolAttrs
from buildtool.plan.check.hazard import unsafe
from buildtool.plan.schedule.overlap import distance
from buildtool.target.catalogue import select_all
from buildtool.target.types import Contract


def simulated(graph, op, operand, contract, shift):
    """Whether a kernel that keeps `contract` finds every input byte intact, `shift` bytes above its output.

    Goes through a real array of bytes: what the contract lets the kernel read at each moment must
    still carry the input's tag. The kernel is as hostile as the contract allows: within a row, all
    is written before anything is read.
    """
    source, result = graph.tensors[operand], graph.tensors[op.outputs[0]]
    memory = np.full(result.size + shift + source.size, -1)
    memory[shift : shift + source.size] = np.arange(source.size)

    def intact(first, end):
        return (memory[shift + first : shift + end] == np.arange(first, end)).all()

    if contract is Contract.PIXEL:
        for e in range(result.elements):
            if not intact(e * source.dtype.size, (e + 1) * source.dtype.size):
                return False
            memory[e * result.dtype.size : (e + 1) * result.dtype.size] = -2
        return True
    _, rows, columns, channels = source.nhwc
    row, out_row = columns * channels, result.size // result.nhwc[1]
    for q in range(result.nhwc[1]):
        memory[q * out_row : (q + 1) * out_row] = -2
        first, end = read_rows(graph, op, q)
        if not intact(max(first, 0) * row, max(min(end, rows), first, 0) * row):
            return False
    return True


def read_rows(graph, op, q):
    """Input rows [first, end) that output row q may read, the border not cut off."""
    if isinstance(op.attrs, ConvAttrs):
        reach = (graph.tensors[op.inputs[1]].shape[1] - 1) * op.attrs.dilation[0] + 1
    elif isinstance(op.attrs, PoolAttrs):
        reach = op.attrs.kernel[0]
    else:
        return q, q + 1
    first = q * op.attrs.stride[0] - op.attrs.pad.top
    return first, first + reach


@st.composite
def windowed(draw):
    """One operator with a window, its geometry odd on purpose: wide pads, large strides, dilation."""
    net = Net((1, draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 5))))
    x = net.inputs[0]
    h = net.shape(x)[1]
    kernel, stride = (draw(st.integers(1, 5)), 1), (draw(st.integers(1, 4)), 1)
    dilation = (draw(st.integers(1, 3)), 1)
    kind = draw(st.sampled_from((OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.MAX_POOL_2D)))
    reach = kernel[0] if kind is OpKind.MAX_POOL_2D else (kernel[0] - 1) * dilation[0] + 1
    top = draw(st.integers(0, 8))
    bottom = max(draw(st.integers(-4, 8)), reach - h - top)
    pad = Pad(top, max(bottom, 0), 0, 0)
    if kind is OpKind.CONV_2D:
        out = net.conv(x, draw(st.integers(1, 9)), kernel, stride, pad, dilation)
    elif kind is OpKind.DEPTHWISE_CONV_2D:
        out = net.depthwise(x, kernel, stride, pad, dilation)
    else:
        assume(_touches_every_window(h, kernel[0], stride[0], pad))
        out = net.max_pool(x, kernel, stride, pad)
    return net.graph(out)


def _touches_every_window(rows, kernel, stride, pad):
    """Whether each window of a pooling has a row of the image, also one that begins at the pad's end."""
    if max(pad.top, pad.bottom) >= kernel:
        return False
    firsts = range(-pad.top, rows + pad.bottom - kernel + 1, stride)
    return all(first < rows and first + kernel > 0 for first in firsts)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=220)
@given(windowed())
def test_the_row_distance_is_safe_and_replay_agrees_with_the_bytes(graph):
    op = graph.ops[0]
    apart = distance(graph, op, 0, Contract.ROW)
    assert simulated(graph, op, 0, Contract.ROW, apart)
    for shift in range(apart + graph.tensors[0].size + 2):
        safe = simulated(graph, op, 0, Contract.ROW, shift)
        # Replay judges by whole rows, so it may refuse what is safe, never the other way round.
        if unsafe(graph, op, 0, Contract.ROW, shift) == "":
            assert safe
        if shift >= apart:
            assert safe and unsafe(graph, op, 0, Contract.ROW, shift) == ""


@settings(derandomize=True, deadline=None, max_examples=120)
@given(windowed())
def test_the_row_distance_is_the_least_where_every_input_row_is_read(graph):
    op = graph.ops[0]
    apart = distance(graph, op, 0, Contract.ROW)
    rows = graph.tensors[0].nhwc[1]
    windows = [read_rows(graph, op, q) for q in range(graph.tensors[op.outputs[0]].nhwc[1])]
    if all(any(a <= r < b for a, b in windows) for r in range(rows)) and apart:
        assert not simulated(graph, op, 0, Contract.ROW, apart - 1)


def test_a_depthwise_of_3x3_needs_two_rows():
    net = Net((1, 10, 4, 8))
    graph = net.graph(net.depthwise(net.inputs[0]))
    assert distance(graph, graph.ops[0], 0, Contract.ROW) == 2 * 4 * 8


def test_a_strided_depthwise_needs_one_output_row():
    net = Net((1, 10, 10, 8))
    graph = net.graph(net.depthwise(net.inputs[0], stride=(2, 2), pad=Pad(0, 1, 0, 1)))
    assert distance(graph, graph.ops[0], 0, Contract.ROW) == 5 * 8


def test_elements_of_one_size_may_lie_on_each_other():
    net = Net((2, 3, 4, 5))
    graph = net.graph(net.relu(net.inputs[0]))
    op = graph.ops[0]
    assert distance(graph, op, 0, Contract.PIXEL) == 0
    for shift in (0, 1, 7, 200):
        assert simulated(graph, op, 0, Contract.PIXEL, shift)
        assert unsafe(graph, op, 0, Contract.PIXEL, shift) == ""
    assert "before it is read" in unsafe(graph, op, 0, Contract.PIXEL, -1)


@pytest.mark.parametrize(("source", "result"), [("int8", "float32"), ("int32", "int8"), ("int8", "int8")])
def test_elements_of_other_sizes_keep_their_distance(source, result):
    net = Net((1, 3, 2, 2))
    out = net.relu(net.inputs[0])
    for t, dtype in ((0, source), (out, result)):
        tensor = net.tensors[t]
        net.tensors[t] = type(tensor)(tensor.name, tensor.shape, type(tensor.dtype)(dtype), tensor.quant)
    graph = net.graph(out)
    op = graph.ops[0]
    apart = distance(graph, op, 0, Contract.PIXEL)
    assert apart == max(0, 11 * (graph.tensors[out].dtype.size - graph.tensors[0].dtype.size))
    assert simulated(graph, op, 0, Contract.PIXEL, apart)
    assert unsafe(graph, op, 0, Contract.PIXEL, apart) == ""
    if apart:
        assert not simulated(graph, op, 0, Contract.PIXEL, apart - 1)
        assert unsafe(graph, op, 0, Contract.PIXEL, apart - 1)


def test_a_broadcast_operand_is_never_overwritten():
    net = Net((1, 4, 4, 3), (1, 1, 1, 3))
    graph = net.graph(net.add(*net.inputs))
    op = graph.ops[0]
    for contract in (Contract.PIXEL, Contract.ROW):
        assert distance(graph, op, 0, contract) is not None
        assert distance(graph, op, 1, contract) is None
        assert unsafe(graph, op, 1, contract, 48)


def test_rows_of_a_batch_are_not_written_over_each_other():
    net = Net((2, 4, 4, 3))
    graph = net.graph(net.depthwise(net.inputs[0]))
    assert distance(graph, graph.ops[0], 0, Contract.ROW) is None
    assert unsafe(graph, graph.ops[0], 0, Contract.ROW, 1000)


def test_a_kernel_without_a_contract_overlaps_nothing():
    net = Net((1, 4, 4, 3))
    graph = net.graph(net.relu(net.inputs[0]))
    assert distance(graph, graph.ops[0], 0, Contract.NONE) is None
    assert unsafe(graph, graph.ops[0], 0, Contract.NONE, 0)


def test_a_sum_of_parts_of_the_channels_lies_a_row_below_what_it_reads():
    """Its kernel is called on some channels after the others: elements are in no ascending order."""
    net = Net((1, 5, 4, 9), (1, 5, 4, 6))
    graph = net.graph(net.widened(*net.inputs, 2))
    target = make_target()
    (op,), (kernel,) = graph.ops, select_all(target, graph)
    whole, narrow = net.inputs
    assert kernel.overlap is Contract.ROW
    assert next(k for k in target.kernels if k.op == op.kind).overlap is Contract.PIXEL
    assert distance(graph, op, whole, kernel.overlap) == 4 * 9
    assert simulated(graph, op, whole, kernel.overlap, 4 * 9)
    assert not unsafe(graph, op, whole, kernel.overlap, 4 * 9)
    assert unsafe(graph, op, whole, kernel.overlap, 4 * 9 - 1)
    assert distance(graph, op, narrow, kernel.overlap) is None
    assert unsafe(graph, op, narrow, kernel.overlap, 10**6)
