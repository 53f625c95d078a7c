"""A plan as plain values, for the answers to `plan` and for the emitted map of the arena."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.base.plain import to_plain
from buildtool.base.session import Session
from buildtool.graph.macs import op_macs
from buildtool.graph.partviews import parts, views
from buildtool.graph.secondpass import Repetition, repetitions
from buildtool.graph.types import Graph, OpKind
from buildtool.plan.summary.memory import Moment
from buildtool.plan.summary.summary import binding
from buildtool.plan.types import Buffer, Group, Plan

if TYPE_CHECKING:
    from buildtool.schema.plans import BufferView, ChannelsView, PlannedGroup, PlanView, SecondPassView


def to_json(plan: Plan, graph: Graph, session: Session | None = None, peak: Moment | None = None) -> PlanView:
    """Returns the plan as a plain dictionary, ready for JSON.

    `session`: it may already have the plan's timeline. `peak`: the step with the most live bytes, if the
    caller knows it.
    """
    at = binding(plan, graph, session, peak)
    return {
        "strategy": plan.strategy,
        "topology": plan.topology,
        "target": plan.target,
        "image": plan.image,
        "arena_bytes": plan.arena_bytes,
        "arena_bound_bytes": plan.arena_bound_bytes,
        "alignment": plan.alignment,
        "macs": plan.macs,
        "macs_layerwise": plan.macs_layerwise,
        "f": plan.f,
        "cost": plan.cost,
        "cost_unit": str(plan.cost_unit),
        "binding": {"operator": at.op, "name": at.place, "step": at.step, "live_bytes": at.live_bytes},
        "accounting": list(plan.accounting),
        "operators": [
            {
                "position": position,
                "kernel": kernel,
                "kind": str(op.kind),
                "place": op.place,
                "name": graph.op_name(position),
            }
            for position, (kernel, op) in enumerate(zip(plan.kernels, graph.ops, strict=True))
        ],
        "regions": to_plain(plan.regions, named=True),
        "buffers": [_buffer(buffer, graph) for buffer in plan.buffers],
        "loads": to_plain(plan.loads, named=True),
        "moves": to_plain(plan.moves, named=True),
        "overlaps": to_plain(plan.overlaps, named=True),
        "second_at": plan.second_at,
        "state_bytes": plan.state_bytes,
        "states": [_buffer(buffer, graph) for buffer in plan.states],
        "second_passes": [_view_of_second_pass(one, graph) for one in repetitions(graph)],
        "views": [
            _channels(position, t, graph)  # t: the slice's output, or the parts of the concatenation
            for position in views(graph)
            for op in [graph.ops[position]]
            for t in (op.outputs if op.kind is OpKind.VIEW else op.inputs)
        ],
    }


def _channels(position: int, tensor: int, graph: Graph) -> ChannelsView:
    place, of = parts(graph)[tensor], graph.tensors
    return {
        "operator": position,
        "written": graph.ops[position].kind is OpKind.JOINED,
        "tensor": tensor,
        "name": of[tensor].name,
        "whole": place.whole,
        "whole_name": of[place.whole].name,
        "first": place.first,
        "channels": of[tensor].nhwc[3],
    }


def _view_of_second_pass(one: Repetition, graph: Graph) -> SecondPassView:
    return {
        "operators": list(one.again),
        "first_run": list(one.first),
        "reader": one.reader,
        "macs": sum(op_macs(graph, graph.ops[position]) for position in one.again),
    }


def group_view(group: Group) -> PlannedGroup:
    """Returns a group as plain values for JSON."""
    found: PlannedGroup = to_plain(group, named=True)
    return found


def _buffer(buffer: Buffer, graph: Graph) -> BufferView:
    found: BufferView = to_plain(buffer, named=True)
    found["tensor_names"] = [graph.tensors[t].name for t in buffer.tensors]
    return found
