"""The Xtensa family's plugin: Debian's gcc for the LX106, Espressif's for the ESP32 and its successors."""

from __future__ import annotations

import os
from pathlib import Path

from buildtool.target.types import Board
from buildtool_plugins.baremetal import ARITHMETIC
from buildtool_plugins.baremetal.plugin import BaremetalPlugin, Tools

# -ffreestanding: gcc's <stdint.h> asks for the library's otherwise; -fbuiltin: memcpy is inlined still.
GCC_FLAGS = ("-ffreestanding", "-fbuiltin")
VARIABLE = "BUILDTOOL_GCC"
APT_GCC = "apt-get install gcc-xtensa-lx106"
ESPRESSIF = (
    "no package of Debian's has it: install ESP-IDF's tools (install.sh, or the xtensa-esp-elf archive of"
    " github.com/espressif/crosstool-NG), so that it is in PATH; planning and `emit` need no compiler"
)


class XtensaPlugin(BaremetalPlugin):
    """See buildtool.target.plugin.TargetPlugin. A board's compiler is called after its core."""

    name = "xtensa"
    root = Path(__file__).resolve().parent
    toolchains = ("gcc",)
    cflags = ("-fno-jump-tables",)  # jumps to computed addresses are calls alone: the stack can be told
    startup = (
        *("startup_vectors.S", "startup.c", "semihosting_call.c", "products.c"),
        *ARITHMETIC,
    )
    kernels = ("xtensa_lx106",)
    debuggers = ("xtensa-lx106-elf-gdb", "gdb-multiarch")

    def cross(self, board: Board) -> str:
        """What the names of the tools for the board's core begin with: "xtensa-lx106-elf-"."""
        return f"xtensa-{board.core.name}-elf-"

    def tools(self, name: str, board: Board) -> Tools:
        """The gcc for the board's core."""
        from buildtool_plugins.tools.find import find_gcc

        program = f"{self.cross(board)}gcc"
        hint = APT_GCC if board.core.name == "lx106" else ESPRESSIF
        chosen = Path(os.environ.get(VARIABLE, ""))
        # The variable may be meant for Arm's boards.
        compiler = find_gcc(program, hint, VARIABLE if chosen.name.startswith("xtensa-") else "")
        return Tools(compiler, GCC_FLAGS, ("-lgcc", "-Wl,--no-warn-rwx-segments"))


plugin = XtensaPlugin()
