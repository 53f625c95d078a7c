"""Plans as bytes: canonical msgpack, so that equal plans are equal bytes."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import math
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import msgpack

from buildtool.errors import PlanError
from buildtool.plan.types import (
    COPIED_SCHEMA,
    ONE_ARENA_SCHEMA,
    ONE_PASS_SCHEMA,
    SCHEMA,
    STATELESS_SCHEMA,
    Plan,
)

_LARGEST = (1 << 63) - 1  # of any integer in a plan
# Schema -> the last fields of a plan that its bytes leave out, as they are then.
_LATER: dict[int, tuple[object, ...]] = {
    SCHEMA: (),
    COPIED_SCHEMA: ([],),
    ONE_PASS_SCHEMA: ([], []),
    STATELESS_SCHEMA: ([], [], []),
    ONE_ARENA_SCHEMA: (0, [], [], []),
}
_DIGEST_DIGITS = 32  # hexadecimal: 16 bytes


def to_bytes(plan: Plan) -> bytes:
    """[schema, plan], every dataclass an array of its fields in declared order.

    Each schema has a field more at the end than the one before it: `second_at`, `states`, `second_passes`,
    `views`. A plan is of the first one that has all that it says.
    """
    fields = _plain(plan)
    assert isinstance(fields, list)
    said = {
        SCHEMA: plan.views,
        COPIED_SCHEMA: plan.second_passes,
        ONE_PASS_SCHEMA: plan.states,
        STATELESS_SCHEMA: plan.second_at,
    }
    schema = next((schema for schema, what in said.items() if what), ONE_ARENA_SCHEMA)
    content = [schema, fields[: len(fields) - len(_LATER[schema])]]
    try:
        packed: bytes = msgpack.packb(content, use_bin_type=True)
    except (OverflowError, ValueError) as error:
        raise PlanError(f"a plan that cannot be written: {error}") from None
    return packed


def digest(plan: Plan) -> str:
    """What tells a plan from every other one: the beginning of its bytes' SHA-256 (hex, 16 bytes)."""
    return hashlib.sha256(to_bytes(plan)).hexdigest()[:_DIGEST_DIGITS]


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
    schema, fields = content
    if schema not in tuple(_LATER) or isinstance(schema, bool | float):
        raise PlanError(f"a plan of schema {schema!r:.20}, expected {SCHEMA}", hint="plan again")
    if isinstance(fields, list):
        fields = [*fields, *_LATER[schema]]
    plan = plan_of(fields)
    if to_bytes(plan) != data:
        raise PlanError("not a plan in canonical form")
    return plan


def plan_of(content: object) -> Plan:
    """The plan of nested lists, every dataclass a list of its fields; PlanError where they are none."""
    plan = _read(content, Plan, "plan")
    assert isinstance(plan, Plan)
    return plan


def _plain(value: object) -> object:
    """Dataclasses and tuples as lists, enumerations as their values."""
    kind = type(value)
    if kind is int or kind is str or kind is float:
        return value
    if kind is tuple:
        assert isinstance(value, tuple)
        return list(value) if value and type(value[0]) is int else [_plain(item) for item in value]
    if isinstance(value, enum.StrEnum):
        return str(value)
    if dataclasses.is_dataclass(kind):
        return [_plain(getattr(value, name)) for name, _ in fields_of(kind)]
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


@cache
def fields_of(cls: type) -> tuple[tuple[str, Any], ...]:
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
        fields = fields_of(kind)
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
