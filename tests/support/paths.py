"""The paths of the checkout and of the folder `shared` beside it. No other test file counts its parents."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the checkout
TESTS = ROOT / "tests"
KERNELS = ROOT / "kernels"
SHARED = ROOT.parent / "shared"  # trained networks and published files, not in the checkout
MODELS = SHARED / "models"


def script(path: Path, text: str) -> Path:
    """Writes a shell script. Returns its path."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path
