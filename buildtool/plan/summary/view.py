"""A plan as plain values, which `plan --json` prints."""

from __future__ import annotations

import dataclasses
from typing import Any

from buildtool.graph.types import Graph
from buildtool.plan.summary.binding import binding
from buildtool.plan.types import SCHEMA, Group, Plan
from buildtool.session import Session


def to_json(plan: Plan, graph: Graph | None = None, session: Session | None = None) -> dict[str, Any]:
    """A plain dictionary, ready for json; with the graph, operators and tensors also by name.

    `session`: what may know the plan's timeline already.
    """
    at = binding(plan, graph, session)
    return {
        "schema": SCHEMA,
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
        "binding": {"operator": at.op, "name": at.place, "step": at.step, "live_bytes": at.live_bytes},
        "accounting": list(plan.accounting),
        "operators": _operators(plan, graph),
        "regions": [{"groups": [_group(group) for group in region.groups]} for region in plan.regions],
        "buffers": _buffers(plan, graph),
        "loads": [dataclasses.asdict(load) for load in plan.loads],
        "moves": [dataclasses.asdict(move) for move in plan.moves],
        "overlaps": [dataclasses.asdict(overlap) for overlap in plan.overlaps],
    }


def _group(group: Group) -> dict[str, Any]:
    return dataclasses.asdict(group) | {"ops": list(group.ops), "scheme": str(group.scheme)}


def _operators(plan: Plan, graph: Graph | None) -> list[dict[str, Any]]:
    """Per operator of the graph: position, kernel ("" for aliases); with the graph also kind and name."""
    entries: list[dict[str, Any]] = []
    for position, kernel in enumerate(plan.kernels):
        entry: dict[str, Any] = {"position": position, "kernel": kernel}
        if graph is not None:
            op = graph.ops[position]
            entry |= {"kind": str(op.kind), "place": op.place, "name": graph.op_name(position)}
        entries.append(entry)
    return entries


def _buffers(plan: Plan, graph: Graph | None) -> list[dict[str, Any]]:
    """Offset, size and life of each; with the graph also its tensors' names."""
    entries: list[dict[str, Any]] = []
    for buffer in plan.buffers:
        entry = dataclasses.asdict(buffer) | {"kind": str(buffer.kind), "tensors": list(buffer.tensors)}
        if graph is not None:
            entry["tensor_names"] = [graph.tensors[t].name for t in buffer.tensors]
        entries.append(entry)
    return entries
