"""Regions that end at a cut within a limit of bytes: the search of labels.c in Python, label for label.

A label is a partial region, from some boundary to its end: bytes of the rings so far, the largest of
the blocks' windows, the weight so far. A label also has the rows that it
still needs from the producer before it: rows of the boundary's tensor, and, when each of them is made, the
lowest rows of it and of the tensors of residuals that are still to be read. Labels that need the same rows
compete: one that is no better in anything than another is dropped. The next label to
be continued is the one whose weight is least, with the least that everything before it can cost (see
`LowerBounds`) added; so the first region that is no dearer than all labels left is the best.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from buildtool.base.distinct import distinct
from buildtool.base.modes import InPlace
from buildtool.base.session import remembered
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.receptive import accumulates, through
from buildtool.plan.search.blocks import WHOLE, Block
from buildtool.plan.search.columns import Columns, Numbers
from buildtool.plan.search.regions import INFINITE, Reached, Weights
from buildtool.plan.search.sections import NEVER, BlockProgress, section_progress
from buildtool.plan.search.tables import BlockForm, Tables

MOST_STAIRS = 32  # of a cut: beyond it two become one that is below both, which keeps a search's step short
RowProfile = tuple[int, ...]


class Links(NamedTuple):
    """Blocks of a partial region, first to last, by the numbers of their forms."""

    form: int
    rest: Links | None


class Beside(NamedTuple):
    """A tensor that a partial region reads besides its input.

    `whole`: no ring can be kept of it; `lows`: profile of the first byte of it still to be read, by row of
    the region's output; `at`: of its lowest row still to be read, by row of the boundary's tensor.
    """

    tensor: int
    whole: bool
    lows: int
    at: int


class Label(NamedTuple):
    """A partial region from `boundary` on: its memory, and the rows it still needs from its producer."""

    boundary: int
    weight: int
    rings: int
    window: int
    low: int  # profile of the lowest row of the boundary's tensor that is still read, by its rows
    wanted: int  # rows of it in all
    asked: int  # profile of the rows that are there when a row of the region's output is written
    beside: tuple[Beside, ...]  # by tensor
    links: Links | None


class RegionSearch:
    """Regions that end at one cut, within a limit of bytes."""

    def __init__(self, tables: Tables, lower_bounds: LowerBounds, end: int) -> None:
        self.t, self.lower_bounds, self.end = tables, lower_bounds, end
        self.result, self.held = tables.sizes[end - 1], tables.held[end]
        self.weight = INFINITE  # of the best way to the cut
        self._best = (-1, 0, 0)  # its last region: first element, bytes, weight beyond the elements' own
        self._links: Links | None = None
        self.labels = 1  # that were made, the empty one at the region's end among them
        self._heap: list[tuple[int, int, int, int, Label]] = []
        self._seen: dict[tuple[int, int, tuple[int, ...]], list[Label]] = {}
        self.profiles = RowProfiles(tables, end)
        self._saved: dict[tuple[int, int], int] = {}
        self._serial = 0

    def run(self, enough: int, most_labels: int = INFINITE) -> Reached:
        """Finds the best way; stops at once at one of weight `enough`, which nothing can be below.

        `most_labels`: labels after which it is ended with the best way so far.
        """
        alone = self.end - 1
        best, limit = self.lower_bounds.best, self.lower_bounds.limit
        if self.t.wholes[alone] <= self.lower_bounds.most_bytes and best[alone] <= limit:
            self.weight = best[alone]
            self._best = alone, self.t.wholes[alone], 0
        if self.weight <= enough:
            return self._reached(self.weight)
        self.lower_bounds.refresh(self.end)
        asked = self.profiles.at_the_end()
        self._expand(Label(self.end, 0, 0, 0, -1, self.t.e.heights[alone], asked, (), None))
        while self._heap and self.weight > enough and self._heap[0][0] < self.weight:
            if self.labels >= most_labels:
                break
            label = heapq.heappop(self._heap)[-1]
            if any(label is rival for rival in self._rivals(label)):  # else a better one has come since
                self._expand(label)
        ended = self._heap and self.weight > enough
        return self._reached(min(self.weight, self._heap[0][0]) if ended else self.weight)

    def _reached(self, least: int) -> Reached:
        forms, links = [], self._links
        while links is not None:
            forms.append(links.form)
            links = links.rest
        return Reached(self.weight, least, self.labels, *self._best, tuple(forms))

    def _expand(self, label: Label) -> None:
        """Puts every block before a partial region: completes it there, and goes on from there."""
        most, limit = self.lower_bounds.most_bytes, self.lower_bounds.limit
        lowest = self.t.lowest_first[self.end]
        height = self.t.e.heights[label.boundary - 1]
        rings_by_step: dict[int, int] = {}
        forms = self.t.block_forms[label.boundary - 1]
        for number, block_form in enumerate(forms, self.t.starts[label.boundary - 1]):
            block = block_form.block
            if block.first < lowest:
                continue
            if block.step not in rings_by_step:
                rings_by_step[block.step] = label.rings + self._ring(label, block.step)
            rings = rings_by_step[block.step] + block.sums
            window = max(label.window, block_form.form.window)
            extra = block_form.extra
            if label.wanted < height:
                extra = self.t.extra(block, block_form.form, label.wanted)
            weight = label.weight + extra
            if rings + window + self.held > most or weight > limit:
                continue
            links = Links(number, label.links)
            grown = label._replace(
                boundary=block.first, weight=weight, rings=rings, window=window, links=links
            )
            self._complete(block_form, label, grown)
            self._continue(block_form, label, grown)

    def _ring(self, label: Label, step: int) -> int:
        """Aligned bytes of the ring at a label's boundary, filled `step` rows at a time."""
        if label.boundary == self.end:
            return 0
        tensor, low = self.t.e.makes[label.boundary - 1], label.low
        for beside in label.beside:
            if beside.tensor == tensor:
                low = self.profiles.lower(low, beside.at)
        _, row = self.t.rows[label.boundary - 1]
        return round_up(self.profiles.held(low, step, label.wanted) * row, self.t.e.alignment)

    def _complete(self, block_form: BlockForm, after: Label, grown: Label) -> None:
        """The region that begins with this block, if it is the best so far."""
        block = block_form.block
        total = self.lower_bounds.best[block.first] + grown.weight
        if total >= self.weight or total > self.lower_bounds.limit:
            return
        source = self.t.sources[block.first]
        need = self._delivered(block, after) if source.streamed else 0
        size = grown.rings + grown.window + self._crossing(block.first, need)
        if self.profiles.follows and not source.streamed and source.last < self.end:
            if size - min(source.size, self.result) > self.lower_bounds.most_bytes:
                return
            size -= self._overlap(block_form, after)
        if size <= self.lower_bounds.most_bytes:
            self.weight = total
            self._best, self._links = (block.first, size, grown.weight), grown.links

    def _crossing(self, first: int, need: int) -> int:
        """Bytes of a region beside its rings and windows: what crosses it, its input and its output.

        `need`: rows of a streamed input that have to be there at once.
        """
        source = self.t.sources[first]
        held = source.size
        if source.streamed:
            held = round_up(min(source.rows, need) * source.row, self.t.e.alignment)
        return self.t.live[first] - source.size + held + self.result

    def _delivered(self, block: Block, after: Label) -> int:
        """Rows held of a streamed image, which comes row by row, by a region that begins with this block."""
        made = self.profiles.profiles[self.profiles.made(after.asked, block)][-1]
        low = self.profiles.place(self.lower_bounds.cuts.progress.of(block).low)
        return self.profiles.held(low, 1, self.lower_bounds.cuts.progress.asked(block, made))

    def _overlap(self, block_form: BlockForm, after: Label) -> int:
        """Bytes of the region's output that may lie on its input, if the region begins with this block."""
        block = block_form.block
        source = self.t.sources[block.first]
        made = self.profiles.made(after.asked, block)
        lows = self.profiles.reads(made, block_form, block.first, self.t.e.main[block.first])
        for beside in self._beside(block_form, after, made):
            if beside.tensor == source.tensor:
                lows = self.profiles.lower(lows, beside.lows)
        key = (block.first, lows)
        if key not in self._saved:
            self._saved[key] = self.profiles.saved(lows, source.size, self.result)
        return self._saved[key]

    def _continue(self, block_form: BlockForm, after: Label, grown: Label) -> None:
        """Keeps a partial region that may still become the best."""
        block = block_form.block
        first = block.first
        if not first or not self.t.e.feeds[first - 1] or self.t.last_reader[first - 1] >= self.end:
            return
        least = self.lower_bounds.least(block, grown.rings, grown.window, self.result, self.held)
        if least >= INFINITE or grown.weight + least >= self.weight:
            return
        made = self.profiles.made(after.asked, block)
        beside = self._beside(block_form, after, made)
        if any(b.whole and b.tensor == self.t.e.makes[first - 1] for b in beside):
            return
        asked = self.profiles.asked(made, block)
        wanted = self.profiles.profiles[asked][-1]
        low = self.profiles.place(self.lower_bounds.cuts.progress.of(block).low)
        grown = grown._replace(low=low, wanted=wanted, asked=asked, beside=beside)
        if self._keep(grown):
            self.labels += 1
            self._serial += 1
            inside = grown.rings + grown.window
            heapq.heappush(self._heap, (grown.weight + least, first, inside, self._serial, grown))

    def _beside(self, block_form: BlockForm, after: Label, made: int) -> tuple[Beside, ...]:
        """What is read besides by a block that has made rows as marked, and by those after it."""
        block = block_form.block
        if not block.lags and not after.beside:
            return ()
        tensor = self.t.e.makes[block.last]
        progress = self.lower_bounds.cuts.progress.of(block)
        found = {
            b.tensor: b._replace(at=self.profiles.moved(b.at, block, progress))
            for b in after.beside
            if b.tensor != tensor
        }
        lags = dict(block.lags)
        for element, t in block.beside:
            root = self.t.e.roots[t]
            lows, at = (
                self.profiles.reads(made, block_form, element, t),
                self.profiles.added(block, element, progress),
            )
            known = found.get(root, Beside(root, False, lows, at))
            whole = known.whole or lags[root] >= WHOLE
            lows, at = self.profiles.lower(known.lows, lows), self.profiles.lower(known.at, at)
            found[root] = Beside(root, whole, lows, at)
        return tuple(sorted(found.values()))

    def _rivals(self, label: Label) -> list[Label]:
        return self._seen[_key(label)]

    def _keep(self, label: Label) -> bool:
        """False if another label is as good in everything; those that it beats are dropped."""
        key = _key(label)
        rivals = self._seen.setdefault(key, [])
        if any(self._as_good(rival, label) for rival in rivals):
            return False
        self._seen[key] = [rival for rival in rivals if not self._as_good(label, rival)]
        self._seen[key].append(label)
        return True

    def _as_good(self, a: Label, b: Label) -> bool:
        """Whether `a` needs and asks no more than `b`; both read the same tensors besides."""
        return (
            a.weight <= b.weight
            and a.rings <= b.rings
            and a.window <= b.window
            and self.profiles.no_worse(a.low, b.low)
            and self.profiles.no_worse(a.asked, b.asked)
            and all(
                x.whole <= y.whole
                and self.profiles.no_worse(x.lows, y.lows)
                and self.profiles.no_worse(x.at, y.at)
                for x, y in zip(a.beside, b.beside, strict=True)
            )
        )


def _key(label: Label) -> tuple[int, int, tuple[int, ...]]:
    """Labels with the same one compete."""
    return label.boundary, label.wanted, tuple(beside.tensor for beside in label.beside)


class Regions:
    """What `regions.Regions` does."""

    def __init__(self, columns: Columns, limit: int, best: Weights, version: Weights) -> None:
        self._lower_bounds = LowerBounds(Cuts(columns.t), limit, best, version)

    def reach(self, most_bytes: int, round_: int, end: int, enough: int, most_labels: int) -> Reached:
        """The best way to the cut at `end`: see RegionSearch.run."""
        self._lower_bounds.most_bytes, self._lower_bounds.round = most_bytes, round_
        return RegionSearch(self._lower_bounds.t, self._lower_bounds, end).run(enough, most_labels)


# ---- lower bounds ------------------------------------------------------------------------------------
#
# How little the elements before a partial region can cost: lower bounds that tell what is hopeless.
#
# For every cut inside a region: the least weight with which everything before the cut can be run, by the
# bytes that the part of the region before the cut needs, the ring at the cut included. Three things are
# left out, so that the bounds are below the truth: how far open residuals lag (they lag at least as far
# as single rows make them), that windows on both sides of the cut share their memory (each side's is
# counted alone), and how many rows go into a ring at a time beyond what that does to the shortest one.


class Stairs(NamedTuple):
    """With at least `weight`: bytes without windows, and bytes with the largest window.

    By weight, ascending; each needs less of something than the one before it, and no more of anything.
    """

    weight: Numbers
    plain: Numbers
    windowed: Numbers


class CutBounds(NamedTuple):
    """The lower bounds of one cut.

    `under`: bytes of the region's input that its output may lie over; the rest of the output comes on top.
    The bytes are negated, so that they ascend.
    """

    under: int
    stairs: Stairs
    weight: list[int]
    plain: list[int]
    windowed: list[int]


class LowerBounds:
    """Bounds for one limit of bytes; `best`: cut -> least weight beyond the elements' own before it.

    `version`: cut -> the round in which that of any cut before it last rose.

    They are made from the first cut on, and made anew when `best` of a cut before has risen.
    """

    def __init__(self, cuts: Cuts, limit: int, best: Weights, version: Weights) -> None:
        self.t, self.cuts, self.limit = cuts.t, cuts, limit
        self.best, self.version = best, version
        self.most_bytes = 0
        self.round = 0
        self._fresh = self._fresh_round = 0  # the bounds of cuts up to `_fresh` are those of that round
        self._made: list[list[CutBounds]] = [[] for _ in range(self.t.count + 1)]
        self._all: dict[int, tuple[Numbers, Stairs]] = {}  # cut -> all of its stairs, and to what they belong
        self._made_at = [-1] * (self.t.count + 1)

    def least(self, block: Block, rings: int, window: int, result: int, held: int) -> int:
        """Least weight of everything before a block inside a region that needs so much from there on.

        `rings`, `window`: bytes after the cut before the block; `result`: of the region's output;
        `held`: of all that is whole at its end. INFINITE where nothing keeps the limit.
        """
        ring, more = self.cuts.growth(block)
        within = self.most_bytes - rings - more
        best = INFINITE
        if self.most_bytes - rings - ring < window + held:
            return INFINITE
        for bounds in self._made[block.first]:
            room = within - max(0, result - bounds.under)
            at = max(bisect_left(bounds.plain, window - room), bisect_left(bounds.windowed, -room))
            if at < len(bounds.weight) and bounds.weight[at] < best:
                best = bounds.weight[at]
        return best

    def refresh(self, end: int) -> None:
        """Brings the bounds of all cuts before `end` up to what `best` is in this round."""
        if self._fresh_round != self.round:
            self._fresh, self._fresh_round = 0, self.round
        for cut in range(self._fresh + 1, end):
            if self._made_at[cut] < self.version[cut]:
                self._made[cut] = self._make(cut) if self.t.e.feeds[cut - 1] else []
                self._made_at[cut] = self.version[cut]
        self._fresh = max(self._fresh, end - 1)

    def _make(self, cut: int) -> list[CutBounds]:
        begun, continued = self.cuts.blocks(cut)
        parts: list[tuple[Numbers, ...]] = []  # each with how far outputs may lie over inputs, then stairs
        best = np.array(self.best[:cut], np.int64)
        for b in begun:
            under = np.full(len(b.first), b.under)
            self._collect(parts, under, best[b.first] + b.extra, b.plain, b.windowed)
        for c in continued:
            if self._made[c.first]:
                under, before = self._all[c.first]
                plain = before.plain[:, None] + c.more
                windowed = np.maximum(before.windowed[:, None] + c.more, plain + c.window)
                weight = before.weight[:, None] + c.extra
                under = np.repeat(under, len(c.extra))
                self._collect(parts, under, weight.ravel(), plain.ravel(), windowed.ravel())
        if not parts:
            return []
        under, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        found = []
        for most in distinct(under).values.tolist():
            among = under == most
            found.append(_staircase(most, *(column[among] for column in columns)))
        all_stairs = (np.concatenate(column) for column in zip(*(b.stairs for b in found), strict=True))
        sizes = [len(b.weight) for b in found]
        self._all[cut] = np.repeat([b.under for b in found], sizes), Stairs(*all_stairs)
        return found

    def _collect(
        self,
        parts: list[tuple[Numbers, ...]],
        under: Numbers,
        weight: Numbers,
        plain: Numbers,
        windowed: Numbers,
    ) -> None:
        """Adds what keeps the limits."""
        kept = (weight <= self.limit) & (windowed <= self.most_bytes)
        if kept.any():
            parts.append((under[kept], weight[kept], plain[kept], windowed[kept]))


def _staircase(under: int, weight: Numbers, plain: Numbers, windowed: Numbers) -> CutBounds:
    order = np.lexsort((windowed, plain, weight))
    weight = weight[order]
    plain, windowed = np.minimum.accumulate(plain[order]), np.minimum.accumulate(windowed[order])
    last = np.append(weight[1:] != weight[:-1], True)  # of equal weights, which by now has the least of all
    weight, plain, windowed = weight[last], plain[last], windowed[last]
    less = np.append(True, (plain[1:] < plain[:-1]) | (windowed[1:] < windowed[:-1]))
    weight, plain, windowed = weight[less], plain[less], windowed[less]
    while len(weight) > MOST_STAIRS:
        second = np.minimum(np.arange(1, len(weight) + 1, 2), len(weight) - 1)
        weight, plain, windowed = weight[::2], plain[second], windowed[second]
    stairs = Stairs(weight, plain, windowed)
    return CutBounds(under, stairs, weight.tolist(), (-plain).tolist(), (-windowed).tolist())


# ---- cuts --------------------------------------------------------------------------------------------
#
# What holds at the cuts inside of regions, whatever the limit of bytes: least rings, and the blocks between.
#
# All searches in the same tables share it.


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
        self.progress = Progresses(tables)
        self._growths: dict[tuple[int, int, int], tuple[int, int]] = {}

    @cached_property
    def _steps(self) -> list[list[int]]:
        """Last element -> rows in one go of the blocks that end there."""
        return [sorted({form.block.step for form in ending}) for ending in self.t.block_forms]

    @cached_property
    def _readers(self) -> dict[int, dict[tuple[int, int], Block]]:
        """Cut -> the blocks that begin there."""
        found: dict[int, dict[tuple[int, int], Block]] = {}
        for ending in self.t.block_forms:
            for form in ending:
                found.setdefault(form.block.first, {})[form.block.last, form.block.step] = form.block
        return found

    @remembered
    def blocks(self, cut: int) -> tuple[list[Begun], list[Continued]]:
        """The blocks that end at a cut: as the first of a region, and behind others."""
        return self._begun(cut), self._continued(cut)

    def growth(self, block: Block) -> tuple[int, int]:
        """Least bytes of the ring that a block reads, and by how much at the least they exceed the base's."""
        key = (block.first, block.last, block.step)
        if key not in self._growths:
            bases = self._base(block.first)
            ring = {step: self._ring(block, step) for step in bases}
            self._growths[key] = min(ring.values()), min(ring[step] - bases[step] for step in bases)
        return self._growths[key]

    def _ring(self, block: Block, step: int) -> int:
        """Least bytes of the ring at a block's input, filled `step` rows at a time."""
        height, row = self.t.rows[block.first - 1]
        rows = max(self.progress.least_rows(block, step), min(height, self.t.least_rows[block.first]))
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
        for ending in self.t.block_forms[cut - 1]:
            block, window, least_extra = ending.block, ending.window, ending.least_extra
            source = self.t.sources[block.first]
            held = source.size
            if source.streamed:
                held = round_up(self.progress.least_rows(block, 1) * source.row, self.t.e.alignment)
            plain = self.t.live[block.first] - source.size + held + block.sums + base[block.step]
            apart = source.streamed or self.t.e.in_place != InPlace.ROWS or source.last >= self.t.count
            row = (block.first, least_extra, plain, plain + window)
            rows.setdefault(0 if apart else source.size, []).append(row)
        return [Begun(under, *np.array(found, np.int64).T) for under, found in rows.items()]

    def _continued(self, cut: int) -> list[Continued]:
        rows: dict[int, list[tuple[int, int, int]]] = {}
        base = self._base(cut)
        for ending in self.t.block_forms[cut - 1]:
            block, window, least_extra = ending.block, ending.window, ending.least_extra
            if not block.first or not self.t.e.feeds[block.first - 1]:
                continue
            tensor = self.t.e.makes[block.first - 1]
            if all(t != tensor or lag < WHOLE for t, lag in block.lags):
                more = self.growth(block)[1] + block.sums + base[block.step]
                rows.setdefault(block.first, []).append((least_extra, more, window))
        return [Continued(first, *np.array(found, np.int64).T) for first, found in rows.items()]


# ---- progress ----------------------------------------------------------------------------------------
#
# How far a block has come when each row of its input is made: this decides how long its ring has to be.
#
# A ring is filled some rows at a time. While rows from x on are made, it has to hold all from the lowest
# one that is still read by then; the block that reads it goes on to its next rows only when all that
# they need is there.


class Progresses:
    """The progress of all blocks; made when they are first asked for."""

    def __init__(self, tables: Tables) -> None:
        self.t = tables
        self._found: dict[tuple[int, int, int], BlockProgress] = {}

    def of(self, block: Block) -> BlockProgress:
        """How far a block has come, by row of its input."""
        key = (block.first, block.last, block.step)
        if key not in self._found:
            section = block.section
            tall = self.t.sources[block.first].rows
            self._found[key] = (
                self._chain(block, tall) if section is None else section_progress(section, tall)
            )
        return self._found[key]

    def _chain(self, block: Block, tall: int) -> BlockProgress:
        height, axis = self.t.e.heights[block.last], block.axis
        begin = np.arange(0, height, block.step)
        needed = np.clip(axis.highs(np.minimum(begin + block.step, height)), 0, tall)
        pending = np.searchsorted(needed, np.arange(tall), side="right")
        made = np.append(begin, height)[pending]
        low = np.where(pending < len(begin), np.maximum(0, axis.lows(made)), tall)
        return BlockProgress(tuple(made.tolist()), tuple(low.tolist()))

    def asked(self, block: Block, made: int) -> int:
        """Rows of a block's input that it asks for to make so many rows."""
        if block.section is not None:
            return block.section.lanes.wanted(made)[-1]
        return min(self.t.sources[block.first].rows, max(0, block.axis.high(made)))

    def least_rows(self, block: Block, step: int) -> int:
        """Rows that a ring at a block's input has at the least, filled `step` rows at a time."""
        made = min(self.t.least_wanted[block.last + 1], self.t.e.heights[block.last])
        return held(self.of(block).low, step, self.asked(block, made))


def held(low: tuple[int, ...], step: int, asked: int) -> int:
    """Rows of a ring of which `asked` are asked for, `step` at a time; `low`: the lowest still read."""
    most, height = 0, len(low)
    # A plain loop: `max` over a generator takes four times as long, and searches ask this most.
    for x, lowest in zip(range(0, asked, step), low[:asked:step], strict=True):
        rows = (x + step if x + step < height else height) - (lowest if lowest < x else x)
        most = rows if rows > most else most
    return most


# ---- profiles ----------------------------------------------------------------------------------------
#
# How far a region has got when it writes each row of its output, and what the output may then lie on.
#
# A profile has a number for every row of a region's output (of a pooling's: one for all): rows of a tensor
# that are there by then, or the first byte of one that is still to be read. Other profiles have a number for
# every row of a tensor inside: the lowest row of it, or of another one, that is still read while this row
# is made. Profiles are kept once each and are known by their place.


class RowProfiles:
    """The profiles of the regions that end at one cut.

    `follows`: whether the output may lie over rows of the input at all; if not, profiles have one number.
    """

    def __init__(self, tables: Tables, end: int) -> None:
        self.t, self.end = tables, end
        pooling = accumulates(tables.e.graph, tables.e.op(end - 1))
        self.follows = tables.e.in_place == InPlace.ROWS and not pooling
        self.profiles: list[RowProfile] = []
        self._places: dict[RowProfile, int] = {}
        self._made: dict[tuple[int, int, int], int] = {}
        self._asked: dict[tuple[int, int, int], int] = {}
        self._reads: dict[tuple[int, int, int, int, int, int, bool], int] = {}
        self._moved: dict[tuple[int, int, int, int], int] = {}

    def place(self, profile: RowProfile) -> int:
        """Where a profile is kept."""
        found = self._places.setdefault(profile, len(self.profiles))
        if found == len(self.profiles):
            self.profiles.append(profile)
        return found

    def at_the_end(self) -> int:
        """Rows of the output itself."""
        height = self.t.e.heights[self.end - 1]
        return self.place(tuple(range(1, height + 1)) if self.follows else (height,))

    def made(self, asked: int, block: Block) -> int:
        """Rows that a block has made, of which `asked` are asked for."""
        key = (asked, block.last, block.step)
        if key not in self._made:
            height, step = self.t.e.heights[block.last], block.step
            self._made[key] = self.place(
                tuple(min(height, -(-n // step) * step) for n in self.profiles[asked])
            )
        return self._made[key]

    def asked(self, made: int, block: Block) -> int:
        """Rows of a block's input that are there when it has made so many."""
        key = (made, block.first, block.last)
        if key not in self._asked:
            axis, tall = block.axis, self.t.rows[block.first - 1][0]
            section = block.section
            if section is None:
                asked = tuple(min(tall, max(0, axis.high(n))) for n in self.profiles[made])
            else:
                asked = tuple(section.lanes.wanted(n)[-1] for n in self.profiles[made])
            self._asked[key] = self.place(asked)
        return self._asked[key]

    @remembered
    def no_worse(self, a: int, b: int) -> bool:
        """Whether profile `a` is nowhere below `b`."""
        return a == b or all(x >= y for x, y in zip(self.profiles[a], self.profiles[b], strict=True))

    def lower(self, a: int, b: int) -> int:
        """The lower of two profiles, number by number."""
        if a == b:
            return a
        return self.place(tuple(map(min, self.profiles[a], self.profiles[b])))

    def reads(self, made: int, block_form: BlockForm, element: int, tensor: int) -> int:
        """First byte of `tensor` that an element of a block still has to read, when it has made so many rows.

        Of a region's last block, the element may still be at the rows that are being written.
        """
        block = block_form.block
        final = block.last + 1 == self.end
        late = final and block_form.form.late >> (block.last - element) & 1 == 1
        key = (made, block.first, block.last, block.step, element, tensor, late)
        if key not in self._reads:
            row = self.t.e.graph.tensors[tensor].row_bytes
            rows = self._next_rows(made, block, element, tensor, late)
            self._reads[key] = self.place(tuple(n if n == NEVER else n * row for n in rows))
        return self._reads[key]

    def _next_rows(self, made: int, block: Block, element: int, tensor: int, late: bool) -> Sequence[int]:
        profile, step, section = self.profiles[made], block.step, block.section
        if tensor in self.t.e.read_whole[element]:
            return [0 if late or n < profile[-1] else NEVER for n in profile]
        if section is not None:
            if late:
                return section.read_from[: len(profile)]
            return [section.read_after[n] if n < profile[-1] else NEVER for n in profile]
        axis = through(self.t.e.graph, self.t.e.positions[element : block.last + 1])
        if late:
            return [max(0, axis.low(q // step * step)) for q in range(len(profile))]
        return [max(0, axis.low(n)) if n < profile[-1] else NEVER for n in profile]

    def saved(self, lows: int, source: int, result: int) -> int:
        """Bytes of the output that may lie on the input, of which bytes below `lows` are dead."""
        _, row = self.t.rows[self.end - 1]
        apart = max(0, *((q + 1) * row - low for q, low in enumerate(self.profiles[lows])))
        return max(0, min(source, result - round_up(apart, self.t.e.alignment)))

    @remembered
    def held(self, low: int, step: int, asked: int) -> int:
        """Rows of a ring: see `held`."""
        return held(self.profiles[low], step, asked)

    def moved(self, low: int, block: Block, progress: BlockProgress) -> int:
        """A profile by row of a block's output, by row of its input."""
        key = (low, block.first, block.last, block.step)
        if key not in self._moved:
            profile = (*self.profiles[low], NEVER)
            self._moved[key] = self.place(tuple(profile[n] for n in progress.made))
        return self._moved[key]

    def added(self, block: Block, element: int, progress: BlockProgress) -> int:
        """By row of a block's input, the row that an element of it is at; it reads it of another tensor."""
        key = (-1 - element, block.first, block.last, block.step)
        if key not in self._moved:
            axis = through(self.t.e.graph, self.t.e.positions[element : block.last + 1])
            self._moved[key] = self.place(tuple(max(0, axis.low(n)) for n in progress.made))
        return self._moved[key]
