"""A plan's summary agrees with the plan: bytes marked step by step; sums of work, calls and cost."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from plan_nets import graphs, make_target, plan_steps, residual_net
from zeronet import Net

from buildtool.firmware.planned import plan_model
from buildtool.graph.macs import op_macs
from buildtool.options import parse_planning
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.baselines import msf
from buildtool.plan.baselines.strips import parse_segments, plan_strips
from buildtool.plan.check.reads import kept_rows
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.search.front import Settings, front
from buildtool.plan.summary.summary import summarize
from buildtool.plan.types import SOURCE, BufferKind, Group, Region, Scheme
from buildtool.target import catalogue

VWW5 = "mcunet_vww5"


def small(plan):
    net, target = residual_net(), make_target(scratch="kh * kw * cin")
    return [(net, target, p) for p in plan(net, target)]


def whole_front(image):
    def plans(net, target):
        points = front(net, target, Settings(image=image))
        return [points.plan(i) for i in range(len(points.points))]

    return lambda: small(plans)


def moved_tensors():
    """Returns a plan of depthwise convolutions, each with its output over its input, two rows lower."""
    net, target = Net((1, 16, 16, 16)), make_target()
    x = net.inputs[0]
    for _ in range(8):
        x = net.depthwise(x)
    graph = net.graph(x)
    kernels = tuple(catalogue.select(target, graph, op) for op in graph.ops)
    regions = tuple(Region((Group((p,)),)) for p in range(len(graph.ops)))
    timeline = Timeline.of(graph, regions, "overwritable")
    return [(graph, target, assemble(timeline, target, kernels, strategy="test", in_place="rows"))]


def real(board, **options):
    def plans():
        planned = plan_model(VWW5, board, PlanOptions(**parse_planning(options)))
        return [(planned.graph, planned.target, planned.plan)]

    return plans


CASES = {
    "layer by layer": lambda: small(lambda net, target: [plan_layerwise(net, target)]),
    "image streamed": whole_front("stream"),
    "image overwritable": whole_front("overwritable"),
    "image resident": whole_front("resident"),
    "strips": lambda: small(lambda net, target: [plan_strips(net, target, parse_segments("0-3x4"))]),
    "msf-cnn": lambda: small(msf.plans),
    "tensors moved": moved_tensors,
    "real, streamed": real("cortex-m4", image="stream", objective="ram", max_f=1.1),
    "real, nothing repeated": real("host", objective="ram", max_f=1.0),
    "real, weights loaded": real("xcore", objective="ram", max_f=1.1),
    "real, weights loaded layer by layer": real("xcore", strategy="layerwise"),
}


@cache
def cases(name):
    """Returns graph, plan and summary of each plan of a case."""
    plans = CASES[name]()
    return [
        (graph, plan, summarize(plan, graph, t.kernels_by_name(plan.kernels), t.costs))
        for graph, t, plan in plans
    ]


def each_plan(test):
    """Runs a test of (graph, plan, summary) for every plan of every case."""

    @pytest.mark.parametrize("name", CASES)
    def run(name):
        assert cases(name)
        for graph, plan, summary in cases(name):
            test(graph, plan, summary)

    run.__name__ = test.__name__
    return run


def paint(graph, plan, number, step):
    """Returns the number of aligned bytes in use in a step. Scratch counts only for its own operator."""
    arena = np.zeros(plan.arena_bytes, bool)
    group = next((g for region in plan.regions for g in region.groups if step.op in g.ops), None)
    for b in plan.buffers:
        if not b.first <= number <= b.last:
            continue
        inside = b.kind is BufferKind.RING and window_of(graph, plan, b)
        if inside and (group is None or inside != group):
            continue
        if inside and group.scheme is Scheme.HALO and not in_reach(graph, group, b, step.op):
            continue
        if b.kind is BufferKind.SCRATCH and b.op not in (-1, step.op):
            continue
        arena[b.offset : b.offset + -(-b.size // plan.alignment) * plan.alignment] = True
    return int(arena.sum())


def window_of(graph, plan, buffer):
    """Returns the group with windows that alone writes and reads a ring, or None."""
    (producer,) = [p for p, op in enumerate(graph.ops) if buffer.tensors[0] in op.outputs] or [-1]
    readers = {p for p, op in enumerate(graph.ops) for t in buffer.tensors if t in op.inputs}
    for region in plan.regions:
        for group in region.groups:
            windows = group.scheme not in (Scheme.OPERATOR, Scheme.BRANCHES)
            swapped = group.scheme is Scheme.SWAPS and producer in kept_rows(graph, [region])
            if windows and not swapped and {producer, *readers} <= set(group.ops):
                return group
    return None


def in_reach(graph, group, buffer, position):
    """Whether a strip's window is in use: from the first operator that touches it to the last."""
    positions = [p for p in group.ops if set(buffer.tensors) & {*graph.ops[p].inputs, *graph.ops[p].outputs}]
    return min(positions) <= position <= max(positions)


@each_plan
def test_a_regions_fullest_step_is_the_one_with_most_bytes_painted(graph, plan, summary):
    at = 0
    for region, row in zip(plan.regions, summary.regions, strict=True):
        run = plan_steps((region,), graph, plan.image)
        samples = sorted({*range(0, len(run), max(1, len(run) // 40)), row.fullest.number - at})
        sizes = {i: paint(graph, plan, at + i, run[i]) for i in samples}
        assert max(sizes.values()) == sizes[row.fullest.number - at] == row.fullest.bytes
        assert (row.first, row.last) == (at, at + len(run) - 1)
        assert row.fullest.step == run[row.fullest.number - at]
        at += len(run)
    assert summary.live == max(row.fullest.bytes for row in summary.regions) <= plan.arena_bytes
    assert summary.regions[summary.fullest].fullest.bytes == summary.live


@each_plan
def test_parts_add_up_to_the_live_bytes(graph, plan, summary):
    for row in summary.regions:
        assert sum(size for _, size in row.parts) - row.shared == row.fullest.bytes
        assert row.shared >= 0 and all(size > 0 for _, size in row.parts)
        uses = {use for use, _ in row.parts}
        assert uses == {live.use for live in row.at_fullest}
        assert set(row.at_fullest) <= set(row.buffers)
    if all(buffer.kind is not BufferKind.WEIGHTS for buffer in plan.buffers):
        assert summary.without_weights == summary.live


@each_plan
def test_work_calls_and_cost_add_up_to_the_plans(graph, plan, summary):
    steps = plan_steps(plan.regions, graph, plan.image)
    works = [row.work for row in summary.regions]
    assert sum(work.macs for work in works) == plan.macs
    assert sum(work.once for work in works) == plan.macs_layerwise
    assert sum(work.calls for work in works) == sum(s.y0 < s.y1 for s in steps)
    assert sum(row.delivered for row in summary.regions) == sum(s.op == SOURCE for s in steps)
    assert sum(work.cost for work in works) == plan.cost
    for region, row in zip(plan.regions, summary.regions, strict=True):
        assert sum(work.macs for work in row.groups) == row.work.macs
        assert sum(work.calls for work in row.groups) == row.work.calls - row.delivered
        assert [position for position, _, _ in row.operators] == list(region.ops)
        assert sum(work.macs for _, _, work in row.operators) == row.work.macs
        assert max(alive for _, alive, _ in row.operators) <= row.fullest.bytes


@given(graphs())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_any_layer_by_layer_plan_adds_up(graph):
    target = make_target()
    plan = plan_layerwise(graph, target)
    summary = summarize(plan, graph, target.kernels_by_name(plan.kernels), target.costs)
    for region, row in zip(plan.regions, summary.regions, strict=True):
        (position,) = region.ops
        assert row.work.macs == row.work.once == op_macs(graph, graph.ops[position])
        assert sum(size for _, size in row.parts) - row.shared == row.fullest.bytes
        assert row.fullest.bytes == paint(graph, plan, row.first, row.fullest.step)
    assert summary.live <= plan.arena_bytes
