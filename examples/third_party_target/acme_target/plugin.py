"""The plugin that the entry point names; see buildtool.target.plugin.TargetPlugin."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from buildtool_plugins.host import plugin as host

from buildtool.base.errors import ToolError
from buildtool.target.plugin import Harness, KernelFolder
from buildtool.target.types import Board, RunRequest, RunResult, Toolchain

HERE = Path(__file__).resolve().parent


class AcmePlugin:
    """The acme-demo board: compiled with the host's compiler, run by a runner of its own."""

    name = "acme"
    interface = 1  # the version of buildtool's plugin interface that this was written for

    def board_files(self) -> tuple[Path, ...]:
        """The .toml files of its boards."""
        return tuple(sorted((HERE / "boards").glob("*.toml")))

    def kernel_families(self) -> tuple[KernelFolder, ...]:
        """Its kernels, which the board names in core.families."""
        return (KernelFolder(HERE / "acme_conv"),)

    def toolchain(self, board: Board, name: str) -> Toolchain:
        """The host's: an Acme core would bring its compiler, start-up code and linker script here."""
        return host.toolchain(board, name)

    def harness(self, board: Board) -> Harness:
        """The test program's sources, and the board's file input and output."""
        return host.harness(board)

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs the program in a folder that has the request's files, and returns those it wrote."""
        if request.count:
            raise ToolError(f"instructions cannot be counted on board '{board.name}'")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for file, data in request.files.items():
                (folder / file).write_bytes(data)
            try:
                done = subprocess.run(
                    [str(image.resolve())], cwd=folder, capture_output=True, timeout=request.timeout
                )
            except subprocess.TimeoutExpired:
                raise ToolError(f"the program was still running after {request.timeout:g} s") from None
            text = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
            if done.returncode:
                raise ToolError(f"the program ended with exit code {done.returncode}: {text}")
            missing = [file for file in request.outputs if not (folder / file).is_file()]
            if missing:
                raise ToolError(f"the program wrote no file '{missing[0]}': {text}")
            return RunResult({file: (folder / file).read_bytes() for file in request.outputs}, text)
