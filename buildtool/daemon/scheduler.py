"""Gives requests to workers. Equal requests are answered once, and a limited number at a time.

Preparations (see `preparing`) run while no client waits. If a worker ends or is silent for too long, only its
own request fails: the client gets an error and plans without the daemon.
"""

from __future__ import annotations

import contextlib
import selectors
import time
from collections.abc import Callable, Mapping
from typing import Any

from buildtool.base import wire
from buildtool.base.errors import ToolError, to_data
from buildtool.daemon.connection import Connection
from buildtool.daemon.memory import Answers, KeptAnswer, request_key
from buildtool.daemon.pool import Job, Pool, Worker
from buildtool.daemon.preparing import Preparer
from buildtool.daemon.watcher import Watcher


class Scheduler:
    """The jobs and the workers.

    - `code`: the digest of the code; if a worker has other code, `end` is called with the reason.
    - `most_bytes`: the upper limit for the memory of all workers between two requests.
    - `silence_seconds`: after this time without a message, a worker at work counts as dead.
    - `share`: the budget of preparations, in cores.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        watcher: Watcher,
        code: str,
        most_bytes: int,
        silence_seconds: float,
        share: float,
        end: Callable[[str], None],
    ) -> None:
        self.pool, self.answers = Pool(selector), Answers()
        self.preparer = Preparer(self.pool, share)
        self.jobs: dict[str, Job] = {}
        self.queue: list[Job] = []
        self._has_room = False  # a worker has become free for the queue
        self.counts = {"from_memory": 0, "planned": 0, "prepared": 0, "crashes": 0}
        self.most_bytes, self._silence_seconds = most_bytes, silence_seconds
        self._selector, self._watcher, self._code, self._end = selector, watcher, code, end

    # ---- requests ------------------------------------------------------------------------------------

    def ask(
        self,
        client: Connection,
        request: Mapping[str, Any],
        environment: Mapping[str, str],
        cache: str,
        remote: Mapping[str, str],
    ) -> None:
        """Handles a client's request: answers it from memory, or lets the client wait for a job.

        `remote` has the settings of a shared cache, on which no answer depends.
        """
        self.preparer.asked(request, environment)
        key = request_key(request, environment, cache)
        answer = self.answers.get(key)
        if answer is not None:
            self.counts["from_memory"] += 1
            client.send_frame(answer.frame)
            self._watcher.remember(request, environment)
            return
        is_new = key not in self.jobs
        job = self.jobs.setdefault(key, Job(key, request, environment, cache, remote))
        client.job = key
        job.waiting.append(client)
        self._watcher.remember(request, environment)
        if is_new:
            self._begin(job)

    def prepare(self, request: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        """Prepares the answer to a request as soon as there is time."""
        key = request_key(request, environment, "on")
        if key not in self.jobs and self.answers.get(key) is None:
            self.preparer.add(Job(key, request, environment, "on"))

    def leave(self, client: Connection) -> None:
        """Handles a client that has gone. A job that no other client waits for is given up, and its worker
        ended.
        """
        job = self.jobs.get(client.job or "")
        if job is None or client not in job.waiting:
            return
        job.waiting.remove(client)
        if not job.waiting:
            self.jobs.pop(job.key, None)
            if job in self.queue:
                self.queue.remove(job)
            if job.worker is not None:
                self.pool.remove(job.worker)
                self._has_room = True  # queued jobs start later: their clients may be gone, too
            self.ensure_worker()

    def forget(self) -> None:
        """Forgets all answers, and makes all workers forget their plans."""
        self.answers.clear()
        self.preparer.stop()
        for worker in self.pool.workers:
            self.pool.tell(worker, {"drop": True})

    @property
    def is_waited_for(self) -> bool:
        """Whether a client waits for a job."""
        return any(job.waiting for job in self.jobs.values())

    def _begin(self, job: Job) -> None:
        """Gives a job to a worker, or queues it."""
        try:
            worker = self.pool.free(job.about)
        except OSError as error:
            self._fail(job, f"no process can be started for this: {error.strerror}")
            return
        if worker is None:
            self.queue.append(job)
            return
        worker.job, worker.about, job.worker = job.key, job.about, worker
        worker.since, worker.doing, worker.dropped = time.monotonic(), "planning", False
        job.doing = "planning" if worker.ready else "starting"
        self.counts["planned"] += 1
        self.pool.tell(worker, job.message())

    def next(self) -> None:
        """Starts queued jobs, if a worker has become free since the last call."""
        if not self._has_room:
            return
        self._has_room = False
        waiting, self.queue = self.queue, []
        for job in waiting:
            if job.key in self.jobs:
                self._begin(job)

    def _finish(self, job: Job, frame: bytes, message: Mapping[str, Any]) -> None:
        """Sends an answer to all clients that wait for it, and keeps it if it can be used again.

        `frame` is the answer as bytes, and `message` what the worker said about it.
        """
        self.jobs.pop(job.key, None)
        if job.cache == "renew":  # older answers must not be used again
            self.forget()
        if job.is_pure and message.get("pure"):
            inputs = tuple((str(path), str(digest)) for path, digest in message.get("inputs", ()))
            self.answers.put(job.key, KeptAnswer(frame, inputs))
            self._watcher.also(job.request, [path for path, _ in inputs])
        for client in job.waiting:
            client.job = None
            client.send_frame(frame)
            self.look(client)

    def _fail(self, job: Job, text: str) -> None:
        """Sends an error to the clients of a job, which then plan without the daemon."""
        self._finish(job, wire.pack_frame({"crash": True, "error": to_data(ToolError(text))}), {})

    def look(self, client: Connection) -> None:
        """Sets the events that the selector waits for at a client's socket."""
        with contextlib.suppress(KeyError, ValueError):  # the client is gone
            self._selector.modify(client.socket, client.events, client)

    # ---- workers -------------------------------------------------------------------------------------

    def ensure_worker(self) -> None:
        """Starts a worker before it is needed, so that it has already imported its modules by then."""
        if not self.pool.answering:
            with contextlib.suppress(OSError):  # a request will report it
                self.pool.add()

    def hear(self, worker: Worker, events: int) -> None:
        """Handles messages from a worker, and sends the worker bytes that wait."""
        if events & selectors.EVENT_WRITE:
            worker.write()
        if events & selectors.EVENT_READ:
            try:
                messages = worker.read()
            except ToolError:
                messages = None
            if messages is None:
                self._drop_worker(worker)
            for message in messages or ():
                if worker.ended:
                    break
                self._heard(worker, message)
        self.pool.look(worker)

    def tick(self, now: float) -> None:
        """Runs the regular checks: silent and idle workers, preparations."""
        for worker in list(self.pool.workers):
            if worker.is_silent(now, self._silence_seconds):
                self._drop_worker(worker, "the process that planned this sent nothing for long")
        for worker in self.pool.list_idle(now):
            self.pool.remove(worker)
        if not self.jobs:
            self.preparer.go_on()

    def stop(self) -> None:
        """Ends all workers."""
        for worker in list(self.pool.workers):
            self.pool.remove(worker)

    def _heard(self, worker: Worker, message: Mapping[str, Any]) -> None:
        worker.rss = int(message.get("rss", worker.rss))
        worker.ready = worker.ready or "ready" in message
        if "dropped" in message:
            self._bound_memory()
        elif worker.prepares:
            self._take_preparation(worker, message)
        elif "rested" in message and worker.job is None:
            worker.doing = "idle"
        elif "progress" in message:
            worker.doing = str(message["progress"].get("text", ""))
            if (job := self.jobs.get(worker.job or "")) is not None:
                job.doing = worker.doing
                for client in (one for one in job.waiting if not one.is_paused):
                    client.send({"progress": message["progress"]})
                    self.look(client)
        elif "final" in message:
            self._take_answer(worker, message)
        if message.get("code", self._code) != self._code:
            self._end("buildtool's code has changed")

    def _take_answer(self, worker: Worker, message: Mapping[str, Any]) -> None:
        job = self.jobs.get(worker.job or "")
        worker.job, worker.since, worker.doing = None, time.monotonic(), "writing the cache"
        if job is not None:
            self._finish(job, message["final"], message)
            self.preparer.budget.begin()
            if job.cache == "on" and message.get("answered") and not message.get("leaving"):
                self.preparer.add(job, ahead=True)
        if message.get("leaving"):
            self.pool.remove(worker)
        self._bound_memory()
        self._has_room = True

    def _take_preparation(self, worker: Worker, message: Mapping[str, Any]) -> None:
        """Handles a message of the worker that prepares."""
        preparation = self.preparer.take_message(worker, message)
        if preparation is None:
            return
        if not preparation.ahead:
            self.counts["prepared"] += 1
            self._finish(preparation.job, message["final"], message)
            if message.get("leaving"):
                self.pool.remove(worker)
        self._bound_memory()
        if not self.jobs:
            self.preparer.go_on()

    def _bound_memory(self) -> None:
        """Frees memory of idle workers while the workers' memory is above the limit.

        The worker that was idle for longest comes first. It is told to forget its values, and if that is not
        enough, it is ended.
        """
        idle = [worker for worker in self.pool.workers if worker.job is None]
        for worker in sorted(idle, key=lambda worker: (not worker.prepares, worker.since)):
            if self.pool.rss <= self.most_bytes:
                return
            if not worker.dropped:
                worker.dropped = True
                self.pool.tell(worker, {"drop": True})
                return  # its reply will say how much memory it has then
            self.pool.remove(worker)
            self.answers.clear()
        self.ensure_worker()

    def _drop_worker(self, worker: Worker, why: str = "") -> None:
        """Handles a worker that has ended or hangs. Only its own request fails."""
        job = self.jobs.get(worker.job or "")
        status = self.pool.remove(worker)
        self.counts["crashes"] += 1
        cause = f"the process that planned this ended (status {status})"
        text = why or ("the process that prepares has ended" if worker.prepares else cause)
        print(f"buildtool daemon: {text}", flush=True)
        if worker.prepares:
            self.preparer.drop_worker(worker)
            return
        if job is not None:
            self._fail(job, text)
        if worker.ready:
            self._has_room = True
            self.ensure_worker()
            return
        for waiting in list(self.queue):  # a worker that ends at its start would do so again
            self.queue.remove(waiting)
            self._fail(waiting, text)
