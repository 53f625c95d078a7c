"""Arena problems over two memories: which items lie in which, and where there.

Each memory has a capacity, and each item a price in each of them. Looked for is the cheapest choice of
memories that both capacities allow. Items are decided one after the other, those first whose price differs
most between the memories, each in its cheaper one first; a choice is left where it cannot become cheaper
than the best so far, or where more is live at once in a memory than it holds. What remains is placed in each
memory by itself. What is found by placing item after item where it still fits is the first to be bettered.
Effort is counted, never timed: within it the result is proven, beyond it the best so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UnsupportedError
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.solver import Status, decide

NODES = 20_000  # choices that are looked at
PLACEMENTS = 60  # sets of items that are placed
DECIDE_NODES = 2_000  # of the exact search for one placement
# Shares of the capacities to aim at: what is live at once is not all that placing takes.
_TIGHTER = (1.0, 0.97, 0.94, 0.9, 0.85)

Prices = Sequence[tuple[int, int]]  # of each item, in the first memory and in the second
Profile = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spread:
    """A placement over two memories.

    `second`: per item, whether it lies in the second one; `offsets`: from the start of its memory, `heights`
    of both in bytes; `price`: the sum of the items' prices. `is_proven`: no choice is cheaper.
    """

    second: tuple[bool, ...]
    offsets: tuple[int, ...]
    heights: tuple[int, int]
    price: int
    is_proven: bool


def spread(
    problem: arena.Problem, prices: Prices, capacities: tuple[int, int], nodes: int = NODES
) -> Spread | None:
    """The cheapest placement within both capacities (bytes), or the best that was found; None for none."""
    best: Spread | None = None
    for order in _orders(problem, prices):
        found = _one_by_one(problem, prices, capacities, order)
        if found is not None and (best is None or found.price < best.price):
            best = found
    for share in _TIGHTER:
        search = _Search(problem, prices, capacities, share, nodes, best)
        best, is_complete = search.run()
        if share == 1.0 and is_complete:
            return best and replace(best, is_proven=True)
    return best


def _orders(problem: arena.Problem, prices: Prices) -> list[list[int]]:
    """Orders of the items: by what the choice of the memory is worth, by that per byte, and by size."""

    def worth(i: int) -> int:
        return abs(prices[i][0] - prices[i][1])

    items, sizes = range(len(prices)), problem.sizes
    keys = (worth, lambda i: worth(i) / max(1, sizes[i]), lambda i: sizes[i])
    return [sorted(items, key=lambda i: (-key(i), i)) for key in keys]


def _one_by_one(
    problem: arena.Problem, prices: Prices, capacities: tuple[int, int], order: Sequence[int]
) -> Spread | None:
    """Each item in the cheaper memory if it fits there with what is there already, else in the other."""
    inside: tuple[list[int], list[int]] = ([], [])
    placed = [arena.Solution((), 0), arena.Solution((), 0)]
    for item in order:
        first, second = prices[item]
        for memory in (0, 1) if first <= second else (1, 0):
            tried = sorted([*inside[memory], item])
            found = greedy.solve(part(problem, tried), enough=capacities[memory])
            if found.height <= capacities[memory]:
                inside[memory][:], placed[memory] = tried, found
                break
        else:
            return None
    return _joined(problem, prices, inside, placed)


def part(problem: arena.Problem, inside: Sequence[int]) -> arena.Problem:
    """Some of the items as a problem of their own, in this order."""
    at = {i: k for k, i in enumerate(inside)}
    kept = tuple(
        p._replace(output=at[p.output], input=at[p.input])
        for p in problem.permissions
        if p.output in at and p.input in at
    )
    return arena.Problem(tuple(problem.items[i] for i in inside), kept)


def _joined(
    problem: arena.Problem,
    prices: Prices,
    inside: Sequence[Sequence[int]],
    placed: Sequence[arena.Solution],
) -> Spread:
    """The placements of both memories as one."""
    second, offsets = [False] * len(problem.items), [0] * len(problem.items)
    for memory in (0, 1):
        for item, offset in zip(inside[memory], placed[memory].offsets, strict=True):
            second[item], offsets[item] = bool(memory), offset
    price = sum(prices[item][memory] for item, memory in enumerate(second))
    return Spread(tuple(second), tuple(offsets), (placed[0].height, placed[1].height), price, False)


class _Search:
    """Depth first, with the capacities that are aimed at as a bound on what is live at once."""

    def __init__(
        self,
        problem: arena.Problem,
        prices: Prices,
        capacities: tuple[int, int],
        share: float,
        nodes: int,
        best: Spread | None,
    ) -> None:
        self.problem, self.prices, self.capacities, self.best = problem, prices, capacities, best
        self.aims = tuple(int(capacity * share) for capacity in capacities)
        self.nodes, self.placements, self.is_complete = nodes, PLACEMENTS if share == 1.0 else 1, True
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

    def run(self) -> tuple[Spread | None, bool]:
        """The best choice, and whether every other one was looked at."""
        self._decide(0, 0)
        return self.best, self.is_complete

    def _decide(self, depth: int, price: int) -> None:
        if self.best is not None and price + self.rest[depth] >= self.best.price:
            return
        if depth == len(self.order):
            self._place()
            return
        item = self.order[depth]
        first, second = self.prices[item]
        for memory in (0, 1) if first <= second else (1, 0):
            if self.nodes <= 0 or self.placements <= 0:
                self.is_complete = False
                return
            self.nodes -= 1
            self._put(item, memory, 1)
            if int(self.live[memory].max(initial=0)) <= self.aims[memory]:
                self._decide(depth + 1, price + self.prices[item][memory])
            self._put(item, memory, -1)

    def _put(self, item: int, memory: int, sign: int) -> None:
        """Puts an item into a memory (1) or takes it out again (-1).

        Of two that may lie on each other the smaller one is not counted while both live: it may cost nothing.
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
        """Takes the choice where both memories hold what is in them."""
        self.placements -= 1
        inside = [[i for i, chosen in enumerate(self.chosen) if chosen == memory] for memory in (0, 1)]
        placed = list[arena.Solution]()
        for memory in (0, 1):
            found = self._placed(inside[memory], self.capacities[memory])
            if found is None:
                return
            placed.append(found)
        self.best = _joined(self.problem, self.prices, inside, placed)

    def _placed(self, inside: Sequence[int], capacity: int) -> arena.Solution | None:
        """These items alone in a memory; None where no placement is found, which may be for a limit."""
        if not inside:
            return arena.Solution((), 0)
        alone = part(self.problem, inside)
        quick = greedy.solve(alone)
        if quick.height <= capacity:
            return quick
        try:
            result = decide(alone, capacity, DECIDE_NODES)
        except UnsupportedError:
            self.is_complete = False
            return None
        if result.solution is None and result.status is not Status.INFEASIBLE:
            self.is_complete = False
        return result.solution
