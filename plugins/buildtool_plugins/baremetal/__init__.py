"""C run-time support for targets without an operating system: its sources."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent
# What compilers call for wide integers and floats on a core without them.
ARITHMETIC = tuple(str(ROOT / file) for file in ("integers.c", "floats.c"))
