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
import threading
import time
from collections.abc import Mapping
from typing import Any

from buildtool import __version__, wire
from buildtool.client.endpoint import peer
from buildtool.errors import BuildtoolError, ToolError
from buildtool.identity import code_folders
from buildtool.service.daemon.connection import Connection
from buildtool.service.daemon.lifetime import Life
from buildtool.service.daemon.pool import Worker
from buildtool.service.daemon.scheduler import Scheduler
from buildtool.service.daemon.succession import succeed
from buildtool.service.daemon.watcher import CODE_SETTLE_SECONDS, SETTLE_SECONDS, Watcher

BEAT_SECONDS = 0.5
DRAIN_SECONDS = 10.0
SUCCESSION_SECONDS = 30.0  # that a daemon of older code stays to tell the new one what to prepare
IDLE_SECONDS = 600.0  # $BUILDTOOL_DAEMON_IDLE: another time, 0 for ever
MEMORY_BYTES = 1 << 30  # $BUILDTOOL_DAEMON_BYTES: of all workers together
SILENCE_SECONDS = 10.0  # $BUILDTOOL_DAEMON_SILENCE: of a worker at work, which says so every second
MOST_CLIENTS = 128


class Server:
    """A daemon; `life` is its hold on the endpoint."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.clients: set[Connection] = set()
        self.counts = {"requests": 0, "bad": 0, "faults": 0}
        self.idle_seconds = _number("BUILDTOOL_DAEMON_IDLE", IDLE_SECONDS)
        self._selector = selectors.DefaultSelector()
        self._selector.register(life.listener, selectors.EVENT_READ, None)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, "wake")
        self.watcher = Watcher(self.wake)
        most_bytes = int(_number("BUILDTOOL_DAEMON_BYTES", MEMORY_BYTES))
        silence = _number("BUILDTOOL_DAEMON_SILENCE", SILENCE_SECONDS)
        self.scheduler = Scheduler(
            self._selector, self.watcher, life.code, most_bytes, silence, self._outdated
        )
        self._began = self._used = self._beaten = time.monotonic()
        self._signal = 0
        self._successions: list[threading.Thread] = []
        self._ending = ""
        self._deadline = 0.0

    # ---- the loop ------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serves until it is told to end, or nobody needs it any more."""
        for word in (signal.SIGTERM, signal.SIGINT):
            signal.signal(word, self._signalled)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self.scheduler.at_hand()
        while not self._is_over():
            for key, events in self._selector.select(
                SETTLE_SECONDS if self.watcher.is_hinted else BEAT_SECONDS
            ):
                self._guarded(self._handle, key.data, events)
            if self._signal:
                self.end(f"signal {signal.Signals(self._signal).name}")
            now = time.monotonic()
            if now - self._beaten >= BEAT_SECONDS:
                self._beaten = now
                self._guarded(self._tick, now)
            if not self._ending:
                self._guarded(self._prepare_changed)
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

    def _guarded(self, step: Any, *about: object) -> None:
        """A fault of ours in one step ends no other client's work; it is told in the log."""
        try:
            step(*about)
        except Exception:
            import traceback

            self.counts["faults"] += 1
            traceback.print_exc()
            sys.stderr.flush()
            if about and isinstance(about[0], Connection):
                self._hang_up(about[0])

    def _signalled(self, number: int, _frame: object) -> None:
        self._signal = number  # the loop wakes up, and ends

    def _is_over(self) -> bool:
        if not self._ending:
            return False
        waiting = self.scheduler.is_waited_for or any(client.wants_to_write for client in self.clients)
        return not waiting or time.monotonic() > self._deadline

    def _finish(self) -> None:
        for succession in self._successions:  # the new daemon may end this one before it has its requests
            succession.join(SUCCESSION_SECONDS)
        self.watcher.stop()
        self.scheduler.stop()
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
            self.scheduler.hear(about, events)

    def _tick(self, now: float) -> None:
        """What has to be done now and then."""
        if not self._ending and self.life.is_cut_off():
            self.end("its socket or its folder is gone")
        for client in list(self.clients):
            if client.is_stuck(now):
                self._hang_up(client)
            elif client.job is not None:
                job = self.scheduler.jobs.get(client.job)
                if job is not None:
                    client.send({"beat": {"doing": job.doing, "seconds": round(now - job.begun, 1)}})
                self._look(client)
        self.scheduler.tick(now)
        if self.scheduler.jobs or any(client.leased for client in self.clients):
            self._used = now
        elif self.idle_seconds and now - self._used > self.idle_seconds:
            self.end(f"nobody asked for {self.idle_seconds:.0f} seconds")
        self.watcher.poll(now)

    def _prepare_changed(self) -> None:
        """Plans anew, in the background, what recent requests asked of files that have changed."""
        for request, environment in self.watcher.changed():
            self.scheduler.prepare(request, environment)
        if self.watcher.code_has_changed():
            self._succeed()

    def _outdated(self, why: str) -> None:
        """A worker has found other code on the disk, maybe before any event has told of it."""
        if not self._ending:
            self._succeed(CODE_SETTLE_SECONDS)
        self.end(why)

    def _succeed(self, after_seconds: float = 0.0) -> None:
        told = (self.life.code, self.watcher.requests(), after_seconds)
        succession = threading.Thread(target=succeed, args=told, daemon=True)
        self._successions.append(succession)
        succession.start()

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
        if client.is_over:
            self._hang_up(client)
            return
        self.scheduler.look(client)

    def _hear(self, client: Connection) -> None:
        try:
            messages = client.read()
            if messages is None:
                self._hang_up(client)
                return
            for message in messages:
                self._obey(client, message)
        except BuildtoolError as error:
            self._refuse(client, error)
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            # of values that no request has: too deep, or of types that cannot be compared
            self._refuse(client, ToolError(f"a request cannot be read: {type(error).__name__}"))

    def _refuse(self, client: Connection, error: BuildtoolError) -> None:
        self.counts["bad"] += 1
        client.send(wire.error_message(error))
        client.close()

    def _obey(self, client: Connection, message: Mapping[str, Any]) -> None:
        if "hello" in message:
            client.greeted = True
            state = "ready" if any(w.ready for w in self.scheduler.pool.workers) else "starting"
            hello = {"version": __version__, "pid": os.getpid(), "state": state}
            client.send({"hello": hello | {"last_end": self.life.last_end}})
        elif not client.greeted:
            raise ToolError("a client has to say hello first")
        elif "control" in message:
            self._control(client, message["control"])
        elif "request" in message:
            self._request(client, message)
        elif "prepare" in message:
            self._prepare(client, message["prepare"])
        else:
            raise ToolError("a message asks for nothing")

    def _control(self, client: Connection, word: object) -> None:
        if word == "status":
            client.send({"control": self.status()})
        elif word == "lease":
            client.leased = True
            client.send({"control": {"leased": True}})
        elif word == "forget":
            self.scheduler.forget()
            client.send({"control": {"forgotten": True}})
        elif word in ("stop", "retire"):
            self.end("it was stopped" if word == "stop" else "a daemon of newer code took its place")
            client.send({"control": {"stopping": True, "pid": os.getpid()}})
        else:
            raise ToolError("an unknown word of control")

    def _hang_up(self, client: Connection) -> None:
        if client not in self.clients:
            return
        self.clients.discard(client)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.socket)
        client.socket.close()
        self.scheduler.leave(client)

    def _request(self, client: Connection, message: Mapping[str, Any]) -> None:
        request, environment = message["request"], message.get("environment") or {}
        cache = message.get("cache") or "on"
        if not isinstance(request, dict) or not isinstance(environment, dict):
            raise ToolError("a request is a map")
        if not all(isinstance(text, str) for pair in environment.items() for text in pair):
            raise ToolError("an environment is a map of text")
        if not isinstance(request.get("kind"), str):
            raise ToolError("a request has a kind")
        if cache not in ("on", "off", "renew"):
            raise ToolError("an unknown use of the cache")
        if client.job is not None:
            raise ToolError("a client asks for one thing at a time")
        self._used = time.monotonic()
        self.counts["requests"] += 1
        self.watcher.watch_code(code_folders)
        self.scheduler.ask(client, request, environment, str(cache))

    def _prepare(self, client: Connection, requests: object) -> None:
        if not isinstance(requests, list):
            raise ToolError("requests to prepare are a list")
        for pair in requests:
            right = isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, dict) for one in pair)
            if not right or not isinstance(pair[0].get("kind"), str):
                raise ToolError("a request to prepare is a request and an environment")
            self.watcher.remember(*pair)
            self.watcher.watch_code(code_folders)
            self.scheduler.prepare(*pair)
        client.send({"control": {"preparing": len(requests)}})

    # ---- what it says of itself ----------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """What `buildtool daemon status` shows."""
        now, scheduler = time.monotonic(), self.scheduler
        return {
            "pid": os.getpid(),
            "version": __version__,
            "state": "ending" if self._ending else "ready",
            "seconds": round(now - self._began, 1),
            "socket": str(self.life.at.address),
            "log": str(self.life.at.log),
            "last_end": self.life.last_end,
            "idle_seconds": self.idle_seconds,
            "memory_bytes": scheduler.pool.rss,
            "most_memory_bytes": scheduler.most_bytes,
            "clients": len(self.clients),
            "leases": sum(client.leased for client in self.clients),
            "waiting": len(scheduler.queue),
            "answers": len(scheduler.answers),
            "answers_bytes": scheduler.answers.size,
            "counts": self.counts | scheduler.counts,
            "watched": self.watcher.status(),
            "workers": [
                {
                    "pid": worker.pid,
                    "about": worker.about,
                    "doing": worker.doing,
                    "seconds": round(now - worker.since, 1),
                    "memory_bytes": worker.rss,
                }
                for worker in scheduler.pool.workers
            ],
        }


def _number(name: str, default: float) -> float:
    try:
        found = float(os.environ.get(name, ""))
    except ValueError:
        return default
    return found if 0 <= found < float("inf") else default
