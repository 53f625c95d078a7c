"""Watches the files of recent requests. When a file changes, the answers to its requests are prepared.

An event of the file system is only a hint, and the file's digest decides: a touch prepares nothing. Sizes and
times are checked every few seconds as well, because events may be lost or not be sent: on another machine's
file system, or when the system allows no further watch.
"""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.api.requests import request_type
from buildtool.base.digests import stamp
from buildtool.daemon.memory import FileDigests, request_key

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

MOST_REQUESTS = 32  # requests that are remembered
SETTLE_SECONDS = 0.1  # the wait after the last event: a save may have several steps
CODE_SETTLE_SECONDS = 3 * SETTLE_SECONDS  # the same for code, of which several files may be saved
LOOK_SECONDS = 2.0  # the time between two checks of sizes and times
_SOURCES = (".py", ".c", ".h", ".toml", ".so", ".dll")

# File systems of another machine or another kernel. Writes there cause no events here.
FOREIGN = frozenset("nfs nfs4 cifs smb3 smbfs 9p fuse.sshfs vboxsf afs ceph lustre".split())


class Events:
    """Events of changed files in folders. They call the listeners from a separate thread."""

    def __init__(self) -> None:
        self.watches: dict[str, ObservedWatch] = {}
        self._observer: BaseObserver | None = None

    def listen(self, folder: str, heard: Callable[[set[str]], None], *, below: bool = False) -> str:
        """Calls `heard` with the paths that change in a folder, or also in folders below it (`below`).

        Returns "", or the reason why there are no events.
        """
        kind = file_system(folder)
        if kind in FOREIGN:
            return f"its file system ({kind}) sends no events"
        try:
            self._schedule(folder, heard, below)
        except Exception as error:  # no watch left, no folder, no such system
            return str(error) or type(error).__name__
        return ""

    def _schedule(self, folder: str, heard: Callable[[set[str]], None], below: bool) -> None:
        import logging

        from watchdog.events import FileSystemEvent, FileSystemEventHandler
        from watchdog.observers import Observer

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                if event.event_type not in ("opened", "closed_no_write"):
                    heard({str(path) for path in (event.src_path, event.dest_path) if path})

        if self._observer is None:
            logging.getLogger("watchdog").setLevel(logging.ERROR)
            self._observer = Observer()
            self._observer.daemon = True
            self._observer.start()
        watch = self._observer.schedule(Handler(), folder, recursive=below)
        if not below:  # a watch below a folder is never removed, and is separate
            self.watches[folder] = watch

    def forget(self, folder: str) -> None:
        """Ends the events of a folder."""
        watch = self.watches.pop(folder, None)
        if watch is not None and self._observer is not None:
            with contextlib.suppress(KeyError, OSError):  # the folder is gone as well
                self._observer.unschedule(watch)

    def stop(self) -> None:
        """Stops the thread that waits for events."""
        if self._observer is not None:
            self._observer.stop()


def file_system(folder: str) -> str:
    """Returns the type of the file system that contains a folder, as Linux names it; "" if not known."""
    best, kind = "", ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/mounts").read_text(errors="replace").splitlines():
            _, point, mount_kind, *_ = line.split(" ")
            point = point.replace("\\040", " ")
            contains = folder == point or folder.startswith(point.rstrip("/") + "/")
            if contains and len(point) >= len(best):
                best, kind = point, mount_kind
    return kind


class Watcher:
    """Watches the files of requests. It calls `wake` from another thread when something may have changed."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._requests: OrderedDict[str, tuple[dict[str, Any], dict[str, str]]] = OrderedDict()
        self._also: dict[str, tuple[str, ...]] = {}  # by request: further files that it depends on
        self._digests, self._seen = FileDigests(), dict[str, str]()
        self._stamps: dict[str, tuple[int, ...]] = {}
        self._folders: set[str] = set()
        self._events = Events()
        self._without_events: dict[str, str] = {}  # folder -> why
        self._is_told = False  # an event came since the last check; the observer's thread sets it
        self._silent: set[str] = set()  # folders in which a check found a change before any event
        self._suspects: set[str] = set()  # files whose stamp has changed since their content was read
        self._since = self._looked = self._code_time = 0.0  # `_since`: when the last of these was found
        self._code_is_watched = False
        self.changes = 0

    def remember(self, request: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        """Remembers a request, and watches its files from now on."""
        kind = request_type(request)
        if kind is None or not kind.prepared or request.get("cmsis_nn"):
            return
        key = request_key(without_digests(request), environment, "")
        self._requests[key] = (dict(request), dict(environment))
        self._requests.move_to_end(key)
        for path, digest in _files(request).items():
            self._watch(path, digest)
        if len(self._requests) <= MOST_REQUESTS:
            return
        oldest, _ = self._requests.popitem(last=False)
        self._also.pop(oldest, None)
        needed = {path for request, _ in self._requests.values() for path in _files(request)}
        needed |= {path for paths in self._also.values() for path in paths}
        for path in self._seen.keys() - needed:
            del self._seen[path]
            self._stamps.pop(path, None)
        folders = {str(Path(path).parent) for path in needed}
        for folder in self._folders - folders:
            self._without_events.pop(folder, None)
            self._events.forget(folder)
        self._folders &= folders

    def also(self, request: Mapping[str, Any], paths: Sequence[str]) -> None:
        """Watches further files that a request depends on, such as a board's base."""
        for key, (other, _) in self._requests.items():
            if other == request:
                self._also[key] = tuple(paths)
                for path in paths:
                    self._watch(path, self._digests.of(path))

    @property
    def is_hinted(self) -> bool:
        """Whether a file may have changed and must be checked soon."""
        return self._is_told or bool(self._suspects)

    def changed(self) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
        """Yields the requests (with their environments) whose files have changed, with the new digests of the
        files.
        """
        if self._is_told:
            self._is_told = False
            self._look()
        if not self._suspects or time.monotonic() - self._since < SETTLE_SECONDS:
            return
        suspects, self._suspects = self._suspects, set()
        different = set()
        for path in sorted(suspects & self._seen.keys()):
            digest = self._digests.of(path)
            if digest and digest != self._seen[path]:
                self._seen[path] = digest
                different.add(path)
        self.changes += len(different)
        for key, (request, environment) in list(self._requests.items()):
            files = _files(request)
            if different & (files.keys() | set(self._also.get(key, ()))):
                now = _with_digests(request, self._seen.get)
                self._requests[key] = (now, environment)
                yield now, environment

    def poll(self, now: float) -> None:
        """Checks all files every few seconds, in case events are lost."""
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        for folder in self._silent & self._folders:
            self._tell(folder, "events were lost")
        was_told = self._is_told
        folders = {str(Path(path).parent) for path in self._look()}
        self._silent = set() if was_told else folders

    def _look(self) -> set[str]:
        """Returns the paths of files whose size, times or inode have changed since the last check."""
        different = set()
        for path in self._seen:
            now = _stamp(path)
            if now is not None and self._stamps.setdefault(path, now) != now:
                self._stamps[path] = now
                different.add(path)
        if different:
            self._suspects |= different
            self._since = time.monotonic()
        return different

    def status(self) -> dict[str, Any]:
        """Returns what `buildtool daemon status` shows."""
        return {
            "files": sorted(self._seen),
            "changes": self.changes,
            "without_events": dict(sorted(self._without_events.items())),
        }

    def stop(self) -> None:
        """Stops the thread that waits for events."""
        self._events.stop()

    def _heard(self, paths: set[str]) -> None:
        """Handles events of files, in the observer's thread."""
        self._silent = self._silent - {str(Path(path).parent) for path in paths}
        if any(path in self._seen for path in paths):
            self._is_told = True
            self._wake()

    def watch_code(self, folders: Callable[[], Sequence[str]]) -> None:
        """Watches the code of buildtool and its plugins. Without events, the next client will notice a
        change.
        """

        def heard(paths: set[str]) -> None:
            if any(path.endswith(_SOURCES) for path in paths):
                self._code_time = time.monotonic()
                self._wake()

        if not self._code_is_watched:
            self._code_is_watched = True
            for folder in folders():
                self._events.listen(folder, heard, below=True)

    def code_has_changed(self) -> bool:
        """Returns True once after a change of the code, when no source was written for
        CODE_SETTLE_SECONDS.
        """
        if not self._code_time or time.monotonic() - self._code_time < CODE_SETTLE_SECONDS:
            return False
        self._code_time = 0.0
        return True

    def requests(self) -> list[tuple[dict[str, Any], dict[str, str]]]:
        """Returns the remembered requests with their environments, the latest last."""
        return list(self._requests.values())

    def _watch(self, path: str, digest: str) -> None:
        """Watches a file by the events of its folder, because another file may replace it."""
        folder, now = str(Path(path).parent), _stamp(path)
        self._seen[path] = digest
        if now is not None:
            self._stamps[path] = now
        if folder not in self._folders:
            self._folders.add(folder)
            if why := self._events.listen(folder, self._heard):
                self._tell(folder, why)

    def _tell(self, folder: str, why: str) -> None:
        """Logs once that the files of a folder are checked every few seconds instead, and why."""
        if folder not in self._without_events:
            self._without_events[folder] = why
            print(f"buildtool daemon: no events for {folder}: {why}; its files are polled", flush=True)


def _stamp(path: str) -> tuple[int, ...] | None:
    with contextlib.suppress(OSError, ValueError):
        return stamp(Path(path).stat())
    return None


def _files(request: Any) -> dict[str, str]:
    """Returns path and digest of every file that a request names."""
    files: dict[str, str] = {}
    _with_digests(request, files.setdefault)
    return files


def without_digests(request: Any) -> Any:
    """Returns a request without the digests of its files, so that it stays the same when they change."""
    return _with_digests(request, lambda path, digest: "")


def _with_digests(value: Any, digest_of: Callable[[str, str], str]) -> Any:
    """Returns a request with other digests of its files. `digest_of` gets a path and the old digest."""
    if isinstance(value, Mapping):
        if "sha256" in value and isinstance(value.get("path"), str):
            return {**value, "sha256": digest_of(value["path"], str(value["sha256"]))}
        return {name: _with_digests(item, digest_of) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_digests(item, digest_of) for item in value]
    return value
