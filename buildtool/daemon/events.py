"""Events of files in folders, and which folders send none and have to be looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

# File systems of another machine, or of another kernel: what is written there is not told here.
FOREIGN = frozenset("nfs nfs4 cifs smb3 smbfs 9p fuse.sshfs vboxsf afs ceph lustre".split())


class Events:
    """Events of folders; those who listen are called in a thread that begins with the first of them."""

    def __init__(self) -> None:
        self.watches: dict[str, ObservedWatch] = {}
        self._observer: BaseObserver | None = None

    def listen(self, folder: str, heard: Callable[[set[str]], None], *, below: bool = False) -> str:
        """Calls `heard` with the paths that change; why it will not, in words ("": it will).

        `below`: also with those in folders of the folder.
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
        if not below:  # that is never forgotten, and is another watch of the folder
            self.watches[folder] = watch

    def forget(self, folder: str) -> None:
        """Asks for no more events of a folder."""
        watch = self.watches.pop(folder, None)
        if watch is not None and self._observer is not None:
            with contextlib.suppress(KeyError, OSError):  # the folder is gone as well
                self._observer.unschedule(watch)

    def stop(self) -> None:
        """Ends the thread."""
        if self._observer is not None:
            self._observer.stop()


def file_system(folder: str) -> str:
    """The kind of file system that a folder is on, as Linux calls it; "" where that is not known."""
    best, kind = "", ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/mounts").read_text(errors="replace").splitlines():
            _, point, found, *_ = line.split(" ")
            point = point.replace("\\040", " ")
            inside = folder == point or folder.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best):
                best, kind = point, found
    return kind
