"""The workers: child processes that plan. Each works on one request at a time, and remembers networks.

One more worker, with the lowest priority, prepares answers before a client asks.
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
IDLE_SECONDS = 300.0  # an idle worker ends after this time, except for the last one
_CHUNK = 1 << 18


class Worker:
    """A child process that plans.

    - `prepares`: it only prepares answers. Its priority is low then, and a process cannot raise its priority.
    - `about`: the network and the board that it planned last.
    - `job`: the key of the request that it works on (None: it is idle).
    - `doing`: what it does, in words.
    - `dropped`: it was told to free memory.
    - `rss`, `cpu`: bytes of memory and CPU seconds, from its last message.
    - `since`: when it began to work, or became idle.
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
        self.ended = self.ready = self.dropped = False  # `dropped`: it was told to free memory
        self._decoder = wire.Decoder()
        self.unsent = bytearray()
        self.about, self.doing = "", "starting"
        self.job: str | None = None
        self.rss, self.cpu = 0, 0.0  # bytes of memory and CPU seconds, from its last message
        self.since = self.heard_at = time.monotonic()  # `since`: when it began to work, or became idle

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message to the worker. Bytes that do not fit into the pipe now are sent later."""
        self.unsent += wire.pack_frame(message)
        self.heard_at = time.monotonic()  # it has to send beats from now on
        self.write()

    def is_silent(self, now: float, seconds: float) -> bool:
        """Whether the worker works for a client and has sent nothing for `seconds`: it was stopped, or
        hangs.
        """
        return self.job is not None and not self.prepares and now - self.heard_at > seconds

    def write(self) -> None:
        """Writes as many waiting bytes as the pipe takes now. Only `read` notices that the worker has
        ended.
        """
        with contextlib.suppress(OSError):
            while self.unsent and not self.ended:
                sent = os.write(self.stdin.fileno(), memoryview(self.unsent)[:_CHUNK].tobytes())
                del self.unsent[:sent]

    def read(self) -> list[dict[str, Any]] | None:
        """Returns the messages that have arrived, or None if the worker has ended.

        Raises ToolError if the worker sent invalid bytes.
        """
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
        """Kills the worker and all processes that it has started. `wait` then waits until it has ended."""
        self.ended = True
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        for pipe in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                pipe.close()

    def wait(self, *, patient: bool = True) -> int | None:
        """Waits for the worker's end, records its CPU time and returns its exit status.

        If not `patient`, returns None at once while it runs.
        """
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
    """A request to answer.

    `waiting` are the clients that wait for the answer; a preparation has no such clients. `worker` is the
    worker that works on it (None: it is queued).
    """

    key: str
    request: Mapping[str, Any]
    environment: Mapping[str, str]
    cache: str
    remote: Mapping[str, str] = field(default_factory=dict, repr=False)  # a shared cache; it has credentials
    waiting: list[Connection] = field(default_factory=list)
    worker: Worker | None = None
    begun: float = field(default_factory=time.monotonic)
    doing: str = "waiting for a free process"

    @property
    def about(self) -> str:
        """The network and the board of the request. A worker that has planned these before is preferred."""
        return about(self.request)

    @property
    def is_pure(self) -> bool:
        """Whether the answer depends only on files whose digests the request or the answer has.

        Such an answer can be kept.
        """
        is_closed = needs(self.request) is Needs.NOTHING and not self.request.get("cmsis_nn")
        return is_closed and self.cache == "on"

    def message(self) -> dict[str, Any]:
        """Returns the message that gives this job to a worker."""
        message = {"request": self.request, "environment": self.environment, "cache": self.cache}
        return message | ({"remote": self.remote} if self.remote else {})


def lower_priority(pid: int) -> None:
    """Gives the process `pid` and its process group the lowest priority, which cannot be raised again.

    `pid` has to be the leader of a session.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, 19)
    with contextlib.suppress(OSError, AttributeError):  # only Linux has it
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "r+", encoding="ascii") as group:  # noqa: PTH123
        group.write("19")


class Pool:
    """The workers. At most MOST_WORKERS of them work for clients at once. `selector` waits for their
    messages.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self.workers: list[Worker] = []
        self._dying: list[Worker] = []
        self._selector = selector

    def free(self, about: str) -> Worker | None:
        """Returns an idle worker for a request about `about` (its network and board); None if all are busy.

        It prefers a worker that has planned `about` before, then one that has planned nothing, then a new
        one. Raises OSError if the system cannot start another process.
        """
        idle = [worker for worker in self.answering if worker.job is None]
        for subject in (about, ""):  # "": it has planned nothing yet
            for worker in idle:
                if worker.about == subject:
                    return worker
        if len(self.answering) < MOST_WORKERS:
            return self.add()
        return min(idle, key=lambda worker: worker.since, default=None)

    @property
    def answering(self) -> list[Worker]:
        """The workers that answer requests of clients."""
        return [worker for worker in self.workers if not worker.prepares]

    def add(self, *, prepares: bool = False) -> Worker:
        """Starts a worker and returns it. Raises OSError if the system cannot start another process."""
        worker = Worker(prepares=prepares)
        self.workers.append(worker)
        self._selector.register(worker.stdout, selectors.EVENT_READ, worker)
        return worker

    def tell(self, worker: Worker, message: Mapping[str, Any]) -> None:
        """Sends a worker a message."""
        worker.send(message)
        self.look(worker)

    def look(self, worker: Worker) -> None:
        """Makes the selector wait until a worker can take more bytes, if there are bytes to send to the
        worker.
        """
        if worker.ended:
            return
        is_waiting = worker.stdin.fileno() in self._selector.get_map()
        if worker.unsent and not is_waiting:
            self._selector.register(worker.stdin, selectors.EVENT_WRITE, worker)
        elif is_waiting and not worker.unsent:
            self._selector.unregister(worker.stdin)

    def remove(self, worker: Worker) -> int:
        """Ends a worker and returns its exit status.

        If the worker only prepares answers, returns 0 without waiting until it has ended.
        """
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

    def reap(self) -> list[Worker]:
        """Returns the removed workers that have ended since the last call. Their CPU time is known now."""
        dead = [worker for worker in self._dying if worker.wait(patient=False) is not None]
        self._dying = [worker for worker in self._dying if worker not in dead]
        return dead

    def list_idle(self, now: float) -> list[Worker]:
        """Returns the workers that were idle for more than IDLE_SECONDS at the time `now`.

        One worker that answers requests is always left out, so that one remains.
        """
        idle = [w for w in self.workers if w.job is None and now - w.since > IDLE_SECONDS]
        answering = [w for w in idle if not w.prepares]
        return [w for w in idle if w.prepares] + answering[: max(0, len(self.answering) - 1)]

    @property
    def rss(self) -> int:
        """The memory of all workers in bytes, from their last messages."""
        return sum(worker.rss for worker in self.workers)
