"""The xcore family's plugin: networks run on the host, through a model of the chip's vector unit.

Everything up to the compiler is made for the chip: plan, sources, weight image, the arena's map, and
a project for XMOS's XTC tools, which is compiled where they are in PATH.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from buildtool.base.modes import Level
from buildtool.target.kernels import kernels_root
from buildtool.target.plugin import INTERFACE, Exported, Harness, KernelFolder, VendorBuild
from buildtool.target.types import (
    Board,
    DebugServer,
    Flashing,
    Reality,
    RunRequest,
    RunResult,
    Toolchain,
    Wiring,
)
from buildtool_plugins.host import plugin as host
from buildtool_plugins.xcore import xtc
from buildtool_plugins.xcore.issues import OUTPUT, counting_harness, parse
from buildtool_plugins.xcore.project import project

ROOT = Path(__file__).resolve().parent


class XcorePlugin:
    """See buildtool.target.plugin.TargetPlugin."""

    name = "xcore"
    interface = INTERFACE

    def board_files(self) -> tuple[Path, ...]:
        """The .toml files of the boards it knows."""
        return tuple(sorted((ROOT / "boards").glob("*.toml")))

    def kernel_families(self) -> tuple[KernelFolder, ...]:
        """The kernels for its vector unit, which run on the host through a model of the unit."""
        return tuple(KernelFolder(kernels_root() / name) for name in ("xcore_vpu", "xcore_vpu16"))

    def requantisations(self, board: Board) -> dict[str, tuple[str, ...]]:
        """By the multipliers of 16 bits: those of XS3, which VX4's are not."""
        return {"vpu16": ("xcore_vpu16",)} if board.core.isa == "xs3" else {}

    def toolchain(self, board: Board, name: str) -> Toolchain:
        """The host's compiler."""
        return host.toolchain(board, name)

    def harness(self, board: Board) -> Harness:
        """The host's test program."""
        return host.harness(board)

    def debug_server(self, board: Board, port: int) -> DebugServer:
        """The host's: there the network runs."""
        return host.debug_server(board, port)

    def reality(self, board: Board) -> Reality:
        """The network's C on this machine, the chip's vector unit by a model of it."""
        return Reality(Level.MODEL, "model on the host")

    def counting_harness(self, board: Board) -> Harness:
        """The host's, with the counters of the vector unit's model."""
        return counting_harness(board)

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs the program on the host; `count` is for one that was built to count issues."""
        if not request.count:
            return host.run(board, image, request)
        outputs = (*request.outputs, OUTPUT)
        result = host.run(board, image, dataclasses.replace(request, outputs=outputs, count=False))
        return dataclasses.replace(result, issues=parse(result.files.pop(OUTPUT)))

    def flashing(self, board: Board, image: Path, tool: str) -> Flashing:
        """Raises ToolError with the lines to run: the images made here are programs of this machine."""
        raise xtc.by_hand(image.stem)

    def wiring(self, board: Board, wire: str) -> Wiring:
        """Raises ToolError as `flashing` does: no test firmware for the chip is made here."""
        raise xtc.by_hand("NAME")

    def build_files(self, exported: Exported) -> dict[str, bytes]:
        """A CMake project for XMOS's XTC tools, and the weights in their flash container."""
        return project(exported)

    def vendor_build(self, net: str, folder: Path, tell: Callable[[str], None]) -> VendorBuild | None:
        """The project's .xe by XTC, where it is in PATH; raises ToolError with what its tools said."""
        return xtc.compile_project(net, folder, tell)


plugin = XcorePlugin()
