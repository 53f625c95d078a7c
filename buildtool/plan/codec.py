"""Plans as bytes: canonical msgpack, so that equal plans are equal bytes."""

from __future__ import annotations

import hashlib

import msgpack

from buildtool.base.errors import PlanError
from buildtool.base.plain import Mismatch, from_plain, to_plain
from buildtool.plan.types import SCHEMA, Plan

_PACKED = "its bytes"  # the attribute of a plan that keeps its packed bytes
_DIGEST_DIGITS = 32  # hexadecimal: 16 bytes


def to_bytes(plan: Plan) -> bytes:
    """Returns the msgpack bytes of [schema, plan], each dataclass as an array of its fields in order.

    The plan keeps these bytes, as it never changes: they are packed once for its digest, its check and its
    answer. Raises PlanError if a number is too large.
    """
    known: dict[str, bytes] = plan.__dict__
    if _PACKED not in known:
        try:
            known[_PACKED] = msgpack.packb([SCHEMA, to_plain(plan)], use_bin_type=True)
        except (OverflowError, ValueError) as error:
            raise PlanError(f"the plan cannot be written: {error}") from None
    return known[_PACKED]


def digest(plan: Plan) -> str:
    """Returns a plan's identity in hexadecimal: the first 16 bytes of the SHA-256 of `to_bytes(plan)`."""
    return hashlib.sha256(to_bytes(plan)).hexdigest()[:_DIGEST_DIGITS]


def from_bytes(data: bytes) -> Plan:
    """Returns the plan that `to_bytes` wrote. Raises PlanError for any other bytes.

    A well-formed plan may still be illegal: see `check`.
    """
    try:
        content = msgpack.unpackb(data, raw=False, strict_map_key=True)
    except Exception as error:  # msgpack raises a dozen kinds, ValueError and RecursionError among them
        raise PlanError(f"not a plan: {type(error).__name__}") from None
    if not isinstance(content, list) or len(content) != 2:
        raise PlanError("not a plan")
    schema, fields = content
    if schema != SCHEMA or isinstance(schema, bool | float):
        raise PlanError(f"the plan has schema {schema!r:.20}, expected {SCHEMA}", hint="plan again")
    plan = plan_of(fields)
    if to_bytes(plan) != data:
        raise PlanError("not a plan in canonical form")
    return plan


def plan_of(content: object) -> Plan:
    """Returns the plan from plain values. Fields are given by position or by name.

    Raises PlanError if the values are not a plan.
    """
    try:
        plan = from_plain(content, Plan, "plan")
    except Mismatch as error:
        raise PlanError(f"not a plan: {error}") from None
    assert isinstance(plan, Plan)
    return plan
