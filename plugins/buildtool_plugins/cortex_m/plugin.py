"""The Cortex-M family's plugin: clang or arm-none-eabi-gcc."""

from __future__ import annotations

from pathlib import Path

from buildtool.target.plugin import Timer
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

    def timer(self, board: Board) -> Timer:
        """LLVM's model of the core, of the version of the clang in use."""
        from buildtool_plugins.pipeline.llvm import Isa, llvm_mca

        versions = {"armv7e-m": "7em", "armv8-m.main": "8m.main", "armv8.1-m.main": "8.1m.main"}
        version = versions.get(board.core.isa.partition("+")[0], "7em")
        isa = Isa(
            f"thumbv{version}-none-eabi", bytes.fromhex("a5de"), "udf #165", ("-arm-implicit-it=always",)
        )
        return llvm_mca(self.model(board), isa)

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
