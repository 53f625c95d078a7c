"""The C kernels, as package data: `root()` is the folder that holds include/ and the families."""

from __future__ import annotations

from pathlib import Path


def root() -> Path:
    """The folder of include/, reference/ and one folder an instruction set."""
    return Path(__file__).resolve().parent
