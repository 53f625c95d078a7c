"""Constants of the kernels for XMOS's vector unit, laid out as the kernels beside this file read them."""

from __future__ import annotations

from buildtool.emit.blocks import Packing

PACKINGS: dict[str, Packing] = {}
