"""Placement with moves: between two regions a whole tensor can be copied to another place.

A region's output that lies over its dying input lies lower than the input. So in a chain of such regions
every tensor lies lower than the one before, and the first tensors lie high. A copy ends the chain and costs a
few instructions per word. With a copy before every region, each region could be placed by itself. This module
makes only as many copies as the lowest height needs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

from buildtool.base.errors import UnsupportedError
from buildtool.base.session import remembered
from buildtool.base.work import Work
from buildtool.plan.assemble.placement import Placed, place
from buildtool.plan.place import arena
from buildtool.plan.place.arena import arena_problem
from buildtool.plan.place.solver import Result, decide, units
from buildtool.plan.types import Buffer, Move, Overlap, replace_numbers

QUICK_NODES = 500  # nodes of the exact search for the end of a segment
PROBE_NODES = 8_000  # nodes of the second search near that end
TAIL = 6  # regions at a segment's end that are searched before the whole segment
TAIL_NODES = 5_000  # nodes of the exact search for these regions
EARLIER_CUTS = 3  # earlier cuts with fewer bytes to move that are tried
MOST_FAILED = 8  # failed searches for a wished offset in a row, after which no other wish is tried
MOST_TOGETHER = 512  # buffers of a segment of several regions: longer ones are placed piece by piece

Offsets = dict[int, int]  # buffer's position -> offset


@dataclass(frozen=True)
class Parted:
    """Placed buffers, of which some are divided in time into parts with different offsets.

    placed: the parts. Each has an offset, and a life in the times of the problem. Overlaps refer to parts.
    origin: for each part, the position of the buffer that it belongs to, ascending. A buffer's parts follow
        each other in time.
    moves: the copies from part to part, in the order in which they have to be made.
    """

    placed: Placed
    origin: tuple[int, ...]
    moves: tuple[Move, ...]

    def moved_bytes(self) -> int:
        """Returns the number of bytes that all moves together copy."""
        return sum(self.placed.buffers[move.source].size for move in self.moves)


@dataclass(frozen=True)
class _Segment:
    """The part of a placing problem between two cuts, that is, between two times at which tensors may move.

    start, stop: the cuts, as positions in the problem's `times`.
    buffers: positions of the buffers that are live in the segment, ascending.
    options: the overlaps that are possible in it.
    problem: buffers and overlaps as an arena problem. No life goes beyond the cuts, and times count from the
        first cut.
    results: the results of searches for it, by height, number of nodes, and fixed offsets.

    Deep networks repeat their blocks: segments with equal problems share `problem` and `results`.
    """

    start: int
    stop: int
    buffers: tuple[int, ...]
    options: tuple[Overlap, ...]
    problem: arena.Problem
    results: dict[tuple[object, ...], Result]


class _Problem:
    """Buffers and permitted overlaps, in segments of time. At the cuts between them, only tensors are live.

    `alive`: for each cut, the bytes of the buffers that are live on both sides of it.
    """

    def __init__(
        self,
        buffers: Sequence[Buffer],
        options: Sequence[Overlap],
        alignment: int,
        cuts: Sequence[int],
        fixed: Collection[int],
        work: Work | None = None,
    ) -> None:
        self.buffers, self.options, self.alignment, self.work = buffers, options, alignment, work or Work()
        self._denied = self.work.denied
        end = max(b.last for b in buffers) + 1
        barred = [0] * (end + 1)  # the change of the number of fixed buffers alive on both sides of a time
        for i in fixed:
            barred[buffers[i].first + 1] += 1
            barred[buffers[i].last + 1] -= 1
        across = list(accumulate(barred))
        self.times = [0, *(c for c in cuts if 0 < c < end and not across[c]), end]
        self.segments = len(self.times) - 1
        self._items = arena_problem(buffers, (), alignment).items
        self._buffers = _Spans(self.times, [(b.first, b.last) for b in buffers])
        self.alive = [sum(buffers[i].size for i in held) for held in self._buffers.held]
        pairs = ((buffers[o.input], buffers[o.output]) for o in options)
        self._options = _Spans(self.times, [(max(a.first, b.first), min(a.last, b.last)) for a, b in pairs])
        self._known: dict[arena.Problem, tuple[arena.Problem, dict[tuple[object, ...], Result]]] = {}

    @property
    def is_cut_short(self) -> bool:
        """Returns whether a search was skipped because the budget of work had ended."""
        return self.work.denied > self._denied

    @remembered
    def segment(self, start: int, stop: int) -> _Segment:
        """Returns the segment from cut `start` to cut `stop` (positions in `times`)."""
        first, end = self.times[start], self.times[stop]
        inside = self._buffers.between(start, stop)
        options = tuple(self.options[k] for k in self._options.between(start, stop))
        index = {position: i for i, position in enumerate(inside)}
        every = (self._items[i] for i in inside)
        items = (
            arena.Item(max(first, item.lower) - first, min(end, item.upper) - first, *item[2:])
            for item in every
        )
        permissions = (arena.Permission(index[o.output], index[o.input], o.distance) for o in options)
        problem = arena.Problem(tuple(items), tuple(permissions))
        known = self._known.setdefault(problem, (problem, {}))
        return _Segment(start, stop, tuple(inside), options, *known)

    def singles(self) -> list[_Segment]:
        """Returns the segments between neighbouring cuts."""
        return [self.segment(i, i + 1) for i in range(self.segments)]

    @remembered
    def single(self, number: int, height: int) -> Offsets | None:
        """Returns offsets within `height` for the segment after cut `number`; None if none are found."""
        return _place_pinned(self, self.segment(number, number + 1), height, {})

    def placed(self, segment: _Segment) -> arena.Solution:
        """Returns the lowest placement that is found for a segment by itself."""
        index = {position: i for i, position in enumerate(segment.buffers)}
        buffers = [
            replace_numbers(self.buffers[position], first=item.lower, last=item.upper - 1)
            for position, item in zip(segment.buffers, segment.problem.items, strict=True)
        ]
        options = [replace_numbers(o, input=index[o.input], output=index[o.output]) for o in segment.options]
        lowest = place(buffers, options, self.alignment, self.work)
        return arena.Solution(tuple(b.offset for b in lowest.buffers), lowest.height)


class _Spans:
    """Spans of time, from which those that are live in a segment can be looked up.

    A span includes its first and its last time. It is empty if the last time is before the first. `held`: for
    each cut, the spans that begin before it and end at it or later.
    """

    def __init__(self, times: Sequence[int], spans: Sequence[tuple[int, int]]) -> None:
        self._begun: list[list[int]] = [[] for _ in times]  # by the segment in which they begin
        self.held: list[list[int]] = [[] for _ in times]
        for k, (first, last) in enumerate(spans):
            if first <= last:
                begun = bisect_right(times, first) - 1
                self._begun[begun].append(k)
                for cut in range(begun + 1, bisect_right(times, last)):
                    self.held[cut].append(k)

    def between(self, start: int, stop: int) -> list[int]:
        """Returns the numbers of the spans that are live between two cuts, ascending."""
        return sorted(chain(self.held[start], *self._begun[start:stop]))


def least_between(
    buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, cuts: Sequence[int]
) -> list[int]:
    """Returns for each pair of neighbouring cuts a lower bound of the arena's height between the two.

    It holds with moves and without. `options`: the permitted overlaps.
    """
    problem = _Problem(buffers, options, alignment, cuts, ())
    return [single.problem.bound.bytes for single in problem.singles()]


def place_in_parts(
    buffers: Sequence[Buffer],
    options: Sequence[Overlap],
    alignment: int,
    cuts: Sequence[int],
    fixed: Collection[int],
    below: float,
    enough: float = 0,
    work: Work | None = None,
) -> Parted | None:
    """Returns a placement with moves at some of the `cuts`, if there is one lower than `below` bytes.

    options: the permitted overlaps.
    cuts: times at which tensors may move.
    fixed: positions of buffers that cannot move.
    enough: the height in bytes that the caller needs. The function tries the lowest height that is found and,
        if `enough` is higher, also `enough`. It returns the placement that copies fewer bytes.

    Returns None if there is no such placement, or if the budget of `work` has ended.
    """
    work = work or Work()
    if not buffers or not work.goes_on():
        return None
    problem = _Problem(buffers, options, alignment, cuts, fixed, work)
    singles = problem.singles()
    least = 0
    for size, single in sorted(((sum(s.problem.sizes), s) for s in singles), key=lambda pair: -pair[0]):
        if size <= least:
            break  # the remaining segments are not higher either
        least = max(least, single.problem.bound.bytes)
    if len(singles) < 2 or least >= below:
        return None
    high = [s for s in singles if sum(s.problem.sizes) > least and problem.single(s.start, least) is None]
    height = max([least, *(problem.placed(single).height for single in high)])
    if height >= below or problem.is_cut_short:
        return None
    free = int(min(enough, below - 1)) // alignment * alignment
    candidates = [_place_within(problem, h, least) for h in dict.fromkeys((height, max(height, free)))]
    return min((parted for parted in candidates if parted), key=Parted.moved_bytes, default=None)


def _place_within(problem: _Problem, height: int, least: int) -> Parted | None:
    """Returns a placement within `height` bytes in as few segments as are found; None if none is found.

    `least`: a lower bound of the height, for the result.
    """
    longest = list(_find_longest(problem, height))
    if problem.is_cut_short:
        return None  # segments whose search was skipped are no reason to move tensors
    ways = (longest, _find_cheaper(problem, longest, height))
    candidates = (_join_segments(problem, way, height, least) for way in ways if way)
    return min((parted for parted in candidates if parted), key=Parted.moved_bytes, default=None)


def _find_longest(problem: _Problem, height: int) -> Iterator[tuple[_Segment, Offsets]]:
    """Yields consecutive segments with offsets. Each is the longest one found that fits within `height`.

    The length is found by steps that double while they succeed and are then halved, so the effort depends on
    the segment's own length. Short searches come first. Long searches continue from the length that the short
    ones found.
    """
    start = 0
    while start < problem.segments:
        best = problem.segment(start, start + 1)
        offsets = problem.single(start, height)
        if offsets is None:
            offsets = dict(zip(best.buffers, problem.placed(best).offsets, strict=True))
        low = start + 1
        for nodes in (QUICK_NODES, PROBE_NODES):
            high, step = (
                problem.segments + 1,
                1,
            )  # segments up to cut `low` can be placed, up to `high` they cannot
            while high - low > 1:
                middle = (low + high) // 2 if high <= problem.segments else problem.segments
                segment = problem.segment(start, min(low + step, middle))
                result = _try_segment(problem, segment, height, nodes)
                if result is None:
                    high = segment.stop
                else:
                    low, best, offsets, step = segment.stop, segment, result, 2 * step
        yield best, offsets
        start = low


def _find_cheaper(
    problem: _Problem, longest: Sequence[tuple[_Segment, Offsets]], height: int
) -> list[tuple[_Segment, Offsets]]:
    """Returns as many segments as `longest` has, with cuts at earlier times at which fewer bytes are live.

    `longest`: the segments with their offsets. The list is empty if there are no such cuts. The function
    works from the last segment backwards: if a cut moves to an earlier time, the segment before it becomes
    shorter and keeps its offsets, and only the segment after it has to be placed again.
    """
    is_cheaper, segments, stop = False, list[tuple[_Segment, Offsets]](), longest[-1][0].stop
    for (before, _), (after, offsets) in reversed(list(pairwise(longest))):
        alive = problem.alive
        fewer = [s for s in range(before.start + 1, after.start) if alive[s] < alive[after.start]]
        for start in sorted(fewer, key=lambda s: (problem.alive[s], -s))[:EARLIER_CUTS]:
            segment = problem.segment(start, stop)
            result = _try_segment(problem, segment, height, QUICK_NODES)
            if result is not None:
                is_cheaper = True
                break
        else:
            segment = problem.segment(after.start, stop)
            result = {i: offsets[i] for i in segment.buffers}
        segments.append((segment, result))
        stop = segment.start
    first = problem.segment(0, stop)
    segments.append((first, {i: longest[0][1][i] for i in first.buffers}))
    return segments[::-1] if is_cheaper else []


def _try_segment(problem: _Problem, segment: _Segment, height: int, nodes: int) -> Offsets | None:
    """Returns offsets of a segment within `height`; None if a search of `nodes` nodes finds none.

    Before a long search for the whole segment, only its end is searched. The end is small, so that search
    shows soon if nothing fits.
    """
    if len(segment.buffers) > MOST_TOGETHER:
        return None
    if nodes == PROBE_NODES and segment.stop - segment.start > TAIL:
        tail = problem.segment(segment.stop - TAIL, segment.stop)
        if _place_pinned(problem, tail, height, {}, TAIL_NODES) is None:
            return None
    return _place_pinned(problem, segment, height, {}, nodes)


def _keep_offsets(
    problem: _Problem, segment: _Segment, offsets: Offsets, height: int, wished: Offsets
) -> Offsets:
    """Returns offsets of a segment that leave many large buffers at their `wished` offsets.

    `offsets`: offsets that the segment has already. The wishes are tried one by one, the largest buffer
    first. After MOST_FAILED failed searches in a row there is no further search.
    """
    pins: Offsets = {}
    failed = 0
    for i in sorted(wished, key=lambda i: (-problem.buffers[i].size, i)):
        candidate = pins | {i: wished[i]}
        if all(offsets[k] == at for k, at in candidate.items()):
            pins = candidate
        elif failed < MOST_FAILED:
            result = _place_pinned(problem, segment, height, candidate)
            failed += 1
            if result is not None:
                offsets, pins, failed = result, candidate, 0
    return offsets


def _place_pinned(
    whole: _Problem, segment: _Segment, height: int, pins: Offsets, nodes: int = PROBE_NODES
) -> Offsets | None:
    """Returns offsets of a segment within `height`; None if the search finds none.

    `pins`: buffer's position -> the offset that it must have.
    """
    if not whole.work.goes_on():
        return None
    problem, key = segment.problem, (height, nodes, *(pins.get(i) for i in segment.buffers if pins))
    result = segment.results.get(key)
    if result is not None:
        whole.work.spend(units(problem, result))
    else:
        if pins:
            items = zip(segment.buffers, problem.items, strict=True)
            pinned = (item._replace(offset=pins[i]) if i in pins else item for i, item in items)
            problem = arena.Problem(tuple(pinned), problem.permissions)
        try:
            result = segment.results[key] = decide(problem, height, nodes, work=whole.work)
        except UnsupportedError:
            return None
    solution = result.solution
    return None if solution is None else dict(zip(segment.buffers, solution.offsets, strict=True))


def _join_segments(
    problem: _Problem, segments: Sequence[tuple[_Segment, Offsets]], height: int, least: int
) -> Parted | None:
    """Joins the placements of consecutive segments into one, so that as few bytes as possible move.

    Returns None if every order of the moves overwrites bytes that are still needed.
    """
    parts, origin, overlaps = list[Buffer](), list[int](), list[Overlap]()
    current: dict[int, int] = {}  # buffer's position -> its latest part
    moves: list[Move] = []
    for segment, offsets in segments:
        wished = {i: parts[current[i]].offset for i in segment.buffers if i in current}
        at = _keep_offsets(problem, segment, offsets, height, wished)
        new_moves: list[Move] = []
        begin = problem.times[segment.start]
        for i, item in zip(segment.buffers, segment.problem.items, strict=True):
            first, last, latest = begin + item.lower, begin + item.upper - 1, current.get(i)
            if latest is not None and parts[latest].offset == at[i]:
                parts[latest] = replace_numbers(parts[latest], last=last)
                continue
            current[i] = len(parts)
            parts.append(replace_numbers(problem.buffers[i], first=first, last=last, offset=at[i]))
            origin.append(i)
            if latest is not None:
                new_moves.append(Move(latest, current[i]))
        ordered = in_order(new_moves, parts)
        if ordered is None:
            return None
        moves += ordered
        renumbered = (
            replace_numbers(o, input=current[o.input], output=current[o.output]) for o in segment.options
        )
        overlaps += [o for o in renumbered if parts[o.input].touches(parts[o.output])]
    order = sorted(range(len(parts)), key=lambda part: (origin[part], parts[part].first))
    to = {part: i for i, part in enumerate(order)}
    top = arena.round_up(max(part.offset + part.size for part in parts), problem.alignment)
    placed = Placed(
        tuple(parts[part] for part in order),
        tuple(replace_numbers(o, input=to[o.input], output=to[o.output]) for o in dict.fromkeys(overlaps)),
        min(height, top),
        least,
    )
    last_moves = tuple(Move(to[move.source], to[move.target]) for move in moves)
    return Parted(placed, tuple(origin[part] for part in order), last_moves)


def in_order(moves: Iterable[Move], parts: Sequence[Buffer]) -> tuple[Move, ...] | None:
    """Orders moves so that none overwrites the source of a later move in the same step.

    `parts`: the buffers that the moves refer to. Returns None if there is no such order.
    """
    waiting, ordered = sorted(moves, key=lambda move: parts[move.target].first), list[Move]()
    while waiting:
        now = [move for move in waiting if parts[move.target].first == parts[waiting[0].target].first]
        for move in now:
            target = parts[move.target]
            if not any(target.touches(parts[other.source]) for other in now if other is not move):
                break
        else:
            return None
        waiting.remove(move)
        ordered.append(move)
    return tuple(ordered)
