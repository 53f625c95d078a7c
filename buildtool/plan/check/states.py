"""States between invokes: each has memory of its own, which only one operator writes, after all old reads.

This belongs to the checker. It computes only from the steps when an old state is read and when it is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from buildtool.base.errors import PlanError
from buildtool.graph.ops import ALIAS_KINDS, STATEFUL
from buildtool.graph.types import Graph, Op
from buildtool.plan.check.reads import alias_groups
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import BufferKind, Plan


def state_groups(graph: Graph) -> dict[int, int]:
    """Returns activation that holds a state -> the position of the state in Graph.states.

    Of activations that share their bytes, it is the one that `alias_groups` names. Raises PlanError if one
    tensor would be two states.
    """
    groups = alias_groups(graph)
    found: dict[int, int] = {}
    for index, state in enumerate(graph.states):
        for t in (state.before, state.after):
            if found.setdefault(groups.get(t, -1), index) != index or t not in groups:
                raise PlanError("one tensor is assigned to two states", tensor=graph.tensors[t].name)
    return found


def arena_groups(graph: Graph) -> dict[int, int]:
    """Returns the result of `alias_groups` without the tensors of states."""
    elsewhere = state_groups(graph)
    return {t: group for t, group in alias_groups(graph).items() if group not in elsewhere}


def updates(graph: Graph, op: Op) -> frozenset[int]:
    """Returns the operands of an operator that it updates in place.

    Raises PlanError if they are not states.
    """
    pairs = STATEFUL.get(op.kind, {})
    if not pairs:
        return frozenset()
    states, groups = state_groups(graph), alias_groups(graph)
    operands = set()
    for operand, output in pairs.items():
        old, new = groups.get(op.inputs[operand], -1), groups.get(op.outputs[output], -1)
        if old not in states or states[old] != states.get(new):
            raise PlanError("updates tensors in place that are not states", operator=op.place)
        operands.add(op.inputs[operand])
    return frozenset(operands)


def check_states(plan: Plan, graph: Graph, timeline: Timeline) -> None:
    """Raises PlanError unless each state has its own bytes, and is written once, after all reads of it.

    The new value may be read from then on. No other buffer lies over a state, so this needs no replay.
    """
    if not graph.states and not plan.states:
        return
    states, groups = state_groups(graph), alias_groups(graph)
    _check_memory(plan, graph, {t: states[group] for t, group in groups.items() if group in states})
    makers = {t: i for i, op in enumerate(graph.ops) if op.kind not in ALIAS_KINDS for t in op.outputs}
    for state in graph.states:
        old, new = groups[state.before], groups[state.after]
        if old == new:
            continue
        name = graph.tensors[state.before].name
        if any(groups.get(t) == old for t in graph.outputs):
            raise PlanError("an output is state that is overwritten", tensor=name)
        writer = makers[new]
        op = graph.ops[writer]
        if any(writer in region.ops and region.is_streamed for region in plan.regions):
            raise PlanError("writes state row by row", operator=op.place)
        inside = updates(graph, op)
        for position, reader in enumerate(graph.ops):
            read = {t for t in reader.inputs if groups.get(t) == old}
            if reader.kind in ALIAS_KINDS or not read or (position == writer and read <= inside):
                continue
            if timeline.lives[position].last >= timeline.lives[writer].first:
                raise PlanError("reads state that was overwritten", operator=reader.place, tensor=name)


def _check_memory(plan: Plan, graph: Graph, of: Mapping[int, int]) -> None:
    """Raises PlanError unless each state has one large enough buffer with its tensors, and no two overlap.

    `of`: tensor -> the number of its state.
    """
    if len(plan.states) != len(graph.states):
        raise PlanError(f"the plan has {len(plan.states)} states, the network {len(graph.states)}")
    end = 0
    for index, (buffer, state) in enumerate(zip(plan.states, graph.states, strict=True)):
        tensor = graph.tensors[state.before]
        tensors = tuple(sorted(t for t, number in of.items() if number == index))
        if buffer.kind is not BufferKind.STATE or buffer.tensors != tensors or buffer.rows or buffer.columns:
            text = f"buffer '{buffer.name}' holds other tensors than the state's"
            raise PlanError(text, tensor=tensor.name)
        is_near = end <= buffer.offset < end + plan.alignment
        if not is_near or buffer.offset % plan.alignment or buffer.size != tensor.size:
            state_text = f"state '{buffer.name}' has {buffer.size} bytes at {buffer.offset}"
            raise PlanError(f"{state_text}, needed are {tensor.size} from {end} on", tensor=tensor.name)
        end = buffer.offset + buffer.size
