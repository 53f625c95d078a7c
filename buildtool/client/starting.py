"""Starts the daemon: one, however many clients want it at once."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import time

from buildtool.base.folders import CACHE, STATE, cache_folder
from buildtool.base.identity import environment
from buildtool.base.locks import locked
from buildtool.client.endpoint import CONNECT_SECONDS, AbsentError, Endpoint

START_SECONDS = 10.0


def started(at: Endpoint) -> socket.socket | None:
    """A connection to a daemon that was started here, or by another client at the same time."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        connection: socket.socket | None = None
        with locked(at.starting, wait=False) as mine:
            if mine is None:
                time.sleep(0.02)
            else:
                connection = at.connect(CONNECT_SECONDS) or _of_the_living(at)
                if connection is None:
                    _spawn(at, deadline)
        connection = connection or at.connect(CONNECT_SECONDS)
        if connection is not None:
            return connection
    raise AbsentError(f"the daemon was not there after {START_SECONDS:.0f} seconds")


def _of_the_living(at: Endpoint) -> socket.socket | None:
    """A connection to a daemon that holds the lock; None where none does. AbsentError if it takes nobody."""
    deadline = time.monotonic() + CONNECT_SECONDS
    while at.is_alive():
        connection = at.connect(CONNECT_SECONDS)
        if connection is not None:
            return connection
        if time.monotonic() > deadline:
            why = str(at.said().get("ended") or "")
            raise AbsentError(f"it has not ended yet ({why})" if why else "it takes no more clients")
        time.sleep(0.02)
    return None


def _spawn(at: Endpoint, deadline: float) -> None:
    """Starts a daemon and waits until it listens. AbsentError, with its last words, if it ended instead."""
    read, write = os.pipe()
    try:
        # as this process has them: a daemon has another working folder
        cache = cache_folder()
        folders = {STATE: str(at.folder)} | ({CACHE: str(cache)} if cache is not None else {})
        log = os.open(at.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "buildtool.daemon", at.name, str(write)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment() | folders,
                pass_fds=[write],
                start_new_session=True,
            )
        finally:
            os.close(log)
            os.close(write)
        if _is_ready(read, deadline):
            return
    finally:
        os.close(read)
    with contextlib.suppress(subprocess.TimeoutExpired):
        if child.wait(CONNECT_SECONDS) == 0:
            return  # another one was there first
    if child.returncode is None:
        child.kill()  # it never got as far as to listen
        child.wait()
    raise AbsentError(f"the daemon ended at its start; its last words:\n{at.last_words()}")


def _is_ready(ready: int, deadline: float) -> bool:
    """Whether the pipe says a byte in time, and is not closed at the other end before."""
    with contextlib.suppress(OSError):
        if select.select([ready], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return os.read(ready, 1) == b"r"
    return False
