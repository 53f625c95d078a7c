"""`buildtool watch`: plans again on every save and shows what changed.

Each round prints a line when it begins and a line when it ends, so that an editor can tell the problems of
this round from those of the round before. With --json, each is a line of JSON.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from buildtool.base.digests import digest_of
from buildtool.base.errors import from_exception, to_data
from buildtool.client.daemon import Link, reach
from buildtool.client.endpoint import AbsentError
from buildtool.daemon.watcher import Events
from buildtool.fronts.cli import console
from buildtool.options import spell, spell_name

SETTLE_SECONDS = 0.1  # to wait after the last event: editors save in several steps
LOOK_SECONDS = 1.0  # between two checks of times and sizes, where no events arrive

FIGURES = ("model", "board", "arena_bytes", "f", "cost", "cost_unit", "estimated_ms", "flash_bytes")

Ask = Callable[[], Mapping[str, Any]]
Stamp = tuple[int, int, int] | None


class Files:
    """The files that a plan depends on. Their paths are determined again for every check.

    A file has changed only if its content differs. Events, sizes and times only tell when to compare
    contents.
    """

    def __init__(self, paths: Callable[[], list[str]]) -> None:
        self._paths = paths
        self._event = threading.Event()
        self._folders: set[str] = set()
        self._events = Events()
        self.without_events: dict[str, str] = {}  # folder -> why
        self._stamps = self._look()
        self._digests = {path: digest_of(path) for path in self._stamps}

    def wait(self) -> None:
        """Waits until a file's content has changed and no file has changed for a moment."""
        while True:
            self._event.wait(LOOK_SECONDS)
            self._event.clear()
            if self._is_changed():
                return

    def close(self) -> None:
        """Stops listening for events."""
        self._events.stop()

    def _is_changed(self) -> bool:
        now = self._look()
        if now == self._stamps:
            return False
        while True:
            time.sleep(SETTLE_SECONDS)
            later = self._look()
            if later == now:
                break
            now = later
        digests = {path: digest_of(path) for path in now}
        before, self._digests, self._stamps = self._digests, digests, now
        return digests != before

    def _look(self) -> dict[str, Stamp]:
        paths = self._paths()
        for folder in {str(Path(path).parent) for path in paths} - self._folders:
            self._folders.add(folder)
            if why := self._events.listen(folder, lambda paths: self._event.set()):
                self.without_events[folder] = why  # its files are checked once a second
        return {path: _stamp(path) for path in paths}


class Lease:
    """A connection that keeps an idle daemon running. `wanted` says whether to use a daemon at all."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._link: Link | None = None

    def renew(self) -> None:
        """Connects to the daemon, which then keeps running. Starts a daemon if none runs."""
        if not self._wanted or (self._link is not None and self._link.is_open):
            return
        self.close()
        try:
            self._link = reach(start=True)
            self._link.control("lease")
        except AbsentError:  # the request reports why, and is answered in this process
            self.close()

    def close(self) -> None:
        """Closes the connection, so that the daemon may end when it is idle."""
        if self._link is not None:
            self._link.close()
        self._link = None


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def watch(ask: Ask, files: Files, *, as_json: bool, once: bool) -> int:
    """Plans now and after every change until interrupted. Returns the exit status of the last round.

    `ask` plans and returns the answer. `files` tells when to plan again. With `as_json`, the output is JSON.
    With `once`, only one round runs.
    """

    def emit(event: str, fields: Mapping[str, Any], text: str) -> None:
        console.write(json.dumps({"event": event, **fields}, sort_keys=True) if as_json else text)

    before: Mapping[str, Any] | None = None
    reported: set[str] = set()
    while True:
        for folder, why in files.without_events.items():
            if folder not in reported:
                reported.add(folder)
                text = f"buildtool watch: no events for {folder}: {why}; its files are checked every second"
                emit("no-events", {"folder": folder, "why": why}, text)
        emit("begin", {}, "buildtool watch: planning")
        start = time.perf_counter()
        status = 0
        try:
            answer = ask()
        except Exception as error:
            status = 1
            problem = from_exception(error)
            emit("error", {"error": to_data(problem)}, problem.message(spell, spell_name))
        else:
            fields = {name: answer[name] for name in FIGURES}
            emit("plan", fields, "\n".join(_lines(fields, before)))
            before = fields
        seconds = time.perf_counter() - start
        problems = "no problems" if not status else "1 problem"
        text = f"buildtool watch: done in {seconds:.2f} s, {problems}; waiting for changes"
        emit("end", {"seconds": round(seconds, 3), "problems": status}, text)
        if once:
            return status
        files.wait()


def _lines(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[str]:
    """Yields lines with a plan's RAM, F, cost and weights, and beside them earlier values that differ.

    `before` is the answer of the round before (None: there was none).
    """
    yield f"{now['model']} on {now['board']}"
    for name, title, form in (
        ("arena_bytes", "RAM    bytes", "{:,}"),
        ("f", "F", "{:.3f}"),
        ("cost", now["cost_unit"], "{:,.0f}"),
        ("flash_bytes", "weights bytes", "{:,}"),
    ):
        text = form.format(now[name])
        comparable = before is not None and (name != "cost" or before["cost_unit"] == now["cost_unit"])
        if before is not None and comparable and before[name] != now[name]:
            text += f"  (was {form.format(before[name])})"
        yield f"  {title:13}  {text}"
