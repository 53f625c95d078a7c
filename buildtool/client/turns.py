"""One build at a time in a folder, and which builds in it were cut off.

A build system that is killed leaves files that its own record knows nothing of. The file `NAME` in the
folder is locked while a build runs, and says in lines of text what ran there:

    running PID START TIME      the build that holds the lock, or the last one, if it was killed
    cut-off TIME TIME           a build that was killed: when it began, and when that was found out

PID and START (of the process, as the system counts it) say whether the holder has started this process:
a build inside a build must not wait for it. Times are seconds since 1970.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from buildtool.base.locks import HAS_LOCKS, lock, process

NAME = ".buildtool.lock"
_MOST_BYTES = 1 << 16
_MOST_SPANS = 64  # then the two oldest are kept as one that spans both


@dataclass(frozen=True)
class Span:
    """The time in which a build that was cut off may have written files, in seconds since 1970."""

    first: float
    last: float

    def __contains__(self, when: float) -> bool:
        return self.first <= when <= self.last


_ALWAYS = Span(0.0, float("inf"))


class Turn:
    """The right to build in a folder, from `take` until `end`; `cut_off`: the killed builds before it."""

    def __init__(self, handle: int | None, cut_off: tuple[Span, ...] = ()) -> None:
        self._handle = handle
        self._process = os.getpid()
        self.cut_off = cut_off

    def end(self) -> None:
        """Records that this build was not cut off: the build system's record has all that it made."""
        if self._handle is not None and self._process == os.getpid():  # not in a child that was forked
            with contextlib.suppress(OSError):
                _write(self._handle, _lines(self.cut_off))
            os.close(self._handle)
            self._handle = None


def take(folder: str, waits: Callable[[int], None]) -> Turn:
    """Takes the turn in `folder`; where another build has it, calls `waits` with its PID, and waits.
    A build that the turn's holder started is a part of it. Where nothing can be locked, nothing waits.
    """
    path = Path(folder, NAME)
    while HAS_LOCKS:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return Turn(None)
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
        os.close(handle)  # somebody removed it meanwhile: others lock another file of this name
    return Turn(None)


def look(folder: str) -> Turn:
    """The builds that were cut off, for a build that writes nothing: it waits for nobody."""
    try:
        handle = os.open(Path(folder, NAME), os.O_RDONLY)
    except OSError:
        return Turn(None)
    try:
        text = _Text(handle)
        if text.began is not None and _lock(handle, wait=False):
            text.cut_off.append(Span(text.began, time.time()))
    finally:
        os.close(handle)
    return Turn(None, tuple(text.cut_off))


def _begin(handle: int) -> Turn:
    """Writes down that this process builds now."""
    now, text = time.time(), _Text(handle)
    spans = [*text.cut_off, *([Span(text.began, now)] if text.began is not None else [])]
    while len(spans) > _MOST_SPANS:
        first, second, *others = spans
        spans = [Span(min(first.first, second.first), max(first.last, second.last)), *others]
    turn = Turn(handle, tuple(spans))
    pid = os.getpid()
    with contextlib.suppress(OSError):
        _write(handle, [*_lines(turn.cut_off), f"running {pid} {process(pid)[1] or '-'} {now!r}"])
    return turn


class _Text:
    """The content of an open file; unreadable lines mean that a build was cut off at any time."""

    def __init__(self, handle: int) -> None:
        self.cut_off: list[Span] = []
        self.began: float | None = None
        self.running: tuple[int, str] | None = None
        text = b""
        with contextlib.suppress(OSError):
            text = os.pread(handle, _MOST_BYTES, 0)
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
    os.pwrite(handle, data, 0)
    os.ftruncate(handle, len(data))


def _lock(handle: int, *, wait: bool) -> bool:
    """Takes the lock; False: another process has it. True as well where the file system has no locks."""
    try:
        return lock(handle, wait=wait)
    except OSError:  # a file system without locks
        return True


def _ancestors() -> Iterator[tuple[int, str]]:
    """PID and start of the processes that this one was started by, and its own."""
    pid = os.getpid()
    while pid > 0:
        parent, start = process(pid)
        yield pid, start or "-"
        pid = parent
