"""When buildtool's code or a plugin's was edited: a daemon of the new code prepares the latest requests.

A client would start it anyway, and the new daemon asks the old one to end; so whatever fails here is left to
them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from buildtool.client.daemon import reach
from buildtool.client.endpoint import AbsentError
from buildtool.identity import code_digest

MOST_REQUESTS = 4  # that the new daemon is given: whoever edits code saves often


def succeed(code: str, requests: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]) -> None:
    """Starts the daemon of the code that is on disk, if that is not `code`, and gives it requests."""
    with contextlib.suppress(AbsentError, OSError):
        if code_digest() == code:
            return
        link = reach(start=True)
        try:
            link.prepare(requests[-MOST_REQUESTS:])
        finally:
            link.close()
