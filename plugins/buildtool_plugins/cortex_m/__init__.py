"""The Cortex-M family: Arm's microcontrollers, emulated by QEMU; compiled by clang or arm-none-eabi-gcc."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.target.types import Board, Library
from buildtool_plugins.baremetal import ARITHMETIC
from buildtool_plugins.baremetal.plugin import BaremetalPlugin, Tools, clang, gcc

if TYPE_CHECKING:
    from buildtool_plugins.tools.llvm_mca import Isa


class CortexMPlugin(BaremetalPlugin):
    """The plugin for Cortex-M boards; see buildtool.target.plugin.TargetPlugin."""

    name = "cortex_m"
    root = Path(__file__).resolve().parent
    toolchains = ("clang", "gcc")
    cflags = ("-fshort-enums",)  # the two compilers' defaults differ
    startup = ("startup.c", "semihosting_call.c")
    kernels = (
        *("cortex_m0", "cortex_m3", "cortex_m_dsp", "cortex_m_mve"),
        *("cortex_m_cmsis_nn", "cortex_m_cmsis_nn_mve"),
    )

    copies_into_ram = True
    debuggers = ("gdb-multiarch", "arm-none-eabi-gdb")

    libraries = ("cmsis_nn",)

    def library(self, board: Board, name: str, path: str) -> Library:
        """Returns CMSIS-NN in the user's checkout at `path`. Raises UsageError if it is not there, or not for
        this core.
        """
        from buildtool_plugins.cortex_m.cmsis_nn import cmsis_nn  # imported only where it is used

        assert name == "cmsis_nn"
        return cmsis_nn(board, path)

    def isa(self, board: Board) -> Isa:
        """Returns the version of Thumb that the core has, for llvm-mca.

        The mark between blocks is `udf #165`, which no kernel contains.
        """
        from buildtool_plugins.tools.llvm_mca import Isa

        versions = {
            **{"armv6-m": "6m", "armv7-m": "7m", "armv7e-m": "7em"},
            **{"armv8-m.main": "8m.main", "armv8.1-m.main": "8.1m.main"},
        }
        version = versions.get(board.core.isa.partition("+")[0], "7em")
        options = ("-arm-implicit-it=always",)
        return Isa(f"thumbv{version}-none-eabi", bytes.fromhex("a5de"), "udf #165", options)

    def cross(self, board: Board) -> str:
        """Returns the prefix of the GNU tools' names, the same for every Arm core."""
        return "arm-none-eabi-"

    def tools(self, name: str, board: Board) -> Tools:
        """Returns clang or Arm's gcc. clang gets the functions that cores without a floating-point unit
        call.
        """
        from buildtool_plugins.tools.find import APT_GCC_ARM

        if name == "gcc":
            return gcc("arm-none-eabi-gcc", APT_GCC_ARM)
        return clang("arm-none-eabi", () if "-mfloat-abi=hard" in board.core.cflags else ARITHMETIC)


plugin = CortexMPlugin()
