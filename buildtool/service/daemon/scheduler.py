"""Which request runs in which worker: equal ones once, at most so many at a time, and what they cost.

Clients' requests come before what is prepared in the background. A worker that ends, or that says nothing
for long, costs its own request and no other: the client is told, and plans by itself.
"""

from __future__ import annotations

import contextlib
import selectors
import time
from collections.abc import Callable, Mapping
from typing import Any

from buildtool import wire
from buildtool.errors import BuildtoolError, ToolError
from buildtool.service.daemon.connection import Connection
from buildtool.service.daemon.jobs import Job
from buildtool.service.daemon.memory import Answers, Kept, request_key
from buildtool.service.daemon.pool import Pool, Worker
from buildtool.service.daemon.watcher import Watcher

_CRASH = "the process that planned this ended (status {})"
_SILENT = "the process that planned this said nothing for long"
_NO_PROCESS = "no process can be started for this: {}"


class Scheduler:
    """Jobs and workers.

    `code`: the digest of the code that workers have to have; `end` is called, with the reason, when one has
    other code. `most_bytes`: of memory for all workers together, between two requests; `silence_seconds`:
    after which a worker that is at work and says nothing is taken for dead.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        watcher: Watcher,
        code: str,
        most_bytes: int,
        silence_seconds: float,
        end: Callable[[str], None],
    ) -> None:
        self.pool, self.answers = Pool(), Answers()
        self.jobs: dict[str, Job] = {}
        self.queue: list[Job] = []
        self.counts = {"from_memory": 0, "planned": 0, "prepared": 0, "crashes": 0}
        self.most_bytes, self._silence_seconds = most_bytes, silence_seconds
        self._selector, self._watcher, self._code, self._end = selector, watcher, code, end

    # ---- requests ------------------------------------------------------------------------------------

    def ask(
        self, client: Connection, request: Mapping[str, Any], environment: Mapping[str, str], cache: str
    ) -> None:
        """A client's request: it is answered from memory, or waits for a job."""
        key = request_key(request, environment, cache)
        frame = self.answers.get(key)
        if frame is not None:
            self.counts["from_memory"] += 1
            client.send_frame(frame)
            self._watcher.remember(request, environment)
            return
        job = self.jobs.get(key)
        fresh = job is None
        if job is None:
            job = self.jobs[key] = Job(key, request, environment, cache)
        client.job = key
        job.waiting.append(client)
        job.background = False
        self._watcher.remember(request, environment)
        if fresh:
            self._begin(job)

    def prepare(self, request: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        """Plans in the background what nobody has asked for yet."""
        key = request_key(request, environment, "on")
        if key not in self.jobs and self.answers.get(key) is None:
            self.jobs[key] = job = Job(key, request, environment, "on", background=True)
            self._begin(job)

    def leave(self, client: Connection) -> None:
        """A client is gone: what it alone waited for is given up."""
        job = self.jobs.get(client.job or "")
        if job is not None and client in job.waiting:
            job.waiting.remove(client)
            if not job.waiting and not job.background:
                self._give_up(job)
                self.at_hand()

    def forget(self) -> None:
        """Nothing that was planned so far is used any more."""
        self.answers.clear()
        for worker in self.pool.workers:
            self._tell(worker, {"drop": True})

    @property
    def is_waited_for(self) -> bool:
        """Whether a client waits for a job."""
        return any(job.waiting for job in self.jobs.values())

    def _begin(self, job: Job) -> None:
        """Gives a job to a worker, or lets it wait for one."""
        try:
            worker = self.pool.free(job.about)
            if worker is None and not job.background:
                # what is only prepared makes room for what is asked for
                prepared = [j for j in self.jobs.values() if j.background and j.worker is not None]
                if prepared:
                    self._give_up(prepared[0])
                    worker = self.pool.free(job.about)
        except OSError as error:
            self._failed(job, _NO_PROCESS.format(error.strerror))
            return
        if worker is None:
            self.queue.append(job)
            return
        self._listen_to(worker)
        worker.job, worker.about, job.worker = job.key, job.about, worker
        worker.since, worker.doing, worker.dropped = time.monotonic(), "planning", False
        job.doing = "planning" if worker.ready else "starting"
        self.counts["prepared" if job.background else "planned"] += 1
        self._tell(worker, job.message())

    def _give_up(self, job: Job) -> None:
        """Ends the work on a job: its worker has no other way to stop."""
        self.jobs.pop(job.key, None)
        if job in self.queue:
            self.queue.remove(job)
        if job.worker is not None:
            self._drop_worker(job.worker)
            self._next()

    def _next(self) -> None:
        """Starts what waits for a free worker, clients' requests first."""
        waiting, self.queue = sorted(self.queue, key=lambda job: job.background), []  # stable
        for job in waiting:
            if job.key in self.jobs:
                self._begin(job)

    def _done(self, job: Job, message: Mapping[str, Any]) -> None:
        """Sends an answer to all that wait for it, and keeps it."""
        self.jobs.pop(job.key, None)
        final = {name: message[name] for name in ("answer", "error", "crash") if name in message}
        try:
            frame = wire.packed({"protocol": wire.PROTOCOL, **final})
        except BuildtoolError as error:
            frame = wire.packed({**wire.error_message(error), "crash": True})
        if job.cache == "renew":  # what was kept before shall not be used again
            self.forget()
        if job.is_pure and message.get("pure"):
            inputs = tuple((str(path), str(digest)) for path, digest in message.get("inputs", ()))
            self.answers.put(job.key, Kept(frame, inputs))
            self._watcher.also(job.request, [path for path, _ in inputs])
        for client in job.waiting:
            client.job = None
            client.send_frame(frame)
            self.look(client)

    def _failed(self, job: Job, text: str) -> None:
        """Nobody answers a job here: its clients plan by themselves."""
        self._done(job, {"crash": True, **wire.error_message(ToolError(text))})

    def look(self, client: Connection) -> None:
        """Waits until a client reads, where something is left to be sent to it."""
        with contextlib.suppress(KeyError, ValueError):  # it is gone
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.wants_to_write else 0)
            self._selector.modify(client.socket, events, client)

    # ---- workers -------------------------------------------------------------------------------------

    def at_hand(self) -> None:
        """Starts a worker before it is asked for: it imports what it needs meanwhile."""
        if not self.pool.workers:
            with contextlib.suppress(OSError):  # a request will say so
                self._listen_to(self.pool.add())

    def hear(self, worker: Worker, events: int) -> None:
        """Something has come from a worker, or it takes more."""
        if events & selectors.EVENT_WRITE:
            worker.write()
        if events & selectors.EVENT_READ:
            self._read(worker)
        self._look_worker(worker)

    def tick(self, now: float) -> None:
        """What has to be done now and then."""
        for worker in list(self.pool.workers):
            if worker.is_silent(now, self._silence_seconds):
                self._lost(worker, _SILENT)
        for worker in self.pool.tired(now):
            self._drop_worker(worker)

    def stop(self) -> None:
        """Ends all workers."""
        for worker in list(self.pool.workers):
            self._drop_worker(worker)

    def _tell(self, worker: Worker, message: Mapping[str, Any]) -> None:
        worker.send(message)
        self._look_worker(worker)

    def _listen_to(self, worker: Worker) -> None:
        if worker.stdout.fileno() not in self._selector.get_map():
            self._selector.register(worker.stdout, selectors.EVENT_READ, worker)

    def _look_worker(self, worker: Worker) -> None:
        """Waits until a worker reads, where something is left to be sent to it."""
        if worker.ended:
            return
        known = worker.stdin.fileno() in self._selector.get_map()
        if worker.wants_to_write and not known:
            self._selector.register(worker.stdin, selectors.EVENT_WRITE, worker)
        elif known and not worker.wants_to_write:
            self._selector.unregister(worker.stdin)

    def _read(self, worker: Worker) -> None:
        try:
            messages = worker.read()
        except ToolError:
            messages = None
        if messages is None:
            self._lost(worker)
            return
        for message in messages:
            if worker.ended:
                return
            worker.rss = int(message.get("rss", worker.rss))
            if "ready" in message:
                worker.ready = True
            elif "rested" in message and worker.job is None:
                worker.doing = "idle"
            elif "progress" in message:
                self._progress(worker, message["progress"])
            elif "answer" in message or "error" in message:
                self._answered(worker, message)
            elif "dropped" in message:
                self._bound_memory()
            if message.get("code", self._code) != self._code:
                self._end("buildtool's code has changed")

    def _progress(self, worker: Worker, progress: Mapping[str, Any]) -> None:
        job = self.jobs.get(worker.job or "")
        worker.doing = str(progress.get("text", ""))
        if job is not None:
            job.doing = worker.doing
            for client in job.waiting:
                client.send({"progress": progress})
                self.look(client)

    def _answered(self, worker: Worker, message: Mapping[str, Any]) -> None:
        job = self.jobs.get(worker.job or "")
        worker.job, worker.since, worker.doing = None, time.monotonic(), "preparing other limits"
        if job is not None:
            self._done(job, message)
        if message.get("leaving"):
            self._drop_worker(worker)
        self._bound_memory()
        self._next()

    def _bound_memory(self) -> None:
        """Over the ceiling, idle workers forget, then end: the one that was used longest ago first."""
        for worker in sorted((w for w in self.pool.workers if w.job is None), key=lambda w: w.since):
            if self.pool.rss <= self.most_bytes:
                return
            if not worker.dropped:
                worker.dropped = True
                self._tell(worker, {"drop": True})
                return  # it will say how much it has then
            self._drop_worker(worker)
            self.answers.clear()
        self.at_hand()

    def _drop_worker(self, worker: Worker) -> int:
        for pipe in (worker.stdin, worker.stdout):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(pipe)
        return self.pool.remove(worker)

    def _lost(self, worker: Worker, why: str = "") -> None:
        """A worker ended by itself, or hangs: its request fails, and no other."""
        job = self.jobs.get(worker.job or "")
        status = self._drop_worker(worker)
        self.counts["crashes"] += 1
        text = why or _CRASH.format(status)
        print(f"buildtool daemon: {text}", flush=True)
        if job is not None:
            self._failed(job, text)
        if worker.ready:
            self._next()
            self.at_hand()
            return
        for waiting in list(self.queue):  # one that ends at its start would do so again
            self.queue.remove(waiting)
            self._failed(waiting, text)
