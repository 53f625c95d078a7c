"""The parts of one or two firmware images as a tree: memory, owner, library, file, symbol.

A level that is not known is skipped: a file that is in no library is a sibling of the libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

LEVELS = ("memory", "owner", "library", "file", "symbol")
Part = Mapping[str, object]  # a schema.builds.SizePart


@dataclass(frozen=True)
class Node:
    """A line of the tree: its bytes in the earlier and the later firmware image (None: the image lacks
    it).
    """

    level: str
    name: str
    before: int | None
    after: int | None
    children: tuple[Node, ...] = ()

    @property
    def growth(self) -> int:
        """The growth in bytes. A missing value counts as 0."""
        return (self.after or 0) - (self.before or 0)


class _Sums:
    """The sums of a node's bytes in the earlier and the later firmware image."""

    def __init__(self) -> None:
        self.sizes: list[int | None] = [None, None]
        self.children: dict[tuple[str, str], _Sums] = {}


def tree(before: Sequence[Part], after: Sequence[Part]) -> tuple[Node, ...]:
    """Returns a tree for each memory of two firmware images.

    Memories keep their order; larger parts come first.
    """
    root = _Sums()
    for side, parts in enumerate((before, after)):
        for part in parts:
            size, sums = part["bytes"], root
            assert isinstance(size, int)
            for level in LEVELS:
                name = str(part[level])
                if not name:
                    continue
                sums = sums.children.setdefault((level, name), _Sums())
                sums.sizes[side] = (sums.sizes[side] or 0) + size
    return tuple(_make_node(key, one) for key, one in root.children.items())


def _make_node(key: tuple[str, str], sums: _Sums) -> Node:
    children = (_make_node(below, one) for below, one in sums.children.items())
    ordered = sorted(children, key=lambda n: (-(n.after or 0), -(n.before or 0), n.level, n.name))
    return Node(*key, sums.sizes[0], sums.sizes[1], tuple(ordered))


def changed_nodes(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Returns the nodes that differ, and their parents.

    Larger changes come first, but memories keep their order.
    """
    changed = []
    for node in nodes:
        below = changed_nodes(node.children)
        if below or node.before != node.after:
            changed.append(replace(node, children=below))
    if changed and changed[0].level == LEVELS[0]:
        return tuple(changed)
    return tuple(sorted(changed, key=lambda n: (-abs(n.growth), n.level, n.name)))


def walk(nodes: Sequence[Node], depth: int, indent: int = 0) -> Iterator[tuple[int, Node]]:
    """Yields each node of the first `depth` levels with its level. Parents come before their children."""
    for node in nodes if depth > 0 else ():
        yield indent, node
        yield from walk(node.children, depth - 1, indent + 1)
