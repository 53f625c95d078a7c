"""The QEMU plugins that count: compiled on first use and kept, their results parsed."""

from __future__ import annotations

import re
from pathlib import Path

from buildtool.base.errors import ToolError
from buildtool.target.programs import program
from buildtool_plugins.qemu import blocks
from buildtool_plugins.tools.find import find_host_compiler

SOURCE = Path(__file__).resolve().parent / "count.c"
BLOCKS_SOURCE = SOURCE.with_name("blocks.c")
FLAGS = ("-std=gnu99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
OUTPUT = "counts.txt"  # in the run's folder


def counting_plugin(source: Path = SOURCE) -> Path:
    """A plugin's shared object; raises ToolError when no host compiler is found or it fails."""
    cc = find_host_compiler()
    return program(cc, f"{source.stem}.so", (source,), FLAGS, "QEMU's counting plugin", source)


def parse_running(text: bytes) -> int | None:
    """The operator in the middle of which the run ended; None if it ended elsewhere."""
    match = re.search(rb"^running (\d+)$", text, re.MULTILINE)
    return int(match[1]) if match else None


def parse_counts(text: bytes) -> tuple[dict[int, int], int]:
    """Instructions by operator, and of all invokes; raises ToolError."""
    counts: dict[int, int] = {}
    found = {"invokes": 0, "total": 0, "running": 0}
    for line in text.decode("ascii", "replace").splitlines():
        key, _, number = line.partition(" ")
        if key in blocks.LINES:
            continue
        if not number.isdecimal() or not (key.isdecimal() or key in found):
            raise ToolError(f"QEMU's counting plugin wrote '{line}'")
        if key.isdecimal():
            counts[int(key)] = int(number)
        else:
            found[key] = int(number)
    if not found["invokes"]:
        raise ToolError(
            "no invoke was counted",
            hint="the image holds no network of buildtool's, or it ended before the first invoke",
        )
    return counts, found["total"]
