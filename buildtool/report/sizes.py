"""What firmware takes of each memory."""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.report.table import Cell, table
from buildtool.schema.builds import MemorySize


def text(sizes: Sequence[MemorySize]) -> str:
    """Each memory against its size, its sections below it; empty memories are left out."""
    rows: list[list[Cell]] = []
    for memory in sizes:
        if not memory["used"]:
            continue
        size = memory["size"] or None
        share = f"{100 * memory['used'] / size:.1f} %" if size else None
        rows.append([memory["memory"], memory["used"], size, share])
        rows += [[f"  {section['name']}", section["bytes"], None, None] for section in memory["sections"]]
    return table(["memory", "bytes used", "bytes there", "share"], rows)
