"""An arena in two memories as text: what lies in each, and what that gains over either of them alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import Cell, table

if TYPE_CHECKING:
    from buildtool.schema.plans import AloneView, MemoriesView, PlanAnswer

_KIB = 1024


def text(answer: PlanAnswer) -> str:
    """A table of the arena's memories, and a line that compares; "" for an arena in one memory."""
    found = answer["memories"]
    if found is None:
        return ""
    rows: list[list[Cell]] = [
        [
            one["memory"],
            one["arena_bytes"],
            one["room_bytes"],
            one["touched_bytes"],
            f"{one['wait_cycles']:,.0f}",
        ]
        for one in found["arenas"]
    ]
    titles = ["memory", "arena bytes", "of", "bytes brought or written", "cycles waited"]
    return "\n".join(["The arena in two memories:", table(titles, rows), *_compared(found)])


def _compared(found: MemoriesView) -> list[str]:
    lines = [f"{one['memory']} alone: {_said(one)}" for one in found["alone"]]
    both = " + ".join(f"{one['memory']} {_size(one['arena_bytes'])}" for one in found["arenas"])
    gain = found["gain"]
    if gain is None:
        return [*lines, f"{both}: fits"]
    word = "gains" if gain >= 0 else "costs"
    return [*lines, f"{both}: fits; {word} {abs(gain):.1%} of the cost and waiting of the better one alone"]


def _said(one: AloneView) -> str:
    if one["missing_bytes"] is None:
        return one["error"]
    if one["missing_bytes"]:
        return f"does not fit by {one['missing_bytes']:,} bytes"
    milliseconds = one["estimated_ms"]
    time = "" if milliseconds is None else f", about {milliseconds:,.1f} ms"
    waited = f" and {one['wait_cycles']:,.0f} cycles waited" if one["wait_cycles"] else ""
    return f"fits with {one['arena_bytes']:,} bytes, F {one['f']:.3f}, cost {one['cost']:,.0f}{waited}{time}"


def _size(size: int) -> str:
    return f"{size / _KIB:,.1f} K" if size >= _KIB else f"{size} bytes"
