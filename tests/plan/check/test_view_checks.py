"""The checker on views of channels: what is read has to be there, and nothing is written over it."""

from __future__ import annotations

import dataclasses

import pytest
from loaded import load_target
from namednets import taken
from planmutants import with_buffer

from buildtool.base.errors import PlanError
from buildtool.graph.liveness import alias_roots
from buildtool.graph.partviews import parts, with_views
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import OpKind
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.check.check import check
from buildtool.plan.check.hazard import unsafe
from buildtool.plan.codec import from_bytes, to_bytes
from buildtool.plan.schedule.viewing import possible_views
from buildtool.plan.search.front import Settings, front
from buildtool.plan.summary.view import to_json
from buildtool.plan.types import Overlap
from buildtool.target.catalogue import select_all
from buildtool.target.types import Contract, Windows
from buildtool.zoo.drawn import NetBuilder

TARGET = load_target("host")


def _branches():
    """Halves of a map in branches of their own, joined again."""
    net = NetBuilder(9)
    x = net.conv(net.input((1, 8, 8, 3)), 16, kernel=(3, 3), same=True)
    halves = [taken(net, x, 0, 8), taken(net, x, 8, 8)]
    ends = [net.conv(net.conv(half, 8, kernel=(3, 3), same=True), 8) for half in halves]
    return rewrite(net.graph([net.conv(net.concat(ends), 4)]))


@pytest.fixture(scope="module")
def viewed():
    graph = _branches()
    return with_views(graph, possible_views(graph, select_all(TARGET, graph), joined=True))


def _holding(plan, tensor):
    return next(i for i, buffer in enumerate(plan.buffers) if tensor in buffer.tensors)


def test_a_plan_with_views_is_legal_and_says_so(viewed):
    plan = plan_layerwise(viewed, TARGET)
    check(plan, viewed, TARGET)
    assert [viewed.ops[p].kind for p in plan.views] == [OpKind.VIEW, OpKind.VIEW, OpKind.JOINED]
    assert from_bytes(to_bytes(plan)) == plan
    shown = to_json(plan, viewed)["views"]
    assert [(one["written"], one["first"], one["channels"]) for one in shown] == [
        (False, 0, 8),
        (False, 8, 8),
        (True, 0, 8),
        (True, 8, 8),
    ]
    assert {one["tensor"]: (one["whole"], one["first"]) for one in shown} == parts(viewed)


def test_it_is_for_the_network_with_the_same_views(viewed):
    plan = plan_layerwise(viewed, TARGET)
    for wrong in ((), plan.views[1:]):
        with pytest.raises(PlanError, match="other views"):
            check(dataclasses.replace(plan, views=wrong), viewed, TARGET)
        with pytest.raises(PlanError, match="topology"):
            check(plan, with_views(_branches(), wrong), TARGET)


def test_the_wider_tensor_lives_until_its_last_part_is_read(viewed):
    plan = plan_layerwise(viewed, TARGET)
    whole = next(
        whole for t, (whole, _) in parts(viewed).items() if viewed.ops[plan.views[0]].outputs[0] == t
    )
    index = _holding(plan, whole)
    with pytest.raises(PlanError, match="lives from step"):
        check(with_buffer(plan, index, last=plan.buffers[index].last - 1), viewed, TARGET)


def test_what_is_joined_lives_from_its_first_part_on(viewed):
    plan = plan_layerwise(viewed, TARGET)
    index = _holding(plan, viewed.ops[plan.views[2]].outputs[0])
    with pytest.raises(PlanError, match="lives from step"):
        check(with_buffer(plan, index, first=plan.buffers[index].first + 1), viewed, TARGET)
    with pytest.raises(PlanError, match="bytes"):
        check(with_buffer(plan, index, size=plan.buffers[index].size // 2), viewed, TARGET)


@pytest.mark.parametrize("what", ["read", "joined"])
def test_the_replay_finds_what_is_written_over_it(viewed, what):
    """With a tensor that moves, the plan is replayed byte by byte; another one is put on top of parts."""
    plan = plan_layerwise(viewed, TARGET)
    kept = viewed.ops[plan.views[0]].inputs[0] if what == "read" else viewed.ops[plan.views[2]].outputs[0]
    below = plan.buffers[_holding(plan, kept)]
    over = next(
        i
        for i, b in enumerate(plan.buffers)
        if b.tensors and kept not in b.tensors and below.first < b.first <= b.last < below.last
    )
    broken = with_buffer(plan, over, offset=below.offset)
    with pytest.raises(PlanError, match="overlap"):
        check(broken, viewed, TARGET)
    streamed = [dataclasses.replace(group, rows_per_step=1) for group in plan.regions[0].groups]
    regions = (dataclasses.replace(plan.regions[0], groups=tuple(streamed)), *plan.regions[1:])
    with pytest.raises(PlanError, match=r"when they are read|at the end|over"):
        check(dataclasses.replace(broken, regions=regions), viewed, TARGET)


def test_kernels_of_whole_tensors_are_refused(viewed):
    plan = plan_layerwise(viewed, TARGET)
    kernels = tuple(dataclasses.replace(kernel, windows=Windows.WHOLE) for kernel in TARGET.kernels)
    whole = dataclasses.replace(TARGET, kernels=kernels)
    with pytest.raises(PlanError, match="reads no part"):
        check(plan, viewed, whole, made_for_it=False)
    graph = _branches()
    joined = with_views(graph, plan.views[2:])
    with pytest.raises(PlanError, match="writes no part"):
        check(plan_layerwise(joined, TARGET), joined, whole, made_for_it=False)


def test_nothing_written_as_a_part_lies_over_an_input(viewed):
    maker = next(op for op in viewed.ops if op.outputs[0] in parts(viewed) and op.kind is OpKind.CONV_2D)
    assert "part of a wider tensor" in unsafe(viewed, maker, maker.inputs[0], Contract.ROW, 1 << 20)
    plan = plan_layerwise(viewed, TARGET)
    roots = alias_roots(viewed)
    position = viewed.ops.index(maker)
    source, output = (_holding(plan, roots[t]) for t in (maker.inputs[0], maker.outputs[0]))
    lying = dataclasses.replace(plan, overlaps=(*plan.overlaps, Overlap(position, source, output, 0)))
    with pytest.raises(PlanError, match="part of a wider tensor"):
        check(lying, viewed, TARGET)


def test_streamed_regions_go_on_through_slices():
    graph = _branches()
    viewed = with_views(graph, possible_views(graph, select_all(TARGET, graph)))
    with_copies, with_parts = (front(one, TARGET, Settings()) for one in (graph, viewed))
    for found in (with_copies, with_parts):
        check(found.plan(0), found.graph, TARGET)
    assert with_parts.plan(0).arena_bytes <= with_copies.plan(0).arena_bytes
    assert any(region.is_streamed for region in with_parts.plan(0).regions)
