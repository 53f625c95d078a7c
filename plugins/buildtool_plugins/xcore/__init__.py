"""The xcore family: planned for the chip, run on the host through a model of the chip's vector unit.

Everything up to the compiler is made for the chip: plan, sources, weight image, the arena's map, and
a project for XMOS's XTC tools, which is compiled where they are in PATH.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

from buildtool.base.errors import ToolError
from buildtool.base.modes import Level
from buildtool.target.kernels import kernels_root
from buildtool.target.plugin import Exported, Harness, VendorBuild
from buildtool.target.types import Board, Flashing, Issues, Reality, RunRequest, RunResult, Wiring
from buildtool_plugins.host import HostPlugin

ISSUES_SOURCE = Path(__file__).resolve().parent / "issues.c"
ISSUES_FLAGS = ("-DNN_VPU_COUNT", "-DNN_CYCLES")
ISSUES = "issues.txt"  # what the firmware that counts writes
_LINE = re.compile(r"(\d+) (\d+) (\d+) (\d+) (\d+)")


class XcorePlugin(HostPlugin):
    """See buildtool.target.plugin.TargetPlugin; what is not here is the host's, where the network runs."""

    name = "xcore"
    root = Path(__file__).resolve().parent
    kernels = ("xcore_vpu", "xcore_vpu16")

    def requantisations(self, board: Board) -> dict[str, tuple[str, ...]]:
        """By the multipliers of 16 bits: those of XS3, which VX4's are not."""
        return {"vpu16": ("xcore_vpu16",)} if board.core.isa == "xs3" else {}

    def reality(self, board: Board) -> Reality:
        """The network's C on this machine, the chip's vector unit by a model of it."""
        return Reality(Level.MODEL, "model on the host")

    def counting_harness(self, board: Board) -> Harness:
        """The host's test program, with the counters of the vector unit's model."""
        plain = self.harness(board)
        own = kernels_root() / "xcore_vpu"
        return Harness((*plain.sources, ISSUES_SOURCE), (*plain.includes, own), ISSUES_FLAGS)

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs the program on the host; `count` is for one that was built to count issues."""
        if not request.count:
            return super().run(board, image, request)
        outputs = (*request.outputs, ISSUES)
        result = super().run(board, image, dataclasses.replace(request, outputs=outputs, count=False))
        return dataclasses.replace(result, issues=parse_issues(result.files.pop(ISSUES)))

    def flashing(self, board: Board, image: Path, tool: str) -> Flashing:
        """Raises ToolError with the lines to run: the images made here are programs of this machine."""
        from buildtool_plugins.xcore import xtc

        raise xtc.by_hand(image.stem)

    def wiring(self, board: Board, wire: str) -> Wiring:
        """Raises ToolError as `flashing` does: no test firmware for the chip is made here."""
        from buildtool_plugins.xcore import xtc

        raise xtc.by_hand("NAME")

    def build_files(self, exported: Exported) -> dict[str, bytes]:
        """A CMake project for XMOS's XTC tools, and the weights in their flash container."""
        from buildtool_plugins.xcore import xtc

        return xtc.project(exported)

    def vendor_build(self, net: str, folder: Path, tell: Callable[[str], None]) -> VendorBuild | None:
        """The project's .xe by XTC, where it is in PATH; raises ToolError with what its tools said."""
        from buildtool_plugins.xcore import xtc

        return xtc.compile_project(net, folder, tell)


def parse_issues(text: bytes) -> dict[int, Issues]:
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


plugin = XcorePlugin()
