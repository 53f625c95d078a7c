"""Child processes that plan: one for each request at work, each with what it remembers of its networks.

One more, of the lowest priority, prepares what nobody has asked for yet.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from buildtool.api import about
from buildtool.api.requests import needs
from buildtool.api.requests.parts import Needs
from buildtool.base import wire

if TYPE_CHECKING:
    from buildtool.daemon.connection import Connection

MOST_WORKERS = max(2, os.cpu_count() or 1)
IDLE_SECONDS = 300.0  # after which a worker that is not the last one ends
_CHUNK = 1 << 18


class Worker:
    """A child; `about`: the network and board that it planned last; `job`: the key of its request.
    `prepares`: it only plans ahead of requests, since a process cannot take its priority back.
    """

    def __init__(self, *, prepares: bool = False) -> None:
        self.prepares = prepares
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "buildtool.daemon.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # so that its own children end with it
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.pid, self.stdin, self.stdout = self.process.pid, self.process.stdin, self.process.stdout
        for pipe in (self.stdin, self.stdout):
            os.set_blocking(pipe.fileno(), False)
        self.ended = self.ready = self.dropped = False  # `dropped`: it was told to give memory back
        self._decoder = wire.Decoder()
        self.unsent = bytearray()
        self.about, self.doing = "", "starting"
        self.job: str | None = None
        self.rss, self.cpu = 0, 0.0  # bytes of memory, and CPU seconds, as it said last
        self.since = self.heard_at = time.monotonic()  # `since`: it is at work, or idle

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message to the worker, as soon as it reads."""
        self.unsent += wire.pack_frame(message)
        self.heard_at = time.monotonic()  # from now on it has to say that it is at work
        self.write()

    def is_silent(self, now: float, seconds: float) -> bool:
        """Whether it works for a client and was silent for this many `seconds`: it is stopped, or hangs."""
        return self.job is not None and not self.prepares and now - self.heard_at > seconds

    def write(self) -> None:
        """Writes as much as its pipe takes now. `read` finds out that a child has ended."""
        with contextlib.suppress(OSError):
            while self.unsent and not self.ended:
                sent = os.write(self.stdin.fileno(), memoryview(self.unsent)[:_CHUNK].tobytes())
                del self.unsent[:sent]

    def read(self) -> list[dict[str, Any]] | None:
        """The messages that it has sent; None where it has ended. ToolError for a malformed message."""
        if self.ended:
            return []
        try:
            data = os.read(self.stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            return None
        self.heard_at = time.monotonic()
        return self._decoder.feed(data) if data else None

    def kill(self) -> None:
        """Kills it and all processes that it has started. `wait` says when it is gone."""
        self.ended = True
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        for pipe in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                pipe.close()

    def wait(self, *, patient: bool = True) -> int | None:
        """Its exit status; notes its CPU time. None where it is not gone yet and this is not `patient`."""
        try:
            pid, status, used = os.wait4(self.pid, 0 if patient else os.WNOHANG)
        except ChildProcessError:
            return self.process.wait()
        if not pid:
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu = used.ru_utime + used.ru_stime
        return self.process.returncode


@dataclass(eq=False)
class Job:
    """A request at work; `waiting`: the clients that asked for it, none where it is prepared."""

    key: str
    request: Mapping[str, Any]
    environment: Mapping[str, str]
    cache: str
    waiting: list[Connection] = field(default_factory=list)
    worker: Worker | None = None
    begun: float = field(default_factory=time.monotonic)
    doing: str = "waiting for a free process"

    @property
    def about(self) -> str:
        """The network and the board. A worker that has planned these before is preferred."""
        return about(self.request)

    @property
    def is_pure(self) -> bool:
        """Whether the answer depends on files alone, whose digests come with the request or the answer."""
        known = needs(self.request) is Needs.NOTHING and not self.request.get("cmsis_nn")
        return known and self.cache == "on"

    def message(self) -> dict[str, Any]:
        """The message to its worker."""
        return {"request": self.request, "environment": self.environment, "cache": self.cache}


def lower_priority(pid: int) -> None:
    """Gives a process that leads a session, and its group, the lowest priority. It cannot be raised again."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, 19)
    with contextlib.suppress(OSError, AttributeError):  # Linux alone has it
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "r+", encoding="ascii") as group:  # noqa: PTH123
        group.write("19")


class Pool:
    """The workers, of which MOST_WORKERS work for clients at once; `selector` waits for what they say."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self.workers: list[Worker] = []
        self._dying: list[Worker] = []
        self._selector = selector

    def free(self, about: str) -> Worker | None:
        """A worker that knows the network, an idle or a new one; None: all are busy. Raises OSError."""
        idle = [worker for worker in self.asked if worker.job is None]
        for wanted in (about, ""):  # "": it has planned nothing yet
            for worker in idle:
                if worker.about == wanted:
                    return worker
        if len(self.asked) < MOST_WORKERS:
            return self.add()
        return min(idle, key=lambda worker: worker.since, default=None)

    @property
    def asked(self) -> list[Worker]:
        """The workers that answer requests."""
        return [worker for worker in self.workers if not worker.prepares]

    def add(self, *, prepares: bool = False) -> Worker:
        """A new worker. OSError where the system has no process left."""
        worker = Worker(prepares=prepares)
        self.workers.append(worker)
        self._selector.register(worker.stdout, selectors.EVENT_READ, worker)
        return worker

    def tell(self, worker: Worker, message: Mapping[str, Any]) -> None:
        """Sends a worker a message."""
        worker.send(message)
        self.look(worker)

    def look(self, worker: Worker) -> None:
        """Waits until a worker reads, if something is left to send to it."""
        if worker.ended:
            return
        known = worker.stdin.fileno() in self._selector.get_map()
        if worker.unsent and not known:
            self._selector.register(worker.stdin, selectors.EVENT_WRITE, worker)
        elif known and not worker.unsent:
            self._selector.unregister(worker.stdin)

    def remove(self, worker: Worker) -> int:
        """Ends a worker; returns its exit status. Does not wait for one that prepares."""
        for pipe in (worker.stdin, worker.stdout):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(pipe)
        if worker in self.workers:
            self.workers.remove(worker)
        worker.kill()
        if worker.prepares:
            self._dying.append(worker)
            return 0
        return worker.wait() or 0

    def reaped(self) -> list[Worker]:
        """The workers that prepared and have died since the last call: their CPU time is known now."""
        dead = [worker for worker in self._dying if worker.wait(patient=False) is not None]
        self._dying = [worker for worker in self._dying if worker not in dead]
        return dead

    def list_idle(self, now: float) -> list[Worker]:
        """Workers that were idle for long; one that answers requests always stays."""
        idle = [w for w in self.workers if w.job is None and now - w.since > IDLE_SECONDS]
        answering = [w for w in idle if not w.prepares]
        return [w for w in idle if w.prepares] + answering[: max(0, len(self.asked) - 1)]

    @property
    def rss(self) -> int:
        """Memory of all workers in bytes, as they said last."""
        return sum(worker.rss for worker in self.workers)
