"""greedy.c in Python: placements in given orders, and in variations of the best one."""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.plan.place.greedy import FITS, Found, Task
from buildtool.plan.place.solver import choice, following

SEED = 0x2545F491  # of the variations' generator
ANY_HEIGHT = 1 << 62  # no limit


class PythonRuns:
    """Does what `greedy.best` does."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._sizes: list[int] = task.size.tolist()
        self._alignments: list[int] = task.alignment.tolist()
        self._pinned: list[int] = task.pinned.tolist()
        start, neighbour = task.start.tolist(), task.neighbour.tolist()
        self._links = []
        for below, above in zip(task.below.tolist(), task.above.tolist(), strict=True):
            rows = list(zip(neighbour, below, above, strict=True))
            self._links.append([rows[start[i] : start[i + 1]] for i in range(len(self._sizes))])

    def best(self) -> Found:
        """Returns the lowest placement."""
        task, best, height = self._task, list(self._pinned), ANY_HEIGHT
        chosen: tuple[list[int], bool, int] = ([], False, 0)
        for order in task.order.tolist():
            for tightest in FITS:
                for way in range(len(self._links)):
                    most = height if height == ANY_HEIGHT else height - 1
                    offsets = self._place(order, tightest, way, list(self._pinned), most)
                    if offsets is None:
                        continue
                    reached = self._height(offsets)
                    if reached < height:  # pinned items may be as high
                        best, height, chosen = offsets, reached, (order, tightest, way)
                    if height <= task.least:
                        return best, height, chosen[2]
        return self._vary(*chosen, best, height)

    def _height(self, offsets: Sequence[int]) -> int:
        return max(o + s for o, s in zip(offsets, self._sizes, strict=True))

    def _place(
        self, order: Sequence[int], tightest: bool, way: int, offsets: list[int], most: int
    ) -> list[int] | None:
        """Places the items without an offset (-1) in `order`. None where an item would end above `most`."""
        links, find = self._links[way], _find_best_gap if tightest else _find_first_gap
        for i in order:
            if offsets[i] < 0:
                forbidden = [
                    (offset - below, offset + above)
                    for other, below, above in links[i]
                    if (offset := offsets[other]) >= 0
                ]
                forbidden.sort()
                offsets[i] = find(forbidden, self._alignments[i])
                if offsets[i] + self._sizes[i] > most:
                    return None
        return offsets

    def _vary(self, order: list[int], tightest: bool, way: int, best: list[int], lowest: int) -> Found:
        """Varies an order: an item at the top, or one that it collides with, moves forward.

        A variation that is not higher than the current one replaces it. Higher ones are stopped early.
        """
        current, top, state = best, lowest, SEED
        for _ in range(self._task.variations):
            if lowest <= self._task.least:
                break
            peaks = [i for i in order if current[i] + self._sizes[i] == top]
            state, pick = _step(state, len(peaks))
            near = [peaks[pick], *(other for other, _, _ in self._links[way][peaks[pick]])]
            state, pick = _step(state, len(near))
            state, place = _step(state, max(order.index(near[pick]), 1))
            varied = [i for i in order if i != near[pick]]
            varied.insert(place, near[pick])
            start = list(self._pinned)
            for i in varied[:place]:
                start[i] = current[i]
            offsets = self._place(varied, tightest, way, start, top)
            if offsets is not None:
                order, current, top = varied, offsets, self._height(offsets)
                if top < lowest:
                    best, lowest = current, top
        return best, lowest, way


def _find_first_gap(forbidden: Sequence[tuple[int, int]], alignment: int) -> int:
    """Returns the lowest offset outside the open intervals, which are in ascending order."""
    offset = 0
    for low, high in forbidden:
        if offset <= low:
            return offset
        if offset < high:
            offset = -(-high // alignment) * alignment
    return offset


def _find_best_gap(forbidden: Sequence[tuple[int, int]], alignment: int) -> int:
    """Returns the offset in the tightest gap, or above all intervals."""
    offset, tightest, chosen = 0, -1, -1
    for low, high in forbidden:
        if offset <= low and (chosen < 0 or low - offset < tightest):
            tightest, chosen = low - offset, offset
        if offset < high:
            offset = -(-high // alignment) * alignment
    return offset if chosen < 0 else chosen


def _step(state: int, choices: int) -> tuple[int, int]:
    """Returns the generator's next state, and a choice."""
    state = following(state)
    return state, choice(state, choices)
