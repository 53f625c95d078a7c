"""The one door to everything behind it: `handle(request) -> answer`, plain values both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buildtool.errors import UsageError, did_you_mean


def handle(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answers a request: a mapping with `kind` and the keys that kind takes.

    Values are those of JSON, and bytes for files. Errors are BuildtoolError.
    """
    from buildtool.service.requests import HANDLERS

    kind = request.get("kind")
    handler = HANDLERS.get(kind) if isinstance(kind, str) else None
    if handler is None:
        raise UsageError(f"unknown kind of request {kind!r}", hint=did_you_mean(str(kind), HANDLERS))
    return handler(request)
