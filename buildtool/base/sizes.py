"""Numbers of bytes as people write them, such as 65536, 64K, 64KB, 64 KiB and 1M. K always means 1,024."""

from __future__ import annotations

import re

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_UNIT = re.compile(r"([KMG]?)B?|([KMG])IB")  # in capital letters
_SIZE = re.compile(r"([0-9]{1,18}) *([A-Za-z]*)")


def unit_bytes(text: str) -> int | None:
    """Returns the bytes of a unit such as "", "K", "kb" or "MiB"; None for other texts."""
    match = _UNIT.fullmatch(text.upper())
    return _UNITS[match[1] or match[2] or ""] if match else None


def parse_size(value: object) -> int | None:
    """Returns the bytes that a non-negative integer or a text such as "512K" gives; None for others."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    unit = unit_bytes(match[2]) if match else None
    return int(match[1]) * unit if match and unit else None


def show_size(size: int) -> str:
    """Returns a number of bytes in the largest unit that divides it: 524288 becomes "512K"."""
    for unit in ("G", "M", "K"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)
