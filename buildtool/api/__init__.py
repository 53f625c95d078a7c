"""Answers requests: `handle(request) -> answer`. Requests and answers are plain values.

Three callers use it: the caller's own process (the command line and the client's child), the daemon, and the
worker of a build system. All give the same answers.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from buildtool.base.errors import BuildtoolError, InternalError, from_exception

if TYPE_CHECKING:
    from buildtool.base.session import Session


def handle(request: Mapping[str, Any], session: Session | None = None) -> dict[str, Any]:
    """Returns the answer to a request: a mapping with `kind` and the kind's keys (see buildtool/options).

    Values are those of JSON, and bytes for files. Paths are absolute. `session` keeps what several requests
    share; without a session, nothing is kept. Raises BuildtoolError if the request is wrong, or has no
    answer.
    """
    from buildtool.api.requests import parse
    from buildtool.base.session import Session, working
    from buildtool.schema import SCHEMA

    session = session or Session()
    with working(session):
        parsed = parse(request)
        module, _, function = parsed.handler.partition(":")
        return {**getattr(import_module(f"buildtool.{module}"), function)(parsed, session), "schema": SCHEMA}


def open_session(without: Collection[str] = ()) -> Session:
    """Returns a session that also reads what earlier processes of this user have cached.

    It does not use the cache namespaces in `without`.
    """
    from buildtool.base.code_digest import code_digest
    from buildtool.base.folders import REMOTE_URL
    from buildtool.base.session import Session
    from buildtool.base.store.cache import open_cache

    keeper = open_cache(code_digest(), without)
    if keeper is not None and os.environ.get(REMOTE_URL):
        from buildtool.base.store.remote.settings import Settings

        keeper.connect(Settings.of(os.environ))
    return Session(keeper=keeper)


def handle_cached(request: Mapping[str, Any], session: Session, use: str = "on") -> dict[str, Any]:
    """Returns the answer of `handle`, and writes new results to the cache.

    `use` is "on", "off", or the word for renewing the cache's entries (see `base.modes.Use`).
    """
    with caching(session, subject(request), use):
        return handle(request, session)


@contextlib.contextmanager
def caching(session: Session, subject: str = "", use: str = "on") -> Iterator[None]:
    """A context in which a session uses its cache as `use` says (see `base.modes.Use`).

    At its end, new results are written to the cache. `subject` is the text by which `cache explain` finds the
    request ("": it cannot be found).
    """
    from buildtool.base.modes import Use
    from buildtool.base.store.cache import Cache

    keeper = session.keeper
    if not isinstance(keeper, Cache):
        yield
        return
    keeper.begin(subject, Use(use))
    if use != Use.ON:
        session.forget()
    session.keeper = None if use == Use.OFF else keeper
    try:
        yield
    finally:
        session.keeper = keeper
        registry = sys.modules.get("buildtool.target.registry")  # None: no plugin was used
        if registry is not None and registry.uses_others():
            keeper.unmake()  # the cache keys do not cover the code of that plugin
        keeper.flush()
        for text in keeper.take_warnings():
            print(f"warning: {text}", file=sys.stderr, flush=True)


def error_for_client(error: BaseException) -> BuildtoolError:
    """Returns any exception as an error that can be sent to a client.

    If it is an internal error, its trace is printed on standard error.
    """
    reported = from_exception(error)
    if isinstance(reported, InternalError):
        print(reported.trace, file=sys.stderr, flush=True)
    return reported


def subject(request: Mapping[str, Any]) -> str:
    """Returns a request's kind, network and board in words, by which `cache explain` finds the request."""
    return f"{request.get('kind')} {about(request)}"


def about(request: Mapping[str, Any]) -> str:
    """Returns "NETWORK on BOARD" with the names or paths that the request has."""

    def name(value: Any) -> str:
        return str(value.get("path") or value.get("name")) if isinstance(value, Mapping) else str(value)

    return f"{name(request.get('model'))} on {name(request.get('board'))}"
