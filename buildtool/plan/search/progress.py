"""Where a block stands while each row of its input is made: what decides how long its ring has to be.

A ring is filled some rows at a time. While rows from x on are made, it has to hold all from the lowest
one that is still read by then; the block that reads it goes on to its next rows only when all that
they need is there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buildtool.plan.schedule.branches import INPUT, Progress
from buildtool.plan.search.sections import Section
from buildtool.plan.search.tables import Entry, Tables


class Stand(NamedTuple):
    """By row of a block's input: rows of its output that are made before it; the lowest row still read."""

    made: tuple[int, ...]
    low: tuple[int, ...]


class Stands:
    """The stands of all blocks; made when they are first asked for."""

    def __init__(self, tables: Tables) -> None:
        self.t = tables
        self._found: dict[tuple[int, int, int], Stand] = {}

    def of(self, entry: Entry) -> Stand:
        """Where the block of an entry stands."""
        key = (entry.first, entry.block.last, entry.step)
        if key not in self._found:
            section = entry.block.section
            tall = self.t.sources[entry.first].rows
            self._found[key] = self._chain(entry, tall) if section is None else _section(section, tall)
        return self._found[key]

    def _chain(self, entry: Entry, tall: int) -> Stand:
        height, axis = self.t.e.heights[entry.block.last], entry.axis
        begin = np.arange(0, height, entry.step)
        needed = np.clip(axis.high(1) + (np.minimum(begin + entry.step, height) - 1) * axis.stride, 0, tall)
        pending = np.searchsorted(needed, np.arange(tall), side="right")
        made = np.append(begin, height)[pending]
        low = np.where(pending < len(begin), np.maximum(0, made * axis.stride - axis.pad), tall)
        return Stand(tuple(made.tolist()), tuple(low.tolist()))

    def asked(self, entry: Entry, made: int) -> int:
        """Rows of a block's input that it asks for to make so many rows."""
        if entry.block.section is not None:
            return entry.block.section.lanes.wanted(made)[-1]
        return min(self.t.sources[entry.first].rows, max(0, entry.axis.high(made)))

    def least_rows(self, entry: Entry, step: int) -> int:
        """Rows that a ring at a block's input has at the least, filled `step` rows at a time."""
        made = min(self.t.least_wanted[entry.block.last + 1], self.t.e.heights[entry.block.last])
        return held(self.of(entry).low, step, self.asked(entry, made))


def _section(section: Section, tall: int) -> Stand:
    """As the section runs; rows that it leaves out count as read."""
    progress = Progress(section.lanes)
    made: list[int] = []
    low: list[int] = []
    while progress.made[-1] < section.lanes.lanes[-1].height:
        at = progress.made[-1], progress.lowest(INPUT, tall)
        more = max(0, progress.ask() - len(made))
        made += [at[0]] * more
        low += [at[1]] * more
        for _ in progress.advance():
            pass
    rest = tall - len(made)
    return Stand((*made, *[progress.made[-1]] * rest), (*low, *[tall] * rest))


def held(low: tuple[int, ...], step: int, asked: int) -> int:
    """Rows of a ring of which `asked` are asked for, `step` at a time; `low`: the lowest still read."""
    begins = range(0, asked, step)
    return max((min(x + step, len(low)) - min(x, low[x]) for x in begins), default=0)
