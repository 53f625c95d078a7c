"""Times in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A time in words, of about two digits: 40 s, 12 min, 3.2 h."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"
    return f"{seconds:.0f} s"
