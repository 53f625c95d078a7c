"""Scales of the pictures: round numbers on an axis."""

from __future__ import annotations

import math


def ticks(most: float, wanted: int = 5, base: int = 10) -> list[float]:
    """Round numbers from 0 to at most `most`, about so many: steps of 1, 2 and 5, or powers of two."""
    if most <= 0:
        return [0.0]
    rough = most / wanted
    if base == 2:
        step = 2.0 ** math.ceil(math.log2(rough))
    else:
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    return [step * i for i in range(int(most / step + 1e-9) + 1)]


def between(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many."""
    span = max(high - low, 1e-9)
    step = ticks(span, wanted)[1] if len(ticks(span, wanted)) > 1 else span
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, int(high / step + 1e-9) + 1)]
