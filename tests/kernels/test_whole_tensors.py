"""Kernels with addresses and numbers as arguments: means, mirror padding, copies, fills, concatenations."""

import ctypes
from ctypes import byref, c_int32, c_void_p

import numpy as np
from ckernels import View, call, catalogue, constants, geometry, numbers, six
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcases import alone, means
from litert import run_graph
from placement import Room

from buildtool.emit.packing import pack
from buildtool.graph.types import OpKind, PadMode

EXAMPLES = settings(max_examples=60, derandomize=True, deadline=None)
RANK = 6


def expected(case):
    return run_graph(case.graph, case.inputs)[case.op.outputs[0]]


def room_for(shape):
    return Room(np.random.default_rng(0), int(np.prod(shape, dtype=int)))


@EXAMPLES
@given(case=means())
def test_a_mean_over_any_axes(case):
    block = constants(pack(case.graph, case.op, catalogue()["MEAN"]))
    x, room = np.ascontiguousarray(case.inputs[0]), room_for(case.out_shape)
    places = (c_void_p(array.ctypes.data) for array in (block, x, room.middle))
    call("nn_mean_s8", byref(geometry(case.graph, case.op)), *places)
    room.check_guards()
    np.testing.assert_array_equal(room.middle.reshape(case.out_shape), expected(case))


@EXAMPLES
@given(case=alone(OpKind.MIRROR_PAD))
def test_mirrored_padding(case):
    x, attrs = np.ascontiguousarray(case.inputs[0]), case.op.attrs
    before, after = zip(*attrs.paddings, strict=True)
    is_symmetric = int(attrs.mode is PadMode.SYMMETRIC)
    shape = numbers(x.ndim, *six(x.shape), *six(before), *six(after), is_symmetric)
    room = room_for(case.out_shape)
    call("nn_mirror_pad_s8", byref(shape), c_void_p(x.ctypes.data), c_void_p(room.middle.ctypes.data))
    room.check_guards()
    np.testing.assert_array_equal(room.middle.reshape(case.out_shape), expected(case))


@st.composite
def boxes(draw):
    """Draws the shape of a tensor, a box in it with steps, and the order in which dimensions are written."""
    rank = draw(st.integers(1, RANK))
    shape = [draw(st.integers(1, 4)) for _ in range(rank)]
    slices = []
    for n in shape:
        first, last = sorted((draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))))
        step, down = draw(st.integers(1, 2)), slice(last, first - 1 if first else None)
        slices.append(
            slice(down.start, down.stop, -step) if draw(st.booleans()) else slice(first, last + 1, step)
        )
    return shape, tuple(slices), draw(st.permutations(range(rank)))


@EXAMPLES
@given(box=boxes())
def test_a_box_copied_between_any_two_layouts(box):
    shape, slices, order = box
    source = np.random.default_rng(0).integers(-128, 128, shape, dtype=np.int8)
    expected = source[slices].transpose(order)
    # The output's own layout is that of `wanted`; its strides in the box's order:
    strides = [expected[0:0].size] * len(shape)
    step = 1
    for d in reversed(range(len(shape))):
        strides[order[d]] = step
        step *= expected.shape[d]
    view = source[slices]
    offset = view.ctypes.data - source.ctypes.data
    walk = numbers(len(shape), *six(view.shape), *six(view.strides), *six(strides))
    room = room_for(expected.shape)
    ends = (c_void_p(source.ctypes.data + offset), c_void_p(room.middle.ctypes.data))
    call("nn_copy_s8", byref(walk), *ends)
    room.check_guards()
    np.testing.assert_array_equal(room.middle.reshape(expected.shape), expected)


@EXAMPLES
@given(value=st.integers(-128, 127), size=st.integers(0, 70))
def test_a_fill_writes_every_byte_and_no_other(value, size):
    room = room_for((size,))
    block = (c_int32 * 4)(value)
    call("nn_fill_s8", ctypes.cast(block, c_void_p), c_void_p(room.middle.ctypes.data), c_int32(size))
    room.check_guards()
    assert np.all(room.middle == value)


def ring(array, shape):
    """Returns a view of `array`, a ring buffer with a part of a tensor of `shape`."""
    rows, columns, channels = array.shape
    return View(array.ctypes.data, columns * channels, channels, rows, columns, 0, *shape)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(data=st.data())
def test_a_part_goes_to_its_channels(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    height, width, channels, all_channels = draw(1, 6), draw(1, 6), draw(1, 5), draw(5, 9)
    y0, x0, channel = draw(0, height - 1), draw(0, width - 1), draw(0, all_channels - channels)
    y1, x1 = draw(y0 + 1, height), draw(x0 + 1, width)
    random = np.random.default_rng(draw(0, 99))
    sizes = [(draw(y1 - y0, height), draw(x1 - x0, width), n) for n in (channels, all_channels)]
    source, result = (random.integers(-128, 128, shape, dtype=np.int8) for shape in sizes)
    expected = result.copy()
    for y in range(y0, y1):
        for x in range(x0, x1):
            pixel = source[y % sizes[0][0], x % sizes[0][1]]
            expected[y % sizes[1][0], x % sizes[1][1], channel : channel + channels] = pixel
    views = ring(source, (height, width, channels)), ring(result, (height, width, all_channels))
    call("nn_concat_s8", *map(byref, views), byref(numbers(y0, y1, x0, x1)), c_int32(channel))
    np.testing.assert_array_equal(result, expected)
