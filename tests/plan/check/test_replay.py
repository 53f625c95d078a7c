"""The replay in C and its Python twin refuse the same plans; checker and planner read the same windows."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import numpy as np
import plan_nets
import pytest
import replay_twin
from drawnnets import branching_networks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loaded import load_target
from namednets import enlarging_networks
from plan_nets import assembled, make_target, residual_net, residual_nets
from planmutants import KINDS, mutant, shorter, with_buffer
from zeronet import Net

from buildtool.base.errors import PlanError
from buildtool.graph.liveness import alias_roots
from buildtool.graph.ops import ALIAS_KINDS, SLIDING_KINDS
from buildtool.graph.types import DType
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.arrivals import constants
from buildtool.plan.assemble.loads import Loading
from buildtool.plan.check import check as checking
from buildtool.plan.check.check import check
from buildtool.plan.check.reads import alias_groups, makes_planes, reads, sums_up
from buildtool.plan.check.replay import Replay, replay
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.schedule.receptive import accumulates, axes, fed_in_parts, row_inputs, scatters, streams
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.search.front import Settings, front
from buildtool.plan.types import BufferKind
from buildtool.target import catalogue
from buildtool.zoo.drawn import WideNetBuilder

TARGET = make_target(scratch="kh * kw * cin")


@cache
def plans():
    """(graph, target, plan) with rings, blocks with hand-offs, accumulators, moves, concatenations, loads."""
    results = []
    graph = residual_net()
    for image in ("stream", "overwritable", "resident"):
        pareto = front(graph, TARGET, Settings(image=image))
        results += [(graph, TARGET, pareto.plan(i)) for i in {0, len(pareto.points) // 2}]
    net = Net((1, 16, 16, 16))
    x = net.inputs[0]
    for _ in range(5):
        x = net.depthwise(x)
    x = net.conv(x, 4, (4, 4), (4, 4))
    graph = net.graph(net.concat([x, net.relu(x)]))
    moving, _ = assembled(graph, TARGET, [])
    assert moving.moves
    results.append((graph, TARGET, moving))
    net = Net((1, 6, 7, 3))
    graph = net.graph(net.planes(net.depthwise(net.conv(net.inputs[0], 8))))
    pareto = front(graph, TARGET, Settings(image="stream"))
    results += [(graph, TARGET, pareto.plan(i)) for i in {0, len(pareto.points) - 1}]
    assert results[-1][2].regions[-1].is_streamed
    graph, xcore = residual_net(), load_target("xcore")
    kernels = catalogue.select_all(xcore, graph)
    bare = front(graph, xcore, Settings(image="stream")).plan(0)
    blocks = constants(graph, kernels)
    timeline = Timeline.of(graph, bare.regions, bare.image)
    loading = Loading(timeline, xcore, tuple(kernels), blocks, "rows", bare.strategy)
    results += [(graph, xcore, loading.plan(limit, 0)) for limit in (bare.arena_bytes + 2000, 1 << 20)]
    return results


def _both(monkeypatch, plan, graph, target):
    """The checker's verdict with the replay in C, asserted to be the same as with the one in Python."""
    said = []
    for run in (replay, replay_twin.replay):
        with monkeypatch.context() as patch:
            patch.setattr(checking, "replay", run)
            said.append(_verdict(plan, graph, target))
    assert said[0] == said[1]
    return said[0]


def _verdict(plan, graph, target):
    try:
        check(plan, graph, target)
    except PlanError as error:
        return str(error)
    return ""


def test_elements_may_grow_in_place(monkeypatch):
    """From int8 to int16, starting at the last byte: one element lower, the next input is overwritten."""
    net = WideNetBuilder(3)
    x = net.requantize(net.input((1, 8, 8, 8), DType.INT8, net.random_quant(0.02, DType.INT8)))
    graph, target = net.graph([net.conv(x, 8)]), load_target("cortex-m4")
    plan = make_plan(graph, target, PlanOptions(strategy="layerwise", image="overwritable"))
    grown = next(o for o in plan.overlaps if o.op == 0)
    assert grown.distance == 8 * 8 * 8 - 1
    assert _both(monkeypatch, plan, graph, target) == ""
    apart = grown.distance // 16 * 16
    lower = with_buffer(plan, grown.input, offset=plan.buffers[grown.output].offset + apart)
    claimed = tuple(replace(o, distance=apart) if o is grown else o for o in plan.overlaps)
    verdicts = _both(monkeypatch, replace(lower, overlaps=claimed), graph, target)
    assert "output element 496 hits input element 497 before it is read" in verdicts


def _agree(monkeypatch, numbers):
    """Asserts that the twins agree on these mutants of each plan, some refused and some accepted."""
    verdicts = set()
    for place, (graph, target, plan) in enumerate(plans()):
        for kind in KINDS:
            for number in numbers:
                damaged = mutant(plan, kind, random.Random(f"{place} {kind} {number}"))
                if damaged is not None and damaged != plan:
                    verdicts.add(bool(_both(monkeypatch, damaged, graph, target)))
    assert verdicts == {False, True}


@pytest.mark.slow
def test_damaged_plans_are_taken_or_refused_by_both(monkeypatch):
    _agree(monkeypatch, range(1))


@pytest.mark.slow
def test_many_damaged_plans_are_taken_or_refused_by_both(monkeypatch):
    _agree(monkeypatch, range(1, 2))


@pytest.mark.parametrize("kind", ["ring", "columns"])
def test_no_ring_can_be_shorter(monkeypatch, kind):
    """Rings have only the rows that are read: with one row less, a row is gone when it is read."""
    seen = 0
    for graph, target, plan in plans():
        for index, buffer in enumerate(plan.buffers):
            has_several = buffer.rows > 1 and (kind == "ring" or buffer.columns > 1)
            if has_several and buffer.kind is not BufferKind.LINES:
                damaged = with_buffer(plan, index, **shorter(buffer, kind))
                assert "not in the arena" in _both(monkeypatch, damaged, graph, target)
                seen += 1
    assert seen > 3


def test_no_move_can_be_left_out(monkeypatch):
    seen = 0
    for graph, target, plan in plans():
        for move in plan.moves:
            fewer = tuple(other for other in plan.moves if other != move)
            assert _both(monkeypatch, replace(plan, moves=fewer), graph, target)
            seen += 1
    assert seen > 2


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.data(), st.one_of(residual_nets(), plan_nets.graphs(), branching_networks(), enlarging_networks()))
def test_checker_and_planner_agree_on_every_window(data, graph):
    assert alias_groups(graph) == alias_roots(graph)
    for op in graph.ops:
        if op.kind in ALIAS_KINDS:
            continue
        assert (sums_up(graph, op), makes_planes(graph, op)) == (accumulates(graph, op), scatters(graph, op))
        # windows that lie entirely in padding read nothing, and do not make an operator run by rows
        is_sliding = op.kind in SLIDING_KINDS and graph.tensors[op.outputs[0]].nhwc[0] == 1
        by_rows = (is_sliding or streams(graph, op)) and not fed_in_parts(graph, op)
        by_row = row_inputs(graph, op) if by_rows else ()
        inputs = reads(graph, op)
        assert [r.tensor for r in inputs if r.rows] == list(by_row)
        assert {r.tensor for r in inputs} == {
            t for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant
        }
        _, height, width, _ = graph.tensors[op.outputs[0]].nhwc
        for read in inputs:
            for taps, axis, size in zip(
                (read.rows, read.columns), axes(graph, op), (height, width), strict=True
            ):
                if taps is not None:
                    low = data.draw(st.integers(0, size - 1))
                    high = data.draw(st.integers(low + 1, size))
                    expected = (max(0, axis.low(low)), min(taps.size, axis.high(high)))
                    assert taps.read((low, high)) == expected


def test_planes_do_not_lie_over_the_pixels_that_make_them(monkeypatch):
    net = Net((1, 1, 7, 3))
    graph = net.graph(net.planes(net.conv(net.inputs[0], 8)))
    plan = front(graph, TARGET, Settings(image="stream")).plan(0)
    (source,), (result,) = graph.ops[1].inputs, graph.ops[1].outputs
    holders = {t: index for index, buffer in enumerate(plan.buffers) for t in buffer.tensors}
    for apart in (0, 16, 32):
        over = plan.buffers[holders[source]].offset + apart
        moved = with_buffer(plan, holders[result], offset=over)
        damaged = replace(moved, arena_bytes=plan.arena_bytes + over)
        assert "writes over what it reads" in _both(monkeypatch, damaged, graph, TARGET)


def test_blocks_of_bytes_have_the_tags_that_each_byte_would_have():
    """Tensors are written, areas filled and bytes moved, over each other and at any offset."""
    graph, target, plan = plans()[0]
    timeline, rng = Timeline.of(graph, plan.regions, plan.image), random.Random(0)
    kernels = target.kernels_by_name(plan.kernels)
    whole = replace(
        plan, arena_bytes=max(b.offset + graph.tensors[t].size for b in plan.buffers for t in b.tensors) + 33
    )
    ours, twin = (kind(whole, timeline, kernels) for kind in (Replay, replay_twin.PythonReplay))
    tensors = [t for b in plan.buffers for t in b.tensors]
    for _ in range(300):
        size = rng.choice((1, 7, 63, 64, 65, 200, 640))
        source, to = (rng.randrange(ours.size - size + 1) for _ in range(2))
        kind = rng.randrange(3)
        for one in (ours, twin):
            if kind == 0:
                one.copy(source, to, size)
            elif kind == 1:
                one.fill(to, size, 1 + source % 3)
            else:
                one.write(tensors[source % len(tensors)])
        assert _tags(ours) == twin.tags[: twin.size].tolist()


def _tags(one):
    """The tags of all bytes; see replay.c."""
    blocks = one._blocks.repeat(64)[: one.size]
    inside = np.where(blocks > 0, blocks + np.arange(one.size) % 64, -blocks)
    return np.where(blocks == np.iinfo(np.int64).min, one.tags[: one.size], inside).tolist()
