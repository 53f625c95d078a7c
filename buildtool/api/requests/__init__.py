"""The requests, a module a kind: what it is called, which options it takes, its type, what answers it.

A request is a mapping with `kind`, the options that the kind takes as keys, and those of planning or counting
under `options`. What is not known, of a wrong type, or without effect is refused.

A leaf as the client is: base and options alone. A kind's module is imported when the kind is named, and what
answers it when it is asked. Begin at parts.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from buildtool.api.requests.parts import Needs, Request, Values
from buildtool.base.errors import UsageError, did_you_mean
from buildtool.options import Group, Option

# As pages list them. Each is a module, and in it a class of this name.
KINDS = (
    "analyze",
    "plan",
    "trace",
    "front",
    "report",
    "describe",
    "emit",
    "build",
    "bundle",
    "sizes",
    "validate",
    "profile",
    "debug",
    "flash",
    "ops",
    "boards",
    "target",
    "zoo",
    "arena",
    "tflm",
)
EVERY_KIND = (*KINDS, "split")  # which the command alone answers


def type_of(kind: str) -> type[Request]:
    """The type of a kind of EVERY_KIND."""
    found: type[Request] = getattr(import_module(f"{__name__}.{kind}"), kind.capitalize())
    return found


def types_of(kind: str) -> tuple[type[Request], ...]:
    """All types of a kind, the first that of `type_of`: what is asked may be answered in several ways."""
    module = import_module(f"{__name__}.{kind}")
    types = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Request)]
    return tuple(one for one in types if one.__module__ == module.__name__)


def options_of(kind: str, *groups: Group) -> tuple[Option, ...]:
    """The options that a kind of request takes; of some groups only."""
    return type_of(kind).taken(*groups)


def asked(request: Mapping[str, object]) -> type[Request] | None:
    """The type of a request; None for one of an unknown kind."""
    kind = request.get("kind")
    return type_of(kind) if isinstance(kind, str) and kind in KINDS else None


def needs(request: Mapping[str, object]) -> Needs:
    """What the answer to a request depends on, besides what the request names."""
    of = asked(request)
    return Needs.PROGRAMS if of is None else of.needs


def parse(request: Mapping[str, object]) -> Request:
    """The request that plain values describe; UsageError for whatever is wrong with them."""
    if not isinstance(request, Mapping):
        raise UsageError("a request must be a mapping with a 'kind'")
    of = asked(request)
    if of is None:
        kind = request.get("kind")
        raise UsageError(f"unknown kind of request {kind!r}", hint=did_you_mean(str(kind), KINDS))
    return of.read(Values(of, request))
