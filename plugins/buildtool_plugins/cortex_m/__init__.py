"""The Cortex-M family: Arm's microcontrollers, emulated by QEMU."""

from buildtool_plugins.cortex_m.plugin import plugin

__all__ = ["plugin"]
