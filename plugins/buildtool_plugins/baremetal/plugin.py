"""What families of bare-metal boards have in common: compilers and flags, linker script, harness, QEMU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import ToolError, did_you_mean
from buildtool.target.kernels import kernels_root
from buildtool.target.plugin import INTERFACE, Harness, KernelFolder
from buildtool.target.types import (
    Board,
    DebugServer,
    Desk,
    Flashing,
    LinkerScript,
    RunRequest,
    RunResult,
    Toolchain,
    Wiring,
)
from buildtool_plugins import baremetal, harness
from buildtool_plugins.baremetal.linker import STACK_GUARD_BYTES, linker_script
from buildtool_plugins.wire.sources import chip_code, wiring

if TYPE_CHECKING:
    from buildtool_plugins.tools.find import Compiler

CFLAGS = (
    *("-std=gnu99", "-O3"),
    "-ffp-contract=off",  # fused multiply-adds would round otherwise than the reference
    *("-ffunction-sections", "-fdata-sections", "-fno-common"),
    *("-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),
)
LDFLAGS = (
    "-nostdlib",
    "-static",
    "-Wl,--gc-sections",
    "-Wl,-z,max-page-size=16",  # segments lie as close in the file, and at load, as the script puts them
    "-Wl,-z,noexecstack",
    "-Wl,--build-id=none",
)


@dataclass(frozen=True)
class Tools:
    """A compiler with the flags that make it one for the family."""

    compiler: Compiler
    cflags: tuple[str, ...]
    ldflags: tuple[str, ...]


def clang(target: str) -> Tools:
    """Clang with its lld for a target triple.

    No C library, whatever is installed: baremetal/include/ has what freestanding code may use.
    """
    from buildtool_plugins.tools.find import find_clang, find_lld

    compiler = find_clang()
    select = f"--target={target}"
    return Tools(compiler, (select, "-nostdlibinc"), (select, f"--ld-path={find_lld(compiler)}"))


class BaremetalPlugin(ABC):
    """See buildtool.target.plugin.TargetPlugin.

    `root`: the family's folder, with its boards; `toolchains`: the ones it knows; `cflags`: of the
    family, for every compiler; `startup`: its sources in `root` that every firmware has; `memory`: the
    file of memcpy and its like; `kernels`: its kernel families; `debuggers`: that know its cores.
    """

    interface = INTERFACE

    name: str
    root: Path
    toolchains: tuple[str, ...]
    cflags: tuple[str, ...]
    startup: tuple[str, ...]
    memory: Path = baremetal.ROOT / "memory.c"
    kernels: tuple[str, ...]
    debuggers: tuple[str, ...]

    @abstractmethod
    def cross(self, board: Board) -> str:
        """What the names of GNU tools for the board's core begin with, such as an archiver's."""

    @abstractmethod
    def tools(self, name: str, board: Board) -> Tools:
        """The compiler of a toolchain that the family knows; ToolError where it is not installed."""

    def core_flags(self, board: Board, compiler: Compiler) -> tuple[str, ...]:
        """The flags that select the board's core, as the compiler knows them."""
        return board.core.cflags

    def model(self, board: Board) -> str:
        """What LLVM calls its model of the board's core."""
        if board.pipeline is None:
            raise ToolError(f"LLVM has no model of the core of board '{board.name}'")
        return board.pipeline.model

    def guard_bytes(self, board: Board) -> int:
        """Bytes below the stack that nothing may touch."""
        return STACK_GUARD_BYTES

    def board_files(self) -> tuple[Path, ...]:
        """The .toml files of the boards it knows."""
        return tuple(sorted((self.root / "boards").glob("*.toml")))

    def kernel_families(self) -> tuple[KernelFolder, ...]:
        """The kernels for its cores' instruction sets."""
        return tuple(KernelFolder(kernels_root() / name) for name in self.kernels)

    def toolchain(self, board: Board, name: str) -> Toolchain:
        """The compiler `name` ("" for the board's default), with the board's linker script."""
        from buildtool_plugins.tools.find import find_ar

        known = [t for t in board.toolchains or self.toolchains if t in self.toolchains]
        chosen = name or next(iter(known), self.toolchains[0])
        if chosen not in known:
            hint = did_you_mean(chosen, known)
            raise ToolError(f"board '{board.name}' has no toolchain '{chosen}'", hint=hint)
        tools = self.tools(chosen, board)
        script = linker_script(board, guard_bytes=self.guard_bytes(board)).encode()
        chip = chip_code(board, self.root / "chips")
        include = ("-isystem", str(baremetal.ROOT / "include"))
        defines = (f"-D{define}" for define in board.core.defines)
        core = self.core_flags(board, tools.compiler)
        shared = (self.memory, baremetal.ROOT / "semihosting.c")
        return Toolchain(
            name=chosen,
            identity=tools.compiler.identity,
            cc=tools.compiler.path,
            cflags=(*tools.cflags, *CFLAGS, *self.cflags, *include, *core, *defines, *chip.cflags),
            ldflags=(*core, *LDFLAGS, *tools.ldflags),
            ar=find_ar(tools.compiler, self.cross(board)),
            objects=(*(str(self.root / file) for file in self.startup), *map(str, shared), *chip.sources),
            includes=(str(baremetal.ROOT), *chip.includes),
            script=LinkerScript(f"{board.name}.ld", script),
        )

    def harness(self, board: Board) -> Harness:
        """The test firmware's sources; files and text go through semihosting."""
        return Harness(
            sources=(harness.ROOT / "harness.c", baremetal.ROOT / "harness_io.c"),
            includes=(harness.ROOT, baremetal.ROOT),
        )

    def wiring(self, board: Board, wire: str) -> Wiring:
        """What makes the test firmware one that answers over `wire`; UsageError where the board has none."""
        return wiring(board, wire)

    def run_on_board(self, board: Board, image: Path, request: RunRequest, desk: Desk) -> RunResult:
        """Runs the image that is in the board's flash, over its wire; ToolError, ProgramError."""
        from buildtool_plugins.wire.desk import run

        return run(board, image, request, desk)

    def flashing(self, board: Board, image: Path, tool: str) -> Flashing:
        """How the image comes into the board's flash; UsageError where its file names no tool."""
        from buildtool_plugins.probe.flash import flashing

        return flashing(board, image, tool)

    def debug_server(self, board: Board, port: int) -> DebugServer:
        """QEMU's, or the one that the board's file names for its probe."""
        from buildtool_plugins.qemu.debugging import debug_server

        return debug_server(board, port, self.debuggers)

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs the image in QEMU; raises ToolError if it is missing or if the firmware fails."""
        from buildtool_plugins.qemu.runner import run

        return run(board, image, request)
