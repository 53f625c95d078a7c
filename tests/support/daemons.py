"""Daemons for tests. Each has folders of its own and ends with the test.

with running(tmp_path) as daemon:
    answer = daemon.ask({"kind": "boards"})
    daemon.stop_workers()  # SIGSTOP: requests wait until `go_on`
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from buildtool.base import folders, wire
from buildtool.base.errors import from_data
from buildtool.base.locks import process
from buildtool.client import daemon as client
from buildtool.client import endpoint as places
from buildtool.client.endpoint import Endpoint

BOARDS = {"kind": "boards"}
PLENTY = 1_000_000  # as BUILDTOOL_DAEMON_AHEAD: an unlimited budget for preparing plans
RUN = "BUILDTOOL_TEST_RUN"  # in the environment of every process that a run of the tests starts


def eventually(is_true: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Waits until `is_true()` is true and returns its value. Fails after `seconds`."""
    for _ in range(int(seconds * 100)):
        if value := is_true():
            return value
        time.sleep(0.01)
    raise AssertionError("it did not come true in time")


class Clock:
    """A clock whose time the test sets."""

    now = 50.0

    def __call__(self) -> float:
        return self.now


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Daemon:
    """A test's daemon. It starts with the first request."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.at: Endpoint = places.endpoint()

    def link(self, *, start: bool = True) -> client.Link:
        return client.reach(self.at, start=start)

    def ask(
        self, request: Mapping[str, Any], cache: str = "on", listen: client.Listener | None = None
    ) -> Any:
        """Returns the daemon's answer. Raises what the client raises."""
        with contextlib.closing(self.link()) as link:
            message = link.request(request, cache, listen)
        if "error" in message:
            raise from_data(message["error"])
        return message["answer"]

    def asking(self, request: Mapping[str, Any]) -> Asking:
        """Sends a request in a thread. Returns when it is sent."""
        return Asking(self, request)

    def status(self) -> Any:
        with contextlib.closing(self.link(start=False)) as link:
            return link.control("status")

    def counts(self) -> dict[str, int]:
        return self.status()["counts"]

    @property
    def pid(self) -> int:
        return self.at.process()[0]

    def workers(self) -> list[int]:
        return [worker["pid"] for worker in self.status()["workers"]]

    def stop_workers(self) -> None:
        """Stops the workers (SIGSTOP) as soon as they are idle, so that their next requests wait."""
        self.link().close()
        eventually(lambda: self.workers() and all(w["doing"] == "idle" for w in self.status()["workers"]))
        for pid in self.workers():
            os.kill(pid, signal.SIGSTOP)

    def at_work(self) -> list[int]:
        return [w["pid"] for w in self.status()["workers"] if w["doing"] == "planning"]

    def go_on(self, but: int = 0) -> None:
        """Continues the stopped workers, except `but`."""
        for pid in self.workers():
            if pid != but:
                os.kill(pid, signal.SIGCONT)

    def is_over(self) -> bool:
        return not self.at.is_alive()

    def end(self) -> None:
        """Kills it and its workers."""
        pid, start = self.at.process()
        if self.at.is_alive() and start and process(pid)[1] == start:
            workers = children(pid)
            for one in (pid, *workers):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            eventually(self.is_over)
            eventually(lambda: not any(map(is_running, workers)))
        with contextlib.suppress(OSError):  # it may lie in a folder that outlives the test
            self.at.address.unlink()


def leave_no_memory(pid: int) -> None:
    """Limits a process to 2 MiB more of address space than it has."""
    held = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    resource.prlimit(pid, resource.RLIMIT_AS, (held + (2 << 20), resource.RLIM_INFINITY))


def children(pid: int) -> list[int]:
    numbers = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == pid:
                numbers.append(int(path.parent.name))
    return numbers


HELLO = {"hello": {}}


@contextlib.contextmanager
def dialled(daemon: Daemon, *messages: Mapping[str, Any]) -> Iterator[socket.socket]:
    """Opens a plain socket to a daemon and sends messages."""
    with socket.socket(socket.AF_UNIX) as ours:
        ours.settimeout(20)
        ours.connect(str(daemon.at.address))
        ours.sendall(b"".join(map(wire.pack_frame, messages)))
        yield ours


def heard(ours: socket.socket, is_last: Callable[[Any], Any] = lambda message: False) -> list[Any]:
    """Returns a daemon's messages up to the first for which `is_last` is true, or up to the end."""
    decoder, messages = wire.Decoder(), list[Any]()
    while not (messages and is_last(messages[-1])) and (part := ours.recv(1 << 16)):
        messages += decoder.feed(part)
    return messages


class Asking:
    """A request in a thread. `result` waits for the answer, or raises the error."""

    def __init__(self, daemon: Daemon, request: Mapping[str, Any]) -> None:
        self.answer: list[Mapping[str, Any]] = []
        self._found: list[Any] = []
        self.link = daemon.link()
        before = daemon.counts()["requests"]
        self._thread = threading.Thread(target=self._run, args=(request,), daemon=True)
        self._thread.start()
        eventually(lambda: self._found or daemon.counts()["requests"] > before)

    def _run(self, request: Mapping[str, Any]) -> None:
        try:
            self._found.append(self.link.request(request, "on", self.answer.append))
        except BaseException as error:
            self._found.append(error)

    @property
    def is_done(self) -> bool:
        return bool(self._found)

    def result(self, seconds: float = 60.0) -> Any:
        """Waits for the final message and returns it."""
        self._thread.join(seconds)
        assert self._found, "no answer came"
        self.link.close()
        if isinstance(self._found[0], BaseException):
            raise self._found[0]
        return self._found[0]


@contextlib.contextmanager
def running(folder: Path, **settings: object) -> Iterator[Daemon]:
    """Runs a daemon with folders below `folder`. `settings`: environment variables (BUILDTOOL_DAEMON_...)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(folders.STATE, str(folder / "state"))
        patch.setenv(folders.CACHE, str(folder / "cache"))
        patch.setenv(folders.MODE, "on")
        for name, value in settings.items():
            patch.setenv(name, str(value))
        daemon = Daemon(folder)
        try:
            yield daemon
        finally:
            daemon.end()


def left_over() -> list[int]:
    """Returns the services and daemons that this run of the tests has left behind."""
    mark = f"{RUN}={os.environ.get(RUN, '')}".encode()
    numbers = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            ours = mark in (folder / "environ").read_bytes().split(b"\0")
            if (
                ours
                and b"buildtool.api" in (folder / "cmdline").read_bytes()
                and is_running(int(folder.name))
            ):
                numbers.append(int(folder.name))
    return sorted(numbers)
