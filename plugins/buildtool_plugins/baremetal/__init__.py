"""C run-time support for targets without an operating system. The module has the path of its sources."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent
# Functions that compilers call for 64-bit integers and floats, on a core without instructions for them.
ARITHMETIC = tuple(str(ROOT / file) for file in ("integers.c", "floats.c", "products.c"))
