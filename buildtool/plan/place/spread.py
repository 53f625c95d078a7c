"""Arena problems over two memories: the memory of each item, and its offset there.

Each memory has a capacity, and each item has a price in each memory. The search finds the cheapest choice of
memories within both capacities. It decides items one after the other, those with the largest difference in
price first, each in its cheaper memory first. It drops a choice that cannot become cheaper than the best one
so far, or that has more live bytes than a memory holds. Complete choices are placed in each memory by itself.
The search begins with a simple placement, in which each item lies in the first memory where it fits. Effort
is counted in nodes, never in time. Within the limit of nodes the result is proven to be the cheapest; beyond
the limit it is the best one found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.solver import Status, decide

NODES = 20_000  # choices that are examined
PLACEMENTS = 60  # sets of items that are placed
DECIDE_NODES = 2_000  # nodes of the exact search for one placement
# Shares of the capacities to aim at: placing takes more than the bytes that are live at once.
_TIGHTER = (1.0, 0.97, 0.94, 0.9, 0.85)

Prices = Sequence[tuple[int, int]]  # of each item, in the first memory and in the second


@dataclass(frozen=True)
class Spread:
    """A placement over two memories.

    second: for each item, whether it lies in the second memory.
    offsets: for each item, its offset from the start of its memory.
    heights: bytes that are used of each memory.
    price: the sum of the items' prices.
    is_proven: whether it is proven that no choice is cheaper.
    """

    second: tuple[bool, ...]
    offsets: tuple[int, ...]
    heights: tuple[int, int]
    price: int
    is_proven: bool


def spread(
    problem: arena.Problem, prices: Prices, capacities: tuple[int, int], nodes: int = NODES
) -> Spread | None:
    """Returns the cheapest placement within both capacities, or the best one found; None if none is found.

    prices: of each item, in the first memory and in the second.
    capacities: bytes of the two memories.
    nodes: after this many choices the search ends.
    """
    search = _Search(problem, prices, capacities)
    worth, sizes = [abs(first - second) for first, second in prices], problem.sizes
    # the items first whose choice of memory is worth most, then those worth most per byte, then the largest
    per_byte = [w / max(1, size) for w, size in zip(worth, sizes, strict=True)]
    for key in (worth, per_byte, sizes):
        search.one_by_one(sorted(range(len(prices)), key=lambda i: (-key[i], i)))
    for share in _TIGHTER:
        is_complete = search.run(share, nodes, PLACEMENTS if share == 1.0 else 1)
        if share == 1.0 and is_complete:
            return search.best and replace(search.best, is_proven=True)
    return search.best


def part(problem: arena.Problem, inside: Sequence[int]) -> arena.Problem:
    """Returns the problem with only the items in `inside`, in that order."""
    at = {i: k for k, i in enumerate(inside)}
    permissions = tuple(
        p._replace(output=at[p.output], input=at[p.input])
        for p in problem.permissions
        if p.output in at and p.input in at
    )
    return arena.Problem(tuple(problem.items[i] for i in inside), permissions)


class _Search:
    """A depth-first search for the memory of each item.

    Bytes that are live together in a memory may not exceed a target, which is a share of its capacity.
    """

    def __init__(self, problem: arena.Problem, prices: Prices, capacities: tuple[int, int]) -> None:
        self.problem, self.prices, self.capacities = problem, prices, capacities
        self.best: Spread | None = None
        count = len(problem.items)
        self.order = sorted(range(count), key=lambda i: (-abs(prices[i][0] - prices[i][1]), i))
        least = [min(prices[i]) for i in self.order]
        self.rest = [sum(least) - done for done in accumulate(least, initial=0)]
        moments = sorted({item.lower for item in problem.items})
        at = {moment: k for k, moment in enumerate(moments)}
        ends = np.searchsorted(moments, [item.upper for item in problem.items])
        self.spans = [slice(at[item.lower], int(end)) for item, end in zip(problem.items, ends, strict=True)]
        self.live = [np.zeros(len(moments), np.int64), np.zeros(len(moments), np.int64)]
        self.partners: list[list[int]] = [[] for _ in range(count)]
        for permission in problem.permissions:
            self.partners[permission.output].append(permission.input)
            self.partners[permission.input].append(permission.output)
        self.chosen: list[int] = [-1] * count

    def one_by_one(self, order: Sequence[int]) -> None:
        """Puts each item, in this order, into its cheaper memory if it fits there, else into the other."""
        inside: list[list[int]] = [[], []]
        placed = [arena.Solution((), 0), arena.Solution((), 0)]
        for item in order:
            for memory in self._cheaper_first(item):
                candidate = sorted([*inside[memory], item])
                solution = greedy.solve(part(self.problem, candidate), enough=self.capacities[memory])
                if solution.height <= self.capacities[memory]:
                    inside[memory], placed[memory] = candidate, solution
                    break
            else:
                return
        self._take(inside, placed)

    def _cheaper_first(self, item: int) -> tuple[int, int]:
        """Returns both memories (0 and 1), the one that is cheaper for the item first."""
        first, second = self.prices[item]
        return (0, 1) if first <= second else (1, 0)

    def _take(self, inside: Sequence[Sequence[int]], placed: Sequence[arena.Solution]) -> None:
        """Keeps a choice of memories with its placement if it is cheaper than the best choice so far.

        `inside`: the items in each of the two memories. `placed`: the placement of these items in each
        memory.
        """
        second, offsets = [False] * len(self.chosen), [0] * len(self.chosen)
        for memory in (0, 1):
            for item, offset in zip(inside[memory], placed[memory].offsets, strict=True):
                second[item], offsets[item] = bool(memory), offset
        price = sum(self.prices[item][memory] for item, memory in enumerate(second))
        if self.best is None or price < self.best.price:
            heights = (placed[0].height, placed[1].height)
            self.best = Spread(tuple(second), tuple(offsets), heights, price, False)

    def run(self, share: float, nodes: int, placements: int) -> bool:
        """Searches with a share of the capacities as target. Returns whether it examined every choice.

        `nodes`, `placements`: after this many choices, or placed choices, the search ends.
        """
        self.aims = tuple(int(capacity * share) for capacity in self.capacities)
        self.nodes, self.placements, self.is_complete = nodes, placements, True
        self._decide(0, 0)
        return self.is_complete

    def _decide(self, depth: int, price: int) -> None:
        if self.best is not None and price + self.rest[depth] >= self.best.price:
            return
        if depth == len(self.order):
            self._place()
            return
        item = self.order[depth]
        for memory in self._cheaper_first(item):
            if self.nodes <= 0 or self.placements <= 0:
                self.is_complete = False
                return
            self.nodes -= 1
            self._put(item, memory, 1)
            if int(self.live[memory].max(initial=0)) <= self.aims[memory]:
                self._decide(depth + 1, price + self.prices[item][memory])
            self._put(item, memory, -1)

    def _put(self, item: int, memory: int, sign: int) -> None:
        """Puts an item into a memory if `sign` is 1, or takes it out again if it is -1.

        If two items may overlap, the smaller one is not counted while both are live: it may need no bytes.
        """
        live, sizes, span = self.live[memory], self.problem.sizes, self.spans[item]
        live[span] += sign * sizes[item]
        for other in self.partners[item]:
            if self.chosen[other] == memory:
                its = self.spans[other]
                both = slice(max(span.start, its.start), min(span.stop, its.stop))
                if both.start < both.stop:
                    live[both] -= sign * min(sizes[item], sizes[other])
        self.chosen[item] = memory if sign > 0 else -1

    def _place(self) -> None:
        """Keeps the current choice of memories if placements are found in both.

        A limit may end this search.
        """
        self.placements -= 1
        inside = [[i for i, chosen in enumerate(self.chosen) if chosen == memory] for memory in (0, 1)]
        placed = list[arena.Solution]()
        for memory in (0, 1):
            alone = part(self.problem, inside[memory])
            solution: arena.Solution | None = greedy.solve(alone)
            if solution is not None and solution.height > self.capacities[memory]:
                try:
                    result = decide(alone, self.capacities[memory], DECIDE_NODES)
                except UnsupportedError:
                    self.is_complete = False
                    return
                if result.solution is None and result.status is not Status.INFEASIBLE:
                    self.is_complete = False
                solution = result.solution
            if solution is None:
                return
            placed.append(solution)
        self._take(inside, placed)
