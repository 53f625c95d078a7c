"""The host family: networks are compiled by the compiler of this machine, and run as its programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import ToolError
from buildtool.target.plugin import Harness
from buildtool.target.types import Board, DebugServer, RunRequest, RunResult, Toolchain
from buildtool_plugins import harness
from buildtool_plugins.family import Family

if TYPE_CHECKING:
    from buildtool_plugins.tools.find import Compiler

ROOT = Path(__file__).resolve().parent
APT = "apt-get install clang, or apt-get install gcc"
NOT_ELF = {"darwin": "macOS", "win32": "Windows", "cygwin": "Windows"}  # emitted code names sections of ELF
ELSEWHERE = "an emulated board, such as cortex-m4; planning and emitting for this board work here, too"
# -ffp-contract=off: a fused multiply-add would round differently from the reference.
CFLAGS = ("-std=gnu99", "-O3", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections")


class HostPlugin(Family):
    """The plugin for programs on this machine; see buildtool.target.plugin.TargetPlugin."""

    name = "host"
    root = ROOT
    kernels = ("reference", "reference_threads")  # plain C, by one thread or several
    portable = ("reference",)
    toolchains: tuple[str, ...] = ("clang", "gcc")

    def toolchain(self, board: Board, name: str) -> Toolchain:
        """Returns the toolchain "clang" or "gcc"; for "", the first one that is installed."""
        from buildtool_plugins.tools.find import find_ar

        if sys.platform in NOT_ELF:
            text = f"board '{board.name}' builds programs for this machine only where they are ELF files"
            raise ToolError(f"{text}, which those of {NOT_ELF[sys.platform]} are not", hint=ELSEWHERE)
        compiler = self._compiler(board, name)
        return Toolchain(
            name=compiler.kind,
            identity=compiler.identity,
            cc=compiler.path,
            cflags=(*CFLAGS, *board.core.cflags, *(f"-D{define}" for define in board.core.defines)),
            ldflags=("-Wl,--gc-sections", *(("-pthread",) if board.core.threads > 1 else ())),
            ar=find_ar(compiler),
        )

    def harness(self, board: Board) -> Harness:
        """Returns the sources of the test program. It reads and writes files and text by the C library."""
        return Harness(sources=(harness.ROOT / "harness.c", ROOT / "harness_io.c"), includes=(harness.ROOT,))

    def debug_server(self, board: Board, port: int) -> DebugServer:
        """Returns a DebugServer without a command: a debugger on this machine starts the program itself."""
        return DebugServer((), -1, ("gdb", "lldb"))

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs the program in a new folder. Instructions are not counted. Raises ToolError if it fails or
        takes too long.
        """
        from buildtool_plugins.tools.sandbox import run_program

        if request.count:
            hint = "profile on an emulated board, such as cortex-m4"
            raise ToolError(f"instructions cannot be counted on board '{board.name}'", hint=hint)
        files, text = run_program([str(image.resolve())], request, what="the program")
        return RunResult(files=files, text=text)

    def _compiler(self, board: Board, name: str) -> Compiler:
        from buildtool_plugins.tools.find import find_clang, find_gcc, is_chosen

        names = self.find_toolchains(board, name)
        for candidate in (name,) if name else names:
            try:
                return find_clang() if candidate == "clang" else find_gcc("gcc", APT)
            except ToolError:
                if name or is_chosen(candidate):  # another compiler must not replace the user's choice
                    raise
        raise ToolError("no C compiler was found", hint=APT)


plugin = HostPlugin()
