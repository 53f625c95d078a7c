"""Sends a front end's requests to the service, and turns its answers into JSON.

The command line and the Python interface share this code, so both get the same answers.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.api.requests import options_of
from buildtool.base.errors import BuildtoolError
from buildtool.options import NESTED

if TYPE_CHECKING:
    from buildtool.base.session import Session

Listener = Callable[[Mapping[str, Any]], None]


def build_request(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the request of a kind. `values` maps options to values; those that are None are left out."""
    nested = {option.name for option in options_of(kind) if option.group in NESTED}
    request: dict[str, Any] = {"kind": kind}
    options: dict[str, Any] = {}
    for name, value in values.items():
        if value is not None:
            (options if name in nested else request)[name] = value
    return request | ({"options": options} if options else {})


def ask(
    request: Mapping[str, Any],
    *,
    daemon: str | None = None,
    cache: str = "on",
    opened: Callable[[], AbstractContextManager[Session]],
    listen: Listener | None = None,
) -> Any:
    """Returns the answer to a request, whose paths may be relative.

    - `daemon`: a mode of `client.door` (None: that of the environment).
    - `cache`: whether the cache is on, off or renewed.
    - `opened`: gives the session that answers if no daemon does.
    - `listen`: receives progress messages.

    Raises BuildtoolError if the request is wrong or has no answer.
    """
    from buildtool.client import door
    from buildtool.client.files import Located

    located = Located(request)

    def answer_here(request: Mapping[str, Any]) -> dict[str, Any]:
        from buildtool.api import handle_cached

        with opened() as session:
            session.progress = lambda text: listen({"progress": {"text": text}}) if listen else None
            return handle_cached(request, session, cache)

    try:
        return door.ask(located.request, answer_here, mode=door.mode(daemon), cache=cache, listen=listen)
    except BuildtoolError as error:
        raise located.restore_path(error) from None


def input_files(request: Mapping[str, Any]) -> list[str]:
    """Returns the existing files that a request's answer depends on. Paths in the request may be relative."""
    from buildtool.client.files import Located
    from buildtool.target.registry import board_chain

    request = Located(request).request
    paths = [value["path"] for value in request.values() if isinstance(value, dict) and "path" in value]
    for value in (request.get("model"), request.get("board")):
        if isinstance(value, str) and Path(value).is_absolute():  # `Located` has made the path absolute
            paths.append(value)
    board = next((path for path in paths if path.endswith(".toml")), None)
    if board is not None:
        with contextlib.suppress(BuildtoolError, OSError):
            paths += [str(path) for path in board_chain(board)]
    return sorted(set(paths))


def as_json(value: object) -> str:
    """Returns a value as JSON with sorted keys, without the entries whose values are bytes."""
    return _encode(value, "\n")


_encode_scalar = json.JSONEncoder().encode


def _encode(value: object, line: str) -> str:
    """Returns a value as `json.dumps` with an indent writes it, but faster and with less memory.

    `line` is a line break and the indent of the line on which the value begins.
    """
    inner = f"{line}  "
    if isinstance(value, dict):
        entries = {str(key): item for key, item in value.items() if not isinstance(item, bytes)}
        lines = [f"{_encode_scalar(key)}: {_encode(entries[key], inner)}" for key in sorted(entries)]
        begin, end = "{}"
    elif isinstance(value, list | tuple):
        lines = [_encode(item, inner) for item in value]
        begin, end = "[]"
    else:
        return repr(value) if type(value) is int else _encode_scalar(value)
    return f"{begin}{inner}{f',{inner}'.join(lines)}{line}{end}" if lines else begin + end
