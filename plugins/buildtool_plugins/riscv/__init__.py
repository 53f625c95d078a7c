"""The RISC-V family: 32-bit microcontrollers, emulated by QEMU."""

from buildtool_plugins.riscv.plugin import plugin

__all__ = ["plugin"]
