"""The Xtensa family: the ESP8266's LX106, emulated by QEMU, and the ESP32's cores.

Debian has a gcc for the LX106, Espressif one for the ESP32 and its successors.
"""

from __future__ import annotations

import os
from pathlib import Path

from buildtool.target.types import Board
from buildtool_plugins.baremetal import ARITHMETIC
from buildtool_plugins.baremetal.plugin import BaremetalPlugin, Tools, gcc

VARIABLE = "BUILDTOOL_GCC"
APT_GCC = "apt-get install gcc-xtensa-lx106"
ESPRESSIF = (
    "Debian has no package of it: install ESP-IDF's tools (install.sh, or the xtensa-esp-elf archive of"
    " github.com/espressif/crosstool-NG), so that it is in PATH; planning and `emit` need no compiler"
)


class XtensaPlugin(BaremetalPlugin):
    """The plugin for Xtensa boards; see buildtool.target.plugin.TargetPlugin.

    The name of a core is part of its compiler's name.
    """

    name = "xtensa"
    root = Path(__file__).resolve().parent
    toolchains = ("gcc",)
    cflags = ("-fno-jump-tables",)  # only calls jump to computed addresses, so that the stack can be computed
    startup = ("startup_vectors.S", "startup.c", "semihosting_call.c", *ARITHMETIC)
    kernels = ("mul32",)
    debuggers = ("xtensa-lx106-elf-gdb", "gdb-multiarch")

    def cross(self, board: Board) -> str:
        """Returns the prefix of the GNU tools' names, such as "xtensa-lx106-elf-"."""
        return f"xtensa-{board.core.name}-elf-"

    def tools(self, name: str, board: Board) -> Tools:
        """Returns the gcc for the board's core."""
        program = f"{self.cross(board)}gcc"
        hint = APT_GCC if board.core.name == "lx106" else ESPRESSIF
        override = Path(os.environ.get(VARIABLE, ""))
        # The variable may be meant for Arm's boards.
        return gcc(program, hint, VARIABLE if override.name.startswith("xtensa-") else "")


plugin = XtensaPlugin()
