"""Plans a network, so that an error stops the targets of this network but no other targets.

The kernels of a board wait for the plans of all its networks, because they are compiled only if a network
calls them. So `run.py plan EMITTED KERNELS` succeeds even if the command in EMITTED.command ends with an
error, which it keeps in EMITTED.error. `run.py confirm EMITTED`, a rule of this network alone, then shows the
error and fails. The next build plans again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from buildtool.fronts.cmake.quoting import write_whole

_REFUSED = (1, 2)  # exit statuses of errors that the user can correct; others end the build


def plan(emitted: str, kernels: str) -> int:
    """Runs the command that plans the network. Returns the exit status, 0 also if the network is refused.

    `kernels` is the file with the kernels that the network calls. It stays empty until a plan has succeeded.
    """
    began = time.time_ns()
    error = Path(f"{emitted}.error")
    error.unlink(missing_ok=True)  # first: an interruption then leaves neither the error nor the stamp
    words: Sequence[str] = json.loads(Path(f"{emitted}.command").read_bytes())
    command = [sys.executable, "-P", str(Path(__file__).with_name("run.py")), *words]
    process = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    if process.returncode not in _REFUSED:
        sys.stderr.buffer.write(process.stderr)
        return process.returncode
    write_whole(error, process.stderr)
    if not Path(kernels).exists():
        write_whole(Path(kernels), b"")
    planned = Path(_planned(emitted))
    planned.write_bytes(b"")
    os.utime(planned, ns=(began, began))  # a file that was saved meanwhile is newer
    return 0


def confirm(emitted: str) -> int:
    """Writes the stamp of a network that was planned, and returns 0; else shows the error and returns 1."""
    error = Path(f"{emitted}.error")
    if error.exists():
        sys.stderr.buffer.write(error.read_bytes())
        Path(_planned(emitted)).unlink(missing_ok=True)
        return 1
    Path(f"{emitted}.stamp").write_bytes(b"")
    return 0


def _planned(emitted: str) -> str:
    return f"{emitted}.planned"
