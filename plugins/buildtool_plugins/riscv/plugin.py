"""The RISC-V family's plugin: clang."""

from __future__ import annotations

from pathlib import Path

from buildtool.target.types import Board
from buildtool_plugins.baremetal.plugin import BaremetalPlugin, Tools, clang

# A page that physical memory protection forbids. Memories smaller than this limit can spare none;
# there the stack lies at the memory's low end, and what is below does not answer.
GUARD_BYTES, GUARD_LIMIT = 4096, 1 << 20


class RiscvPlugin(BaremetalPlugin):
    """See buildtool.target.plugin.TargetPlugin."""

    name = "riscv"
    root = Path(__file__).resolve().parent
    toolchains = ("clang",)
    cross = "riscv64-unknown-elf-"
    cflags = ("-msmall-data-limit=0",)  # no sections of their own for small globals: nothing sets gp
    startup = ("startup.c", "semihosting_call.S", "integers.c", "floats.c")
    kernels = ("riscv", "riscv_v")

    def tools(self, name: str) -> Tools:
        """Clang alone."""
        return clang("riscv32-unknown-elf")

    def guard_bytes(self, board: Board) -> int:
        """A page where the memory is large enough."""
        return GUARD_BYTES if board.memory(board.data).size >= GUARD_LIMIT else 0


plugin = RiscvPlugin()
