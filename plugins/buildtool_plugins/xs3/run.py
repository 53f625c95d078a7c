"""Runs a linked program in the XS3 simulator: python -m buildtool_plugins.xs3.run LIBRARY IMAGE [COUNTS].

LIBRARY is what `compile_runner` in machine.py returns. The program's files are in the current folder. COUNTS
is a file for the issue slots of a network's operators: lines "<operator> <vector operations> <products>
<others> <slowest thread>", then "invokes <n>".
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from buildtool.base.errors import ToolError
from buildtool_plugins.xs3.elf_files import read_image
from buildtool_plugins.xs3.machine import MARKS, Machine

FAULT = 70  # the exit status of a program that stops elsewhere than at its end


def _list_counts(machine: Machine) -> str:
    rows = []
    for operator in range(MARKS):
        of = machine.counts(operator)
        if of.runs:
            others = of.issues - of.vectors
            rows.append(f"{operator} {of.vectors} {of.products} {others} {of.issues - of.idle}\n")
    return "".join([*rows, f"invokes {machine.counts().runs}\n"])


def main(words: Sequence[str]) -> int:
    """Runs the program that the arguments `words` name; returns its exit status, or FAULT if it stops before
    its end.
    """
    library, path, *counts = words
    try:
        image, entry = read_image(Path(path).read_bytes(), path)
        machine = Machine(image, library=Path(library))
        status = machine.run(entry) & 0xFF
        for name in counts:
            Path(name).write_text(_list_counts(machine), encoding="ascii")
        return status
    except ToolError as error:
        print(error, file=sys.stderr)
        return FAULT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
