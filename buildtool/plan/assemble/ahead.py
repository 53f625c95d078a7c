"""When the constants of regions begin to come: early enough that the core does not wait, where there is room.

What is begun while a region computes is waited for before the next region that needs any constants runs. So
a region hides as many bytes as come while it computes, and constants may begin several regions early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FARTHEST = 64  # regions that constants begin early at most


@dataclass(frozen=True)
class Demand:
    """A region: bytes of its buffers of constants, those that have to come before it runs, bytes of the arena
    that it leaves free, and bytes that come while it computes.
    """

    buffers: int
    load: int
    room: float
    hides: float


def begins(regions: Sequence[Demand], farthest: int = FARTHEST) -> list[int]:
    """Region -> the one with which its constants begin to come: itself, or one before it, `farthest` at most.

    The largest are taken first; each to where it makes the core wait least, and of these places the latest.
    """
    found = list(range(len(regions)))
    room = [region.room for region in regions]
    left = [region.hides for region in regions]
    for index in sorted(found[1:], key=lambda i: (-regions[i].load, i)):
        own = regions[index]
        best, least = index, float(own.load)
        for at in range(index - 1, max(-1, index - 1 - farthest), -1):
            if room[at] < own.buffers or not own.load:
                break  # the buffer is there from then on
            waits = max(0.0, own.load - max(0.0, left[at]))
            if waits < least:
                best, least = at, waits
        found[index] = best
        if best < index:
            left[best] -= own.load
            for at in range(best, index):
                room[at] -= own.buffers
    return found
