"""Runs a program and tells how long it took and how much memory it had at most."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.peers.environments import Unavailable


@dataclass(frozen=True)
class Measured:
    """What a program said (both streams), seconds from start to end, peak resident bytes."""

    text: str
    seconds: float
    peak: int


def measured(command: Sequence[str], folder: str, env: Mapping[str, str] | None = None) -> Measured:
    """Runs `command` in `folder`; raises Unavailable if it fails."""
    with tempfile.TemporaryFile("w+") as said:
        start = time.perf_counter()
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdout=said,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=None if env is None else {**os.environ, **env},
            )
        except OSError as error:
            raise Unavailable(f"{command[0]}: {error.strerror}") from None
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        said.seek(0)
        text = said.read()
    if process.returncode:
        lines = text.strip().splitlines()
        raise Unavailable(lines[-1] if lines else f"exit {process.returncode}")
    return Measured(text, seconds, usage.ru_maxrss * 1024)
