"""What is kept of earlier plans, in words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from buildtool.fronts.texts.table import Cell, table


def stats(answer: Mapping[str, Any]) -> str:
    """The levels, and what went wrong."""
    lines = [f"{answer['folder']}: {answer['bytes']:,} of {answer['most_bytes']:,} bytes"]
    if answer["trouble"]:
        lines.append(f"  it is not used: {answer['trouble']}")
    for name, number in answer["errors"].items():
        lines.append(f"  {name}  {number:,}")
    rows: list[list[Cell]] = [
        [name, level["entries"], level["bytes"], level["hits"], level["misses"]]
        for name, level in answer["levels"].items()
    ]
    return "\n".join(
        [*lines, "", table(["level", "entries", "bytes", "hits", "misses"], rows)] if rows else lines
    )


def verified(answer: Mapping[str, Any]) -> str:
    """How many entries are sound, and what became of the others."""
    text = f"{answer['folder']}: {answer['entries']:,} entries are sound"
    if answer["bad"]:
        text += f"; {answer['bad']:,} were not, and lie in {answer['aside']} now"
    if answer["unreadable"]:
        text += f"; {answer['unreadable']:,} cannot be read"
    return text


def explained(answer: Mapping[str, Any]) -> str:
    """For each request that is remembered: what was kept, what was made anew, and why."""
    parts = [
        _subject(name, list(rows)) for name, rows in groupby(answer["asked"], lambda row: row["subject"])
    ]
    return "\n\n".join(parts) or "no such request is remembered"


def _subject(name: str, rows: list[Mapping[str, Any]]) -> str:
    lines = [f"{name}:"]
    for row in rows:
        found = f"{row['hits']:,} kept, {row['misses']:,} made anew"
        lines.append(f"  {row['level']}  {found}")
        for change in row["changed"]:
            lines.append(f"    {change['part']}: {change['was']} -> {change['now']}")
        if row["misses"] and not row["changed"]:
            lines.append("    nothing was kept under its key before")
    return "\n".join(lines)
