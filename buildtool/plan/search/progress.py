"""How far a block has come when each row of its input is made: this decides how long its ring has to be.

A ring is filled some rows at a time. While rows from x on are made, it has to hold all from the lowest
one that is still read by then; the block that reads it goes on to its next rows only when all that
they need is there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buildtool.plan.schedule.branches import INPUT, Progress
from buildtool.plan.search.sections import Section
from buildtool.plan.search.tables import BlockForm, Tables


class BlockProgress(NamedTuple):
    """By row of a block's input: rows of its output that are made before it; the lowest row still read."""

    made: tuple[int, ...]
    low: tuple[int, ...]


class ProgressTable:
    """The progress of all blocks; made when they are first asked for."""

    def __init__(self, tables: Tables) -> None:
        self.t = tables
        self._found: dict[tuple[int, int, int], BlockProgress] = {}

    def of(self, block_form: BlockForm) -> BlockProgress:
        """How far a block has come, by row of its input."""
        key = (block_form.first, block_form.block.last, block_form.step)
        if key not in self._found:
            section = block_form.block.section
            tall = self.t.sources[block_form.first].rows
            self._found[key] = self._chain(block_form, tall) if section is None else _section(section, tall)
        return self._found[key]

    def _chain(self, block_form: BlockForm, tall: int) -> BlockProgress:
        height, axis = self.t.e.heights[block_form.block.last], block_form.axis
        begin = np.arange(0, height, block_form.step)
        needed = np.clip(axis.highs(np.minimum(begin + block_form.step, height)), 0, tall)
        pending = np.searchsorted(needed, np.arange(tall), side="right")
        made = np.append(begin, height)[pending]
        low = np.where(pending < len(begin), np.maximum(0, axis.lows(made)), tall)
        return BlockProgress(tuple(made.tolist()), tuple(low.tolist()))

    def asked(self, block_form: BlockForm, made: int) -> int:
        """Rows of a block's input that it asks for to make so many rows."""
        if block_form.block.section is not None:
            return block_form.block.section.lanes.wanted(made)[-1]
        return min(self.t.sources[block_form.first].rows, max(0, block_form.axis.high(made)))

    def least_rows(self, block_form: BlockForm, step: int) -> int:
        """Rows that a ring at a block's input has at the least, filled `step` rows at a time."""
        made = min(self.t.least_wanted[block_form.block.last + 1], self.t.e.heights[block_form.block.last])
        return held(self.of(block_form).low, step, self.asked(block_form, made))


def _section(section: Section, tall: int) -> BlockProgress:
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
    return BlockProgress((*made, *[progress.made[-1]] * rest), (*low, *[tall] * rest))


def held(low: tuple[int, ...], step: int, asked: int) -> int:
    """Rows of a ring of which `asked` are asked for, `step` at a time; `low`: the lowest still read."""
    most, height = 0, len(low)
    # A plain loop: `max` over a generator takes four times as long, and searches ask this most.
    for x, lowest in zip(range(0, asked, step), low[:asked:step], strict=True):
        rows = (x + step if x + step < height else height) - (lowest if lowest < x else x)
        most = rows if rows > most else most
    return most
