"""Searches for the least peak of one segment of operators; `order` explains the method."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from buildtool.graph.flow import Flow, lives


@dataclass(frozen=True)
class Uses:
    """Each value's producer and readers, and the bytes live between operators in the given order."""

    flow: Flow
    maker: dict[int, int]  # value -> place of its operator; a network input has none
    readers: dict[int, list[int]]
    boundary: list[int]  # bytes live just before each operator, its operands included
    below: list[int]  # each operator's predecessors, near and far, as a set of bits
    above: list[int]  # its successors

    @staticmethod
    def of(flow: Flow) -> Uses:
        """The uses of a flow's values."""
        readers: dict[int, list[int]] = {}
        for i, op in enumerate(flow.ops):
            for v in op.reads:
                readers.setdefault(v, []).append(i)
        fed, kept, count = set(flow.inputs), set(flow.outputs), len(flow.ops)
        change = [0] * (count + 1)
        for life in lives(flow):
            if life.value in kept or life.value in readers:
                change[0 if life.value in fed else life.first + 1] += life.size
                change[count if life.value in kept else life.last + 1] -= life.size
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
    """A value that a segment's operators touch."""

    size: int
    made: int  # the set of the operator that makes it; empty: there from the start
    readers: int  # set of operators in the segment
    kept: bool  # needed after the segment


class State(NamedTuple):
    """Executed operators (a set of bits), the bytes live after them, the most so far, operators ready to run.

    `lean`: those of them that leave no more bytes alive than there are.
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
    reads: tuple[tuple[int, ...], ...]  # of each operator, in `values`
    writes: tuple[tuple[int, ...], ...]
    needs: tuple[int, ...]  # of each operator: the set of those that come before it
    feeds: tuple[int, ...]  # the set of those that come after

    @staticmethod
    def of(uses: Uses, ops: Sequence[int]) -> Segment:
        """The segment of the operators at places `ops`."""
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
                made = uses.maker.get(v, -1)
                readers = uses.readers.get(v, [])
                maker = 1 << (made - first) if made >= first else 0
                inside_readers = sum(1 << (r - first) for r in readers if first <= r < end)
                kept = v in outputs or (bool(readers) and readers[-1] >= end)
                values.append(_Local(flow.values[v].size, maker, inside_readers, kept))
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
        """The given order: places in Flow.ops."""
        return tuple(range(self.first, self.first + self.count))

    @cached_property
    def given_peak(self) -> int:
        """The most bytes live in the given order."""
        state = self.initial
        for op in range(self.count):
            state = self.after(state, op)
        return state.peak

    @cached_property
    def initial(self) -> State:
        """Nothing executed."""
        free = sum(1 << op for op, needed in enumerate(self.needs) if not needed)
        lean = sum(1 << op for op in bits(free) if self._is_lean(op, 0))
        return State(0, self.start, 0, free, lean)

    @cached_property
    def next(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each operator, those that read from it: (bit, the set of all that come before)."""
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
        """For each operator, (size, readers) of the values it may free: read here last, or never."""
        touched = ([self.values[v] for v in (*r, *w)] for r, w in zip(self.reads, self.writes, strict=True))
        return tuple(tuple((v.size, v.readers) for v in values if not v.kept) for values in touched)

    @cached_property
    def floor(self) -> int:
        """The most bytes that are live at one operator in every order."""
        aside = self.start - sum(v.size for v in self.values if not v.made)
        most = 0
        for op in range(self.count):
            before, after = self.needs[op] | (1 << op), self.feeds[op] | (1 << op)
            must = (v for v in self.values if not v.made or v.made & before)
            held = sum(v.size for v in must if v.kept or v.readers & after or v.made == 1 << op)
            most = max(most, aside + held)
        return most

    def after(self, state: State, op: int) -> State:
        """The state after one more operator.

        Of those that could run next already, only the last reader of a value that this one touches may become
        lean.
        """
        done = state.done | (1 << op)
        left = ~done
        live = state.live + self.adds[op]
        peak = max(state.peak, live)
        ready, lean, asked = state.ready ^ (1 << op), state.lean & left, 0
        for size, readers in self.mortal[op]:
            others = readers & left
            if not others:
                live -= size
            elif not others & (others - 1):
                asked |= others
        asked &= ready & ~lean
        for reader, needed in self.next[op]:
            if not needed & left:
                ready |= reader
                asked |= reader
        for reader in bits(asked):
            if self._is_lean(reader, done):
                lean |= 1 << reader
        return State(done, live, peak, ready, lean)

    def _is_lean(self, op: int, done: int) -> bool:
        """Whether an operator that runs next leaves no more bytes alive than there are."""
        left, more = ~(done | (1 << op)), self.adds[op]
        for size, readers in self.mortal[op]:
            if not readers & left:
                more -= size
        return more <= 0

    def settle(self, state: State, goal: int) -> tuple[State, tuple[int, ...]]:
        """Runs operators that can run at once without harm (see `order`); the new state, and these operators.

        From the first to the last of those that can run, again until none is left.
        """
        ran: list[int] = []
        again = True
        while again:
            again, waiting = False, state.ready
            while asked := waiting & state.lean:
                low = asked & -asked
                waiting &= -(low << 1)
                op = low.bit_length() - 1
                if state.live + self.adds[op] <= max(goal, state.peak):
                    state, again = self.after(state, op), True
                    ran.append(op)
        return state, tuple(ran)


def bits(mask: int) -> Iterator[int]:
    """The members of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True)
class Found:
    """An order (places in Flow.ops; None: none below the limit) with its peak.

    `nodes`: sets of operators looked at; `exhausted`: there is no order with a lower peak than this
    one, or (where there is none) than the limit.
    """

    order: tuple[int, ...] | None
    peak: int
    nodes: int
    exhausted: bool


def beam(segment: Segment, goal: int, width: int) -> Found:
    """A good order: of all sets of one length only the best `width` go on, by peak, then by live bytes."""
    states: dict[int, tuple[State, tuple[int, ...]]] = {0: (segment.initial, ())}
    nodes, whole = 0, (1 << segment.count) - 1
    finished: tuple[State, tuple[int, ...]] | None = None
    while states:
        fresh: dict[int, tuple[State, tuple[int, ...]]] = {}
        for state, way in states.values():
            for op in bits(state.ready):
                later, ran = segment.settle(segment.after(state, op), goal)
                nodes += 1
                if later.done == whole:
                    if finished is None or later.peak < finished[0].peak:
                        finished = (later, (*way, op, *ran))
                elif later.done not in fresh or later.peak < fresh[later.done][0].peak:
                    fresh[later.done] = (later, (*way, op, *ran))
        rank = {done: (max(goal, state.peak), state.live, done) for done, (state, _) in fresh.items()}
        states = {done: fresh[done] for done in sorted(fresh, key=rank.__getitem__)[:width]}
    assert finished is not None
    order = tuple(segment.first + op for op in finished[1])
    return Found(order, finished[0].peak, nodes, False)


def search(segment: Segment, goal: int, limit: int, budget: int) -> Found:
    """The order with the least peak, or any within `goal`, if there is one below `limit`.

    Best first: of the sets seen, the one with the lowest peak so far, then the largest.
    """
    state, ran = segment.settle(segment.initial, goal)
    parents: dict[int, tuple[int, tuple[int, ...]]] = {state.done: (0, ran)}
    best = {state.done: state.peak}
    queue = [(max(goal, state.peak), -state.done.bit_count(), *_last(state))]
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
            return Found(order, peak, nodes, True)
        if nodes >= budget:
            return Found(None, limit, nodes, False)
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
                heapq.heappush(queue, (later.peak, -later.done.bit_count(), *_last(later)))
    return Found(None, limit, nodes, True)


def _last(state: State) -> tuple[int, int, int, int]:
    """The last part of a state's rank, and the rest of the state."""
    return state.live, state.done, state.ready, state.lean
