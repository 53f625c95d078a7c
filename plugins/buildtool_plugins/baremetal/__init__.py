"""C run-time support for targets without an operating system: its sources."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent
