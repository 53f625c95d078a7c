"""What firmware takes of each memory, and its networks of the stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from buildtool.fronts.changes import sizetree
from buildtool.fronts.texts.demangle import demangled
from buildtool.fronts.texts.table import Cell, count, plain, table

if TYPE_CHECKING:
    from buildtool.schema.builds import MemorySize, SizePart, StackSize

DEPTH = 3  # levels of a tree that are shown, unless told otherwise
INDENT = 2  # blanks before what is one level deeper
FILES_FROM = {
    "map": "files and libraries: from the linker's map",
    "symbols": "files: of some symbols, as compilers noted them; the linker's map (--map) says more",
    "": "files are not known: the image does not say them, and the linker's map (--map) was not given",
}

SMALL = 100  # of a program of this machine, a section below this share has no line of its own


def text(sizes: Sequence[MemorySize], stacks: Sequence[StackSize] = ()) -> str:
    """Each memory against its size, its sections below it; empty memories are left out. Then the stack."""
    rows: list[list[Cell]] = []
    for memory in sizes:
        if not memory["used"]:
            continue
        size = memory["size"] or None
        share = f"{100 * memory['used'] / size:.1f} %" if size else None
        name = f"{memory['memory']} of this machine" if memory["memory"] == "process" else memory["memory"]
        rows.append([name, memory["used"], size, share])
        rows += [[f"  {name}", number, None, None] for name, number in _sections(memory)]
    lines = [table(["memory", "bytes used", "bytes there", "share"], rows)]
    return "\n".join([*lines, *([""] if stacks else []), *map(_stack, stacks)])


def tree(parts: Sequence[SizePart], files_from: str, depth: int) -> str:
    """The first `depth` levels of what is in each memory, the largest first."""
    rows: list[list[Cell]] = []
    for name, node in tree_lines(sizetree.tree((), parts), depth):
        rows.append([plain(name), node.after])
    return "\n".join([table(["memory, and what is in it", "bytes"], rows), FILES_FROM[files_from]])


def tree_lines(nodes: Sequence[sizetree.Node], depth: int) -> Iterator[tuple[str, sizetree.Node]]:
    """Nodes with their names, indented by their levels; C++ as its authors wrote it."""
    found = list(sizetree.lines(nodes, depth))
    names = demangled(node.name for _, node in found if node.level == "symbol")
    for indent, node in found:
        yield " " * INDENT * indent + names.get(node.name, node.name), node


def _sections(memory: MemorySize) -> list[tuple[str, int]]:
    """The sections of a memory; of a program of this machine those that are worth a line."""
    sections = [(section["name"], section["bytes"]) for section in memory["sections"]]
    if memory["memory"] != "process":
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
