"""Answers requests: `handle(request) -> answer`, with plain values both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from buildtool.session import Session


def handle(request: Mapping[str, Any], session: Session | None = None) -> dict[str, Any]:
    """Answers a request: a mapping with `kind` and the keys that kind takes (see buildtool/options).

    Values are those of JSON, and bytes for files; paths are absolute. Errors are BuildtoolError.
    `session` keeps what several requests share; without one nothing is kept.
    """
    from buildtool.service.handlers import answer
    from buildtool.service.requests import parse

    return answer(parse(request), session or Session())
