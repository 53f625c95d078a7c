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

from buildtool import console
from buildtool.errors import BuildtoolError, from_exception, to_data
from buildtool.options.spelling import spelled, spelled_name

SETTLE_SECONDS = 0.1  # after the last event: whoever saves writes in several steps
LOOK_SECONDS = 1.0  # between two looks at times and sizes, where no events come

Ask = Callable[[], Mapping[str, Any]]
Stamp = tuple[int, int, int] | None


class Files:
    """The files that a plan depends on; `changed` waits for one of them to have another content."""

    def __init__(self, paths: Callable[[], list[str]]) -> None:
        self._paths = paths
        self._event = threading.Event()
        self._folders: set[str] = set()
        self._stamps = self._look()
        self._observer: Any = None

    def wait(self) -> None:
        """Until a file has another time or size, and none has had for a moment."""
        while True:
            self._event.wait(LOOK_SECONDS)
            self._event.clear()
            now = self._look()
            if now != self._stamps:
                while True:
                    time.sleep(SETTLE_SECONDS)
                    later = self._look()
                    if later == now:
                        break
                    now = later
                self._stamps = now
                return

    def _look(self) -> dict[str, Stamp]:
        paths = self._paths()
        for folder in {str(Path(path).parent) for path in paths} - self._folders:
            self._folders.add(folder)
            self._listen(folder)
        return {path: _stamp(path) for path in paths}

    def _listen(self, folder: str) -> None:
        """Asks for a folder's events; without them its files are looked at once a second."""
        try:
            from watchdog.events import FileSystemEvent, FileSystemEventHandler
            from watchdog.observers import Observer

            wake = self._event

            class Handler(FileSystemEventHandler):
                def on_any_event(self, event: FileSystemEvent) -> None:
                    if event.event_type not in ("opened", "closed_no_write"):
                        wake.set()

            if getattr(self, "_observer", None) is None:
                self._observer = Observer()
                self._observer.daemon = True
                self._observer.start()
            self._observer.schedule(Handler(), folder, recursive=False)
        except Exception:  # no watch left, no such folder: a look finds it as well
            return


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def watch(ask: Ask, paths: Callable[[], list[str]], *, as_json: bool, once: bool) -> int:
    """Plans now and after every change, until it is interrupted; the exit status of the last round."""
    files = Files(paths)
    before: Mapping[str, Any] | None = None
    while True:
        _say("begin", {}, as_json, "buildtool watch: planning")
        began = time.perf_counter()
        status = 0
        try:
            answer = ask()
        except Exception as error:
            status, told = 1, from_exception(error)
            _tell(told, as_json)
        else:
            fields = _figures(answer)
            _say("plan", fields, as_json, "\n".join(_lines(fields, before)))
            before = fields
        seconds = time.perf_counter() - began
        found = "no problems" if not status else "1 problem"
        _say("end", {"seconds": round(seconds, 3), "problems": status}, as_json,
             f"buildtool watch: done in {seconds:.2f} s, {found}; waiting for changes")  # fmt: skip
        if once:
            return status
        files.wait()


def _figures(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": answer["model"],
        "board": answer["board"],
        "arena_bytes": answer["arena_bytes"],
        "f": answer["f"],
        "cost": answer["cost"],
        "flash_bytes": answer["flash_bytes"],
    }


def _lines(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[str]:
    """RAM, work, cost and flash, with what they were where that was otherwise."""
    yield f"{now['model']} on {now['board']}"
    for name, title, form in (
        ("arena_bytes", "RAM    bytes", "{:,}"),
        ("f", "F", "{:.3f}"),
        ("cost", "cost", "{:,.0f}"),
        ("flash_bytes", "weights bytes", "{:,}"),
    ):
        text = form.format(now[name])
        if before is not None and before[name] != now[name]:
            text += f"  (was {form.format(before[name])})"
        yield f"  {title:13}  {text}"


def _tell(error: BuildtoolError, as_json: bool) -> None:
    _say("error", {"error": to_data(error)}, as_json, error.message(spelled, spelled_name))


def _say(what: str, fields: Mapping[str, Any], as_json: bool, text: str) -> None:
    console.write(json.dumps({"event": what, **fields}, sort_keys=True) if as_json else text)
