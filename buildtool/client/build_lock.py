"""Allows one build at a time in a folder, and records which builds were killed.

A build system that is killed leaves files that its own record does not have. The file NAME in the folder is
locked while a build runs. The lines of the file record the builds:

    running PID START TIME      the build that holds the lock, or the last one, if it was killed
    cut-off TIME TIME           a killed build: when it began, and when the next build found out

PID and START (the start time of the process, as the system counts it) show whether this process was started
by the build that holds the lock: a build inside a build must not wait. Times are seconds since 1970.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from buildtool.base.locks import has_locks, lock, process

NAME = ".buildtool.lock"
_MOST_BYTES = 1 << 16
_MOST_SPANS = 64  # above this number, the two oldest are joined


@dataclass(frozen=True)
class Span:
    """The time in which a killed build may have written files, in seconds since 1970."""

    first: float
    last: float

    def __contains__(self, when: float) -> bool:
        return self.first <= when <= self.last


_ALWAYS = Span(0.0, float("inf"))


class BuildLock:
    """The lock of a folder, which a build holds from `take` until `end`.

    `cut_off` are the builds that were killed before this build.
    """

    def __init__(self, handle: int | None, cut_off: tuple[Span, ...] = ()) -> None:
        self._handle = handle
        self._process = os.getpid()
        self.cut_off = cut_off

    def end(self) -> None:
        """Records that this build was not killed, and releases the lock.

        Call it after the build system has written its own record of the files that the build made.
        """
        if self._handle is not None and self._process == os.getpid():  # not in a forked child
            with contextlib.suppress(OSError):
                _write(self._handle, _lines(self.cut_off))
            os.close(self._handle)
            self._handle = None


def take(folder: str, waits: Callable[[int], None]) -> BuildLock:
    """Takes the lock of `folder` and returns it.

    If another build has the lock, calls `waits` with the PID of that build (0: not known) and waits for its
    end. A build that was started by that build does not wait. If the system has no locks, no build waits.
    """
    path = Path(folder, NAME)
    while has_locks():
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return BuildLock(None)
        if not _lock(handle, wait=False):
            running = _Text(handle).running
            if running and running in _ancestors():
                os.close(handle)
                return look(folder)
            waits(running[0] if running else 0)
            _lock(handle, wait=True)
        with contextlib.suppress(OSError):
            if os.path.samestat(path.stat(), os.fstat(handle)):
                return _begin(handle)
        os.close(handle)  # the file was removed meanwhile: other builds lock another file with this name
    return BuildLock(None)


def look(folder: str) -> BuildLock:
    """Returns which builds of `folder` were killed, as a BuildLock that does not hold the lock.

    It is for a build that writes no files, which need not wait for another build.
    """
    try:
        handle = os.open(Path(folder, NAME), os.O_RDONLY)
    except OSError:
        return BuildLock(None)
    try:
        text = _Text(handle)
        if text.began is not None and _lock(handle, wait=False):
            text.cut_off.append(Span(text.began, time.time()))
    finally:
        os.close(handle)
    return BuildLock(None, tuple(text.cut_off))


def _begin(handle: int) -> BuildLock:
    """Records that this process builds now, and returns its lock."""
    now, text = time.time(), _Text(handle)
    spans = [*text.cut_off, *([Span(text.began, now)] if text.began is not None else [])]
    while len(spans) > _MOST_SPANS:
        first, second, *others = spans
        spans = [Span(min(first.first, second.first), max(first.last, second.last)), *others]
    held = BuildLock(handle, tuple(spans))
    pid = os.getpid()
    with contextlib.suppress(OSError):
        _write(handle, [*_lines(held.cut_off), f"running {pid} {process(pid)[1] or '-'} {now!r}"])
    return held


class _Text:
    """The content of an open lock file. An invalid line counts as a build that was killed at an unknown time.

    - `cut_off`: the killed builds.
    - `began`: the time when the last build began (None: it has ended).
    - `running`: PID and start time of that build.
    """

    def __init__(self, handle: int) -> None:
        self.cut_off: list[Span] = []
        self.began: float | None = None
        self.running: tuple[int, str] | None = None
        text = b""
        with contextlib.suppress(OSError):
            os.lseek(handle, 0, os.SEEK_SET)
            text = os.read(handle, _MOST_BYTES)
        for line in text.decode(errors="replace").splitlines():
            word, *values = line.split()[:4] or [""]
            try:
                if word == "running":
                    self.running, self.began = (int(values[0]), values[1]), float(values[2])
                elif word == "cut-off":
                    self.cut_off.append(Span(float(values[0]), float(values[1])))
                else:
                    raise ValueError(line)
            except (ValueError, IndexError):
                self.cut_off.append(_ALWAYS)


def _lines(spans: tuple[Span, ...]) -> list[str]:
    return [f"cut-off {span.first!r} {span.last!r}" for span in spans]


def _write(handle: int, lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, data)
    os.ftruncate(handle, len(data))


def _lock(handle: int, *, wait: bool) -> bool:
    """Takes the lock and returns whether that succeeded; always True if the file system has no locks."""
    try:
        return lock(handle, wait=wait)
    except OSError:  # a file system without locks
        return True


def _ancestors() -> Iterator[tuple[int, str]]:
    """Yields the PID and the start time of this process, then those of its parent, and so on."""
    pid = os.getpid()
    while pid > 0:
        parent, start = process(pid)
        yield pid, start or "-"
        pid = parent
