"""What firmware takes of each memory, and its networks of the stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.report.table import Cell, count, table

if TYPE_CHECKING:
    from buildtool.schema.builds import MemorySize, StackSize


SMALL = 100  # of a program of this machine, a section below this share has no line of its own


def text(sizes: Sequence[MemorySize], stacks: Sequence[StackSize] = ()) -> str:
    """Each memory against its size, its sections below it; empty memories are left out. Then the stack."""
    rows: list[list[Cell]] = []
    for memory in sizes:
        if not memory["used"]:
            continue
        size = memory["size"] or None
        share = f"{100 * memory['used'] / size:.1f} %" if size else None
        name = memory["memory"] if size else f"{memory['memory']} of this machine"
        rows.append([name, memory["used"], size, share])
        rows += [[f"  {name}", number, None, None] for name, number in _sections(memory)]
    lines = [table(["memory", "bytes used", "bytes there", "share"], rows)]
    return "\n".join([*lines, *([""] if stacks else []), *map(_stack, stacks)])


def _sections(memory: MemorySize) -> list[tuple[str, int]]:
    """The sections of a memory; of a program of this machine those that are worth a line."""
    sections = [(section["name"], section["bytes"]) for section in memory["sections"]]
    if memory["size"]:
        return sections
    large = [(name, number) for name, number in sections if SMALL * number >= memory["used"]]
    rest = memory["used"] - sum(number for _, number in large)
    return [*large, ("others", rest)] if rest else large


def _stack(stack: StackSize) -> str:
    """One network's stack, and what to do where it may be more than there is."""
    needed, reserved = stack["needed"], count(stack["reserved"], "byte")
    if needed is None:
        return f"stack: what {stack['function']} takes cannot be told; {reserved} are reserved"
    text = f"stack: {stack['function']} takes at most {count(needed, 'byte')} of {reserved} reserved"
    if needed <= stack["reserved"]:
        return text
    more = needed - stack["reserved"]
    return f"{text}; warning: raise stack_bytes in the board's file by {count(more, 'byte')}"
