"""Joined maps and the TRANSPOSEs behind them: less is moved, and no byte of the results changes."""

import math
from collections import Counter
from functools import partial

import litert
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from namednets import requantise_as
from onnxnets import Qdq
from onnxnets import compared as compared_onnx
from yolonets import box_sides, joined_heads, taken_along, yolo_v5, yolo_v8

from buildtool.graph import types as g
from buildtool.graph.flow import flow_of, lives, peak
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Graph, OpKind
from buildtool.zoo.drawn import NetBuilder

MOVES = (OpKind.TRANSPOSE, OpKind.CONCATENATION, OpKind.STRIDED_SLICE)


def live_peak(graph: Graph) -> int:
    """Returns the largest number of bytes that are live at once, operator by operator."""
    return peak(lives(flow_of(graph)))


def moved(graph: Graph) -> int:
    """Returns the bytes that operators write which only move elements."""
    return sum(graph.tensors[t].size for op in graph.ops if op.kind in MOVES for t in op.outputs)


def compared(graph: Graph, seed: int) -> Graph:
    """Returns the rewritten network, whose outputs equal LiteRT's outputs of the file."""
    draw = np.random.default_rng(seed)
    shapes = [graph.tensors[t].shape for t in graph.inputs]
    return litert.rewritten(graph, [draw.integers(-128, 128, shape).astype(np.int8) for shape in shapes])


@settings(max_examples=15, deadline=None)
@given(
    size=st.integers(17, 40),
    width=st.integers(1, 6),
    classes=st.integers(2, 9),
    alike=st.booleans(),
    seed=st.integers(0, 99),
)
def test_each_map_is_decoded_by_itself(size, width, classes, alike, seed):
    graph = yolo_v8(size, width, classes, alike=alike, seed=seed)
    after = compared(graph, seed)
    planes = [op for op in after.ops if op.attrs == g.TransposeAttrs((0, 3, 1, 2))]
    anchors = sum(math.prod(after.tensors[op.inputs[0]].shape[1:3]) for op in planes)
    joined = {after.tensors[op.outputs[0]].shape for op in after.ops if op.kind is OpKind.CONCATENATION}
    assert {(1, 4, anchors, 1), (1, classes, anchors), (1, 4 + classes, anchors)} == joined
    softmax = [after.tensors[op.inputs[0]].shape for op in after.ops if op.kind is OpKind.SOFTMAX]
    maps = [after.tensors[op.inputs[0]].shape for op in planes]
    assert softmax == [(1, rows, columns * 4, 16) for _, rows, columns, _ in maps]
    assert moved(after) < moved(graph) and live_peak(after) < live_peak(graph)


def test_the_decoding_of_yolo_v5_stays_as_it_is():
    graph = yolo_v5(20, 3, 2)
    after = compared(graph, 1)
    kept = [op.kind for op in after.ops if op.kind in MOVES]
    assert kept == [op.kind for op in graph.ops if op.kind in MOVES]


def _heads(first=0, *, is_output=False, is_read=False):
    """Heads of two maps. The boxes begin at channel `first`, and others may need the joined map."""
    net = NetBuilder(4)
    maps = [net.conv(net.input((1, n, n + 1, 2)), 5) for n in (4, 3)]
    joined = joined_heads(net, maps, 4, 3)
    outputs = [taken_along(net, joined, 1, 16, 3), box_sides(net, taken_along(net, joined, 1, first, 16), 4)]
    outputs += [joined] if is_output else []
    outputs += [net.unary(OpKind.TANH, joined)] if is_read else []
    return net.graph(outputs)


@pytest.mark.parametrize(
    ("changed", "joined"),
    [({}, False), ({"first": 1}, True), ({"is_output": True}, True), ({"is_read": True}, True)],
)
def test_a_joined_map_that_is_needed_stays_joined(changed, joined):
    after = compared(_heads(**changed), 3)
    assert ((1, 19, 32) in [after.tensors[op.outputs[0]].shape for op in after.ops]) == joined


@pytest.mark.parametrize(
    ("inputs", "outputs", "kernel", "repeated"),
    [(6, 5, 1, 2), (6, 6, 1, 1), (6, 5, 2, 1), (100, 50, 1, 1)],  # the last one's weights are large
)
def test_what_does_not_get_smaller_by_itself_is_computed_once(inputs, outputs, kernel, repeated):
    net = NetBuilder(5)
    first, second = (net.conv(net.input((1, n, 4, 3)), inputs) for n in (5, 2))
    x = net.unary(OpKind.LOGISTIC, net.concat([first, requantise_as(net, second, first)], 1))
    after = compared(net.graph([net.conv(x, outputs, kernel=(kernel, kernel))]), 7)
    assert Counter(op.kind for op in after.ops)[OpKind.LOGISTIC] == repeated


@pytest.mark.parametrize("elsewhere", [False, True])
def test_planes_are_made_map_by_map(elsewhere):
    """Maps are joined as rows, and the result is transposed at the network's end."""
    net, rows = NetBuilder(6), list[int]()
    for n in (5, 3):
        x = net.conv(net.input((1, n, 4, 2)), 6)
        rows.append(net.move(OpKind.RESHAPE, requantise_as(net, x, rows[0]) if rows else x, (1, n * 4, 6)))
    joined = net.concat(rows, 1)
    planes = net.move(
        OpKind.TRANSPOSE, net.unary(OpKind.TANH, joined), (1, 6, 32), g.TransposeAttrs((0, 2, 1))
    )
    others = [net.softmax(joined)] if elsewhere else []
    after = compared(net.graph([planes, *others]), 2)
    (join,) = (op for op in after.ops if op.kind is OpKind.CONCATENATION)
    moves = [op.attrs for op in after.ops if op.kind is OpKind.TRANSPOSE]
    expected = (1, [g.TransposeAttrs((0, 2, 1))]) if elsewhere else (2, [g.TransposeAttrs((0, 3, 1, 2))] * 2)
    assert (join.attrs.axis, moves) == expected


@pytest.mark.parametrize("kind", ["Split", "Slice"])
def test_heads_as_pytorch_exports_them(kind):
    net, parts, joins = Qdq((1, 3, 16, 16)), [], partial(Qdq.q, scale=0.05, zero=2)
    x, channels = net.x, 3
    for _ in range(2):
        x, channels = net.q(net.node("Relu", [net.conv(x, channels, 6, strides=[2, 2])]), 0.05, -128), 6
        heads = [joins(net, net.conv(x, 6, n, 1)) for n in (64, 5)]
        y = joins(net, net.node("Concat", heads, axis=1))
        parts.append(joins(net, net.node("Reshape", [y, [1, 69, -1]])))
    y = joins(net, net.node("Concat", parts, axis=2))
    if kind == "Split":
        boxes, scores = net.node("Split", [y, [64, 5]], 2, axis=1)
    else:
        boxes, scores = (net.node("Slice", [y, [a], [b], [1]]) for a, b in ((0, 64), (64, 69)))
    x = joins(net, net.node("Reshape", [joins(net, boxes), [1, 4, 16, -1]]))
    x = joins(net, net.node("Transpose", [x], perm=[0, 2, 1, 3]))
    x = net.q(net.node("Softmax", [x], axis=1), 1 / 256, -128)
    x = net.q(net.node("Reshape", [net.q(net.conv(x, 16, 1, 1, bias=False), 0.05), [1, 4, -1]]), 0.05)
    scores = net.q(net.node("Sigmoid", [joins(net, scores)]), 1 / 256, -128)
    graph, steps = compared_onnx(net.model([x, scores]))
    shapes = {op.kind: [graph.tensors[t].shape for t in op.inputs] for op in graph.ops}
    assert shapes[OpKind.CONCATENATION] == [(1, 5, 64), (1, 5, 16)]
    smallest = [graph.tensors[op.outputs[0]].elements for op in graph.ops if op.kind is OpKind.TRANSPOSE]
    assert sorted(smallest) == [5 * 16, 5 * 64, 4 * 80] and (steps == 0).mean() > 0.99


@st.composite
def chains(draw):
    """Draws a shape, and shapes and permutations of it in turn."""
    shape = draw(st.lists(st.sampled_from((1, 2, 3, 4, 6)), min_size=2, max_size=4))
    moves, now = [], tuple(shape)
    for _ in range(draw(st.integers(2, 5))):
        if draw(st.booleans()):
            perm = tuple(draw(st.permutations(range(len(now)))))
            now = tuple(now[p] for p in perm)
            moves.append(("perm", perm))
        else:
            factors, rest = [], math.prod(now)
            while len(factors) < 3:
                factors.append(draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0])))
                rest //= factors[-1]
            now = (*factors, rest)
            moves.append(("shape", now))
    return tuple(shape), moves


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(chain=chains())
def test_moves_in_a_row_are_at_most_one_transposition_where_reshapes_divide_dimensions(chain):
    shape, moves = chain
    net = NetBuilder(1)
    source = net.input(shape)
    x = net.unary(OpKind.TANH, source)
    values = np.random.default_rng(2).integers(-128, 128, shape).astype(np.int8)
    for kind, to in moves:
        if kind == "perm":
            x = net.move(OpKind.TRANSPOSE, x, [net.shape(x)[p] for p in to], g.TransposeAttrs(to))
        else:
            x = net.move(OpKind.RESHAPE, x, to)
    graph = net.graph([net.unary(OpKind.TANH, x)])
    after = rewrite(graph)
    expected = execute(graph, [values])[graph.outputs[0]]
    np.testing.assert_array_equal(execute(after, [values])[after.outputs[0]], expected)
    left = [op for op in after.ops if op.kind is OpKind.TRANSPOSE]
    assert len(left) <= max(1, sum(kind == "perm" for kind, _ in moves))
    places = np.arange(math.prod(shape)).reshape(shape)
    for kind, to in moves:
        places = places.transpose(to) if kind == "perm" else places.reshape(to)
    if np.array_equal(places.reshape(-1), np.arange(math.prod(shape))):
        assert not left or not divides(shape, moves)


def divides(shape, moves) -> bool:
    """Whether numpy can do all these moves without a copy, as every RESHAPE only divides and joins."""
    places = np.empty(shape, np.int8)
    for kind, to in moves:
        places = places.transpose(to) if kind == "perm" else places.view()
        if kind == "shape":
            try:
                places.shape = to
            except AttributeError:
                return False
    return True
