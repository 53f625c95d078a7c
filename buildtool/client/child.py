"""A client of the service: the daemon answers what it serves, a child process everything else.

The child is started with the first request that needs it, and ended with its client.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from buildtool.base import wire
from buildtool.base.errors import BuildtoolError, ToolError, from_data
from buildtool.base.identity import environment
from buildtool.client.files import Located

_END_SECONDS = 5.0  # that a child gets to end once its input is closed


class Client:
    """Asks the service. One child serves all requests, one after another; threads may share it.

    `cwd` is the folder that relative paths in requests are relative to (default: the caller's); `mode`: who
    answers (see `door`; "": as the environment says); `cache`: on, off, or renew.
    """

    def __init__(self, cwd: str | None = None, mode: str = "", cache: str = "on") -> None:
        self._cwd, self._mode, self._cache = cwd, mode, cache
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The service's answer. Raises the BuildtoolError it answered with, ToolError if it died."""
        from buildtool.client import door  # for those who ask; a build with nothing to do does not

        located = Located(request, self._cwd)
        try:
            return door.ask(located.request, self._ask_child, mode=door.mode(self._mode), cache=self._cache)
        except BuildtoolError as error:
            raise located.restore_path(error) from None

    def _ask_child(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            if self._child is None:
                # -P: the folder the build runs in must not shadow Python's modules.
                command = [sys.executable, "-P", "-m", "buildtool.api"]
                pipe = subprocess.PIPE
                self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment())
            child = self._child
            assert child.stdin is not None and child.stdout is not None
            try:
                wire.send(child.stdin, {"request": request, "cache": self._cache})
                told = wire.receive(child.stdout)
            except BaseException as error:
                # Whatever is left in the pipe would be taken for the next answer.
                self._end(kill=True)
                if isinstance(error, OSError):
                    hint = "its own words are above"
                    raise ToolError("the service cannot be reached", hint=hint) from error
                raise
            if told is None:
                status = self._end(kill=False)
                raise ToolError(f"the service ended without an answer (exit status {status})")
        if "error" in told:
            raise from_data(told["error"])
        answer = told.get("answer")
        if not isinstance(answer, dict):
            raise ToolError("the service sent a malformed answer")
        return answer

    def close(self) -> None:
        """Ends the child, if there is one."""
        with self._lock:
            self._end(kill=False)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()

    def _end(self, *, kill: bool) -> int:
        """Ends the child and returns its exit status; the caller holds the lock."""
        child, self._child = self._child, None
        if child is None:
            return 0
        if kill:
            child.kill()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # it was dead already, with bytes of ours unread
                    stream.close()
        try:
            return child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()
