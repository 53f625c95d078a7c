"""When buildtool's code or a plugin's was edited: a daemon of the new code prepares the latest requests.

It takes over how long nobody has asked, and has no successor of its own before somebody does.

A client would start it anyway, and the new daemon asks the old one to end; so whatever fails here is left to
them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from buildtool.base.identity import code_digest
from buildtool.client.daemon import reach
from buildtool.client.endpoint import AbsentError

MOST_REQUESTS = 4  # that the new daemon is given: whoever edits code saves often
END_SECONDS = 30.0  # that a daemon of older code stays to tell the new one what to prepare
_ATTEMPTS = 5  # a daemon on a busy machine may be silent for longer than a client waits

Requests = Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]


class Succession:
    """A daemon's part in it: `code` is its own; `wake` is called, from another thread, when `is_stale`.

    `is_asked`: a request came since the last succession; `is_stale`: the code is another one, and none came.
    """

    def __init__(self, code: str, wake: Callable[[], None]) -> None:
        self.is_asked = self.is_stale = False
        self._code, self._wake = code, wake
        self._at_work: list[threading.Thread] = []

    def begin(self, requests: Requests, told: Mapping[str, float], after_seconds: float = 0.0) -> None:
        """The code may be another one now: see `succeed`."""
        given = requests if self.is_asked else None
        thread = threading.Thread(target=self._run, args=(given, told, after_seconds), daemon=True)
        self._at_work.append(thread)
        thread.start()

    def wait(self) -> None:
        """Until the next daemon has what it is told, or for so long: it may end this one before it has."""
        for thread in self._at_work:
            thread.join(END_SECONDS)

    def _run(self, requests: Requests | None, told: Mapping[str, float], after_seconds: float) -> None:
        if not succeed(self._code, requests, told, after_seconds):
            return
        if requests is not None:
            self.is_asked = False
        else:
            self.is_stale = True
            self._wake()


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
