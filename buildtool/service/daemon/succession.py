"""When buildtool's code or a plugin's was edited: a daemon of the new code prepares the latest requests.

It takes over how long nobody has asked, and has no successor of its own before somebody does.

A client would start it anyway, and the new daemon asks the old one to end; so whatever fails here is left to
them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from buildtool.client.daemon import reach
from buildtool.client.endpoint import AbsentError
from buildtool.identity import code_digest

MOST_REQUESTS = 4  # that the new daemon is given: whoever edits code saves often
_ATTEMPTS = 5  # a daemon on a busy machine may be silent for longer than a client waits

Requests = Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]


def succeed(
    code: str, requests: Requests | None, told: Mapping[str, float], after_seconds: float = 0.0
) -> bool:
    """Starts the daemon of the code that is on disk and gives it requests; False where that is `code`.

    Also False where no other daemon could be started. `requests`: None to start none; `told`: seconds that
    nobody has asked for, and CPU seconds that were spent on preparing meanwhile. `after_seconds`: to wait
    first, where more files may be about to be saved.
    """
    time.sleep(after_seconds)
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(AbsentError, OSError):
            if code_digest() == code:
                return False
            if requests is not None:
                _tell_the_next(requests[-MOST_REQUESTS:], told)
            return True
    return False


def _tell_the_next(requests: Requests, told: Mapping[str, float]) -> None:
    link = reach(start=True)
    try:
        link.prepare(requests, told)
    finally:
        link.close()
