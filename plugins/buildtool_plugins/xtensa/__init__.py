"""The Xtensa family: the ESP8266's LX106, emulated by QEMU, and the ESP32's cores."""

from buildtool_plugins.xtensa.plugin import plugin

__all__ = ["plugin"]
