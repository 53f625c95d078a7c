"""Targets by the name of their board; their catalogues are read once a test process.

target = load_target("cortex-m4")
"""

from __future__ import annotations

import functools

from buildtool.target import registry
from buildtool.target.types import Target

# A board file: the host, whose weights lie in a memory slower than its kernels are.
SLOW_WEIGHTS = """\
extends = "host"
[memory.flash]
kind = "rom"
base = 0x40000000
size = "4M"
bandwidth = 50000000
[roles]
weights = "flash"
"""


@functools.cache
def load_target(board: str) -> Target:
    """A board of the packages, without libraries of others."""
    return registry.load_target(board)
