"""`buildtool watch`: plans anew on every save, and says what that changes.

Each round has a line that it begins and one that it ends, so that an editor can tell problems of this round
from those of the last one; with --json, each is a line of JSON.
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

SETTLE_SECONDS = 0.1  # after the last event: whoever saves writes in several steps
LOOK_SECONDS = 1.0  # between two looks at times and sizes, where no events come

FIGURES = ("model", "board", "arena_bytes", "f", "cost", "cost_unit", "estimated_ms", "flash_bytes")

Ask = Callable[[], Mapping[str, Any]]
Stamp = tuple[int, int, int] | None


class Files:
    """The files that a plan depends on: where they are is asked anew at every look.

    Events are hints, and sizes and times are, too: what counts is the content.
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
        """Waits until a file's content has changed and all files have been at rest for a moment."""
        while True:
            self._event.wait(LOOK_SECONDS)
            self._event.clear()
            if self._is_changed():
                return

    def close(self) -> None:
        """Asks for no more events."""
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
        was, self._digests, self._stamps = self._digests, digests, now
        return digests != was

    def _look(self) -> dict[str, Stamp]:
        paths = self._paths()
        for folder in {str(Path(path).parent) for path in paths} - self._folders:
            self._folders.add(folder)
            if why := self._events.listen(folder, lambda paths: self._event.set()):
                self.without_events[folder] = why  # its files are looked at once a second
        return {path: _stamp(path) for path in paths}


class Lease:
    """Keeps the daemon from ending for want of requests. `wanted`: whether there is to be one at all."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._link: Link | None = None

    def renew(self) -> None:
        """Holds the running daemon, or starts one."""
        if not self._wanted or (self._link is not None and self._link.is_open):
            return
        self.close()
        try:
            self._link = reach(start=True)
            self._link.control("lease")
        except AbsentError:  # the request says why, and is answered here
            self.close()

    def close(self) -> None:
        """Gives it up."""
        if self._link is not None:
            self._link.close()
        self._link = None


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def watch(ask: Ask, files: Files, *, as_json: bool, once: bool) -> int:
    """Plans now and after every change, until it is interrupted; the exit status of the last round."""

    def say(what: str, fields: Mapping[str, Any], text: str) -> None:
        console.write(json.dumps({"event": what, **fields}, sort_keys=True) if as_json else text)

    before: Mapping[str, Any] | None = None
    told: set[str] = set()
    while True:
        for folder, why in files.without_events.items():
            if folder not in told:
                told.add(folder)
                text = f"buildtool watch: no events for {folder}: {why}; its files are looked at instead"
                say("no-events", {"folder": folder, "why": why}, text)
        say("begin", {}, "buildtool watch: planning")
        began = time.perf_counter()
        status = 0
        try:
            answer = ask()
        except Exception as error:
            status = 1
            ours = from_exception(error)
            say("error", {"error": to_data(ours)}, ours.message(spell, spell_name))
        else:
            fields = {name: answer[name] for name in FIGURES}
            say("plan", fields, "\n".join(_lines(fields, before)))
            before = fields
        seconds = time.perf_counter() - began
        found = "no problems" if not status else "1 problem"
        text = f"buildtool watch: done in {seconds:.2f} s, {found}; waiting for changes"
        say("end", {"seconds": round(seconds, 3), "problems": status}, text)
        if once:
            return status
        files.wait()


def _lines(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[str]:
    """RAM, work, cost and flash, with what they were where that was otherwise."""
    yield f"{now['model']} on {now['board']}"
    for name, title, form in (
        ("arena_bytes", "RAM    bytes", "{:,}"),
        ("f", "F", "{:.3f}"),
        ("cost", now["cost_unit"], "{:,.0f}"),
        ("flash_bytes", "weights bytes", "{:,}"),
    ):
        text = form.format(now[name])
        alike = before is not None and (name != "cost" or before["cost_unit"] == now["cost_unit"])
        if before is not None and alike and before[name] != now[name]:
            text += f"  (was {form.format(before[name])})"
        yield f"  {title:13}  {text}"
