"""The checker on views of channels and on state: all data is present when read, and not overwritten.

State has its own memory and one writer, which runs after all readers of the old value.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest
import recurrentnets
import statenets
from loaded import load_target
from namednets import taken
from planmutants import with_buffer

from buildtool.base.errors import PlanError
from buildtool.graph.liveness import alias_roots
from buildtool.graph.numbering import graph_of
from buildtool.graph.partviews import parts, with_views
from buildtool.graph.rewrite import rewrite
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.layerwise import plan as plan_layerwise
from buildtool.plan.check.check import check
from buildtool.plan.check.hazard import unsafe
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.codec import from_bytes, to_bytes
from buildtool.plan.schedule.viewing import possible_views
from buildtool.plan.summary.view import to_json
from buildtool.plan.types import Overlap
from buildtool.target.catalogue import select_all
from buildtool.target.types import Contract, Windows
from buildtool.zoo import drawn_state
from buildtool.zoo.drawn import NetBuilder

TARGET = load_target("host")


def _branches():
    """The halves of a map in two branches, joined again."""
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
    """A tensor moves, so the plan is replayed byte by byte. Another tensor is placed over parts."""
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


def test_views_that_are_less_aligned_than_a_tensor_are_refused():
    """Kernels for Cortex-M load words of int16, where the number of channels is even."""
    net = NetBuilder(9)
    x = net.conv(net.input((1, 4, 4, 3)), 17)
    ends = [net.conv(taken(net, x, first, 8), 8, kernel=(3, 3), same=True) for first in (1, 9)]
    graph = rewrite(net.graph([net.elementwise(OpKind.ADD, *ends), net.mean(x)]))
    position = next(p for p, op in enumerate(graph.ops) if op.kind in (OpKind.SLICE, OpKind.STRIDED_SLICE))
    assert possible_views(graph, select_all(TARGET, graph)) == ()
    forged = with_views(graph, [position])
    with pytest.raises(PlanError, match="less aligned"):
        check(plan_layerwise(forged, TARGET), forged, TARGET)


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


def _planned(graph):
    return make_plan(graph, TARGET, PlanOptions(strategy="layerwise")), TARGET


@pytest.fixture(scope="module")
def delays():
    """A network with five states, and a legal plan for it."""
    graph = rewrite(statenets.delays(7))
    plan, target = _planned(graph)
    check(plan, graph, target)
    return graph, plan, target


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offset": 0}, "has 24 bytes at 0, needed are 24 from"),
        ({"offset": 40}, "has 24 bytes at 40"),
        ({"size": 16}, "has 16 bytes at"),
        ({"tensors": (0,)}, "holds other tensors"),
        ({"rows": 1}, "holds other tensors"),
        ({"name": "*/ evil"}, "text that cannot be shown"),
    ],
)
def test_memory_that_is_not_a_states_own_is_refused(delays, change, message):
    graph, plan, target = delays
    damaged = replace(plan, states=(plan.states[0], replace(plan.states[1], **change), *plan.states[2:]))
    with pytest.raises(PlanError, match=message.replace("*", r"\*")):
        check(damaged, graph, target)


def test_state_that_is_missing_or_lies_in_the_arena_is_refused(delays):
    graph, plan, target = delays
    with pytest.raises(PlanError, match="the plan has 4 states, the network 5"):
        check(replace(plan, states=plan.states[:-1]), graph, target)
    first = plan.buffers[0]
    inside = replace(first, tensors=(*first.tensors, graph.states[0].before))
    with pytest.raises(PlanError, match="not an activation"):
        check(replace(plan, buffers=(inside, *plan.buffers[1:])), graph, target)


@pytest.mark.parametrize("make", [statenets.delays, statenets.feedback, statenets.average])
def test_a_network_that_writes_a_state_before_a_reader_of_the_old_value_is_refused(make):
    graph = rewrite(make(7))
    makers = graph.producers()
    wrong = 0
    for state in graph.states:
        writer = makers.get(state.after)
        readers = [i for i, op in enumerate(graph.ops) if state.before in op.inputs and i != writer]
        if writer is None or not readers or max(readers) + 1 > writer:
            continue
        if set(graph.ops[max(readers)].outputs) & _needed(graph, writer):
            continue  # the values force the order as well
        ops = list(graph.ops)
        late = ops.pop(max(readers))
        ops.insert(writer, late)  # after the writer
        if not _is_order(graph, ops):
            continue
        turned = graph_of(graph.name, graph.tensors, ops, graph.inputs, graph.outputs, graph.states)
        wrong += 1
        with pytest.raises(PlanError, match="reads state that was overwritten"):
            plan, target = _planned(turned)
            check(replace(plan, topology=topology_digest(turned)), turned, target)
    assert wrong or make is statenets.average  # in it the values force the order


def _needed(graph, position):
    """All tensors on which an operator depends."""
    needed, makers = set(), graph.producers()
    todo = list(graph.ops[position].inputs)
    while todo:
        t = todo.pop()
        if t not in needed:
            needed.add(t)
            todo += graph.ops[makers[t]].inputs if t in makers else ()
    return needed


def _is_order(graph, ops):
    present = {*graph.inputs, *(s.before for s in graph.states)}
    present |= {t for t, tensor in enumerate(graph.tensors) if tensor.is_constant} | {-1}
    for op in ops:
        if not set(op.inputs) <= present:
            return False
        present.update(op.outputs)
    return True


def test_a_streamed_plan_whose_region_writes_state_is_refused():
    graph = rewrite(statenets.long_ring(7))
    target = TARGET
    plan = make_plan(graph, target, PlanOptions(objective="ram"))
    check(plan, graph, target)
    assert any(region.is_streamed for region in plan.regions)
    assert [op.kind for op in graph.ops].count(OpKind.SHIFT) == 1
    first, second, *rest = plan.regions
    assert first.ops == (0,) and second.is_streamed
    joined = replace(second, groups=(replace(first.groups[0], rows_per_step=1), *second.groups))
    with pytest.raises(PlanError):
        check(replace(plan, regions=(joined, *rest)), graph, target)


def test_steps_of_an_lstm_behind_a_streamed_region_are_those_of_its_output():
    """Its states have one pixel and are written whole."""
    net = NetBuilder(3)
    x = net.conv(net.input((1, 12, 6, 3)), 8, kernel=(3, 3), same=True)
    x = net.mean(net.conv(x, 8, kernel=(3, 3), same=True), (1,))
    graph, target = rewrite(net.graph([drawn_state.lstm(net, x, 5)])), TARGET
    plan = make_plan(graph, target, PlanOptions(image="stream", objective="ram"))
    check(plan, graph, target)


def test_a_plan_that_runs_by_rows_what_reads_nothing_so_is_refused():
    graph = rewrite(recurrentnets.wake_word())
    plan, target = _planned(graph)
    at = next(i for i, r in enumerate(plan.regions) if graph.ops[r.ops[0]].kind is OpKind.MEAN)
    region = plan.regions[at]
    rows = replace(region, groups=(replace(region.groups[0], rows_per_step=1),))
    with pytest.raises(PlanError, match="MEAN: the plan runs it row by row, but"):
        check(replace(plan, regions=(*plan.regions[:at], rows, *plan.regions[at + 1 :])), graph, target)


def test_a_network_that_keeps_more_than_the_board_has_is_refused_for_that():
    graph, target = statenets.keyword_stream(7), load_target("nucleo-f412zg")
    wide = statenets.by_rows(_image(6000), 0)
    with pytest.raises(PlanError, match="keeps 384000 bytes between invokes, but memory 'ram'"):
        make_plan(rewrite(wide), target, PlanOptions())
    make_plan(rewrite(graph), target, PlanOptions())


def _image(width):
    net = NetBuilder(3, "wide")
    return net.graph([net.dense(net.mean(net.conv(net.input((1, 8, width, 8)), 2, stride=(8, 64))), 2)])
