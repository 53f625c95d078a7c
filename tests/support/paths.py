"""Where the checkout and the folder `shared` beside it are. No other file of the tests counts its parents."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the checkout
TESTS = ROOT / "tests"
KERNELS = ROOT / "kernels"
SHARED = ROOT.parent / "shared"  # trained networks and published files, not in the checkout
MODELS = SHARED / "models"
MINIMALLOC = SHARED / "minimalloc"


def script(path: Path, text: str) -> Path:
    """A shell script, which may be run."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path
