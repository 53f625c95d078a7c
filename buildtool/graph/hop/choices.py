"""What may be kept from hop to hop: choices from the least work to the least memory.

Keeping rows costs memory, and computing them anew costs work. From the choice that keeps all rows that are
read again, rows are given up step by step, those first that add the least work for each byte that they free.
Choices that were compared on the way count, too.
A tensor may keep the rows that each span of reads needs, or only those near the window's end, or none.
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
    """How many spans each tensor keeps, the last ones first, and which poolings keep no sums."""

    spans: Mapping[int, int] = field(default_factory=dict)
    without_sums: frozenset[int] = frozenset()

    def choose(self, t: int, wanted: Spans) -> int | None:
        """The first row that is kept of a tensor (see `needs.Choose`)."""
        count = self.spans.get(t, len(wanted))
        return wanted[-min(count, len(wanted))][0] if count else None

    def needs(self, analysis: Analysis) -> Needs:
        """What a hop computes and keeps with this choice."""
        return find_needs(analysis, self.choose, lambda position: position not in self.without_sums)

    def lower(self, needs: Needs) -> Iterator[tuple[int, _Levels]]:
        """Yields (key, choice) for every choice that keeps less of one tensor or pooling.

        The rows of other tensors that are then read again are kept, or are computed anew as well.
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
    """Returns choices of what is kept, each with more work and less memory than the one before."""
    levels = _Levels()
    needs = levels.needs(analysis)
    nothing = _Levels(dict.fromkeys(analysis.moments, 0), frozenset(needs.sums))  # but the input's rows
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
    """The choice that keeps less and adds the least work for each byte that it frees.

    None if no choice frees any bytes.
    """
    best, least = None, (math.inf, 0)
    for key, lower, after in tried:
        freed = needs.state_bytes - after.state_bytes
        price = ((after.work - needs.work) / freed if freed > 0 else math.inf, key)
        if freed > 0 and (best is None or price < least):
            best, least = (lower, after), price
    return best
