"""How the page writes names and numbers: short, and without control codes."""

from __future__ import annotations

import math

LONGEST = 120  # characters of a name in a tip or a table; the data has the whole name
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def plain(text: str) -> str:
    """Returns a name as one line without control codes, such as those for writing directions."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


def short(text: str, most: int = LONGEST) -> str:
    """Returns a text as `plain` does, in at most `most` characters.

    The middle of a longer text is left out.
    """
    if len(text) <= most:
        return plain(text)
    begin = (most - 1) // 3
    return plain(text[:begin]) + _ELLIPSIS + plain(text[begin + 1 - most :])


def size(count: float) -> str:
    """Returns a number of bytes in a suitable unit, such as 512 B, 11.7 KiB or 3.59 MiB."""
    for unit, name in _UNITS:
        if count >= unit:
            digits = 2 if count < 10 * unit else 1 if count < 1000 * unit else 0
            return f"{count / unit:.{digits}f} {name}"
    return f"{count:,.0f} B"


def number(value: float | None) -> str:
    """Returns a number with separators; small fractions have two digits."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.2f}"


def percent(part: float, whole: float) -> str:
    """Returns the share that `part` has in `whole` as text, such as 4.2 %."""
    share = 100 * part / whole if whole else 0.0
    return f"{share:.1f} %" if share >= 0.05 or not share else "< 0.1 %"


def ticks(most: float, wanted: int = 5, base: int = 10) -> list[float]:
    """Returns about `wanted` round numbers from 0 to `most`, at equal distances.

    The distance is 1, 2 or 5 times a power of ten, or a power of two if `base` is 2.
    """
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
    """Returns about `wanted` round numbers from `low` to `high`."""
    span = max(high - low, 1e-9)
    step = ticks(span, wanted)[1] if len(ticks(span, wanted)) > 1 else span
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, int(high / step + 1e-9) + 1)]
