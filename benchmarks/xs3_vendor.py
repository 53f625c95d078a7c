"""Checks XMOS's own functions in the XS3 runner against their documentation, and counts their issue slots.

    python -m benchmarks.xs3_vendor ARCHIVE --cases 40

ARCHIVE is libxtflitemicro.a of the PyPI package xmos-ai-tools (1.4.2), or that package's .whl: `pip download
--no-deps xmos-ai-tools==1.4.2`. Its objects are read and run, and never stored.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from pathlib import Path

import numpy as np
from buildtool_plugins.xs3 import vendor_elf
from buildtool_plugins.xs3.assembler import assemble
from buildtool_plugins.xs3.compiler import runtime
from buildtool_plugins.xs3.linker import Image, link
from buildtool_plugins.xs3.machine import Machine, Readings

from benchmarks.xs3_functions import CHECKS, Case, Check
from buildtool.base.errors import ToolError, UsageError

INSIDE = "xmos_ai_tools/runtime/lib/libxtflitemicro.a"
# What the objects call of a C library (a failed assertion stops the run), and constants whose places are
# expressions in a form that no public text explains.
LIBRARY = """
    .globl __assert_func, printf, iprintf, vpu_vects_vec_0x007F, vpu_vects_vec_0x01, vpu_vects_vec_0x80
__assert_func:
    ldc r0, 0
    ecallf r0
printf:
iprintf:
    retsp 0
    .align 4
vpu_vects_vec_0x007F:
    .fill 16, 2, 0x007f
vpu_vects_vec_0x01:
    .fill 32, 1, 0x01
vpu_vects_vec_0x80:
    .fill 32, 1, 0x80
"""


def archive(path: Path) -> bytes:
    """Returns the archive of objects at `path`. Raises UsageError if `path` has no such archive."""
    hint = "pip download --no-deps xmos-ai-tools==1.4.2 brings the package, a .whl file"
    try:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                return wheel.read(INSIDE)
        return path.read_bytes()
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise UsageError(f"the vendor's objects cannot be read: {error}", path=str(path), hint=hint) from None


def image(content: bytes) -> Image:
    """Links the functions that are checked. Of archive members with the same name, the first is taken."""
    objects, seen = [], set()
    for name, member in vendor_elf.members(content):
        if not name.endswith((".c.obj", ".S.obj")):  # lib_tflite_micro is C++
            continue
        known = vendor_elf.load(member, name)
        names = {symbol for symbol, at in known.globals.items() if at.section is not None}
        if not names & seen:
            seen |= names
            objects.append(known)
    return link([*objects, assemble(LIBRARY, "library"), *runtime()], list(CHECKS))


def is_equal(check: Check, case: Case) -> bool:
    """Whether a function returns what is expected. If the function stopped, prints why."""
    try:
        got, want = check(case)
    except ToolError as error:
        print(error, file=sys.stderr)
        return False
    return np.array_equal(got, want)


def main() -> None:
    """Prints a row for each function, as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("archive", type=Path, metavar="ARCHIVE")
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", action="store_true", help="VLASHR rounds, as in lib_nn's model")
    args = parser.parse_args()
    try:
        machine = Machine(image(archive(args.archive)), Readings(vlashr_rounds=args.rounds))
    except (ToolError, UsageError) as error:
        sys.exit(str(error))
    print("| function | equal cases | issue slots | fetch stalls (model) |\n| --- | ---: | ---: | ---: |")
    failed = 0
    for name, check in CHECKS.items():
        rng = np.random.default_rng([args.seed, *name.encode()])
        machine.clear_counts()
        equal = 0
        for _ in range(args.cases):
            equal += is_equal(check, Case(machine, rng))
        counts = machine.counts()
        print(f"| `{name}` | {equal} of {args.cases} | {counts.issues:,} | {counts.stalls:,} |", flush=True)
        failed += equal != args.cases
    print(f"\n{len(CHECKS) - failed} of {len(CHECKS)} functions equal in all cases")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
