"""The base class of the plugins for bare-metal boards: compilers and flags, linker script, harness, QEMU."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import ToolError, suggest
from buildtool.target.plugin import Harness, Timer
from buildtool.target.types import (
    Board,
    BoardLink,
    DebugServer,
    Flashing,
    LinkerScript,
    RunRequest,
    RunResult,
    Toolchain,
    Wiring,
)
from buildtool_plugins import baremetal, harness
from buildtool_plugins.baremetal.linker import STACK_GUARD_BYTES, linker_script
from buildtool_plugins.board_link import chip_code, serial_port, wiring
from buildtool_plugins.family import Family

if TYPE_CHECKING:
    from buildtool_plugins.tools.find import Compiler
    from buildtool_plugins.tools.llvm_mca import Isa

CFLAGS = (
    *("-std=gnu99", "-O3"),
    "-ffp-contract=off",  # a fused multiply-add would round differently from the reference
    *("-ffunction-sections", "-fdata-sections", "-fno-common"),
    *("-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),
)
LDFLAGS = (
    "-nostdlib",
    "-static",
    "-Wl,--gc-sections",
    "-Wl,-z,max-page-size=16",  # no padding between segments
    "-Wl,-z,noexecstack",
    "-Wl,--build-id=none",
)


@dataclass(frozen=True)
class Tools:
    """A compiler, with the flags with which it compiles and links for the family.

    `sources` are files with functions that the compiler calls but does not provide.
    """

    compiler: Compiler
    cflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    sources: tuple[str, ...] = ()


def clang(target: str, sources: tuple[str, ...] = ()) -> Tools:
    """Returns clang and its lld for the target triple `target`; `sources` is that of `Tools`.

    Headers of an installed C library are not used: baremetal/include/ has the freestanding ones.
    """
    from buildtool_plugins.tools.find import find_clang, find_lld

    compiler = find_clang()
    select = f"--target={target}"
    return Tools(compiler, (select, "-nostdlibinc"), (select, f"--ld-path={find_lld(compiler)}"), sources)


def gcc(program: str, hint: str, variable: str = "BUILDTOOL_GCC") -> Tools:
    """Returns the gcc called `program`, which has its own run-time support; see `find_gcc`.

    Without -ffreestanding, its <stdint.h> would include that of the C library. With -fbuiltin it still
    inlines memcpy.
    """
    from buildtool_plugins.tools.find import find_gcc

    flags = ("-lgcc", "-Wl,--no-warn-rwx-segments")
    return Tools(find_gcc(program, hint, variable), ("-ffreestanding", "-fbuiltin"), flags)


class BaremetalPlugin(Family):
    """A family of bare-metal boards; see `Family`.

    `cflags`: the family's flags for every compiler.
    `startup`: source files of every firmware, relative to `root`.
    `memory`: the source file of memcpy, memset and similar functions.
    `debuggers`: the programs that can debug the family's cores.
    `copies_into_ram`: whether the start-up code copies kernels and weights that a RAM holds.
    """

    cflags: tuple[str, ...]
    startup: tuple[str, ...]
    memory: Path = baremetal.ROOT / "memory.c"
    debuggers: tuple[str, ...]
    copies_into_ram = False

    @abstractmethod
    def cross(self, board: Board) -> str:
        """Returns the prefix of the names of the GNU tools for the board's core, such as "arm-none-eabi-"."""

    @abstractmethod
    def tools(self, name: str, board: Board) -> Tools:
        """Returns the compiler of the family's toolchain `name`. Raises ToolError if it is not installed."""

    def core_flags(self, board: Board, compiler: Compiler) -> tuple[str, ...]:
        """Returns the flags with which `compiler` compiles for the board's core."""
        return board.core.cflags

    def isa(self, board: Board) -> Isa | None:
        """Returns the core's instruction set for llvm-mca; None if LLVM has no model of such cores."""
        return None

    def timer(self, board: Board) -> Timer:
        """Returns LLVM's timing model of the core, in the version of the clang in use. Raises ToolError if
        there is none.
        """
        from buildtool_plugins.tools.llvm_mca import llvm_mca

        isa = self.isa(board)
        if board.pipeline is None or isa is None:
            raise ToolError(f"LLVM has no model of the core of board '{board.name}'")
        return llvm_mca(board.pipeline.model, isa)

    def guard_bytes(self, board: Board) -> int:
        """Returns the size of the guard below the stack, in bytes."""
        return STACK_GUARD_BYTES

    def toolchain(self, board: Board, name: str) -> Toolchain:
        """Returns the toolchain `name` ("": the board's default), with the board's linker script."""
        from buildtool_plugins.tools.find import find_ar

        names = self.find_toolchains(board, name)
        selected = name or names[0]
        tools = self._installed(selected, board)
        copies_weights = self.copies_into_ram and board.reads_weights_in_ram
        script = linker_script(board, self.guard_bytes(board), copies_weights=copies_weights).encode()
        chip = chip_code(board, self.root / "chips")
        include = ("-isystem", str(baremetal.ROOT / "include"))
        copied = [
            *(["-DNN_KERNELS_COPIED"] if board.kernels else []),
            *(["-DNN_WEIGHTS_COPIED"] if copies_weights else []),
        ]
        defines = (f"-D{define}" for define in board.core.defines)
        core = self.core_flags(board, tools.compiler)
        shared = (self.memory, baremetal.ROOT / "semihosting.c")
        return Toolchain(
            name=selected,
            identity=tools.compiler.identity,
            cc=tools.compiler.path,
            cflags=(*tools.cflags, *CFLAGS, *self.cflags, *include, *core, *defines, *copied, *chip.cflags),
            ldflags=(*core, *LDFLAGS, *tools.ldflags),
            ar=find_ar(tools.compiler, self.cross(board)),
            objects=(
                *(str(self.root / file) for file in self.startup),
                *tools.sources,
                *map(str, shared),
                *chip.sources,
            ),
            includes=(str(baremetal.ROOT), *chip.includes),
            script=LinkerScript(f"{board.name}.ld", script),
        )

    def _installed(self, name: str, board: Board) -> Tools:
        """Returns the compiler of the toolchain `name`. If it is not installed, the ToolError's hints name
        the board's other toolchains that are.
        """
        try:
            return self.tools(name, board)
        except ToolError as error:
            others = []
            for other in self.find_toolchains(board, ""):
                with contextlib.suppress(ToolError):
                    if other != name:
                        compiler = self.tools(other, board).compiler
                        others.append(suggest(f"{compiler.identity} is installed", toolchain=other))
            error.hints = (*others, *error.hints)
            raise

    def harness(self, board: Board) -> Harness:
        """Returns the sources of the test firmware. It reads and writes files and text by semihosting."""
        return Harness(
            sources=(harness.ROOT / "harness.c", baremetal.ROOT / "harness_io.c"),
            includes=(harness.ROOT, baremetal.ROOT),
        )

    def wiring(self, board: Board, wire: str) -> Wiring:
        """Returns what test firmware needs in order to answer over the link `wire`.

        Raises UsageError if the board has no such link.
        """
        return wiring(board, wire)

    def serial_port(self, board: Board) -> Wiring | None:
        """Returns the driver of the board's serial port, for an application; None if the board's file names
        no port.
        """
        return serial_port(board)

    def run_on_board(
        self, board: Board, image: Path, request: RunRequest, board_link: BoardLink
    ) -> RunResult:
        """Runs the firmware image that is in the flash of an attached board. Raises ToolError if the link
        fails, and ProgramError if the firmware does.
        """
        from buildtool_plugins.board_link.attached import run

        return run(board, image, request, board_link)

    def flashing(self, board: Board, image: Path, tool: str) -> Flashing:
        """Returns the command that flashes the image. Raises UsageError if the board's file names no program
        for that.
        """
        from buildtool_plugins.baremetal.probe import flashing

        return flashing(board, image, tool)

    def debug_server(self, board: Board, port: int) -> DebugServer:
        """Returns the debug server of QEMU, or the one that the board's file names for its probe."""
        from buildtool_plugins.baremetal.probe import debug_server

        return debug_server(board, port, self.debuggers)

    def run(self, board: Board, image: Path, request: RunRequest) -> RunResult:
        """Runs the firmware image in QEMU. Raises ToolError if QEMU is missing, and ProgramError if the
        firmware fails.
        """
        from buildtool_plugins.qemu.runner import run

        return run(board, image, request)
