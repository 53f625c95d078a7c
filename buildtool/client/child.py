"""A client of the service. The daemon answers the requests that it serves, a child process all others.

The first request that needs the child starts it, and it ends with its client.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from buildtool.base import wire
from buildtool.base.code_digest import environment
from buildtool.base.errors import BuildtoolError, ToolError, from_data
from buildtool.client.files import Located

_END_SECONDS = 5.0  # a child must end within this time after its input is closed


class Client:
    """A connection to the service. Threads may share it; requests are answered one after another.

    Relative paths in requests are relative to `cwd` (None: the working folder). `mode` says who answers (see
    `door`; "": the environment decides). `cache` is on, off or renew.
    """

    def __init__(self, cwd: str | None = None, mode: str = "", cache: str = "on") -> None:
        self._cwd, self._mode, self._cache = cwd, mode, cache
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the service's answer to a request.

        Raises the BuildtoolError that the service sent, or ToolError if the service ended without an answer.
        """
        from buildtool.client import door  # a build with nothing to do does not need it

        located = Located(request, self._cwd)
        try:
            return door.ask(located.request, self._ask_child, mode=door.mode(self._mode), cache=self._cache)
        except BuildtoolError as error:
            raise located.restore_path(error) from None

    def _ask_child(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            if self._child is None:
                # -P: files in the working folder must not shadow Python's modules.
                command = [sys.executable, "-P", "-m", "buildtool.api"]
                pipe = subprocess.PIPE
                self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment())
            child = self._child
            assert child.stdin is not None and child.stdout is not None
            try:
                wire.send(child.stdin, {"request": request, "cache": self._cache})
                message = wire.receive(child.stdout)
            except BaseException as error:
                # The rest in the pipe would be taken for the next answer.
                self._end(kill=True)
                if isinstance(error, OSError):
                    hint = "see its messages above"
                    raise ToolError("the service cannot be reached", hint=hint) from error
                raise
            if message is None:
                status = self._end(kill=False)
                raise ToolError(f"the service ended without an answer (exit status {status})")
        if "error" in message:
            raise from_data(message["error"])
        answer = message.get("answer")
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
        """Ends the child and returns its exit status; 0 if there is no child. The caller must hold
        `_lock`.
        """
        child, self._child = self._child, None
        if child is None:
            return 0
        if kill:
            child.kill()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # it died before it read all bytes
                    stream.close()
        try:
            return child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()
