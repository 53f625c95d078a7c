"""Sets of rows as sorted, disjoint spans (first row, one past the last row)."""

from collections.abc import Iterable

Span = tuple[int, int]
Spans = tuple[Span, ...]


def union(spans: Iterable[Span]) -> Spans:
    """Returns the spans in ascending order; joins those that touch or overlap, and drops empty ones."""
    joined: list[Span] = []
    for low, high in sorted(span for span in spans if span[0] < span[1]):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


def without(spans: Spans, low: int, high: int) -> Spans:
    """Returns the rows of `spans` outside [low, high)."""
    if low >= high:
        return spans
    parts = [(a, min(b, low)) for a, b in spans] + [(max(a, high), b) for a, b in spans]
    return union(parts)


def within(spans: Spans, low: int, high: int) -> Spans:
    """Returns the rows of `spans` in [low, high)."""
    return union((max(a, low), min(b, high)) for a, b in spans)


def count(spans: Spans) -> int:
    """Returns the number of rows. A row in several spans counts each time."""
    return sum(high - low for low, high in spans)
