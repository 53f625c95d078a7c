"""Programs for this machine: compiled on first use and kept per user."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from buildtool.errors import ToolError

_SHOWN = 2000  # characters of a compiler's complaint


def kept(kind: str, name: str) -> Path:
    """Where a program stays: $XDG_CACHE_HOME/buildtool/KIND/NAME, or below ~/.cache; it may not be there."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "buildtool" / kind / name


def compile_program(command: Sequence[str], built: Path, what: str, place: Path, hint: str = "") -> None:
    """Runs `command`, a compiler's without its -o, for `built`; nothing half-made is ever there.

    It compiles beside the final place and renames, so that two at once both end well. Raises ToolError:
    the folder cannot be written, or `what` (at `place`) does not compile.
    """
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="build-", dir=built.parent))
    except OSError as error:
        raise ToolError(
            f"the cache folder {built.parent} cannot be written: {error.strerror}",
            hint="set XDG_CACHE_HOME to a folder that can",
        ) from None
    try:
        made = folder / built.name
        done = subprocess.run(
            [*command, "-o", str(made)],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode or not made.is_file():
            said = done.stderr.strip()[:_SHOWN] or f"the compiler's exit status is {done.returncode}"
            raise ToolError(f"{what} does not compile:\n{said}", path=str(place), hint=hint)
        made.replace(built)
    except OSError as error:
        raise ToolError(f"{what} cannot be compiled: {error.strerror}", path=command[0]) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
