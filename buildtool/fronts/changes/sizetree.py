"""The parts of an image as a tree: memory, who brought it, library, file, symbol; of one image, or of two.

What is not known has no level of its own: a file of no library stands where libraries stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

LEVELS = ("memory", "owner", "library", "file", "symbol")
Part = Mapping[str, object]  # as schema.builds.SizePart has it


@dataclass(frozen=True)
class Node:
    """Bytes of something before and after; None where it is not there, or where there is one image only."""

    level: str
    name: str
    before: int | None
    after: int | None
    children: tuple[Node, ...] = ()

    @property
    def growth(self) -> int:
        """Bytes that it grew by; a missing side counts as 0."""
        return (self.after or 0) - (self.before or 0)


class _Bytes:
    """Bytes before and after of a node that is being added up."""

    def __init__(self) -> None:
        self.sizes: list[int | None] = [None, None]
        self.children: dict[tuple[str, str], _Bytes] = {}


def tree(before: Sequence[Part], after: Sequence[Part]) -> tuple[Node, ...]:
    """The trees of two images as one, memories in their order, below them the largest first."""
    root = _Bytes()
    for side, found in enumerate((before, after)):
        for part in found:
            size, at = part["bytes"], root
            assert isinstance(size, int)
            for level in LEVELS:
                name = str(part[level])
                if not name:
                    continue
                at = at.children.setdefault((level, name), _Bytes())
                at.sizes[side] = (at.sizes[side] or 0) + size
    return tuple(_node(key, one) for key, one in root.children.items())


def _node(key: tuple[str, str], found: _Bytes) -> Node:
    children = (_node(below, one) for below, one in found.children.items())
    ordered = sorted(children, key=lambda n: (-(n.after or 0), -(n.before or 0), n.level, n.name))
    return Node(*key, found.sizes[0], found.sizes[1], tuple(ordered))


def changed_nodes(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes that differ, with their parents; the largest change first."""
    found = []
    for node in nodes:
        below = changed_nodes(node.children)
        if below or node.before != node.after:
            found.append(replace(node, children=below))
    if found and found[0].level == LEVELS[0]:
        return tuple(found)
    return tuple(sorted(found, key=lambda n: (-abs(n.growth), n.level, n.name)))


def lines(nodes: Sequence[Node], depth: int, indent: int = 0) -> Iterator[tuple[int, Node]]:
    """The nodes of the first `depth` levels with their depth, parents first."""
    for node in nodes if depth > 0 else ():
        yield indent, node
        yield from lines(node.children, depth - 1, indent + 1)
