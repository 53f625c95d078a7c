"""Which blocks: msf-CNN's two problems as it solves them, and the exact front that answers both at once.

A choice is a path through the graph whose nodes are the cuts between layers and whose edges are the
blocks; its RAM is that of its dearest block, its work the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from buildtool.plan.baselines.msf_blocks import Blocks, Cost

Edge = tuple[int, int]


@dataclass(frozen=True)
class Choice:
    """Blocks in order, each (first layer, one past the last); `ram` in bytes of the largest; all the MACs."""

    ram: int
    macs: int
    blocks: tuple[Edge, ...]


def least_ram(choices: Iterable[Choice], most_macs: float) -> Choice | None:
    """P1: the least RAM with no more than `most_macs`; None if nothing has so few.

    `choices` are those of `shrinking`, as msf-CNN has it, or of `front`: the answer is the same.
    """
    allowed = [choice for choice in choices if choice.macs <= most_macs]
    return min(allowed, key=lambda choice: (choice.ram, choice.macs), default=None)


def least_macs(choices: Iterable[Choice], most_ram: int) -> Choice | None:
    """P2: the least work with no more than `most_ram` bytes, of equal ones that of the least RAM.

    `choices` are those of `shrinking` over the blocks within the limit, or of `front`.
    """
    allowed = [choice for choice in choices if choice.ram <= most_ram]
    return min(allowed, key=lambda choice: (choice.macs, choice.ram), default=None)


def shrinking(blocks: Blocks, layers: int) -> list[Choice]:
    """msf-CNN's search: shortest paths by work, each without the edges of the largest RAM left."""
    edges, found = _by_end(blocks), []
    while (choice := _shortest(edges, layers)) is not None:
        found.append(choice)
        most = max(cost.ram for _, _, cost in edges)
        edges = [edge for edge in edges if edge[2].ram < most]
    return found


def _shortest(edges: Sequence[tuple[int, int, Cost]], layers: int) -> Choice | None:
    """The choice with the least work (of equal ones, the least RAM); None if no path is left."""
    best: dict[int, Choice] = {0: Choice(0, 0, ())}
    for end, start, cost in edges:
        if start in best:
            known, before = best.get(end), best[start]
            choice = _extended(before, (start, end), cost)
            if known is None or (choice.macs, choice.ram) < (known.macs, known.ram):
                best[end] = choice
    return best.get(layers)


def front(blocks: Blocks, layers: int) -> list[Choice]:
    """Every choice that no other beats in both RAM and work, by falling RAM.

    Dynamic programming over the cuts: a path to a cut that another one to the same cut equals or
    beats in both can be left out, whatever follows.
    """
    kept: dict[int, list[Choice]] = {0: [Choice(0, 0, ())]}
    at, coming = 0, list[Choice]()
    for end, start, cost in _by_end(blocks):
        if end != at:
            kept.setdefault(at, undominated(coming))
            at, coming = end, []
        coming += [_extended(choice, (start, end), cost) for choice in kept.get(start, ())]
    kept.setdefault(at, undominated(coming))
    return kept.get(layers, [])


def undominated(choices: Iterable[Choice]) -> list[Choice]:
    """Those that no other one equals or beats in both RAM and MACs, by falling RAM."""
    found: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (c.ram, c.macs, c.blocks)):
        if not found or choice.macs < found[-1].macs:
            found.append(choice)
    return found[::-1]


def one_block(blocks: Blocks, layers: int) -> Choice | None:
    """A single block from the start, the other layers alone: the least RAM, then the least work."""
    found = []
    for end in range(1, layers + 1):
        edges = [(0, end), *((i, i + 1) for i in range(end, layers))]
        if all(edge in blocks for edge in edges):
            choice = Choice(0, 0, ())
            for edge in edges:
                choice = _extended(choice, edge, blocks[edge])
            found.append(choice)
    return min(found, key=lambda choice: (choice.ram, choice.macs), default=None)


def _extended(before: Choice, edge: Edge, cost: Cost) -> Choice:
    return Choice(max(before.ram, cost.ram), before.macs + cost.macs, (*before.blocks, edge))


def _by_end(blocks: Mapping[Edge, Cost]) -> list[tuple[int, int, Cost]]:
    """(end, start, cost), so that every path to a cut is known before the edges from it."""
    return sorted(((end, start, cost) for (start, end), cost in blocks.items()), key=lambda e: e[:2])
