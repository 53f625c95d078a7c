"""Overlap distances: the planner's formula and the checker's replay, compared with simulated bytes."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plan_nets import make_target
from zeronet import Net

from buildtool.base.errors import PlanError
from buildtool.graph.types import AxisAttrs, ConvAttrs, OpKind, Pad, PoolAttrs
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.check.check import check
from buildtool.plan.check.hazard import unsafe
from buildtool.plan.schedule.overlap import distance
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Region, Scheme
from buildtool.target.catalogue import select_all
from buildtool.target.types import Contract


def simulated(graph, op, operand, contract, shift):
    """Whether a kernel that keeps `contract` finds every input byte intact, `shift` bytes above its output.

    It uses a real array of bytes: every byte that the contract lets the kernel read must still carry the
    input's tag at that time. The kernel is as hostile as the contract allows: within a row, it writes
    everything before it reads anything.
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
    """Input rows [first, end) that output row q may read, not clipped at the border."""
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
    """One operator with a window of unusual geometry: wide pads, large strides, dilation."""
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
    """Whether each window of a pooling contains a row of the image, also one that begins at the pad's end."""
    if max(pad.top, pad.bottom) >= kernel:
        return False
    firsts = range(-pad.top, rows + pad.bottom - kernel + 1, stride)
    return all(first < rows and first + kernel > 0 for first in firsts)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=100)
@given(windowed())
def test_the_row_distance_is_safe_and_replay_agrees_with_the_bytes(graph):
    op = graph.ops[0]
    apart = distance(graph, op, 0, Contract.ROW)
    assert simulated(graph, op, 0, Contract.ROW, apart)
    for shift in range(apart + graph.tensors[0].size + 2):
        safe = simulated(graph, op, 0, Contract.ROW, shift)
        # The replay judges by whole rows, so it may refuse safe shifts, but never accepts unsafe ones.
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


def joined(axis, *shapes, twice=False):
    """The concatenation of tensors of some shapes, or of the first one with itself."""
    net = Net(*shapes)
    return net.graph(net.add_op(OpKind.CONCATENATION, net.inputs * (1 + twice), AxisAttrs(axis)))


def unary(make, shape):
    """A network of an input with a shape and the operator that `make` adds."""
    net = Net(shape)
    return net.graph(make(net, net.inputs[0]))


def added():
    net = Net((1, 4, 4, 3), (1, 1, 1, 3))
    return net.graph(net.add(*net.inputs))


ROW, PIXEL, PARTS, NONE = Contract.ROW, Contract.PIXEL, Contract.PARTS, Contract.NONE
KNOWN = {  # a network of one operator, its operand, the contract, the distance in bytes
    "a depthwise of 3x3: two rows": (unary(Net.depthwise, (1, 10, 4, 8)), 0, ROW, 2 * 4 * 8),
    "a strided depthwise: one row of the output": (
        unary(lambda net, x: net.depthwise(x, stride=(2, 2), pad=Pad(0, 1, 0, 1)), (1, 10, 10, 8)),
        *(0, ROW, 5 * 8),
    ),
    "elements of one size": (unary(Net.relu, (2, 3, 4, 5)), 0, PIXEL, 0),
    "the wide operand of two, element by element": (added(), 0, PIXEL, 0),
    "the wide operand of two, row by row": (added(), 0, ROW, 4 * 3),
    "a broadcast operand, element by element": (added(), 1, PIXEL, None),
    "a broadcast operand, row by row": (added(), 1, ROW, None),
    "rows of a batch": (unary(Net.depthwise, (2, 4, 4, 3)), 0, ROW, None),
    "a kernel without a contract": (unary(Net.relu, (1, 4, 4, 3)), 0, NONE, None),
    "the first of parts below each other": (joined(1, (1, 4, 5, 2), (1, 3, 5, 2)), 0, PARTS, 0),
    "the second of parts below each other": (joined(1, (1, 4, 5, 2), (1, 3, 5, 2)), 1, PARTS, 40),
    "the first of parts side by side": (joined(3, (1, 4, 5, 6), (1, 4, 5, 2)), 0, PARTS, 19 * 2),
    "a part that is there twice": (joined(3, (1, 2, 2, 4), twice=True), 0, PARTS, None),
}


@pytest.mark.parametrize("name", KNOWN)
def test_operators_have_the_distance_that_is_known(name):
    """The check allows the distance and larger ones. If there is none, it refuses all distances."""
    graph, operand, contract, apart = KNOWN[name]
    op = graph.ops[0]
    assert distance(graph, op, operand, contract) == apart
    for shift in (0, 1, 7, 1000):
        assert (unsafe(graph, op, operand, contract, (apart or 0) + shift) == "") is (apart is not None)
    if contract is PIXEL and apart == 0:
        assert "before it is read" in unsafe(graph, op, operand, contract, -1)


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


def test_a_sum_of_parts_of_the_channels_lies_a_row_below_what_it_reads():
    """Its kernel is called for some channels after the others, so elements are not in ascending order."""
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


@st.composite
def concatenations(draw):
    """Two to four parts, along any axis."""
    axis = draw(st.integers(0, 3))
    side = st.integers(1, 4)
    shape = [draw(side) for _ in range(4)]
    shapes = [[*shape[:axis], draw(side), *shape[axis + 1 :]] for _ in range(draw(st.integers(2, 4)))]
    net = Net(*shapes)
    out = net.add_op(OpKind.CONCATENATION, net.inputs, AxisAttrs(axis))
    return net.graph(out)


def copied(graph, operand, shift):
    """Whether every byte of the operand is intact when it is copied, byte by byte and part after part.

    `goals`: the target of each copied byte, in the order of the copies. The operand's byte n lies at
    shift + n, and is lost if an earlier copy writes there.
    """
    goals, mine = copies(graph, operand)
    written = np.full(len(goals), len(goals))  # the copy that writes each byte of the result
    written[goals] = np.arange(len(goals))
    for first in mine:  # an operand that occurs twice is read twice
        size = graph.tensors[operand].size
        places = shift + np.arange(size)
        inside = (places >= 0) & (places < len(goals))
        if (written[places[inside]] < first + np.arange(size)[inside]).any():
            return False
    return True


@functools.lru_cache(maxsize=1)
def copies(graph, operand):
    """The target of every copy, and the number of the first copy of each part that is `operand`."""
    op = graph.ops[0]
    axis = op.attrs.axis
    result = graph.tensors[op.outputs[0]]
    places = np.arange(result.size).reshape(result.shape)
    goals, mine, start, done = [], [], 0, 0
    for t in op.inputs:
        extent = graph.tensors[t].shape[axis]
        goals.append(places.take(range(start, start + extent), axis).reshape(-1))
        mine += [done] if t == operand else []
        start, done = start + extent, done + len(goals[-1])
    return np.concatenate(goals), mine


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=40)
@given(concatenations())
def test_the_distance_is_safe_and_the_check_agrees_with_the_bytes(graph):
    op = graph.ops[0]
    for t in op.inputs:
        apart = distance(graph, op, t, Contract.PARTS)
        for shift in range(-3, graph.tensors[op.outputs[0]].size + 3):
            safe = copied(graph, t, shift)
            said = unsafe(graph, op, t, Contract.PARTS, shift)
            assert safe or said != ""
            if shift >= apart:
                assert safe and said == ""


def test_what_is_made_after_the_first_group_may_lie_over_the_ring_of_the_image():
    """One row lower, the image's ring is overwritten while it is still read."""
    net = Net((1, 12, 6, 4))
    x = net.depthwise(net.inputs[0], (5, 1), (1, 1), Pad(2, 2, 0, 0))
    graph = net.graph(net.depthwise(x, (5, 1), (1, 1), Pad()))
    groups = tuple(Group((position,), Scheme.OPERATOR, 1) for position in range(2))
    target = make_target(alignment=1)
    timeline = Timeline.of(graph, (Region(groups),), "stream")
    plan = assemble(timeline, target, select_all(target, graph), strategy="test", in_place="rows")
    check(plan, graph, target)
    (overlap,) = plan.overlaps
    ring, result = plan.buffers[overlap.input], plan.buffers[overlap.output]
    assert (ring.tensors, ring.rows, result.tensors) == (graph.inputs, 5, graph.outputs)
    row = 6 * 4
    assert (result.size, overlap.distance) == (8 * row, 7 * row)  # the last row comes after the image
    assert plan.arena_bytes == 7 * row + ring.size + 5 * row  # with the ring of the other tensor

    def moved(offset):
        buffers = (b if b.rows else replace(b, offset=0) for b in plan.buffers)
        buffers = (replace(b, offset=1000) if b.rows and b is not ring else b for b in buffers)
        every = tuple(replace(b, offset=offset) if b.tensors == ring.tensors else b for b in buffers)
        return replace(plan, buffers=every, arena_bytes=1000 + 5 * row, arena_bound_bytes=0)

    check(moved(overlap.distance), graph, target)
    with pytest.raises(PlanError, match="not in the arena when they are read"):
        check(moved(overlap.distance - row), graph, target)
