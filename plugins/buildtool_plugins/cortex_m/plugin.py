"""The Cortex-M family's plugin: clang or arm-none-eabi-gcc."""

from __future__ import annotations

from pathlib import Path

from buildtool.target.types import Board, Library
from buildtool_plugins.baremetal.plugin import BaremetalPlugin, Tools, clang
from buildtool_plugins.cortex_m.cmsis_nn import NAME, cmsis_nn

# -ffreestanding: gcc's <stdint.h> asks for the library's otherwise; -fbuiltin: memcpy is inlined still.
GCC_FLAGS = ("-ffreestanding", "-fbuiltin")


class CortexMPlugin(BaremetalPlugin):
    """See buildtool.target.plugin.TargetPlugin."""

    name = "cortex_m"
    root = Path(__file__).resolve().parent
    toolchains = ("clang", "gcc")
    cflags = ("-fshort-enums",)  # the two compilers' defaults differ
    startup = ("startup.c", "semihosting_call.c")
    kernels = ("cortex_m_dsp", "cortex_m_mve", "cortex_m_cmsis_nn", "cortex_m_cmsis_nn_mve")

    debuggers = ("gdb-multiarch", "arm-none-eabi-gdb")

    libraries = (NAME,)

    def library(self, board: Board, name: str, path: str) -> Library:
        """CMSIS-NN, of which the user has a checkout at `path`."""
        assert name == NAME
        return cmsis_nn(board, path)

    def cross(self, board: Board) -> str:
        """Of the tools for every Arm core."""
        return "arm-none-eabi-"

    def tools(self, name: str, board: Board) -> Tools:
        """Clang, or Arm's gcc."""
        from buildtool_plugins.tools.find import APT_GCC_ARM, find_gcc

        if name == "clang":
            return clang("arm-none-eabi")
        compiler = find_gcc("arm-none-eabi-gcc", APT_GCC_ARM)
        return Tools(compiler, GCC_FLAGS, ("-lgcc", "-Wl,--no-warn-rwx-segments"))


plugin = CortexMPlugin()
