"""The requests: what each kind is called, which options it takes, its type, what answers it.

A request is a mapping with `kind`, the options that the kind takes as keys, and those of planning or counting
under `options`. What is not known, of a wrong type, or without effect is refused.

A leaf as the client is: base and options alone. What answers a kind is imported when it is asked. Begin at
parts.py; kinds.py has the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping

from buildtool.api.requests import kinds  # noqa: F401 - it fills TYPES
from buildtool.api.requests.parts import TYPES, Needs, Request, Values
from buildtool.base.errors import UsageError, did_you_mean
from buildtool.options import Group, Option

EVERY_KIND = tuple(TYPES)  # as pages list them
KINDS = tuple(kind for kind in EVERY_KIND if TYPES[kind][0].handler)  # the command alone answers the other


def type_of(kind: str) -> type[Request]:
    """The type of a kind's requests; the kind is one of EVERY_KIND."""
    return TYPES[kind][0]


def options_of(kind: str, *groups: Group) -> tuple[Option, ...]:
    """The options that a kind of request takes; of some groups only."""
    return type_of(kind).taken(*groups)


def request_type(request: Mapping[str, object]) -> type[Request] | None:
    """The type of a request; None for one of an unknown kind."""
    kind = request.get("kind")
    return type_of(kind) if isinstance(kind, str) and kind in KINDS else None


def needs(request: Mapping[str, object]) -> Needs:
    """What the answer to a request depends on, besides what the request names."""
    of = request_type(request)
    return Needs.PROGRAMS if of is None else of.needs


def parse(request: Mapping[str, object]) -> Request:
    """The request that plain values describe; UsageError for whatever is wrong with them."""
    if not isinstance(request, Mapping):
        raise UsageError("a request must be a mapping with a 'kind'")
    of = request_type(request)
    if of is None:
        kind = request.get("kind")
        raise UsageError(f"unknown kind of request {kind!r}", hint=did_you_mean(str(kind), KINDS))
    return of.read(Values(of, request))
