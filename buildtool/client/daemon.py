"""Sends a request to the daemon: finds or starts it, and gives up when it is dead or silent.

The daemon makes answers faster, never different. Every failure here is an `AbsentError`. The caller then
answers the request in another way, unless a daemon is required.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from buildtool import __version__
from buildtool.api.requests import needs
from buildtool.api.requests.parts import Needs
from buildtool.base import wire
from buildtool.base.code_digest import environment
from buildtool.base.errors import BuildtoolError, MachineError, ToolError, from_data
from buildtool.base.folders import CACHE, REMOTE, REMOTE_URL, STATE, cache_folder
from buildtool.base.locks import has_locks, hold_lock
from buildtool.client import endpoint as places
from buildtool.client.endpoint import CONNECT_SECONDS, AbsentError, Endpoint

HELLO_SECONDS = 2.0
START_SECONDS = 10.0
SILENCE_SECONDS = 5.0  # a daemon at work sends a beat twice a second
NO_DAEMONS = "there are no daemons on this system: they need locks of files and Unix sockets"
_CHUNK = 1 << 18

Listener = Callable[[Mapping[str, Any]], None]  # gets progress and logs while a request runs


class UnservedError(AbsentError):
    """The daemon cannot take this request: it is too large, or has values that a message cannot carry."""


class Link:
    """A connection to a daemon. `hello` is the daemon's first message, once `greet` was called."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._decoder = wire.Decoder()
        self._waiting: list[dict[str, Any]] = []
        self.hello: dict[str, Any] = {}

    def greet(self) -> Link:
        """Exchanges the first messages with the daemon, and returns this connection.

        Raises AbsentError unless a daemon of this version answers.
        """
        self._send({"hello": {"version": __version__}})
        hello = self._receive(HELLO_SECONDS).get("hello")
        self.hello = hello if isinstance(hello, dict) else {}
        if self.hello.get("version") != __version__:
            raise AbsentError("the daemon has another version")
        return self

    def control(self, word: str) -> dict[str, Any]:
        """Returns the daemon's answer to a control word, such as "status"; {} if the answer is malformed."""
        self._send({"control": word})
        answer = self._receive(SILENCE_SECONDS).get("control")
        return answer if isinstance(answer, dict) else {}

    def prepare(
        self, requests: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]], told: Mapping[str, float]
    ) -> None:
        """Sends requests, each with its environment, whose answers the daemon shall prepare.

        `told` has the seconds since a client's last request (`idle`), and the CPU seconds that preparations
        have taken since then (`spent`).
        """
        pairs = [[dict(request), dict(variables)] for request, variables in requests]
        self._send({"prepare": pairs, **told})
        self._receive(SILENCE_SECONDS)

    def request(self, request: Mapping[str, Any], cache: str, listen: Listener | None) -> dict[str, Any]:
        """Sends a request and returns the last message about it: an answer or an error.

        `cache` says whether the daemon uses its cache: on, off or renew. `listen` gets all messages before
        the last one. Raises AbsentError if the daemon or its worker ends, or if the daemon sends nothing for
        too long.
        """
        # the environment decides which compilers are found; the shared cache decides nothing
        variables = _without_remote() if needs(request) is Needs.COMPILERS else {}
        asked = {"request": dict(request), "cache": cache, "environment": variables}
        if os.environ.get(REMOTE_URL):
            from buildtool.base.store.remote.settings import Settings

            settings = Settings.of(os.environ)
            asked |= {"remote": settings.to_message()} if settings else {}
        self._send(asked)
        while True:
            message = self._receive(SILENCE_SECONDS)
            if message.get("crash"):
                raise AbsentError(from_data(message.get("error") or {}).text)
            if "answer" in message or "error" in message:
                return message
            if listen is not None:
                listen(message)

    @property
    def is_open(self) -> bool:
        """Whether the daemon has not closed the connection."""
        try:
            self._socket.settimeout(0)
            return self._socket.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Closes the connection. The daemon then ends work that no other client waits for."""
        self._socket.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            frame = wire.pack_frame(message)
        except (ToolError, OverflowError, ValueError, TypeError) as error:
            raise UnservedError(f"the request cannot be sent: {error}") from None
        if len(frame) > wire.REQUEST_LIMIT:
            raise UnservedError(f"a request of {len(frame):,} bytes is too large for the daemon")
        try:
            self._socket.settimeout(SILENCE_SECONDS)
            self._socket.sendall(frame)
        except OSError as error:
            raise AbsentError(f"the daemon cannot be reached: {error}") from None

    def _receive(self, seconds: float) -> dict[str, Any]:
        while not self._waiting:
            try:
                self._socket.settimeout(seconds)
                data = self._socket.recv(_CHUNK)
            except TimeoutError:
                raise AbsentError(f"the daemon sent nothing for {seconds:.0f} seconds") from None
            except OSError as error:
                raise AbsentError(f"the daemon cannot be reached: {error}") from None
            if not data:
                raise AbsentError("the daemon ended during the request")
            try:
                self._waiting += self._decoder.feed(data)
            except ToolError as error:
                raise AbsentError(f"the daemon sent invalid data: {error.text}") from None
        return self._waiting.pop(0)


def ask(request: Mapping[str, Any], cache: str, listen: Listener | None) -> dict[str, Any]:
    """Returns the daemon's answer to a request; `cache` and `listen` are those of `Link.request`.

    Raises the BuildtoolError that the daemon sent, or AbsentError if no daemon answers.
    """
    with contextlib.closing(reach(start=True)) as link:
        message = link.request(request, cache, listen)
    for text in message.get("warnings", ()):
        print(f"warning: {text}", file=sys.stderr, flush=True)
    if "error" in message:
        raise from_data(message["error"])
    if not isinstance(message["answer"], dict):
        raise AbsentError("the daemon sent a malformed answer")
    return message["answer"]


def _without_remote(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns an environment without the settings of the shared cache, which come with each request.

    These settings have credentials.
    """
    return {name: value for name, value in variables.items() if name not in REMOTE}


def reach(at: Endpoint | None = None, *, start: bool) -> Link:
    """Returns a connection to the daemon at the endpoint `at` (None: the one for this code, cache and user).

    If no daemon runs and `start` is true, it is started. Raises AbsentError if there is no connection.
    """
    if not has_locks() or not hasattr(socket, "AF_UNIX"):
        raise AbsentError(NO_DAEMONS)
    try:
        endpoint = (at or places.endpoint()).prepared() if start else at or places.endpoint()
        connection = endpoint.connect(CONNECT_SECONDS)
        if connection is None and start:
            connection = start_or_join(endpoint)
    except (MachineError, OSError) as error:
        text = error.text if isinstance(error, BuildtoolError) else str(error)
        raise AbsentError(f"no daemon can be started: {text}") from None
    if connection is None:
        raise AbsentError("no daemon is running")
    link = Link(connection)
    try:
        return link.greet()
    except BaseException:
        link.close()
        raise


# ---- starting a daemon; several clients may try at once ------------------------------------------------


def start_or_join(at: Endpoint) -> socket.socket | None:
    """Starts a daemon and returns a connection to it, also if another client starts the daemon at the same
    time.

    Raises AbsentError if no daemon is ready within START_SECONDS.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        connection: socket.socket | None = None
        with hold_lock(at.starting, wait=False) as lock:
            if lock is None:
                time.sleep(0.02)
            else:
                connection = at.connect(CONNECT_SECONDS) or _connect_running(at)
                if connection is None:
                    _spawn(at, deadline)
        connection = connection or at.connect(CONNECT_SECONDS)
        if connection is not None:
            return connection
    raise AbsentError(f"the daemon did not start within {START_SECONDS:.0f} seconds")


def _connect_running(at: Endpoint) -> socket.socket | None:
    """Returns a connection to the running daemon, or None if none runs.

    Raises AbsentError if a daemon runs but accepts no more clients.
    """
    deadline = time.monotonic() + CONNECT_SECONDS
    while at.is_alive():
        connection = at.connect(CONNECT_SECONDS)
        if connection is not None:
            return connection
        if time.monotonic() > deadline:
            why = str(at.read_record().get("ended") or "")
            raise AbsentError(f"it has not ended yet ({why})" if why else "it accepts no more clients")
        time.sleep(0.02)
    return None


def _spawn(at: Endpoint, deadline: float) -> None:
    """Starts a daemon and waits until it listens.

    Raises AbsentError, with the end of the daemon's log, if the daemon ends or is not ready by `deadline`.
    """
    import subprocess  # most clients find a running daemon

    read, write = os.pipe()
    try:
        # absolute paths: the daemon has another working folder
        cache = cache_folder()
        folders = {STATE: str(at.folder)} | ({CACHE: str(cache)} if cache is not None else {})
        log = os.open(at.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "buildtool.daemon", at.name, str(write)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_without_remote(environment()) | folders,
                pass_fds=[write],
                start_new_session=True,
            )
        finally:
            os.close(log)
            os.close(write)
        with contextlib.suppress(OSError):  # the daemon writes a byte when it is ready, or closes the pipe
            is_readable = select.select([read], [], [], max(0.0, deadline - time.monotonic()))[0]
            if is_readable and os.read(read, 1) == b"r":
                return
    finally:
        os.close(read)
    with contextlib.suppress(subprocess.TimeoutExpired):
        if child.wait(CONNECT_SECONDS) == 0:
            return  # another daemon was faster
    if child.returncode is None:
        child.kill()  # it did not get ready in time
        child.wait()
    raise AbsentError(f"the daemon ended at its start; the end of its log:\n{at.log_end()}")
