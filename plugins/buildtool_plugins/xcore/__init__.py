"""The xcore family: planned for the chip, run on the host."""

from buildtool_plugins.xcore.plugin import plugin

__all__ = ["plugin"]
