"""The daemon's event loop: one thread, nothing in it that takes long.

Clients are answered from memory where an equal request was answered before and no file has changed since;
else a worker plans. While it does, the client hears twice a second that somebody is at work.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from buildtool import __version__, wire
from buildtool.client.endpoint import Endpoint, every, peer
from buildtool.errors import BuildtoolError, ToolError
from buildtool.service.daemon.connection import Connection, refused
from buildtool.service.daemon.jobs import Job
from buildtool.service.daemon.lifetime import Life
from buildtool.service.daemon.memory import Answers, Kept, request_key
from buildtool.service.daemon.pool import Pool, Worker
from buildtool.service.daemon.watcher import SETTLE_SECONDS, Watcher

BEAT_SECONDS = 0.5
DRAIN_SECONDS = 10.0
IDLE_SECONDS = 600.0  # $BUILDTOOL_DAEMON_IDLE: another time, 0 for ever
MEMORY_BYTES = 1 << 30  # $BUILDTOOL_DAEMON_BYTES: of all workers together
MOST_CLIENTS = 128
_CRASH = "the process that planned this ended (status {}); its last words are in {}"


class Server:
    """A daemon; `life` is its hold on the endpoint."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.pool, self.answers = Pool(), Answers()
        self.jobs: dict[str, Job] = {}
        self.queue: list[Job] = []
        self.clients: set[Connection] = set()
        self.counts = {"requests": 0, "from_memory": 0, "planned": 0, "prepared": 0, "crashes": 0, "bad": 0}
        self.idle_seconds = _number("BUILDTOOL_DAEMON_IDLE", IDLE_SECONDS)
        self.memory_bytes = int(_number("BUILDTOOL_DAEMON_BYTES", MEMORY_BYTES))
        self._selector = selectors.DefaultSelector()
        self._selector.register(life.listener, selectors.EVENT_READ, None)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, "wake")
        self.watcher = Watcher(self.wake)
        self._used = self._beaten = time.monotonic()
        self._ending = ""
        self._deadline = 0.0

    # ---- the loop ------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serves until it is told to end, or nobody needs it any more."""
        for word in (signal.SIGTERM, signal.SIGINT):
            signal.signal(word, lambda number, _frame: self.end(f"signal {signal.Signals(number).name}"))
        signal.set_wakeup_fd(self._wake_write)
        self._worker_at_hand()
        while not self._is_over():
            for key, events in self._selector.select(
                SETTLE_SECONDS if self.watcher.is_hinted else BEAT_SECONDS
            ):
                self._handle(key.data, events)
            now = time.monotonic()
            if now - self._beaten >= BEAT_SECONDS:
                self._beaten = now
                self._tick(now)
            self._prepare_changed()
        self._finish()

    def wake(self) -> None:
        """Ends the loop's wait; from any thread."""
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"w")

    def end(self, why: str) -> None:
        """Takes no new clients, and ends when those that wait have their answers, or soon after."""
        if not self._ending:
            self._ending, self._deadline = why, time.monotonic() + DRAIN_SECONDS
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(self.life.listener)
            self.life.leave(why)
            print(f"buildtool daemon: it ends: {why}", flush=True)

    def _is_over(self) -> bool:
        if not self._ending:
            return False
        waiting = any(job.waiting for job in self.jobs.values()) or any(
            c.wants_to_write for c in self.clients
        )
        return not waiting or time.monotonic() > self._deadline

    def _finish(self) -> None:
        self.watcher.stop()
        for worker in list(self.pool.workers):
            self.pool.remove(worker)
        for client in list(self.clients):
            client.socket.close()

    def _handle(self, about: object, events: int) -> None:
        if about is None:
            self._accept()
        elif about == "wake":
            with contextlib.suppress(OSError):
                os.read(self._wake_read, 4096)
        elif isinstance(about, Connection):
            if events & selectors.EVENT_WRITE and not about.write():
                self._hang_up(about)
            elif events & selectors.EVENT_READ:
                self._hear(about)
            self._look(about)
        elif isinstance(about, Worker):
            if events & selectors.EVENT_WRITE:
                about.write()
            if events & selectors.EVENT_READ:
                self._hear_worker(about)
            self._look_worker(about)

    def _tick(self, now: float) -> None:
        """What has to be done now and then."""
        if not self._ending and self.life.is_cut_off():
            self.end("its socket or its folder is gone")
        for client in list(self.clients):
            if client.is_stuck(now):
                self._hang_up(client)
            elif client.job is not None:
                job = self.jobs.get(client.job)
                client.send({"beat": {"doing": job.doing if job else "", "seconds": round(now - job.begun, 1)
                                      if job else 0.0}})  # fmt: skip
                self._look(client)
        for worker in self.pool.tired(now):
            self._retire(worker)
        busy = self.jobs or any(client.leased for client in self.clients)
        if busy:
            self._used = now
        elif self.idle_seconds and now - self._used > self.idle_seconds:
            self.end(f"nobody asked for {self.idle_seconds:.0f} seconds")
        self.watcher.poll(now)

    # ---- clients -------------------------------------------------------------------------------------

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self.life.listener.accept()
            if peer(connection) not in (None, os.getuid()) or len(self.clients) >= MOST_CLIENTS:
                connection.close()
                return
            client = Connection(connection)
            self.clients.add(client)
            self._selector.register(connection, selectors.EVENT_READ, client)

    def _look(self, client: Connection) -> None:
        """Listens to a client for what there is to do now."""
        if client not in self.clients:
            return
        if client.closing and not client.wants_to_write:
            self._hang_up(client)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.wants_to_write else 0)
        self._selector.modify(client.socket, events, client)

    def _hear(self, client: Connection) -> None:
        try:
            messages = client.read()
            if messages is None:
                self._hang_up(client)
                return
            for message in messages:
                self._obey(client, message)
        except BuildtoolError as error:
            self.counts["bad"] += 1
            client.send(wire.error_message(error))
            client.closing = True

    def _obey(self, client: Connection, message: Mapping[str, Any]) -> None:
        if "hello" in message:
            client.greeted = True
            state = "ready" if any(w.ready for w in self.pool.workers) else "starting"
            client.send({"hello": {"version": __version__, "pid": os.getpid(), "state": state}})
        elif not client.greeted:
            raise ToolError("a client has to say hello first")
        elif "control" in message:
            self._control(client, str(message["control"]))
        elif "request" in message:
            self._request(client, message)
        else:
            raise ToolError("a message asks for nothing")

    def _control(self, client: Connection, word: str) -> None:
        if word == "status":
            client.send({"control": self.status()})
        elif word == "lease":
            client.leased = True
            client.send({"control": {"leased": True}})
        elif word in ("stop", "retire"):
            self.end("it was stopped" if word == "stop" else "a daemon of newer code took its place")
            client.send({"control": {"stopping": True, "pid": os.getpid()}})
        else:
            raise ToolError(f"unknown word of control: {word!r:.40}")

    def _hang_up(self, client: Connection) -> None:
        """A client is gone: what it alone waited for is given up."""
        if client not in self.clients:
            return
        self.clients.discard(client)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.socket)
        client.socket.close()
        job = self.jobs.get(client.job or "")
        if job is not None and client in job.waiting:
            job.waiting.remove(client)
            if not job.waiting and not job.background:
                self._give_up(job)

    # ---- requests ------------------------------------------------------------------------------------

    def _request(self, client: Connection, message: Mapping[str, Any]) -> None:
        request, environment = message["request"], message.get("environment") or {}
        cache = str(message.get("cache") or "on")
        if not isinstance(request, dict) or not isinstance(environment, dict):
            raise ToolError("a request is a map")
        if cache not in ("on", "off", "renew"):
            raise ToolError(f"unknown use of the cache: {cache!r:.40}")
        if client.job is not None:
            raise ToolError("a client asks for one thing at a time")
        self._used = time.monotonic()
        self.counts["requests"] += 1
        key = request_key(request, environment, cache)
        frame = self.answers.get(key)
        if frame is not None:
            self.counts["from_memory"] += 1
            client.send_frame(frame)
            self.watcher.remember(request, environment)
            return
        job = self.jobs.get(key)
        if job is None:
            job = Job(key, request, environment, cache)
            self.jobs[key] = job
            self._begin(job)
        client.job = key
        job.waiting.append(client)
        job.background = False
        self.watcher.remember(request, environment)

    def _begin(self, job: Job) -> None:
        """Gives a job to a worker, or lets it wait for one."""
        worker = self.pool.free(job.about)
        if worker is None and not job.background:
            # what is only prepared makes room for what is asked for
            prepared = [j for j in self.jobs.values() if j.background and j.worker is not None]
            if prepared:
                self._give_up(prepared[0])
                worker = self.pool.free(job.about)
        if worker is None:
            self.queue.append(job)
            return
        self._listen_to(worker)
        worker.job, worker.about, job.worker = job.key, job.about, worker
        worker.since, worker.doing = time.monotonic(), "planning"
        job.doing = "planning" if worker.ready else "starting"
        self.counts["prepared" if job.background else "planned"] += 1
        worker.send(job.message())
        self._look_worker(worker)

    def _prepare_changed(self) -> None:
        """Plans anew, in the background, what recent requests asked of files that have changed."""
        if self._ending:
            return
        for request, environment in self.watcher.changed():
            key = request_key(request, environment, "on")
            if key not in self.jobs and self.answers.get(key) is None:
                self.jobs[key] = job = Job(key, request, environment, "on", background=True)
                self._begin(job)

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
        self.queue.sort(key=lambda job: job.background)  # stable
        for _ in range(len(self.queue)):
            if self.pool.free(self.queue[0].about) is None:
                return
            self._begin(self.queue.pop(0))

    def _done(self, job: Job, message: Mapping[str, Any]) -> None:
        """Sends an answer to all that wait for it, and keeps it."""
        self.jobs.pop(job.key, None)
        final = {name: message[name] for name in ("answer", "error") if name in message}
        try:
            frame = wire.packed({"protocol": wire.PROTOCOL, **final})
        except BuildtoolError as error:
            frame = wire.packed(wire.error_message(error))
        if job.is_pure and ("answer" in message or message.get("pure")):
            inputs = tuple((str(path), str(digest)) for path, digest in message.get("inputs", ()))
            self.answers.put(job.key, Kept(frame, inputs))
            self.watcher.also(job.request, [path for path, _ in inputs])
        for client in job.waiting:
            client.job = None
            client.send_frame(frame)
            self._look(client)

    # ---- workers -------------------------------------------------------------------------------------

    def _worker_at_hand(self) -> None:
        """Starts a worker before it is asked for: it imports what it needs meanwhile."""
        if not self.pool.workers:
            self._listen_to(self.pool.add())

    def _listen_to(self, worker: Worker) -> None:
        if worker.stdout.fileno() not in self._selector.get_map():
            self._selector.register(worker.stdout, selectors.EVENT_READ, worker)

    def _look_worker(self, worker: Worker) -> None:
        """Waits until a worker reads, where something is left to be sent to it."""
        known = worker in self.pool.workers and worker.stdin.fileno() in self._selector.get_map()
        if worker in self.pool.workers and worker.wants_to_write and not known:
            self._selector.register(worker.stdin, selectors.EVENT_WRITE, worker)
        elif known and not worker.wants_to_write:
            self._selector.unregister(worker.stdin)

    def _hear_worker(self, worker: Worker) -> None:
        try:
            messages = worker.read()
        except ToolError:
            messages = None
        if messages is None:
            self._lost(worker)
            return
        for message in messages:
            worker.rss = int(message.get("rss", worker.rss))
            if "ready" in message:
                worker.ready = True
                self._check_code(message["ready"])
            elif "rested" in message and worker.job is None:
                worker.doing = "idle"
            elif "progress" in message:
                self._progress(worker, message["progress"])
            elif "answer" in message or "error" in message:
                self._answered(worker, message)

    def _progress(self, worker: Worker, progress: Mapping[str, Any]) -> None:
        job = self.jobs.get(worker.job or "")
        worker.doing = str(progress.get("text", ""))
        if job is not None:
            job.doing = worker.doing
            for client in job.waiting:
                client.send({"progress": progress})
                self._look(client)

    def _answered(self, worker: Worker, message: Mapping[str, Any]) -> None:
        job = self.jobs.get(worker.job or "")
        worker.job, worker.since, worker.doing = None, time.monotonic(), "preparing other limits"
        if job is not None:
            self._done(job, message)
        self._bound_memory(worker)
        self._next()

    def _bound_memory(self, worker: Worker) -> None:
        """Over the ceiling, idle workers forget, then end: the one that was used longest ago first."""
        if self.pool.rss <= self.memory_bytes:
            return
        for other in sorted((w for w in self.pool.workers if w.job is None), key=lambda w: w.since):
            if self.pool.rss <= self.memory_bytes:
                return
            self._retire(other)
        self.answers.clear()

    def _retire(self, worker: Worker) -> None:
        self._drop_worker(worker)
        self._worker_at_hand()

    def _drop_worker(self, worker: Worker) -> int:
        for pipe in (worker.stdin, worker.stdout):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(pipe)
        return self.pool.remove(worker)

    def _lost(self, worker: Worker) -> None:
        """A worker ended by itself: its request fails, and no other."""
        job = self.jobs.get(worker.job or "")
        status = self._drop_worker(worker)
        self.counts["crashes"] += 1
        print(f"buildtool daemon: a worker ended with status {status}", flush=True)
        if job is not None:
            text = _CRASH.format(status, self.life.at.log)
            self._done(job, {"crash": True, **wire.error_message(ToolError(text))})
        if worker.ready:  # one that ends at its start would do so again
            self._next()
        elif self.queue or job is None:
            for waiting in list(self.queue):
                self.queue.remove(waiting)
                self._done(waiting, wire.error_message(ToolError(_CRASH.format(status, self.life.at.log))))

    def _check_code(self, ready: Mapping[str, Any]) -> None:
        """A worker of other code than its clients': buildtool was edited after they asked."""
        first = self._code = getattr(self, "_code", None) or str(ready.get("code"))
        if str(ready.get("code")) != first:
            self.end("buildtool's code has changed")

    # ---- what it says of itself ----------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """What `buildtool daemon status` shows."""
        now = time.monotonic()
        return {
            "pid": os.getpid(),
            "version": __version__,
            "state": "ending" if self._ending else "ready",
            "seconds": round(time.time() - self.life.began, 1),
            "socket": str(self.life.at.address),
            "log": str(self.life.at.log),
            "last_end": self.life.last_end,
            "idle_seconds": self.idle_seconds,
            "memory_bytes": self.pool.rss,
            "most_memory_bytes": self.memory_bytes,
            "clients": len(self.clients),
            "leases": sum(client.leased for client in self.clients),
            "waiting": len(self.queue),
            "answers": len(self.answers),
            "answers_bytes": self.answers.size,
            "counts": dict(self.counts),
            "watched": self.watcher.status(),
            "workers": [
                {
                    "pid": worker.pid,
                    "about": worker.about,
                    "doing": worker.doing,
                    "seconds": round(now - worker.since, 1),
                    "memory_bytes": worker.rss,
                }
                for worker in self.pool.workers
            ],
        }


def retire_others(mine: Endpoint) -> None:
    """Daemons of older code of this same installation end when they have answered who waits."""
    from buildtool.client.daemon import AbsentError, Link
    from buildtool.identity import home

    for other in every():
        said = other.said()
        if other.name == mine.name or said.get("home") != home() or not other.is_alive():
            continue
        if said.get("python") != sys.executable:
            continue
        connection = other.connect(1.0)
        if connection is not None:
            with contextlib.suppress(AbsentError):
                Link(connection).greet().control("retire")
            connection.close()


def _number(name: str, default: float) -> float:
    try:
        found = float(os.environ.get(name, ""))
    except ValueError:
        return default
    return found if 0 <= found < float("inf") else default


__all__ = ["Server", "refused", "retire_others"]
