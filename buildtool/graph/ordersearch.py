"""Searches for the order of one segment of operators with the lowest peak. `order` explains the method."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from buildtool.graph.flow import Flow, lives


@dataclass(frozen=True)
class Uses:
    """Each value's producer and readers, and the bytes that are live between operators in the given order."""

    flow: Flow
    maker: dict[int, int]  # value -> place of the operator that makes it; without network inputs
    readers: dict[int, list[int]]
    boundary: list[int]  # bytes live just before each operator, its operands included
    below: list[int]  # each operator's direct and indirect predecessors, as a set of bits
    above: list[int]  # each operator's direct and indirect successors, as a set of bits

    @staticmethod
    def of(flow: Flow) -> Uses:
        """Returns the uses of a flow's values."""
        readers: dict[int, list[int]] = {}
        for i, op in enumerate(flow.ops):
            for v in op.reads:
                readers.setdefault(v, []).append(i)
        inputs, outputs, count = set(flow.inputs), set(flow.outputs), len(flow.ops)
        change = [0] * (count + 1)
        for life in lives(flow):
            if life.value in outputs or life.value in readers:
                change[0 if life.value in inputs else life.first + 1] += life.size
                change[count if life.value in outputs else life.last + 1] -= life.size
        boundary, live = [], 0
        for delta in change:
            live += delta
            boundary.append(live)
        maker = {v: i for i, op in enumerate(flow.ops) for v in op.writes}
        below, above = [0] * count, [0] * count
        for i, op in enumerate(flow.ops):
            for j in (maker[v] for v in op.reads if v in maker):
                below[i] |= below[j] | (1 << j)
        for i in reversed(range(count)):
            for j in (maker[v] for v in flow.ops[i].reads if v in maker):
                above[j] |= above[i] | (1 << i)
        return Uses(flow, maker, readers, boundary, below, above)


@dataclass(frozen=True)
class _Local:
    """A value that operators of a segment read or write: its size, and who in the segment uses it."""

    size: int
    maker: int  # the operator in the segment that makes it, as a set; empty where it exists before
    readers: int  # the set of its readers in the segment
    is_needed_after: bool  # after the segment


class State(NamedTuple):
    """A state of the search: the operators `done`, the bytes `live` after them, and their `peak`.

    `ready` are the operators that can run next. `lean` are those of them that would not increase the live
    bytes. Each set of operators is a bit mask.
    """

    done: int
    live: int
    peak: int
    ready: int
    lean: int


@dataclass(frozen=True)
class Segment:
    """Consecutive operators `first` to `first` + count - 1, which stay together in every order."""

    first: int
    count: int
    start: int  # bytes live before the first
    values: tuple[_Local, ...]
    reads: tuple[tuple[int, ...], ...]  # each operator's places in `values`
    writes: tuple[tuple[int, ...], ...]
    needs: tuple[int, ...]  # each operator's predecessors, as a set
    feeds: tuple[int, ...]  # each operator's successors, as a set

    @staticmethod
    def of(uses: Uses, ops: Sequence[int]) -> Segment:
        """Returns the segment of the operators at the positions `ops`."""
        first, end = ops[0], ops[-1] + 1
        inside = (1 << len(ops)) - 1
        flow = uses.flow
        places: dict[int, int] = {}
        values: list[_Local] = []
        outputs = set(flow.outputs)
        for i in ops:
            for v in (*flow.ops[i].reads, *flow.ops[i].writes):
                if v in places or flow.values[v].is_weight:
                    continue
                places[v] = len(values)
                place = uses.maker.get(v, -1)
                readers = uses.readers.get(v, [])
                maker = 1 << (place - first) if place >= first else 0
                inside_readers = sum(1 << (r - first) for r in readers if first <= r < end)
                is_needed_after = v in outputs or (bool(readers) and readers[-1] >= end)
                values.append(_Local(flow.values[v].size, maker, inside_readers, is_needed_after))
        return Segment(
            first,
            len(ops),
            uses.boundary[first],
            tuple(values),
            tuple(tuple(places[v] for v in flow.ops[i].reads if v in places) for i in ops),
            tuple(tuple(places[v] for v in flow.ops[i].writes) for i in ops),
            tuple((uses.below[i] >> first) & inside for i in ops),
            tuple((uses.above[i] >> first) & inside for i in ops),
        )

    @property
    def given(self) -> tuple[int, ...]:
        """The given order, as positions in Flow.ops."""
        return tuple(range(self.first, self.first + self.count))

    @cached_property
    def given_peak(self) -> int:
        """The peak of live bytes in the given order."""
        state = self.initial
        for op in range(self.count):
            state = self.after(state, op)
        return state.peak

    @cached_property
    def initial(self) -> State:
        """The state in which no operator has run."""
        free = sum(1 << op for op, needed in enumerate(self.needs) if not needed)
        lean = sum(1 << op for op in bits(free) if self._is_lean(op, 0))
        return State(0, self.start, 0, free, lean)

    @cached_property
    def next(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each operator, the operators that may run directly after it.

        Each of them is (its bit, the set of its predecessors), both as bit masks.
        """
        return tuple(
            tuple((1 << r, self.needs[r]) for r in bits(feeds) if not self.needs[r] & feeds)
            for feeds in self.feeds
        )

    @cached_property
    def adds(self) -> tuple[int, ...]:
        """Bytes that each operator writes."""
        return tuple(sum(self.values[v].size for v in written) for written in self.writes)

    @cached_property
    def mortal(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The values that each operator reads or writes and may free, as (size, set of readers)."""
        touched = ([self.values[v] for v in (*r, *w)] for r, w in zip(self.reads, self.writes, strict=True))
        return tuple(
            tuple((v.size, v.readers) for v in values if not v.is_needed_after) for values in touched
        )

    @cached_property
    def floor(self) -> int:
        """A lower bound for the peak of every order: the most bytes that must be live at one operator."""
        untouched = self.start - sum(v.size for v in self.values if not v.maker)
        highest = 0
        for op in range(self.count):
            before, after = self.needs[op] | (1 << op), self.feeds[op] | (1 << op)
            existing = [v for v in self.values if not v.maker or v.maker & before]
            live = [v for v in existing if v.is_needed_after or v.readers & after or v.maker == 1 << op]
            highest = max(highest, untouched + sum(v.size for v in live))
        return highest

    def after(self, state: State, op: int) -> State:
        """Returns the state after one more operator.

        An operator that was ready before may become lean only as the last reader of a value that `op` reads
        or writes.
        """
        done = state.done | (1 << op)
        waiting = ~done
        live = state.live + self.adds[op]
        peak = max(state.peak, live)
        ready, lean, candidates = state.ready ^ (1 << op), state.lean & waiting, 0
        for size, readers in self.mortal[op]:
            others = readers & waiting
            if not others:
                live -= size
            elif not others & (others - 1):
                candidates |= others
        candidates &= ready & ~lean
        for reader, needed in self.next[op]:
            if not needed & waiting:
                ready |= reader
                candidates |= reader
        for reader in bits(candidates):
            if self._is_lean(reader, done):
                lean |= 1 << reader
        return State(done, live, peak, ready, lean)

    def _is_lean(self, op: int, done: int) -> bool:
        """Whether running the operator next would not increase the live bytes."""
        waiting, growth = ~(done | (1 << op)), self.adds[op]
        for size, readers in self.mortal[op]:
            if not readers & waiting:
                growth -= size
        return growth <= 0

    def settle(self, state: State, goal: int) -> tuple[State, tuple[int, ...]]:
        """Runs the operators that can run at once (see `order`). Returns the new state and these operators.

        It tries the ready operators from the first to the last, again and again until none of them can run.
        """
        ran: list[int] = []
        again = True
        while again:
            again, waiting = False, state.ready
            while candidates := waiting & state.lean:
                low = candidates & -candidates
                waiting &= -(low << 1)
                op = low.bit_length() - 1
                if state.live + self.adds[op] <= max(goal, state.peak):
                    state, again = self.after(state, op), True
                    ran.append(op)
        return state, tuple(ran)


def bits(mask: int) -> Iterator[int]:
    """Yields the members of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True)
class SearchResult:
    """The result of a search: an order (positions in Flow.ops) with its peak, or None if it found no order.

    `nodes` counts the visited sets. `exhausted` means that a lower peak is proven impossible: below the peak
    of this order or, without an order, below the limit.
    """

    order: tuple[int, ...] | None
    peak: int
    nodes: int
    exhausted: bool


def beam(segment: Segment, goal: int, width: int) -> SearchResult:
    """Finds an order by beam search.

    Of all sets of the same length it keeps the best `width`, by peak, then by live bytes.
    """
    states: dict[int, tuple[State, tuple[int, ...]]] = {0: (segment.initial, ())}
    nodes, whole = 0, (1 << segment.count) - 1
    finished: tuple[State, tuple[int, ...]] | None = None
    while states:
        fresh: dict[int, tuple[State, tuple[int, ...]]] = {}
        for state, path in states.values():
            for op in bits(state.ready):
                later, ran = segment.settle(segment.after(state, op), goal)
                nodes += 1
                if later.done == whole:
                    if finished is None or later.peak < finished[0].peak:
                        finished = (later, (*path, op, *ran))
                elif later.done not in fresh or later.peak < fresh[later.done][0].peak:
                    fresh[later.done] = (later, (*path, op, *ran))
        rank = {done: (max(goal, state.peak), state.live, done) for done, (state, _) in fresh.items()}
        states = {done: fresh[done] for done in sorted(fresh, key=rank.__getitem__)[:width]}
    assert finished is not None
    order = tuple(segment.first + op for op in finished[1])
    return SearchResult(order, finished[0].peak, nodes, False)


def search(segment: Segment, goal: int, limit: int, budget: int) -> SearchResult:
    """Finds the order with the lowest peak below `limit`, or any order with a peak of at most `goal`.

    This is a best-first search. It visits the set with the lowest peak so far, and of equal ones the largest.
    """
    state, ran = segment.settle(segment.initial, goal)
    parents: dict[int, tuple[int, tuple[int, ...]]] = {state.done: (0, ran)}
    best = {state.done: state.peak}
    queue = [(max(goal, state.peak), -state.done.bit_count(), *_rank_end(state))]
    whole, closed, nodes = (1 << segment.count) - 1, set[int](), 0
    while queue:
        peak, _, live, done, ready, lean = heapq.heappop(queue)
        if done in closed:
            continue
        if done == whole:
            steps: list[tuple[int, ...]] = []
            while done:
                done, ran = parents[done]
                steps.append(ran)
            order = tuple(segment.first + op for ran in reversed(steps) for op in ran)
            return SearchResult(order, peak, nodes, True)
        if nodes >= budget:
            return SearchResult(None, limit, nodes, False)
        closed.add(done)
        nodes += 1
        here = State(done, live, peak, ready, lean)
        for op in bits(ready):
            later = segment.after(here, op)
            if later.peak >= limit or later.done in closed:
                continue
            later, ran = segment.settle(later, goal)
            if later.done not in closed and later.peak < best.get(later.done, limit):
                best[later.done] = later.peak
                parents[later.done] = (done, (op, *ran))
                heapq.heappush(queue, (later.peak, -later.done.bit_count(), *_rank_end(later)))
    return SearchResult(None, limit, nodes, True)


def _rank_end(state: State) -> tuple[int, int, int, int]:
    """Returns the end of a queue entry: the live bytes, which break ties, and the state's sets."""
    return state.live, state.done, state.ready, state.lean
