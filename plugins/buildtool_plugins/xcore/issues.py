"""Issues of the chip, counted in a model of its vector unit: the firmware that counts, and what it writes."""

from __future__ import annotations

import re
from pathlib import Path

from buildtool.base.errors import ToolError
from buildtool.target.kernels import kernels_root
from buildtool.target.plugin import Harness
from buildtool.target.types import Board, Issues
from buildtool_plugins.host import plugin as host

SOURCE = Path(__file__).resolve().parent / "issues.c"
OUTPUT = "issues.txt"
FLAGS = ("-DNN_VPU_COUNT", "-DNN_CYCLES")
_LINE = re.compile(r"(\d+) (\d+) (\d+) (\d+) (\d+)")


def counting_harness(board: Board) -> Harness:
    """The host's test program, with the counters of the model."""
    plain = host.harness(board)
    own = kernels_root() / "xcore_vpu"
    return Harness((*plain.sources, SOURCE), (*plain.includes, own), FLAGS)


def parse(text: bytes) -> dict[int, Issues]:
    """Operator -> its issues, of one invoke at least; raises ToolError."""
    found: dict[int, Issues] = {}
    lines = text.decode("ascii", "replace").splitlines()
    for line in lines[:-1]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ToolError(f"the counting firmware wrote '{line}'")
        number, vpu, mac, scalar, slowest = map(int, match.groups())
        found[number] = Issues(vpu, mac, scalar, slowest)
    if not lines or not re.fullmatch(r"invokes [1-9]\d*", lines[-1]):
        raise ToolError("the counting firmware's counts are cut off")
    return found
