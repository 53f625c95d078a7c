"""Choices of what a network on a sliding window keeps from hop to hop, from least work to least memory.

Keeping rows costs memory, and computing them again costs work. The search begins with the choice that keeps
every row that is read again. Step by step it gives up rows: those first that add the least work for each byte
that they free. All choices that a step compares are candidates for the result.

The rows of a tensor that are read again form spans of neighbouring rows. A ring keeps all rows from the first
row of a span on. So a tensor keeps all of its spans, or only the last ones, or none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from buildtool.base.distinct import undominated
from buildtool.graph.hop.moments import Analysis
from buildtool.graph.hop.needs import Needs, find_needs
from buildtool.graph.hop.spans import Spans

MOST_STEPS = 400


@dataclass(frozen=True)
class _Levels:
    """A choice of what is kept.

    `spans`: how many spans of a tensor are kept, counted from the last one. A tensor that is missing keeps
    all.
    `without_sums`: positions of the poolings that keep no sums.
    """

    spans: Mapping[int, int] = field(default_factory=dict)
    without_sums: frozenset[int] = frozenset()

    def choose(self, t: int, wanted: Spans) -> int | None:
        """Returns the first row that tensor `t` keeps, None if it keeps none (see `needs.Choose`)."""
        count = self.spans.get(t, len(wanted))
        return wanted[-min(count, len(wanted))][0] if count else None

    def needs(self, analysis: Analysis) -> Needs:
        """Returns what a hop computes and keeps with this choice."""
        return find_needs(analysis, self.choose, lambda position: position not in self.without_sums)

    def lower(self, needs: Needs) -> Iterator[tuple[int, _Levels]]:
        """Yields (key, choice) for every choice that keeps less of one tensor or pooling.

        The key is unique: t for a tensor, -1 - position for a pooling. Each of them comes twice. If less is
        kept, further rows of other tensors are read again. In the first choice, tensors that keep no rows now
        may keep these rows; in the second one, they still keep none. `needs`: what a hop needs with the
        present choice.
        """
        none = {t: 0 for t in needs.analysis.moments if t not in needs.kept}
        for spans in (self.spans, {**none, **self.spans}):
            for t, (first, _) in needs.kept.items():
                if t != needs.analysis.input:
                    count = sum(1 for low, _ in needs.wanted[t] if low >= first)
                    yield t, _Levels({**spans, t: count - 1}, self.without_sums)
            for position in needs.sums:
                yield -1 - position, _Levels(spans, self.without_sums | {position})


def keep_all(analysis: Analysis) -> Needs:
    """Returns the choice with the least work: all rows that are read again are kept."""
    return _Levels().needs(analysis)


def choices(analysis: Analysis) -> list[Needs]:
    """Returns the Pareto front of work and memory: the choices that no other choice beats in both.

    They are in ascending order of work.
    """
    levels = _Levels()
    needs = levels.needs(analysis)
    nothing = _Levels(
        dict.fromkeys(analysis.moments, 0), frozenset(needs.sums)
    )  # the input's rows are always kept
    found = [needs, nothing.needs(analysis)]
    for _ in range(MOST_STEPS):
        tried = [(key, lower, lower.needs(analysis)) for key, lower in levels.lower(needs)]
        found += [after for _, _, after in tried]
        step = _cheapest(tried, needs)
        if step is None:
            break
        levels, needs = step
    return undominated(found, lambda one: (one.work, one.state_bytes))


def _cheapest(tried: Sequence[tuple[int, _Levels, Needs]], needs: Needs) -> tuple[_Levels, Needs] | None:
    """Returns the choice among `tried` that adds the least work for each byte that it frees.

    Both are compared to `needs`. Returns None if no choice frees any bytes.
    """
    best, least = None, (math.inf, 0)
    for key, lower, after in tried:
        freed = needs.state_bytes - after.state_bytes
        price = ((after.work - needs.work) / freed if freed > 0 else math.inf, key)
        if freed > 0 and (best is None or price < least):
            best, least = (lower, after), price
    return best
