"""What the calls of chains in a streamed region cost, asked for by all the blocks that end alike.

Most of what is asked was asked before: see CallCosts, by whose numbers parts are known here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from buildtool.plan.schedule.calls import gained, in_steps
from buildtool.plan.search.chain import Elements
from buildtool.target.costs import Rings


class ChainCosts:
    """The costs of chains; `lowest`: last element -> the first element of the longest one that ends there."""

    def __init__(self, e: Elements, lowest: Sequence[int]) -> None:
        self._e, self._lowest = e, lowest
        self._calls = e.model.calls
        self._chains: dict[tuple[int, int, int, int], list[float]] = {}
        self._rows: dict[tuple[int, int, int], list[int]] = {}
        self._columns: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def of(self, last: int, step: int, pixels: int, made: int) -> list[float]:
        """By how many elements before the last one a chain begins: its cost, deliveries not counted.

        The first element reads whole rows, the others what windows keep of them.
        """
        key = (last, step, pixels, made)
        if key not in self._chains:
            rows, columns = self._row_parts(last, step, made), self._column_parts(last, pixels)
            found, after = list[float](), 0.0
            for i, (own, (first, later)) in enumerate(zip(rows, columns, strict=True)):
                position = self._e.positions[last - i]
                found.append(after + self._calls.cost(position, own, first))
                if i + 1 < len(rows):
                    after += self._calls.cost(position, own, later)
            self._chains[key] = found
        return self._chains[key]

    def _row_parts(self, last: int, step: int, made: int) -> list[int]:
        """Of a chain's elements, last to first: the rows of their calls (see CallCosts)."""
        key = (last, step, made)
        if key not in self._rows:
            ranges, found = in_steps(made, step), list[int]()
            for e in range(last, self._lowest[last] - 1, -1):
                found.append(self._calls.parts(self._e.positions[e], 0, ranges.without_empty()))
                if e:
                    ranges = ranges.read(self._e.axes_of[e][0], self._e.heights[e - 1])
            self._rows[key] = found
        return self._rows[key]

    def _column_parts(self, last: int, pixels: int) -> list[tuple[int, int]]:
        """Of a chain's elements, last to first: the columns of their calls, as the first one and as a later.

        The first hand-offs are those of the longest chain: shorter ones do nothing in some of them.
        """
        key = (last, pixels)
        if key not in self._columns:
            width = self._e.widths[last]
            ends = np.arange(-self._ahead(last, pixels) * pixels, width, pixels or width) + (pixels or width)
            ends, found, kept, each = np.minimum(ends, width), list[tuple[int, int]](), 0, pixels
            for e in range(last, self._lowest[last] - 1, -1):
                ranges, axis, position = (
                    gained(ends).without_empty(),
                    self._e.axes_of[e][1],
                    self._e.positions[e],
                )
                first = later = self._calls.parts(position, 1, ranges, Rings(0, kept))
                if e:
                    each *= axis.stride
                    before = min(self._e.widths[e - 1], each + axis.kernel - axis.stride) if pixels else 0
                    if before:
                        later = self._calls.parts(position, 1, ranges, Rings(before, kept))
                    kept = before
                    ends = np.minimum(self._e.widths[e - 1], axis.highs(ends))
                found.append((first, later))
            self._columns[key] = found
        return self._columns[key]

    def _ahead(self, last: int, pixels: int) -> int:
        """Hand-offs before the last element's first columns: see schedule.first_column."""
        ahead, stride, begun = 0, 1, 0  # `begun`: columns made when the last element has made none
        for e in range(last, self._lowest[last], -1):
            axis = self._e.axes_of[e][1]
            stride, begun = stride * axis.stride, axis.high(begun)
            ahead = max(ahead, -(-begun // (stride * pixels)) if pixels else 0)
        return ahead
