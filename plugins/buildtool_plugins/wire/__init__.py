"""The test firmware of boards on the desk, over a wire: its C, and the host's side of it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent
