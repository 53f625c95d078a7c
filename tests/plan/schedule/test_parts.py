"""Concatenations whose parts lie where they go to, or above: formula and check against simulated bytes."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import make_target
from zeronet import Net

from buildtool.api import handle
from buildtool.base.errors import PlanError
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import AxisAttrs, OpKind
from buildtool.plan.assemble import layerwise
from buildtool.plan.check.check import check
from buildtool.plan.check.hazard import unsafe
from buildtool.plan.schedule.overlap import distance
from buildtool.target.types import Contract
from buildtool.zoo.drawn import NetBuilder


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


def simulated(graph, operand, shift):
    """Whether copying byte by byte, part after part, finds every byte of the operand intact.

    `goals`: where each copied byte goes, in the order of the copies; the operand's byte n lies at
    shift + n, and is lost if a copy before its own wrote there.
    """
    goals, mine = copies(graph, operand)
    written = np.full(len(goals), len(goals))  # the copy that writes each byte of the result
    written[goals] = np.arange(len(goals))
    for first in mine:  # an operand that is there twice is read twice
        size = graph.tensors[operand].size
        places = shift + np.arange(size)
        inside = (places >= 0) & (places < len(goals))
        if (written[places[inside]] < first + np.arange(size)[inside]).any():
            return False
    return True


@functools.lru_cache(maxsize=1)
def copies(graph, operand):
    """Where every copy writes, and the number of the first copy of each part that is `operand`."""
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
@settings(derandomize=True, deadline=None, max_examples=80)
@given(concatenations())
def test_the_distance_is_safe_and_the_check_agrees_with_the_bytes(graph):
    op = graph.ops[0]
    for t in op.inputs:
        apart = distance(graph, op, t, Contract.PARTS)
        for shift in range(-3, graph.tensors[op.outputs[0]].size + 3):
            safe = simulated(graph, t, shift)
            said = unsafe(graph, op, t, Contract.PARTS, shift)
            assert safe or said != ""
            if shift >= apart:
                assert safe and said == ""


def test_parts_below_each_other_may_lie_where_they_go_to():
    net = Net((1, 4, 5, 2), (1, 3, 5, 2))
    out = net.add_op(OpKind.CONCATENATION, net.inputs, AxisAttrs(1))
    graph = net.graph(out)
    assert [distance(graph, graph.ops[0], t, Contract.PARTS) for t in net.inputs] == [0, 40]


def test_of_parts_side_by_side_the_first_may_lie_at_the_end():
    net = Net((1, 4, 5, 6), (1, 4, 5, 2))
    graph = net.graph(net.concat(net.inputs))
    op = graph.ops[0]
    assert distance(graph, op, 0, Contract.PARTS) == 19 * 2
    assert graph.tensors[op.outputs[0]].size - 19 * 2 == graph.tensors[0].size + 2


def test_a_part_that_is_there_twice_stays():
    net = Net((1, 2, 2, 4))
    graph = net.graph(net.concat([0, 0]))
    assert distance(graph, graph.ops[0], 0, Contract.PARTS) is None
    assert unsafe(graph, graph.ops[0], 0, Contract.PARTS, 1000)


def heads(axis):
    """Two branches whose results are concatenated and pooled: concatenation needs most memory."""
    net = NetBuilder(3)
    x = net.input((1, 12, 6, 4))
    a, b = net.conv(x, 24, kernel=(3, 3), same=True), net.conv(x, 24)
    joined = net.concat([a, b], axis=axis)
    return net.graph([net.conv(joined, 3)])


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_concatenations_in_place_need_less_and_compute_the_same(axis, tmp_path):
    path = tmp_path / "heads.tflite"
    path.write_bytes(write_model(heads(axis)))
    request = {"model": str(path), "board": "host"}
    sizes = {}
    for in_place in ("rows", "none"):
        options = {"strategy": "layerwise", "in_place": in_place}
        sizes[in_place] = handle({"kind": "plan", **request, "options": options})["arena_bytes"]
    assert sizes["rows"] < sizes["none"]
    options = {"strategy": "layerwise"}
    answer = handle({"kind": "validate", **request, "options": options, "reference": "litert", "seed": 1})
    assert answer["exact"]


def test_a_wrong_overlap_of_parts_is_found():
    net = Net((1, 6, 6, 4))
    parts = [net.conv(net.inputs[0], 16), net.conv(net.inputs[0], 16)]
    graph = net.graph(net.concat(parts))
    target = make_target()
    plan = layerwise.plan(graph, target)
    check(plan, graph, target)
    assert any(o.op == 2 for o in plan.overlaps)
    wrong = tuple(replace(o, distance=o.distance - 64) if o.op == 2 else o for o in plan.overlaps)
    with pytest.raises(PlanError, match="is written over this input"):
        check(replace(plan, overlaps=wrong), graph, target)
