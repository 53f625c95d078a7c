"""The daemon's event loop: one thread, in which no step takes long.

A request is answered from memory if an equal one was answered before and no file has changed since. Otherwise
a worker plans. Meanwhile the client gets a message twice a second (a beat), so that it can tell a slow daemon
from a dead one.
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

from buildtool import __version__
from buildtool.base.code_digest import code_folders
from buildtool.base.errors import BuildtoolError, ToolError, to_data
from buildtool.client.endpoint import peer
from buildtool.daemon.connection import MOST_CLIENTS, Clients, Connection
from buildtool.daemon.lifetime import Life, Succession
from buildtool.daemon.pool import Worker
from buildtool.daemon.preparing import SHARE
from buildtool.daemon.scheduler import Scheduler
from buildtool.daemon.watcher import CODE_SETTLE_SECONDS, SETTLE_SECONDS, Watcher

BEAT_SECONDS = 0.5
DRAIN_SECONDS = 10.0
IDLE_SECONDS = 600.0  # the daemon ends after this time without requests; $BUILDTOOL_DAEMON_IDLE, 0: never
MEMORY_BYTES = 1 << 30  # upper limit for all workers together; $BUILDTOOL_DAEMON_BYTES
SILENCE_SECONDS = 10.0  # for a worker at work, which sends a beat every second; $BUILDTOOL_DAEMON_SILENCE
MOST_AT_ONCE = 16  # messages of one client, or new clients, that are handled before others get their turn


# The answers to control words other than "status", and the reasons of those that end the daemon.
_DONE = {"lease": {"leased": True}, "forget": {"forgotten": True}}
_ENDS = {"stop": "it was stopped", "retire": "a daemon of newer code took its place"}


class Server:
    """A daemon. `life` has its files: lock, socket and record."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.clients = Clients()
        self.counts = {"requests": 0, "bad": 0, "faults": 0}
        self.idle_seconds = _number("BUILDTOOL_DAEMON_IDLE", IDLE_SECONDS)
        self._selector = selectors.DefaultSelector()
        self._ending, self._deadline = "", 0.0
        self._selector.register(life.listener, selectors.EVENT_READ, None)
        self._refuses_clients = False  # whether no client is accepted
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, "wake")
        self.watcher = Watcher(self.wake)
        self.scheduler = Scheduler(
            self._selector,
            self.watcher,
            life.code,
            most_bytes=int(_number("BUILDTOOL_DAEMON_BYTES", MEMORY_BYTES)),
            silence_seconds=_number("BUILDTOOL_DAEMON_SILENCE", SILENCE_SECONDS),
            share=_number("BUILDTOOL_DAEMON_AHEAD", SHARE) / 100,
            end=self._replace_itself,
        )
        self._began = self._used = self._beaten = time.monotonic()
        self._signal = 0
        self._unheard: set[Connection] = set()  # clients with messages that were not handled yet
        self.succession = Succession(life.code, self.wake)

    # ---- the loop ------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serves clients until the daemon is told to end, or no client needs it any more."""

        def note(number: int, _frame: object) -> None:
            self._signal = number  # the loop wakes up and ends

        for word in (signal.SIGTERM, signal.SIGINT):
            signal.signal(word, note)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self.scheduler.ensure_worker()
        while not self._is_over():
            patience = SETTLE_SECONDS if self.watcher.is_hinted else BEAT_SECONDS
            for key, events in self._selector.select(0.0 if self._unheard else patience):
                self._guard(self._handle, key.data, events)
            unheard, self._unheard = self._unheard, set()
            for client in unheard & self.clients:
                self._guard(self._listen_to, client)
            for client in self.clients.surplus():
                self._hang_up(client)
            self._guard(self.scheduler.next)
            if self._signal:
                self.end(f"signal {signal.Signals(self._signal).name}")
            now = time.monotonic()
            if now - self._beaten >= BEAT_SECONDS:
                self._beaten = now
                self._guard(self._tick, now)
            if not self._ending:
                self._guard(self._prepare_changed)
        self.succession.wait()
        self.watcher.stop()
        self.scheduler.stop()
        for client in list(self.clients):
            client.socket.close()

    def wake(self) -> None:
        """Ends the loop's wait. Any thread may call it."""
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"w")

    def end(self, why: str) -> None:
        """Accepts no new clients. The daemon ends when all waiting clients have their answers, or at a
        deadline.
        """
        if not self._ending:
            self._ending, self._deadline = why, time.monotonic() + DRAIN_SECONDS
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(self.life.listener)
            self._refuses_clients = True
            self.life.leave(why)
            print(f"buildtool daemon: it ends: {why}", flush=True)

    def _guard(self, step: Any, *about: object) -> None:
        """Runs a step. An internal error in it is logged, and other clients are not affected."""
        try:
            step(*about)
        except Exception:
            import traceback

            self.counts["faults"] += 1
            traceback.print_exc()
            sys.stderr.flush()
            if about and isinstance(about[0], Connection):
                self._hang_up(about[0])

    def _is_over(self) -> bool:
        if not self._ending:
            return False
        waiting = self.scheduler.is_waited_for or any(client.wants_to_write for client in self.clients)
        return not waiting or time.monotonic() > self._deadline

    def _handle(self, about: object, events: int) -> None:
        if about is None:
            self._accept()
        elif about == "wake":
            with contextlib.suppress(OSError):
                os.read(self._wake_read, 4096)
        elif isinstance(about, Connection):
            is_there = not events & selectors.EVENT_WRITE or about.write()
            if is_there and events & selectors.EVENT_READ:
                is_there = about.read()
            if is_there:
                self._listen_to(about)
            else:
                self._hang_up(about)
        elif isinstance(about, Worker):
            self.life.has_cache()  # before the answer is sent: the client may then remove the folder
            self.scheduler.hear(about, events)

    def _tick(self, now: float) -> None:
        """Runs the regular checks: clients, workers, files, and whether the daemon is still needed."""
        if not self._ending and (gone := self.life.what_is_gone()):
            self.end(f"{gone} is gone")
        if self._refuses_clients and not self._ending:
            self._selector.register(self.life.listener, selectors.EVENT_READ, None)
            self._refuses_clients = False
        for client in list(self.clients):
            if client.is_stuck(now):
                self._hang_up(client)
            elif client.job is not None:
                job = self.scheduler.jobs.get(client.job)
                if job is not None and not client.wants_to_write:
                    client.send({"beat": {"doing": job.doing, "seconds": round(now - job.begun, 1)}})
                self._look(client)
        self.scheduler.tick(now)
        if self.scheduler.is_waited_for or any(client.leased for client in self.clients):
            self._used = now
        elif self.idle_seconds and now - self._used > self.idle_seconds:
            self.end(f"no request came for {self.idle_seconds:.0f} seconds")
        self.watcher.poll(now)

    def _prepare_changed(self) -> None:
        """Prepares recent requests whose files have changed."""
        for request, environment in self.watcher.changed():
            self.scheduler.prepare(request, environment)
        if self.watcher.code_has_changed():
            self._succeed()
        if self.succession.is_stale:
            self.end("buildtool's code has changed again, and no request came since the last change")

    def _replace_itself(self, why: str) -> None:
        """Ends this daemon because a worker has found other code on disk."""
        if not self._ending:
            self._succeed(CODE_SETTLE_SECONDS)
        self.end(why)

    def _succeed(self, after_seconds: float = 0.0) -> None:
        """Starts a daemon of the code on disk if that code is new.

        If no client has sent a request to this daemon, it only ends.
        """
        idle_seconds = time.monotonic() - self._used
        told = {"idle": idle_seconds, "spent": self.scheduler.preparer.budget.spent}
        self.succession.begin(self.watcher.requests(), told, after_seconds)

    # ---- clients -------------------------------------------------------------------------------------

    def _accept(self) -> None:
        """Accepts new clients. If there are too many, disconnects the one that was idle for longest."""
        for _ in range(MOST_AT_ONCE):
            try:
                connection, _address = self.life.listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError:  # no descriptor is left
                if not self._make_room():
                    self._selector.unregister(self.life.listener)
                    self._refuses_clients = True  # until the next `_tick`
                    return
                continue
            if peer(connection) not in (None, os.getuid()):
                connection.close()
                continue
            if len(self.clients) >= MOST_CLIENTS:
                self._make_room()
            client = Connection(connection)
            self.clients.add(client)
            self._selector.register(connection, selectors.EVENT_READ, client)

    def _make_room(self) -> bool:
        """Disconnects the client that was idle for longest. Returns False if all clients wait for answers."""
        client = self.clients.to_make_room()
        if client is not None:
            self._hang_up(client)
        return client is not None

    def _look(self, client: Connection) -> None:
        """Disconnects a client with which everything is done; otherwise sets the events to wait for."""
        if client in self.clients:
            (self._hang_up if client.is_over else self.scheduler.look)(client)

    def _listen_to(self, client: Connection) -> None:
        """Handles some messages of a client. The rest waits until other clients had their turn.

        After an invalid message it sends an error and disconnects the client, which then plans without the
        daemon.
        """
        refusal: BuildtoolError | None = None
        try:
            for _ in range(MOST_AT_ONCE):
                if (message := client.take()) is None:
                    break
                self._obey(client, message)
        except BuildtoolError as error:
            refusal = error
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            # invalid values: nested too deeply, or of types that cannot be compared
            refusal = ToolError(f"a request cannot be read: {type(error).__name__}")
        if refusal is not None:
            self.counts["bad"] += 1
            client.send({"crash": True, "error": to_data(refusal)})
            client.close()
        if client.has_message and client in self.clients:
            self._unheard.add(client)
        self._look(client)

    def _obey(self, client: Connection, message: Mapping[str, Any]) -> None:
        """Does what a message of a client asks for. Raises ToolError for an invalid message."""
        if "hello" in message:
            client.greeted = True
            state = "ready" if any(w.ready for w in self.scheduler.pool.workers) else "starting"
            hello = {"version": __version__, "pid": os.getpid(), "state": state}
            client.send({"hello": hello | {"last_end": self.life.last_end}})
        elif not client.greeted:
            raise ToolError("a client must say hello first")
        elif "control" in message:
            word = message["control"]
            if word not in ("status", *_DONE, *_ENDS):
                raise ToolError("an unknown control word")
            if word == "lease":
                client.leased = True
            elif word == "forget":
                self.scheduler.forget()
            elif word in _ENDS:
                self.end(_ENDS[word])
            ending = {"stopping": True, "pid": os.getpid()}
            client.send({"control": self.status() if word == "status" else _DONE.get(word, ending)})
        elif "request" in message:
            self._request(client, message)
        elif "prepare" in message:
            self._prepare(client, message)
        else:
            raise ToolError("a message has no known key")

    def _hang_up(self, client: Connection) -> None:
        if client in self.clients:
            self.clients.discard(client)
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(client.socket)
            client.socket.close()
            self.scheduler.leave(client)

    def _request(self, client: Connection, message: Mapping[str, Any]) -> None:
        request, environment = message["request"], message.get("environment") or {}
        cache, remote = message.get("cache") or "on", message.get("remote") or {}
        if not isinstance(request, dict) or not isinstance(environment, dict):
            raise ToolError("a request must be a map")
        if not all(isinstance(text, str) for pair in environment.items() for text in pair):
            raise ToolError("an environment must be a map of texts")
        if not isinstance(request.get("kind"), str):
            raise ToolError("a request must have a kind")
        if not isinstance(remote, dict) or not all(
            isinstance(t, str) for pair in remote.items() for t in pair
        ):
            raise ToolError("a shared cache must be a map of texts")
        if cache not in ("on", "off", "renew"):
            raise ToolError("an unknown value of 'cache'")
        if client.job is not None:
            raise ToolError("a client may send only one request at a time")
        if why := self.clients.refusal(client):
            client.send({"crash": True, "error": to_data(ToolError(why))})
            return
        self._used, self.succession.is_asked = time.monotonic(), True
        self.counts["requests"] += 1
        self.watcher.watch_code(code_folders)
        self.scheduler.ask(client, request, environment, str(cache), remote)

    def _prepare(self, client: Connection, message: Mapping[str, Any]) -> None:
        """Takes over the latest requests and the idle time of a daemon of older code."""
        requests, idle, spent = message["prepare"], message.get("idle", 0.0), message.get("spent", 0.0)
        if not all(isinstance(n, int | float) and 0 <= n < float("inf") for n in (idle, spent)):
            raise ToolError("a time must be a number of seconds")
        if not isinstance(requests, list):
            raise ToolError("requests to prepare must be a list")
        for pair in requests:
            is_pair = isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, dict) for one in pair)
            if not is_pair or not isinstance(pair[0].get("kind"), str):
                raise ToolError("a request to prepare must be a request and an environment")
            self.watcher.remember(*pair)
            self.watcher.watch_code(code_folders)
            self.scheduler.prepare(*pair)
        if not self.counts["requests"]:
            self._used = time.monotonic() - idle
            self.scheduler.preparer.budget.begin(idle, spent)
        client.send({"control": {"preparing": len(requests)}})

    # ---- status --------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Returns what `buildtool daemon status` shows."""
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
            "most_clients": MOST_CLIENTS,
            "unread_bytes": self.clients.held,
            "leases": sum(client.leased for client in self.clients),
            "waiting": len(scheduler.queue),
            "preparing": scheduler.preparer.status(),
            "answers": len(scheduler.answers),
            "answers_bytes": scheduler.answers.held,
            "counts": self.counts | scheduler.counts,
            "watched": self.watcher.status(),
            "workers": [
                {
                    "pid": worker.pid,
                    "prepares": worker.prepares,
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
        number = float(os.environ.get(name, ""))
    except ValueError:
        return default
    return number if 0 <= number < float("inf") else default
