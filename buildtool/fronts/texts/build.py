"""The answer of `build` as text: what was written, and what it takes of each memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.fronts.texts import estimate, sizes
from buildtool.fronts.texts.table import count, of_state

if TYPE_CHECKING:
    from buildtool.schema.builds import BuildAnswer

MOST_OF_A_FOLDER = 8  # files that are named one by one


def text(answer: BuildAnswer, folder: str, files: Sequence[str]) -> str:
    """The files below `folder`, the arena, and the size report."""
    lines = [
        f"{answer['net']} for {answer['board']}, compiled by {answer['compiler']}",
        f"level: {answer['level_text']}",
        f"arena: {count(answer['arena_bytes'], 'byte')}" + of_state(answer["state_bytes"]),
        "",
        sizes.text(answer["sizes"], answer["stacks"]),
        *estimate.lines(answer),
        "",
        f"written to {folder}: {', '.join(_shown(files))}",
    ]
    return "\n".join(lines)


def _shown(files: Sequence[str]) -> list[str]:
    """The files' names; those of a folder with many of them together, as a number."""
    folders = Counter(name.partition("/")[0] for name in files if "/" in name)
    shown: dict[str, None] = {}
    for name in files:
        folder = name.partition("/")[0]
        many = "/" in name and folders[folder] > MOST_OF_A_FOLDER
        shown[f"{folder}/ ({folders[folder]} files)" if many else name] = None
    return list(shown)
