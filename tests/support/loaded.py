"""Targets by the name of their board; their catalogues are read once a test process.

target = load_target("cortex-m4")
"""

from __future__ import annotations

import functools

from buildtool.target import registry
from buildtool.target.types import Target


@functools.cache
def load_target(board: str) -> Target:
    """A board of the packages, without libraries of others."""
    return registry.load_target(board)
