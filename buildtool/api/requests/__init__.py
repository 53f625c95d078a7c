"""The requests: each kind's name, its options, its type and its handler.

A request is a mapping with `kind`, the options of the kind as keys, and the options of planning or counting
under `options`. An unknown key, a value of the wrong type, and an option without effect are refused.

This package depends only on base and options, because the client imports it. The handler of a kind is
imported when it is needed. parts.py has the type of all requests and how they are read; kinds.py has the
kinds.
"""

from __future__ import annotations

from collections.abc import Mapping

from buildtool.api.requests import kinds  # noqa: F401 - it fills TYPES
from buildtool.api.requests.parts import TYPES, Needs, Request, Values
from buildtool.base.errors import UsageError, did_you_mean
from buildtool.options import Group, Option

EVERY_KIND = tuple(TYPES)  # in the order of the pages
KINDS = tuple(kind for kind in EVERY_KIND if TYPES[kind][0].handler)  # only the command answers the other


def type_of(kind: str) -> type[Request]:
    """Returns the request class for a `kind`, which must be in EVERY_KIND."""
    return TYPES[kind][0]


def options_of(kind: str, *groups: Group) -> tuple[Option, ...]:
    """Returns the options that requests of a kind take, of all groups or only of `groups`."""
    return type_of(kind).accepted_options(*groups)


def request_type(request: Mapping[str, object]) -> type[Request] | None:
    """Returns the class of a request, or None if its kind is unknown."""
    kind = request.get("kind")
    return type_of(kind) if isinstance(kind, str) and kind in KINDS else None


def needs(request: Mapping[str, object]) -> Needs:
    """Returns what the answer to a request depends on, besides the files that the request names."""
    type_ = request_type(request)
    return Needs.PROGRAMS if type_ is None else type_.needs


def parse(request: Mapping[str, object]) -> Request:
    """Returns the request that a mapping of plain values describes. Raises UsageError if a value is wrong."""
    if not isinstance(request, Mapping):
        raise UsageError("a request must be a mapping with a 'kind'")
    type_ = request_type(request)
    if type_ is None:
        kind = request.get("kind")
        raise UsageError(f"unknown kind of request {kind!r}", hint=did_you_mean(str(kind), KINDS))
    return type_.read(Values(type_, request))
