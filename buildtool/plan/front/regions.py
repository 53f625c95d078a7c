"""The best ways to run elements [first, end) as one region: a search backwards from the region's end.

A label is a partial region, from some boundary to the end: bytes of the rings so far, the largest
block's windows, the work so far. Labels at one boundary that ask the same of what comes before them
compete: one that is no better in anything than another is dropped. What a label asks of what comes
before: rows of the boundary's tensor, and how far open residuals lag.

A region's memory is the sum of everything in it: tensors that cross it, its input and output (which
may overlap row by row), its rings, accumulators, and the largest of its blocks' windows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from buildtool.plan.arena import round_up
from buildtool.plan.front.chain import Block, Elements
from buildtool.plan.receptive import Axis, accumulates
from buildtool.plan.types import Group, Region

Lags = tuple[tuple[int, int], ...]  # (tensor, rows it has to lead by), by tensor


class Label(NamedTuple):
    """A partial region: its blocks (first to last) as a linked list."""

    work: int
    rings: int
    window: int
    block: Block | None = None
    rest: Label | None = None

    def blocks(self) -> list[Block]:
        """From the boundary to the region's end."""
        found, label = [], self
        while label.block is not None:
            found.append(label.block)
            assert label.rest is not None
            label = label.rest
        return found


@dataclass(frozen=True)
class Candidate:
    """A whole region: elements [first, end), bytes, work, and its blocks (none: runs as one step)."""

    first: int
    end: int
    bytes: int
    work: int
    label: Label | None

    def region(self, e: Elements) -> Region:
        """The region in the plan's terms."""
        if self.label is None:
            return Region((Group((e.positions[self.first],)),))
        return Region(tuple(block.group for block in self.label.blocks()))


def _order(label: Label) -> tuple[int, int, int]:
    return label[0], label[1] + label[2], label[2]


def _by_bytes(label: Label) -> tuple[int, int]:
    return label[1] + label[2], label[0]


def undominated(labels: list[Label]) -> list[Label]:
    """Those that no other label is at least as good as in everything; ties: the first."""
    labels.sort(key=_order)
    kept: list[Label] = []
    stairs: list[tuple[int, int]] = []  # (rings, window) of the kept ones that none of them is below
    for label in labels:
        _, rings, window, _, _ = label
        for r, w in stairs:
            if r <= rings and w <= window:
                break
        else:
            stairs = [(r, w) for r, w in stairs if r < rings or w < window]
            stairs.append((rings, window))
            kept.append(label)
    return kept


@dataclass
class Known:
    """What is known when regions that end at a cut are looked for, so that hopeless labels go early.

    `before[c]`: the ways to run the elements before cut c, each as (bytes, repeated work);
    `bytes`, `work`: the ways to the region's end found so far, ascending in bytes, descending in
    work.
    """

    before: list[list[tuple[int, int]]]
    bytes: list[int] = field(default_factory=list)
    work: list[int] = field(default_factory=list)

    def beats(self, size: int, work: int) -> bool:
        """Whether a way that is known needs neither more bytes nor more work."""
        place = bisect_right(self.bytes, size)
        return place > 0 and self.work[place - 1] <= work


@dataclass
class RegionSearch:
    """All regions that end at one cut."""

    e: Elements
    end: int
    image: str
    in_place: bool
    most_bytes: int  # regions that need more are of no use
    most_extra: int  # nor those that repeat more work than this
    known: Known = field(default_factory=lambda: Known([[(0, 0)]]))
    states: dict[tuple[int, int, Lags], list[Label]] = field(default_factory=dict)

    def run(self) -> Iterator[Candidate]:
        """Candidates for every first element, each list undominated in (bytes, work)."""
        yield from self.single()
        self.states = {(self.end, 0, ()): [Label(0, 0, 0)]}
        boundary = self.end
        while self.states:
            here = {k: v for k, v in self.states.items() if k[0] == boundary}
            for key in here:
                del self.states[key]
            for (_, need, lags), labels in here.items():
                best = self.hopeful(boundary, undominated(labels))
                for block in self.e.blocks[boundary - 1] if boundary else ():
                    yield from self.prepend(block, need, lags, best)
            boundary -= 1
            if boundary <= 0:
                break

    def hopeful(self, boundary: int, labels: list[Label]) -> list[Label]:
        """Without the labels that no region beginning at or before `boundary` can make worth while.

        Begun at cut f, the whole needs at least what some way to f needs, and what the label needs
        with the region's input beside it; it repeats at least the work that either repeats.
        """
        if not self.known.bytes:
            return labels
        starts = self.starts[min(boundary, len(self.starts) - 1)]
        before, beats = self.e.work_before[boundary], self.known.beats
        kept = []
        for label in labels:
            inside, work = label[1] + label[2], label[0] + before
            for least, repeated, around in starts:
                if not beats(max(least, inside + around), work + repeated):
                    kept.append(label)
                    break
        return kept

    @cached_property
    def starts(self) -> list[list[tuple[int, int, int]]]:
        """Per boundary: (bytes, repeated work) of the ways to any cut up to it, least bytes around.

        Ways that another is no worse than in all three are left out.
        """
        found: list[list[tuple[int, int, int]]] = []
        kept: list[tuple[int, int, int]] = []
        for first, ways in enumerate(self.known.before):
            around = self.least_around(first) if first < self.end else 0
            for size, repeated in ways:
                if not any(a <= size and b <= repeated and c <= around for a, b, c in kept):
                    kept = [k for k in kept if k[0] < size or k[1] < repeated or k[2] < around]
                    kept.append((size, repeated, around))
            found.append(list(kept))
        return found

    def least_around(self, first: int) -> int:
        """A lower bound of what a region of elements [first, end) needs beside rings and windows."""
        e = self.e
        result = e.makes[self.end - 1]
        inputs = e.live[first]
        if self.image == "stream":
            inputs = inputs - frozenset(e.graph.inputs)
        crossing = [t for t in inputs if t in e.live[self.end] and t != result]
        beside = sum(e.size(t) for t in crossing)
        inside = sum(e.size(t) for t in inputs) - beside
        return beside + max(inside, e.size(result))

    def single(self) -> Iterator[Candidate]:
        """The last element alone, all its rows in one step."""
        e, first = self.e, self.end - 1
        made = [e.roots[t] for t in e.graph.ops[e.positions[first]].outputs]
        held = e.live[first] | frozenset(made)
        total = sum(e.size(t) for t in held) + e.scratch(first)
        saved = self._single_overlap(first)
        yield Candidate(first, self.end, total - saved, e.work(first), None)

    def _single_overlap(self, first: int) -> int:
        """Bytes that a kernel over whole tensors may save by writing over its input."""
        from buildtool.plan.overlap import distance

        e = self.e
        op, kernel = e.graph.ops[e.positions[first]], e.kernels[e.positions[first]]
        if kernel is None or not self.in_place or len(op.outputs) != 1:
            return 0
        best = 0
        for t in op.inputs:
            if t not in e.roots or op.inputs.count(t) > 1 or not self.dies(e.roots[t], self.end):
                continue
            apart = distance(e.graph, op, t, kernel.overlap)
            if apart is not None:
                both = e.size(e.roots[t]) + e.size(op.outputs[0])
                union = max(e.size(op.outputs[0]), round_up(max(0, apart), e.alignment) + e.size(e.roots[t]))
                best = max(best, both - union)
        return best

    def dies(self, root: int, end: int) -> bool:
        """Whether a tensor's memory is free after cut `end`."""
        if root in self.e.live[end]:
            return False
        return not (self.image == "resident" and root in self.e.graph.inputs)

    def prepend(self, block: Block, need: int, lags: Lags, labels: list[Label]) -> Iterator[Candidate]:
        """Puts a block before partial regions: completes them there, and goes on from there."""
        e = self.e
        out = e.makes[block.last]
        ring = 0
        if block.last + 1 < self.end:
            rows_needed = max([need, *(lag for t, lag in lags if t == out)]) + block.step - 1
            ring = round_up(min(e.height(out), rows_needed) * e.row_bytes(out), e.alignment)
        room = self.most_bytes - e.size(e.makes[self.end - 1])
        most_work = e.work_before[self.end] - e.work_before[block.first] + self.most_extra
        own, more, widest = block.work, ring + block.sums, block.window
        grown = []
        for label in labels:
            work, rings, window, _, _ = label
            rings += more
            window = max(window, widest)
            if work + own <= most_work and rings + window <= room:
                grown.append(Label(work + own, rings, window, block, label))
        if not grown:
            return
        yield from self.complete(block, grown)
        open_lags = self.lags_before(block, tuple((t, lag) for t, lag in lags if t != out))
        if open_lags is None or not block.first or not e.feeds(block.first - 1):
            return
        source = e.makes[block.first - 1]
        if source in e.outputs or max(e.readers[source]) >= self.end:
            return
        key = (block.first, min(block.need, e.height(source)), open_lags)
        self.states.setdefault(key, []).extend(grown)

    def lags_before(self, block: Block, lags: Lags) -> Lags | None:
        """Open residuals at the block's input; None where a residual's path is not of stride 1."""
        found = {t: lag + block.step - 2 + block.axis.kernel - block.axis.pad for t, lag in lags}
        if found and block.axis.stride != 1:
            return None
        graph, ops = self.e.graph, block.group.ops
        for place, position in enumerate(ops):
            op = graph.ops[position]
            inner = graph.ops[ops[place - 1]].outputs[0] if place else None
            main = inner if inner in op.inputs else self._main(block)
            for t in op.inputs:
                if t == main or t not in self.e.roots:
                    continue
                made = self.e.axis(block.first + place + 1, block.last).extent(block.step)
                axis = self.e.axis(block.first, block.first + place)
                if axis.stride != 1:
                    return None
                lag = made - 1 + axis.kernel - axis.pad
                found[t] = max(found.get(t, 0), lag)
        return tuple(sorted(found.items()))

    def _main(self, block: Block) -> int:
        """The tensor that drives a block: what the element before it makes, or its first input."""
        op = self.e.graph.ops[block.group.ops[0]]
        if block.first and self.e.makes[block.first - 1] in op.inputs:
            return self.e.makes[block.first - 1]
        return op.inputs[0]

    def complete(self, block: Block, labels: list[Label]) -> Iterator[Candidate]:
        """Regions that begin with `block`."""
        e, first = self.e, block.first
        result = e.makes[self.end - 1]
        if e.live[self.end] - {result} - e.live[first]:
            return  # something made inside is read after the region
        source = e.roots[self._main(block)]
        if self.image == "stream" and source in e.graph.inputs:
            if e.readers[source] != (first,):
                return
            _, _, width, channels = e.graph.tensors[source].nhwc
            held = min(e.height(source), block.need) * width * channels
            around = round_up(held, e.alignment) + e.size(result)
            crossing = e.live[first] - {source}
        else:
            around = self.input_and_output(block, source, result)
            crossing = e.live[first] - {source}
        fixed = around + sum(e.size(t) for t in crossing)
        kept: list[Candidate] = []
        best = -1
        for label in sorted(labels, key=_by_bytes):
            total = fixed + label.rings + label.window
            if (best < 0 or label.work < best) and total <= self.most_bytes:
                best = label.work
                kept.append(Candidate(first, self.end, total, label.work, label))
        yield from kept

    def input_and_output(self, block: Block, source: int, result: int) -> int:
        """Bytes of the region's input and output, overlapping as far as rows die in time."""
        e = self.e
        both = e.size(source) + e.size(result)
        last = e.graph.ops[e.positions[self.end - 1]]
        if not self.in_place or accumulates(e.graph, last) or not self.dies(source, self.end):
            return both
        distance = self.distance(block, source, result)
        return min(both, max(e.size(result), round_up(max(0, distance), e.alignment) + e.size(source)))

    def distance(self, block: Block, source: int, result: int) -> int:
        """Least safe offset(input) - offset(output): see plan.streamed, whose replay it foresees."""
        key = (source, block.first, block.last, block.step, self.end)
        known = self.e.distances.get(key)
        if known is None:
            known = self.e.distances[key] = self._distance(block, source, result)
        return known

    def _distance(self, block: Block, source: int, result: int) -> int:
        e = self.e
        in_row, out_row = e.row_bytes(source), e.row_bytes(result)
        tall, rows_out = e.height(source), e.height(result)
        ahead = e.axis(block.last + 1, self.end - 1)
        lagging = self.lagging_reads(block, source)
        apart = 0
        for q in range(rows_out):
            low = tall
            if block.last + 1 == self.end:
                low = min(low, max(0, block.axis.low(q // block.step * block.step)))
                written = min(rows_out, (q // block.step + 1) * block.step)
            else:
                written = q + 1
                made = min(e.height(e.makes[block.last]), max(0, ahead.high(q + 1)))
                made = -(-made // block.step) * block.step
                if made < e.height(e.makes[block.last]):
                    low = min(low, max(0, block.axis.low(made)))
            for axis, height in lagging:
                # the row of the addition that is being, or will next be, computed
                row = min(height, max(0, axis.high(q + 1) - 1)) if axis else q
                low = min(low, row)
            if low < tall:
                apart = max(apart, written * out_row - low * in_row)
        return apart

    def lagging_reads(self, block: Block, source: int) -> list[tuple[Axis | None, int]]:
        """Additions later in the region that read its input: the axis from there to the region's end."""
        e, found = self.e, []
        for element in range(block.first + 1, self.end):
            if source in e.reads[element]:
                axis = e.axis(element + 1, self.end - 1) if element + 1 < self.end else None
                found.append((axis, e.height(e.makes[element])))
        return found
