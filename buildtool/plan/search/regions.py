"""The best way to reach a cut within a limit of bytes: best first, backwards from its last region's end.

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
from typing import NamedTuple

from buildtool.plan.place.arena import round_up
from buildtool.plan.search.blocks import WHOLE
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.cuts import Cuts
from buildtool.plan.search.lower_bound import INFINITE, LowerBounds, Weights
from buildtool.plan.search.row_profiles import RowProfiles
from buildtool.plan.search.tables import BlockForm, Tables
from buildtool.plan.types import Region


class Links(NamedTuple):
    """Blocks of a partial region, first to last, by the numbers of their forms."""

    form: int
    rest: Links | None


class Candidate(NamedTuple):
    """A region of elements [first, end): bytes, weight beyond its elements' own, its blocks.

    No blocks: a single element that runs as one step.
    """

    first: int
    end: int
    bytes: int
    extra: int
    block_forms: tuple[BlockForm, ...]

    def region(self, e: Elements) -> Region:
        """The region in the plan's terms."""
        if not self.block_forms:
            return e.region_of(self.first)
        return Region(tuple(block_form.form.group for block_form in self.block_forms))


class Reached(NamedTuple):
    """What a search for one cut has found: the least weight of a way there, and the last region of that way.

    `least`: no way there weighs less, which is the weight itself unless the search was ended; `first`: of
    the region, -1 if there is none; `bytes`, `extra`: see Candidate; `forms`: its blocks by their numbers.
    """

    weight: int
    least: int
    labels: int
    first: int = -1
    bytes: int = 0
    extra: int = 0
    forms: tuple[int, ...] = ()

    def candidate(self, tables: Tables, end: int) -> Candidate:
        """The region in full."""
        forms = tuple(map(tables.form, self.forms))
        return Candidate(self.first, end, self.bytes, self.extra, forms)


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
            if block_form.first < lowest:
                continue
            if block_form.step not in rings_by_step:
                rings_by_step[block_form.step] = label.rings + self._ring(label, block_form.step)
            rings = rings_by_step[block_form.step] + block_form.sums
            window = max(label.window, block_form.window)
            extra = block_form.extra
            if label.wanted < height:
                extra = self.t.extra(block_form.block, block_form.form, label.wanted)
            weight = label.weight + extra
            if rings + window + self.held > most or weight > limit:
                continue
            links = Links(number, label.links)
            grown = label._replace(
                boundary=block_form.first, weight=weight, rings=rings, window=window, links=links
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
        total = self.lower_bounds.best[block_form.first] + grown.weight
        if total >= self.weight or total > self.lower_bounds.limit:
            return
        source = self.t.sources[block_form.first]
        need = self._delivered(block_form, after) if source.streamed else 0
        size = grown.rings + grown.window + self.t.crossing(block_form.first, need, self.end)
        if self.profiles.follows and not source.streamed and source.last < self.end:
            if size - min(source.size, self.result) > self.lower_bounds.most_bytes:
                return
            size -= self._overlap(block_form, after)
        if size <= self.lower_bounds.most_bytes:
            self.weight = total
            self._best, self._links = (block_form.first, size, grown.weight), grown.links

    def _delivered(self, block_form: BlockForm, after: Label) -> int:
        """Rows held of a streamed image, which comes row by row, by a region that begins with this block."""
        made = self.profiles.profiles[self.profiles.made(after.asked, block_form)][-1]
        low = self.profiles.place(self.lower_bounds.cuts.progress.of(block_form).low)
        return self.profiles.held(low, 1, self.lower_bounds.cuts.progress.asked(block_form, made))

    def _overlap(self, block_form: BlockForm, after: Label) -> int:
        """Bytes of the region's output that may lie on its input, if the region begins with this block."""
        source = self.t.sources[block_form.first]
        made = self.profiles.made(after.asked, block_form)
        lows = self.profiles.reads(made, block_form, block_form.first, self.t.e.main[block_form.first])
        for beside in self._beside(block_form, after, made):
            if beside.tensor == source.tensor:
                lows = self.profiles.lower(lows, beside.lows)
        key = (block_form.first, lows)
        if key not in self._saved:
            self._saved[key] = self.profiles.saved(lows, source.size, self.result)
        return self._saved[key]

    def _continue(self, block_form: BlockForm, after: Label, grown: Label) -> None:
        """Keeps a partial region that may still become the best."""
        first = block_form.first
        if not first or not self.t.e.feeds[first - 1] or self.t.last_reader[first - 1] >= self.end:
            return
        least = self.lower_bounds.least(block_form, grown.rings, grown.window, self.result, self.held)
        if least >= INFINITE or grown.weight + least >= self.weight:
            return
        made = self.profiles.made(after.asked, block_form)
        beside = self._beside(block_form, after, made)
        if any(b.whole and b.tensor == self.t.e.makes[first - 1] for b in beside):
            return
        asked = self.profiles.asked(made, block_form)
        wanted = self.profiles.profiles[asked][-1]
        low = self.profiles.place(self.lower_bounds.cuts.progress.of(block_form).low)
        grown = grown._replace(low=low, wanted=wanted, asked=asked, beside=beside)
        if self._keep(grown):
            self.labels += 1
            self._serial += 1
            inside = grown.rings + grown.window
            heapq.heappush(self._heap, (grown.weight + least, first, inside, self._serial, grown))

    def _beside(self, block_form: BlockForm, after: Label, made: int) -> tuple[Beside, ...]:
        """What is read besides by a block that has made rows as marked, and by those after it."""
        if not block_form.lags and not after.beside:
            return ()
        tensor = self.t.e.makes[block_form.block.last]
        progress = self.lower_bounds.cuts.progress.of(block_form)
        found = {
            b.tensor: b._replace(at=self.profiles.moved(b.at, block_form, progress))
            for b in after.beside
            if b.tensor != tensor
        }
        lags = dict(block_form.lags)
        for element, t in block_form.block.beside:
            root = self.t.e.roots[t]
            lows, at = (
                self.profiles.reads(made, block_form, element, t),
                self.profiles.added(block_form, element, progress),
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
    """Searches for the regions of one network within limits of bytes; see `LowerBounds`.

    `best`, `version`: shared with the caller, who changes them as it goes from cut to cut.
    """

    def __init__(self, cuts: Cuts, limit: int, best: Weights, version: Weights) -> None:
        self._lower_bounds = LowerBounds(cuts, limit, best, version)

    def reach(self, most_bytes: int, round_: int, end: int, enough: int, most_labels: int) -> Reached:
        """The best way to the cut at `end`: see RegionSearch.run."""
        self._lower_bounds.most_bytes, self._lower_bounds.round = most_bytes, round_
        return RegionSearch(self._lower_bounds.t, self._lower_bounds, end).run(enough, most_labels)
