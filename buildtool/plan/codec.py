"""Plans as bytes: canonical msgpack (equal plans, equal bytes), and the view that `plan --json` prints."""

from __future__ import annotations

import dataclasses
import enum
import math
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import msgpack

from buildtool.errors import PlanError
from buildtool.graph.types import Graph
from buildtool.plan.binding import binding
from buildtool.plan.types import SCHEMA, Group, Plan

_LARGEST = (1 << 63) - 1  # of any integer in a plan


def to_bytes(plan: Plan) -> bytes:
    """[SCHEMA, plan], every dataclass an array of its fields in declared order."""
    try:
        packed: bytes = msgpack.packb([SCHEMA, _plain(plan)], use_bin_type=True)
    except (OverflowError, ValueError) as error:
        raise PlanError(f"a plan that cannot be written: {error}") from None
    return packed


def from_bytes(data: bytes) -> Plan:
    """The plan that `to_bytes` wrote; PlanError for anything else, whatever it is.

    That it is well formed does not make it legal: see `check`.
    """
    try:
        content = msgpack.unpackb(data, raw=False, strict_map_key=True)
    except Exception as error:  # msgpack raises a dozen kinds, ValueError and RecursionError among them
        raise PlanError(f"not a plan: {type(error).__name__}") from None
    if not isinstance(content, list) or len(content) != 2:
        raise PlanError("not a plan")
    if content[0] != SCHEMA or isinstance(content[0], bool):
        raise PlanError(f"a plan of schema {content[0]!r:.20}, expected {SCHEMA}", hint="plan again")
    plan = _read(content[1], Plan, "plan")
    assert isinstance(plan, Plan)
    if to_bytes(plan) != data:
        raise PlanError("not a plan in canonical form")
    return plan


def _plain(value: object) -> object:
    """Dataclasses and tuples as lists, enumerations as their values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [_plain(getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, enum.StrEnum) else value


@cache
def _hints(cls: type) -> tuple[tuple[str, Any], ...]:
    """Names and types of a dataclass's fields, in declared order."""
    hints = get_type_hints(cls)
    return tuple((f.name, hints[f.name]) for f in dataclasses.fields(cls))


def _read(value: object, kind: Any, where: str) -> Any:
    """`value` as a `kind` (a type as types.py annotates its fields); `where` for messages."""
    origin = get_origin(kind)
    if origin is tuple:
        if isinstance(value, list):
            return tuple(_read(v, get_args(kind)[0], f"{where}[{i}]") for i, v in enumerate(value))
    elif dataclasses.is_dataclass(kind):
        assert isinstance(kind, type)
        fields = _hints(kind)
        if isinstance(value, list) and len(value) == len(fields):
            return kind(*(_read(v, t, f"{where}.{n}") for v, (n, t) in zip(value, fields, strict=True)))
    elif issubclass(kind, enum.StrEnum):
        if isinstance(value, str) and value in list(kind):
            return kind(value)
    elif kind is float:
        if isinstance(value, float) and math.isfinite(value):
            return value
    elif kind is int:
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST:
            return value
    elif isinstance(value, kind):
        return value
    raise PlanError(f"not a plan: {where} is a {type(value).__name__}")


def to_json(plan: Plan, graph: Graph | None = None) -> dict[str, Any]:
    """A plain dictionary, ready for json; with the graph, operators and tensors also by name."""
    at = binding(plan, graph)
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
