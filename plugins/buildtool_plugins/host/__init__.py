"""The host family: networks compiled for, and run on, the machine at hand."""

from buildtool_plugins.host.plugin import plugin

__all__ = ["plugin"]
