"""A virtual environment for each peer, below the user's cache folder; made once."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 900.0  # seconds for one installation


class Unavailable(Exception):
    """The reason why a system cannot be used here."""


@dataclass(frozen=True)
class Environment:
    """A Python environment with one package installed."""

    folder: Path

    @property
    def python(self) -> str:
        """The path of its interpreter."""
        return str(self.folder / "bin" / "python")

    def command(self, name: str) -> str:
        """Returns the path of a command that the package installed."""
        return str(self.folder / "bin" / name)


def cache_folder() -> Path:
    """Returns $XDG_CACHE_HOME/buildtool/peers, or ~/.cache/buildtool/peers."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "buildtool" / "peers"


def environment(package: str, version: str) -> Environment:
    """Returns the environment with a version of `package`, which it may install.

    Raises Unavailable with the last line of pip's output.
    """
    folder = cache_folder() / f"{package}-{version}"
    done = folder / "installed"
    if not done.exists():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], "python -m venv")
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _run([*pip, f"{package}=={version}"], "pip")
        done.touch()
    return Environment(folder)


def _run(command: list[str], what: str) -> None:
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{what}: {error}") from None
    if made.returncode:
        said = (made.stderr or made.stdout).strip().splitlines()
        raise Unavailable(f"{what}: {said[-1] if said else f'exit {made.returncode}'}")
