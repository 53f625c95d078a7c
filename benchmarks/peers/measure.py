"""Runs a program and tells how long it took and how much memory it had at most."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.peers.environments import Unavailable


@dataclass(frozen=True)
class Measured:
    """A program's output (both streams), its CPU seconds on all cores, and its peak memory in bytes.

    The CPU seconds include child processes that it waited for. Other programs on the machine affect them less
    than the wall time.
    """

    text: str
    seconds: float
    peak: int


def measured(command: Sequence[str], folder: str, env: Mapping[str, str] | None = None) -> Measured:
    """Runs `command` in `folder`; raises Unavailable if it fails."""
    with tempfile.TemporaryFile("w+") as said:
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
        seconds = usage.ru_utime + usage.ru_stime
        said.seek(0)
        text = said.read()
    if process.returncode:
        lines = text.strip().splitlines()
        raise Unavailable(lines[-1] if lines else f"exit {process.returncode}")
    return Measured(text, seconds, usage.ru_maxrss * 1024)
