"""The board's memories as bars: what lies in each, and what is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtool.fronts.changes import sizetree
from buildtool.fronts.texts.html.wording import percent, short

if TYPE_CHECKING:
    from buildtool.schema.reports import ReportAnswer

# What the parts of a memory are, by what their names begin with.
_LOOKS = (
    ("arena", "tensor"),
    ("weights", "weights"),
    ("code and constants of the kernels", "library"),
    ("code and constants of the network", "network"),
    ("code and constants", "application"),
    ("stack", "accumulator"),
)


@dataclass(frozen=True)
class Piece:
    """A part: where it begins and how wide it is, in per cent of the bar."""

    name: str
    look: str
    bytes: int
    start: float
    width: float
    share: str


@dataclass(frozen=True)
class Bar:
    """A memory."""

    name: str
    what: str
    required: int
    available: int
    excess: int
    share: str
    pieces: tuple[Piece, ...]


def bars(answer: ReportAnswer) -> list[Bar]:
    """One a memory; empty where there is no verdict."""
    verdict = answer["verdict"]
    if "error" in verdict:
        return []
    found = []
    for need in verdict["needs"]:
        whole = max(need["required"], need["available"], 1)
        at, pieces = 0.0, []
        for part in need["parts"]:
            width = 100 * part["bytes"] / whole
            share = percent(part["bytes"], need["available"])
            pieces.append(
                Piece(short(part["name"], 80), _look(part["name"]), part["bytes"], at, width, share)
            )
            at += width
        found.append(
            Bar(
                short(need["memory"], 40),
                need["what"],
                need["required"],
                need["available"],
                need["excess"],
                percent(need["required"], need["available"]),
                tuple(pieces),
            )
        )
    return [bar for bar in found if bar.pieces]


# ---- the linked image ----------------------------------------------------------------------------------

MOST_BELOW = 40  # lines that a part of the tree has; what is smaller is one line together


@dataclass(frozen=True)
class Leaf:
    """A line of the tree: a memory, who brought it, a library, a file or a symbol, and what is in it."""

    level: str
    name: str
    bytes: int
    share: str
    below: tuple[Leaf, ...]


def linked(answer: ReportAnswer) -> list[Leaf]:
    """The linked image as a tree, a memory each; empty where none was linked for the report."""
    image = answer["linked"]
    if image is None:
        return []
    there = {memory["memory"]: memory["size"] for memory in image["sizes"]}
    return [_leaf(node, there.get(node.name, 0)) for node in sizetree.tree((), image["parts"])]


def _leaf(node: sizetree.Node, room: int) -> Leaf:
    below, whole = node.children, node.after or 0
    shown = tuple(_leaf(child, whole) for child in below[:MOST_BELOW])
    if rest := below[MOST_BELOW:]:
        size = sum(child.after or 0 for child in rest)
        shown = (*shown, Leaf("rest", f"{len(rest)} smaller ones", size, percent(size, whole), ()))
    while len(shown) == 1 and shown[0].name.strip("()") == node.name.strip("()"):
        shown = shown[0].below  # a line that says the same once more
    return Leaf(node.level, short(node.name, 80), whole, percent(whole, room) if room else "", shown)


def _look(name: str) -> str:
    return next((look for begins, look in _LOOKS if name.startswith(begins)), "rest")
