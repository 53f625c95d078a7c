"""The RISC-V family: microcontrollers of 32 and 64 bits, emulated by QEMU; compiled by clang."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.target.types import Board
from buildtool_plugins.baremetal import ARITHMETIC
from buildtool_plugins.baremetal.plugin import BaremetalPlugin, Tools, clang

if TYPE_CHECKING:
    from buildtool_plugins.tools.find import Compiler
    from buildtool_plugins.tools.llvm_mca import Isa

# A page that physical memory protection forbids. A memory below the limit is too small for a guard. There the
# stack lies at the memory's low end, and an access below it faults.
GUARD_BYTES, GUARD_LIMIT = 4096, 1 << 20
FIRST_WITH_ZICSR = (17,)  # version of clang


def _triple(board: Board) -> str:
    return "riscv64-unknown-elf" if board.core.isa.startswith("rv64") else "riscv32-unknown-elf"


class RiscvPlugin(BaremetalPlugin):
    """The plugin for RISC-V boards; see buildtool.target.plugin.TargetPlugin."""

    name = "riscv"
    root = Path(__file__).resolve().parent
    toolchains = ("clang",)
    cflags = ("-msmall-data-limit=0",)  # no separate sections for small globals, because no code sets gp
    startup = ("startup.c", "semihosting_call.S")
    kernels = ("riscv", "riscv_v")
    debuggers = ("gdb-multiarch", "riscv64-unknown-elf-gdb", "riscv32-unknown-elf-gdb")

    def isa(self, board: Board) -> Isa:
        """Returns RV32 or RV64, for llvm-mca. The mark between blocks is `ecall`, which no kernel
        contains.
        """
        from buildtool_plugins.tools.llvm_mca import Isa

        return Isa(_triple(board), bytes.fromhex("73000000"), "ecall")

    def cross(self, board: Board) -> str:
        """Returns the prefix of the GNU tools' names, the same for every RISC-V core."""
        return "riscv64-unknown-elf-"

    def tools(self, name: str, board: Board) -> Tools:
        """Returns clang, the only toolchain."""
        return clang(_triple(board), ARITHMETIC)

    def core_flags(self, board: Board, compiler: Compiler) -> tuple[str, ...]:
        """Returns the core's flags. For a clang before version 17, which does not know the name Zicsr but has
        its instructions, the name is removed.
        """
        if compiler.version >= FIRST_WITH_ZICSR:
            return board.core.cflags
        return tuple(flag.replace("_zicsr", "") for flag in board.core.cflags)

    def guard_bytes(self, board: Board) -> int:
        """Returns the bytes of the guard below the stack: a page, or 0 if the memory is small."""
        return GUARD_BYTES if board.memory(board.data).size >= GUARD_LIMIT else 0


plugin = RiscvPlugin()
