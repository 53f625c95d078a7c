"""Numbers that look random and are the same everywhere: a linear congruential generator.

Multiplier and increment are those of Knuth's MMIX; the high bits are the ones to choose by.
"""

from __future__ import annotations

_MULTIPLIER = 6364136223846793005
_INCREMENT = 1442695040888963407
_MODULUS = 1 << 64
_LOW_BITS = 33  # which repeat soon


def following(state: int) -> int:
    """The state after this one."""
    return (state * _MULTIPLIER + _INCREMENT) % _MODULUS


def choice(state: int, choices: int) -> int:
    """One of 0, 1, ... `choices` - 1."""
    return (state >> _LOW_BITS) % choices
