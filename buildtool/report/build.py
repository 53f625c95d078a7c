"""The answer of `build` as text: what was written, and what it takes of each memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.report import estimate, sizes
from buildtool.report.table import count

if TYPE_CHECKING:
    from buildtool.schema.builds import BuildAnswer


def text(answer: BuildAnswer, folder: str, files: Sequence[str]) -> str:
    """The files below `folder`, the arena, and the size report."""
    lines = [
        f"{answer['net']} for {answer['board']}, compiled by {answer['compiler']}",
        f"level: {answer['level_text']}",
        f"arena: {count(answer['arena_bytes'], 'byte')}",
        "",
        sizes.text(answer["sizes"], answer["stacks"]),
        *estimate.lines(answer),
        "",
        f"written to {folder}: {', '.join(files)}",
    ]
    return "\n".join(lines)
