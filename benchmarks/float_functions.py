"""The largest errors of exp, log, tanh, ... of float32: python benchmarks/float_functions.py [STEP]

Errors are in units in the last place; an exactly rounded result has an error of at most 0.5. All inputs take
some minutes; with a step of 1000, every thousandth input is tried.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from buildtool_plugins.tools.find import find_host_compiler

from buildtool.target.kernels import kernels_root

RANGES = (
    ("exp", 0, 0x7F800000),
    ("exp", 0x80000000, 0xFF800000),
    ("log", 0, 0x7F800000),
    ("tanh", 0, 0x7F800000),  # of -x it is -tanh(x)
    ("expm1", 0x80000000, 0xFF800000),
    ("erf", 0, 0x7F800000),
    ("erfc", 0, 0x7F800000),
    ("erfc", 0x80000000, 0xFF800000),
)


def main() -> None:
    """Compiles the routines, and prints a line for each function and sign."""
    step, root = sys.argv[1] if len(sys.argv) > 1 else "1", kernels_root()
    sources = [
        root / "reference" / f"nn_real_{name}.c" for name in dict.fromkeys(name for name, _, _ in RANGES)
    ]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "errors"
        flags = ["-O2", "-std=c99", "-ffp-contract=off", f"-I{root / 'include'}"]
        files = [Path(__file__).with_suffix(".c"), *sources]
        subprocess.run([find_host_compiler(), *flags, *files, "-lm", "-o", program], check=True)
        for name, first, last in RANGES:
            words = [name, hex(first), hex(last), step]
            print(f"{name} {first:#x} to {last:#x}:", end=" ", flush=True)
            subprocess.run([program, *words], check=True)


if __name__ == "__main__":
    main()
