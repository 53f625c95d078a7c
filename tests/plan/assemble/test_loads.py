"""Constants that are loaded into the arena: planned within limits, and every fault in a plan is found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loaded import plain_xcore
from planmutants import with_buffer, with_load

from buildtool.base.errors import PlanError
from buildtool.plan.assemble.arrivals import Constants, constants
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.assemble.loads import Loading
from buildtool.plan.baselines.strips import parse_segments, plan_strips
from buildtool.plan.check.check import check
from buildtool.plan.models import load_model, read_graph
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import BufferKind
from buildtool.target import catalogue
from buildtool.target.registry import load_target

NETWORK = "mobilenetv2:size=32,alpha=0.35,classes=10"


@cache
def parts():
    graph = read_graph(load_model(NETWORK))[1]
    target = load_target(plain_xcore())
    kernels = tuple(catalogue.select(target, graph, op) for op in graph.ops)
    blocks = constants(graph, kernels)
    return graph, target, kernels, blocks


def loaded(limit, segments=""):
    graph, target, kernels, blocks = parts()
    strips = parse_segments(segments) if segments else ()
    bare = plan_strips(graph, target, strips) if strips else plan_layerwise(graph, target)
    timeline = Timeline.of(graph, bare.regions, bare.image)
    return bare, Loading(timeline, target, kernels, blocks, "rows", bare.strategy).plan(limit, 0)


def test_with_room_all_come_whole_and_ahead_where_something_is_computed_meanwhile():
    _, plan = loaded(1 << 20)
    assert not any(load.channels for load in plan.loads)
    steps = {region.ops[0]: number for number, region in enumerate(plan.regions)}
    ahead = [load for load in plan.loads if plan.buffers[load.buffer].first < steps[load.op]]
    assert len(ahead) > len(plan.loads) // 2
    assert any(plan.buffers[load.buffer].first < steps[load.op] - 1 for load in plan.loads)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 1.0])
def test_limits_are_kept_where_slices_allow_it(share):
    graph, target, _, blocks = parts()
    bare, _ = loaded(1 << 20)
    limit = bare.arena_bytes + int(share * max(block.size for block in blocks.values())) + 2000
    _, plan = loaded(limit)
    check(plan, graph, target)
    assert plan.arena_bytes <= limit
    assert share >= 1 or any(load.channels for load in plan.loads)


def test_less_memory_never_means_fewer_slices():
    bare, _ = loaded(1 << 20)
    counts = []
    for limit in (bare.arena_bytes + 2000, 2 * bare.arena_bytes, 1 << 20):
        _, plan = loaded(limit)
        counts.append(sum(load.channels > 0 for load in plan.loads))
    assert counts == sorted(counts, reverse=True)


def test_in_strips_a_segments_constants_are_there_for_all_strips():
    graph, target, _, _ = parts()
    _, plan = loaded(1 << 20, "0-6x4")
    check(plan, graph, target)
    (segment,) = [region for region in plan.regions if len(region.ops) > 1]
    for load in plan.loads:
        if load.op in segment.ops:
            assert load.channels == 0


def test_faults_in_loads_are_found():
    graph, target, _, _ = parts()
    bare, plan = loaded(1 << 20)
    _, tight = loaded(bare.arena_bytes + 2000)
    cut = next(load for load in tight.loads if load.channels)
    load = plan.loads[5]
    at = plan.buffers[load.buffer]
    others = [b for b in plan.buffers if b.kind is BufferKind.TENSOR and b.first <= at.last <= b.last]
    faults = [
        (with_buffer(plan, load.buffer, first=at.last + 1, last=at.last + 1), "do not live as long"),
        (with_buffer(plan, load.buffer, size=load.size - 16), "cannot hold its"),
        (with_buffer(plan, load.buffer, op=load.op + 1), "another's buffer"),
        (with_buffer(plan, load.buffer, offset=others[0].offset), "overlap"),
        (replace(plan, loads=(*plan.loads, load)), "cannot take the constants"),
        (replace(plan, loads=(replace(load, buffer=999),)), "cannot take the constants"),
        (replace(plan, loads=(replace(load, slots=3),)), "cannot hold its"),
        (with_load(tight, cut, slots=9), "cannot hold its"),
        (with_buffer(tight, cut.buffer, size=tight.buffers[cut.buffer].size - 16), "too small for slices"),
    ]
    for broken, says in faults:
        with pytest.raises(PlanError, match=says):
            check(broken, graph, target)


@pytest.mark.parametrize("fields", [{"size": 0}, {"size": -1}, {"size": 29}])
def test_a_load_of_fewer_bytes_than_the_kernel_reads_is_refused(fields):
    graph, target, _, _ = parts()
    _, plan = loaded(1 << 20)
    for load in plan.loads[::4]:
        with pytest.raises(PlanError, match=r"bytes of constants"):
            check(with_load(plan, load, **fields), graph, target)


@pytest.mark.slow
def test_slices_that_the_kernel_does_not_compute_are_refused():
    graph, target, _, blocks = parts()
    _, plan = loaded(1 << 20)
    outcomes = set()
    for number, load in enumerate(plan.loads):
        for channels in (*range(1 + number % 8, 40, 16), 16):
            broken = with_load(plan, load, channels=channels)
            if channels in blocks[load.op].widths:
                outcomes.add("whole slices")
                check(broken, graph, target)
            elif channels < blocks[load.op].channels or not blocks[load.op].channels:
                outcomes.add("odd ones" if blocks[load.op].channels else "none at all")
                with pytest.raises(PlanError, match=rf"computes no slices of {channels} channels"):
                    check(broken, graph, target)
    assert outcomes >= {"whole slices", "odd ones"}


def test_a_streamed_plan_whose_constants_are_overwritten_is_refused():
    graph, target, _, _ = parts()
    _, plan = loaded(1 << 20, "0-6x4")
    check(plan, graph, target)
    load = next(load for load in plan.loads if load.op == 2)
    window = next(b for b in plan.buffers if b.kind is BufferKind.RING)
    with pytest.raises(PlanError, match=r"not in the arena when"):
        check(with_buffer(plan, load.buffer, offset=window.offset), graph, target)


def test_a_load_that_no_emitted_code_would_begin_is_refused():
    graph, target, _, _ = parts()
    _, plan = loaded(1 << 20, "0-6x4")
    load = next(load for load in plan.loads if load.op > 6)
    assert plan.regions[0].is_streamed
    with pytest.raises(PlanError, match="in the middle of a region"):
        check(with_buffer(plan, load.buffer, first=1), graph, target)
    with pytest.raises(PlanError, match="two memories"):
        check(replace(plan, second_at=16), graph, target)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(1, 300), st.sampled_from([12, 16]), st.integers(1, 2000))
def test_slices_of_all_channels_are_the_block(channels, factors, weights):
    block = Constants(0, channels, factors, weights)
    whole = -(-(16 + factors * channels) // 16) * 16 + -(-weights * channels // 16) * 16
    assert block.slice_bytes(channels) == whole
    assert block.slice_bytes(1) <= whole
