"""Answers requests: `handle(request) -> answer`, with plain values both ways.

Three fronts stand before it: the caller's own process (the command line and the client's child), the daemon,
and the worker of a build system. Their answers are equal.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from buildtool.base.errors import BuildtoolError, InternalError, from_exception

if TYPE_CHECKING:
    from buildtool.base.session import Session


def handle(request: Mapping[str, Any], session: Session | None = None) -> dict[str, Any]:
    """Answers a request: a mapping with `kind` and the keys that kind takes (see buildtool/options).

    Values are those of JSON, and bytes for files; paths are absolute. Errors are BuildtoolError.
    `session` keeps what several requests share; without one nothing is kept.
    """
    from buildtool.api.requests import parse
    from buildtool.base.session import Session, working
    from buildtool.schema import SCHEMA

    session = session or Session()
    with working(session):
        asked = parse(request)
        module, _, function = asked.handler.partition(":")
        return {**getattr(import_module(f"buildtool.{module}"), function)(asked, session), "schema": SCHEMA}


def open_session() -> Session:
    """A session that also finds what earlier processes of this user have kept."""
    from buildtool.base.identity import code_digest
    from buildtool.base.session import Session
    from buildtool.base.store.cache import open_cache

    return Session(keeper=open_cache(code_digest()))


def answered(request: Mapping[str, Any], session: Session, use: str = "on") -> dict[str, Any]:
    """As `handle`, with the cache on, off, or renewed; writes new entries to the cache at the end."""
    from buildtool.base.store.cache import Cache, Use

    keeper = session.keeper
    if not isinstance(keeper, Cache):
        return handle(request, session)
    keeper.begin(subject(request), Use(use))
    if use != Use.ON:
        session.forget()
    session.keeper = None if use == Use.OFF else keeper
    try:
        return handle(request, session)
    finally:
        session.keeper = keeper
        registry = sys.modules.get("buildtool.target.registry")  # not loaded: no plugin was asked for
        if registry is not None and registry.uses_others():
            keeper.unmake()  # a plugin had a part in it whose code no key knows
        keeper.flush()


def error_for_client(error: BaseException) -> BuildtoolError:
    """The error for a client; prints the trace of an internal error on standard error."""
    told = from_exception(error)
    if isinstance(told, InternalError):
        print(told.trace, file=sys.stderr, flush=True)
    return told


def subject(request: Mapping[str, Any]) -> str:
    """What a request is and what it is about, in words: under which `cache explain` finds it."""
    return f"{request.get('kind')} {about(request)}"


def about(request: Mapping[str, Any]) -> str:
    """The network and the board of a request, as it names them."""

    def named(value: Any) -> str:
        return str(value.get("path") or value.get("name")) if isinstance(value, Mapping) else str(value)

    return f"{named(request.get('model'))} on {named(request.get('board'))}"
