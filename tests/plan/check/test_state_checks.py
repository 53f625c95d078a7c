"""The checker of state: memory of its own, one writer, all readers of the old value before it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import recurrentnets
import statenets
from loaded import load_target

from buildtool.base.errors import PlanError
from buildtool.graph.numbering import graph_of
from buildtool.graph.rewrite import rewrite
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import make_plan
from buildtool.zoo import drawn_state
from buildtool.zoo.drawn import NetBuilder

TARGET = "host"


def _planned(graph):
    target = load_target(TARGET)
    return make_plan(graph, target, PlanOptions(strategy="layerwise")), target


@pytest.fixture(scope="module")
def delays():
    """A network of five states, and a plan for it that is legal."""
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
        ({"name": "*/ evil"}, "text that is none for people"),
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
            continue  # the order is forced by values as well
        ops = list(graph.ops)
        late = ops.pop(max(readers))
        ops.insert(writer, late)  # behind what writes
        if not _is_order(graph, ops):
            continue
        turned = graph_of(graph.name, graph.tensors, ops, graph.inputs, graph.outputs, graph.states)
        wrong += 1
        with pytest.raises(PlanError, match="reads state that was overwritten"):
            plan, target = _planned(turned)
            check(replace(plan, topology=topology_digest(turned)), turned, target)
    assert wrong or make is statenets.average  # there the values force the order


def _needed(graph, position):
    """All tensors that an operator depends on."""
    found, makers = set(), graph.producers()
    todo = list(graph.ops[position].inputs)
    while todo:
        t = todo.pop()
        if t not in found:
            found.add(t)
            todo += graph.ops[makers[t]].inputs if t in makers else ()
    return found


def _is_order(graph, ops):
    made = {*graph.inputs, *(s.before for s in graph.states)}
    made |= {t for t, tensor in enumerate(graph.tensors) if tensor.is_constant} | {-1}
    for op in ops:
        if not set(op.inputs) <= made:
            return False
        made.update(op.outputs)
    return True


def test_a_streamed_plan_whose_region_writes_state_is_refused():
    graph = rewrite(statenets.long_ring(7))
    target = load_target(TARGET)
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
    """Its states are of one pixel, and written whole."""
    net = NetBuilder(3)
    x = net.conv(net.input((1, 12, 6, 3)), 8, kernel=(3, 3), same=True)
    x = net.mean(net.conv(x, 8, kernel=(3, 3), same=True), (1,))
    graph, target = rewrite(net.graph([drawn_state.lstm(net, x, 5)])), load_target(TARGET)
    plan = make_plan(graph, target, PlanOptions(image="stream", objective="ram"))
    check(plan, graph, target)


def test_a_plan_that_runs_by_rows_what_reads_nothing_so_is_refused():
    graph = rewrite(recurrentnets.wake_word())
    plan, target = _planned(graph)
    at = next(i for i, r in enumerate(plan.regions) if graph.ops[r.ops[0]].kind is OpKind.MEAN)
    region = plan.regions[at]
    rows = replace(region, groups=(replace(region.groups[0], rows_per_step=1),))
    with pytest.raises(PlanError, match="MEAN: reads nothing row by row"):
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
