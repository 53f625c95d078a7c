"""What holds at the cuts inside of regions, whatever the limit of bytes: least rings, and the blocks between.

All searches in the same tables share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from buildtool.base.modes import InPlace
from buildtool.base.remembered import remembered
from buildtool.plan.place.arena import round_up
from buildtool.plan.search.blocks import WHOLE
from buildtool.plan.search.columns import Numbers, columns
from buildtool.plan.search.progress import ProgressTable
from buildtool.plan.search.tables import BlockForm, Tables


@dataclass(frozen=True)
class Begun:
    """Blocks that end at a cut as the first of a region: `plain` with the ring at the cut, no windows.

    `under`: bytes of the region's input that its output may lie over.
    """

    under: int
    first: Numbers
    extra: Numbers
    plain: Numbers
    windowed: Numbers


@dataclass(frozen=True)
class Continued:
    """Blocks from one cut to another inside of a region: what comes on top of the stairs at the first."""

    first: int
    extra: Numbers
    more: Numbers
    window: Numbers


class Cuts:
    """The least that a ring at a cut needs, and the blocks that end there; made when first asked for."""

    def __init__(self, tables: Tables) -> None:
        self.t = tables
        self.progress = ProgressTable(tables)
        self._growths: dict[tuple[int, int, int], tuple[int, int]] = {}

    @cached_property
    def _steps(self) -> list[list[int]]:
        """Last element -> rows in one go of the blocks that end there."""
        return [sorted({block_form.step for block_form in ending}) for ending in self.t.block_forms]

    @cached_property
    def _readers(self) -> dict[int, dict[tuple[int, int], BlockForm]]:
        """Cut -> the blocks that begin there."""
        found: dict[int, dict[tuple[int, int], BlockForm]] = {}
        for ending in self.t.block_forms:
            for form in ending:
                found.setdefault(form.first, {})[form.block.last, form.step] = form
        return found

    @cached_property
    def columns(self) -> tuple[Numbers, ...]:
        """The tables as C reads them."""
        return columns(self.t)

    @remembered
    def blocks(self, cut: int) -> tuple[list[Begun], list[Continued]]:
        """The blocks that end at a cut: as the first of a region, and behind others."""
        return self._begun(cut), self._continued(cut)

    def growth(self, block_form: BlockForm) -> tuple[int, int]:
        """Least bytes of the ring that a block reads, and by how much at the least they exceed the base's."""
        key = (block_form.first, block_form.block.last, block_form.step)
        if key not in self._growths:
            bases = self._base(block_form.first)
            ring = {step: self._ring(block_form, step) for step in bases}
            self._growths[key] = min(ring.values()), min(ring[step] - bases[step] for step in bases)
        return self._growths[key]

    def _ring(self, block_form: BlockForm, step: int) -> int:
        """Least bytes of the ring at a block's input, filled `step` rows at a time."""
        height, row = self.t.rows[block_form.first - 1]
        rows = max(
            self.progress.least_rows(block_form, step), min(height, self.t.least_rows[block_form.first])
        )
        return round_up(rows * row, self.t.e.alignment)

    @remembered
    def _base(self, cut: int) -> dict[int, int]:
        """By rows in one go: least bytes of the ring at a cut, whatever block reads it."""
        readers = self._readers.get(cut, {}).values()
        return {
            step: min((self._ring(reader, step) for reader in readers), default=0)
            for step in self._steps[cut - 1]
        }

    def _begun(self, cut: int) -> list[Begun]:
        rows: dict[int, list[tuple[int, int, int, int]]] = {}
        base = self._base(cut)
        for block_form in self.t.block_forms[cut - 1]:
            source = self.t.sources[block_form.first]
            held = source.size
            if source.streamed:
                held = round_up(self.progress.least_rows(block_form, 1) * source.row, self.t.e.alignment)
            plain = (
                self.t.live[block_form.first] - source.size + held + block_form.sums + base[block_form.step]
            )
            apart = source.streamed or self.t.e.in_place != InPlace.ROWS or source.last >= self.t.count
            row = (block_form.first, block_form.least_extra, plain, plain + block_form.window)
            rows.setdefault(0 if apart else source.size, []).append(row)
        return [Begun(under, *np.array(found, np.int64).T) for under, found in rows.items()]

    def _continued(self, cut: int) -> list[Continued]:
        rows: dict[int, list[tuple[int, int, int]]] = {}
        base = self._base(cut)
        for block_form in self.t.block_forms[cut - 1]:
            if not block_form.first or not self.t.e.feeds[block_form.first - 1]:
                continue
            tensor = self.t.e.makes[block_form.first - 1]
            if all(t != tensor or lag < WHOLE for t, lag in block_form.lags):
                more = self.growth(block_form)[1] + block_form.sums + base[block_form.step]
                rows.setdefault(block_form.first, []).append(
                    (block_form.least_extra, more, block_form.window)
                )
        return [Continued(first, *np.array(found, np.int64).T) for first, found in rows.items()]
