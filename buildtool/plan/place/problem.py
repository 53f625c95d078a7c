"""A plan's buffers and overlaps as an arena problem."""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.plan.place import arena
from buildtool.plan.types import Buffer, Overlap


def arena_problem(buffers: Sequence[Buffer], overlaps: Sequence[Overlap], alignment: int) -> arena.Problem:
    """The same in the arena's terms: times are steps."""
    return arena.Problem(
        tuple(arena.Item(b.first, b.last + 1, b.size, alignment) for b in buffers),
        tuple(arena.Permission(o.output, o.input, o.distance) for o in overlaps),
    )
