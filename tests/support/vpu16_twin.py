"""The XS3 unit's requantisation on 16 bits once more, a number at a time, from what its instructions do.

Nothing here is shared with what buildtool computes: plain Python integers of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor


def saturated(value: int, bits: int) -> int:
    """Symmetric: of 8 bits -127 to 127."""
    most = (1 << (bits - 1)) - 1
    return max(-most, min(most, value))


def half_up(value: Fraction) -> int:
    """The nearest integer, halves towards +infinity."""
    return floor(value + Fraction(1, 2))


def vlsat(acc: int, shift: int) -> int:
    return saturated(half_up(Fraction(acc, 1 << shift)), 16)


def vlashr(value: int, right: int) -> int:
    return saturated(floor(Fraction(value) / Fraction(2) ** right), 16)


def vlmul(value: int, factor: int) -> int:
    return saturated(half_up(Fraction(value * factor, 1 << 14)), 16)


def vladd(value: int, other: int) -> int:
    return saturated(value + other, 16)


def vdepth8(value: int) -> int:
    return saturated(half_up(Fraction(value, 256)), 8)


def output(acc: int, down: int, up: int, factor: int, bias: int) -> int:
    """What is stored for an accumulator: lanes below -127.5 are written apart, VDEPTH8 makes no -128."""
    x = vlsat(acc, down)
    if up:
        x = vlashr(x, -up)
    z = vladd(vlmul(x, factor), bias)
    return -128 if vladd(z, 0x7F80) < 0 else vdepth8(z)


def outputs(accs: Sequence[int], factors: tuple[int, int, int, int], low: int, high: int) -> list[int]:
    """Of many accumulators of one channel, within an activation's limits."""
    return [max(low, min(high, output(acc, *factors))) for acc in accs]
