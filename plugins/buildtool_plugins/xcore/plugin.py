"""The xcore family's plugin: no compiler for the chip is to be had, so networks run on the host.

Everything up to the compiler is made for the chip: plan, sources, weight image, the arena's map, and
a build file for XMOS's tools. What runs is the same C, compiled natively with the plain kernels.
"""

from __future__ import annotations

from pathlib import Path

from buildtool.target.plugin import Harness
from buildtool.target.types import Board, RunRequest, RunResult, Toolchain
from buildtool_plugins.host import plugin as host

ROOT = Path(__file__).resolve().parent


class XcorePlugin:
    """See buildtool.target.plugin.TargetPlugin."""

    name = "xcore"

    def board_files(self) -> tuple[Path, ...]:
        """The .toml files of the boards it knows."""
        return tuple(sorted((ROOT / "boards").glob("*.toml")))

    def toolchain(self, board: Board, name: str, work: Path) -> Toolchain:
        """The host's compiler."""
        return host.toolchain(board, name, work)

    def harness(self, board: Board) -> Harness:
        """The host's test program."""
        return host.harness(board)

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs the program on the host; instructions are not counted."""
        return host.run(board, image, request)


plugin = XcorePlugin()
