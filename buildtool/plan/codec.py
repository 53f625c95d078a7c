"""Plans as bytes: canonical msgpack, so that equal plans are equal bytes."""

from __future__ import annotations

import hashlib

import msgpack

from buildtool.base.errors import PlanError
from buildtool.base.plain import Mismatch, from_plain, to_plain
from buildtool.plan.types import SCHEMA, Plan

_DIGEST_DIGITS = 32  # hexadecimal: 16 bytes


def to_bytes(plan: Plan) -> bytes:
    """[schema, plan], every dataclass an array of its fields in declared order."""
    try:
        packed: bytes = msgpack.packb([SCHEMA, to_plain(plan)], use_bin_type=True)
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
    if schema != SCHEMA or isinstance(schema, bool | float):
        raise PlanError(f"a plan of schema {schema!r:.20}, expected {SCHEMA}", hint="plan again")
    plan = plan_of(fields)
    if to_bytes(plan) != data:
        raise PlanError("not a plan in canonical form")
    return plan


def plan_of(content: object) -> Plan:
    """The plan of plain values, by position or by name; PlanError where they are not a plan."""
    try:
        plan = from_plain(content, Plan, "plan")
    except Mismatch as error:
        raise PlanError(f"not a plan: {error}") from None
    assert isinstance(plan, Plan)
    return plan
