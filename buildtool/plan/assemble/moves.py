"""Placing where tensors may move: between two regions a whole tensor can be copied to another place.

A region's output that lies over its dying input lies lower than that; so in a chain of regions every
tensor lies lower than the one before, and the first ones high, where they are in the way. A copy ends
the chain, and costs a few instructions a word. With one before every region, each region could be
placed by itself; as few are made as that height needs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise

from buildtool.base.errors import UnsupportedError
from buildtool.base.session import remembered
from buildtool.base.work import Work
from buildtool.plan.assemble.placement import Placed, place
from buildtool.plan.place import arena
from buildtool.plan.place.arena import arena_problem
from buildtool.plan.place.bounds import bound
from buildtool.plan.place.solver import decide
from buildtool.plan.types import Buffer, Move, Overlap, changed

QUICK_NODES = 500  # of the exact search for how far a stretch goes without a move
PROBE_NODES = 8_000  # of the same where it is about to end
TAIL = 6  # regions at the end of a stretch, which are looked at before all of it
TAIL_NODES = 5_000  # of the exact search for these
EARLIER_CUTS = 3  # that are tried, where less would have to be moved than at the last one
MOST_FAILED = 8  # wishes in a row that were not met: no other one is tried after that
MOST_TOGETHER = 512  # buffers of a stretch of several regions: what is longer is placed piece by piece


@dataclass(frozen=True)
class Parted:
    """Buffers in parts, each with its offset; times as they came in.

    `origin`: part -> the buffer's position, ascending; a buffer's parts follow each other in time.
    Overlaps and moves name parts; moves are in the order in which they have to be made.
    """

    placed: Placed
    origin: tuple[int, ...]
    moves: tuple[Move, ...]

    def moved_bytes(self) -> int:
        """What all moves copy together."""
        return sum(self.placed.buffers[move.source].size for move in self.moves)


@dataclass(frozen=True)
class _Stretch:
    """The part of a problem between two cuts: buffers (by position, ascending) and overlaps that are in it.

    `problem`: the same in the arena's terms, lives cut off at the cuts.
    """

    buffers: tuple[int, ...]
    options: tuple[Overlap, ...]
    problem: arena.Problem

    def offsets(self, solution: arena.Solution) -> dict[int, int]:
        """Position -> offset."""
        return dict(zip(self.buffers, solution.offsets, strict=True))


@dataclass(frozen=True)
class _Placed:
    """A stretch from cut `start` to cut `stop` (positions in the problem's times) with its offsets."""

    start: int
    stop: int
    stretch: _Stretch
    offsets: dict[int, int]


class _Problem:
    """Buffers and overlaps, in stretches between the cuts at which nothing but tensors is alive."""

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
        barred = [0] * (end + 1)  # how many more of the fixed buffers are alive on both sides of a time
        for i in fixed:
            barred[buffers[i].first + 1] += 1
            barred[buffers[i].last + 1] -= 1
        alive = list(accumulate(barred))
        self.times = [0, *(c for c in cuts if 0 < c < end and not alive[c]), end]
        self._items = arena_problem(buffers, (), alignment).items
        self._buffers = _Spans(self.times, [(b.first, b.last) for b in buffers])
        self._alive = [
            sum(buffers[i].size for i in held)
            for held in (self._buffers.across(k) for k in range(len(self.times)))
        ]
        pairs = ((buffers[o.input], buffers[o.output]) for o in options)
        self._options = _Spans(self.times, [(max(a.first, b.first), min(a.last, b.last)) for a, b in pairs])

    @property
    def is_cut_short(self) -> bool:
        """Whether nothing was left of the work for a search that was wanted."""
        return self.work.denied > self._denied

    @property
    def stretches(self) -> int:
        """How many stretches there are between neighbouring cuts."""
        return len(self.times) - 1

    def alive(self, cut: int) -> int:
        """Bytes of what is alive on both sides of a cut."""
        return self._alive[cut]

    def stretch(self, start: int, stop: int) -> _Stretch:
        """From the cut `start` to the cut `stop` (positions in `times`)."""
        if stop == start + 1:
            return self.singles[start]
        return self._made(start, stop)

    @cached_property
    def singles(self) -> list[_Stretch]:
        """The stretches between neighbouring cuts."""
        return [self._made(i, i + 1) for i in range(self.stretches)]

    def _made(self, start: int, stop: int) -> _Stretch:
        first, end = self.times[start], self.times[stop]
        inside = self._buffers.between(start, stop)
        options = tuple(self.options[k] for k in self._options.between(start, stop))
        index = {position: i for i, position in enumerate(inside)}
        items = []
        for i in inside:
            item = self._items[i]
            if item.lower < first or item.upper > end:
                item = arena.Item(max(first, item.lower), min(end, item.upper), item.size, item.alignment)
            items.append(item)
        permissions = (arena.Permission(index[o.output], index[o.input], o.distance) for o in options)
        return _Stretch(tuple(inside), options, arena.Problem(tuple(items), tuple(permissions)))

    @remembered
    def single(self, number: int, height: int) -> dict[int, int] | None:
        """Offsets within `height` from a cut to the next; None where none were found."""
        return _pinned(self, self.singles[number], height, {})

    def placed(self, stretch: _Stretch) -> arena.Solution:
        """A stretch by itself, as low as found."""
        index = {position: i for i, position in enumerate(stretch.buffers)}
        buffers = [
            changed(self.buffers[position], first=item.lower, last=item.upper - 1)
            for position, item in zip(stretch.buffers, stretch.problem.items, strict=True)
        ]
        options = [changed(o, input=index[o.input], output=index[o.output]) for o in stretch.options]
        found = place(buffers, options, self.alignment, self.work)
        return arena.Solution(tuple(b.offset for b in found.buffers), found.height)


class _Spans:
    """Which of some spans of time (both ends inside; none if the last is before the first) meet a stretch."""

    def __init__(self, times: Sequence[int], spans: Sequence[tuple[int, int]]) -> None:
        self._begun: list[list[int]] = [[] for _ in times]  # by the stretch in which they begin
        self._held: list[list[int]] = [[] for _ in times]  # by the cut that they go across
        for k, (first, last) in enumerate(spans):
            if first > last:
                continue
            begun = bisect_right(times, first) - 1
            self._begun[begun].append(k)
            for cut in range(begun + 1, bisect_right(times, last)):
                self._held[cut].append(k)

    def across(self, cut: int) -> list[int]:
        """Those that go across a cut."""
        return self._held[cut]

    def between(self, start: int, stop: int) -> list[int]:
        """Those alive between two cuts, ascending."""
        return sorted(chain(self._held[start], *self._begun[start:stop]))


def least_between(
    buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, cuts: Sequence[int]
) -> list[int]:
    """For each two neighbouring cuts: no placement of what is alive between them is lower, moves or not."""
    problem = _Problem(buffers, options, alignment, cuts, ())
    return [bound(single.problem).bytes for single in problem.singles]


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
    """A placement with moves at some of the `cuts` (times), if one is lower than `below` bytes.

    `fixed`: positions of buffers that cannot move. The lowest that is found, or one within `enough` bytes:
    the more bytes there are, the fewer tensors have to be moved. None where nothing is left of `work`.
    """
    work = work or Work()
    if not buffers or not work.goes_on():
        return None
    problem = _Problem(buffers, options, alignment, cuts, fixed, work)
    singles = problem.singles
    least = 0
    for size, single in sorted(((sum(s.problem.sizes), s) for s in singles), key=lambda pair: -pair[0]):
        if size <= least:
            break  # and so are the others, whatever shares its bytes in them
        least = max(least, bound(single.problem).bytes)
    if len(singles) < 2 or least >= below:
        return None
    high = [i for i, single in enumerate(singles) if not _fits(problem, i, single, least)]
    height = max([least, *(problem.placed(singles[i]).height for i in high)])
    if height >= below or problem.is_cut_short:
        return None
    free = int(min(enough, below - 1)) // alignment * alignment
    heights = dict.fromkeys((height, max(height, free)))
    found = [_within(problem, h, least) for h in heights]
    return min((parted for parted in found if parted), key=Parted.moved_bytes, default=None)


def _within(problem: _Problem, height: int, least: int) -> Parted | None:
    """A placement within `height` bytes, in as few stretches as are found."""
    found = list(_stretches(problem, height))
    if problem.is_cut_short:
        return None  # stretches that nobody looked for are no reason to move tensors
    made = (_joined(problem, way, height, least) for way in (found, _cheaper(problem, found, height)) if way)
    return min((parted for parted in made if parted), key=Parted.moved_bytes, default=None)


def _joined(problem: _Problem, found: Sequence[_Placed], height: int, least: int) -> Parted | None:
    """The parts of stretches that follow each other; as few bytes move between them as are found."""
    offsets = [found[0].offsets]
    for before, after in pairwise(found):
        held = set(before.stretch.buffers)
        wished = {i: offsets[-1][i] for i in after.stretch.buffers if i in held}
        offsets.append(_offsets(problem, after.stretch, after.offsets, height, wished))
    return _parted(problem, [placed.stretch for placed in found], offsets, height, least)


def _cheaper(problem: _Problem, found: Sequence[_Placed], height: int) -> list[_Placed]:
    """As many stretches, that begin where fewer bytes are alive than where the ones before have to end.

    Empty where there are none. From the last one on: what is before an earlier cut was placed already.
    """
    changed, made, stop = False, list[_Placed](), found[-1].stop
    for before, after in reversed(list(pairwise(found))):
        latest, alive = before.stop, problem.alive(before.stop)
        starts = [s for s in range(before.start + 1, latest) if problem.alive(s) < alive]
        offsets, start, stretch = None, latest, after.stretch
        for start in sorted(starts, key=lambda s: (problem.alive(s), -s))[:EARLIER_CUTS]:
            stretch = problem.stretch(start, stop)
            offsets = _tried(problem, start, stop, stretch, height, QUICK_NODES)
            if offsets is not None:
                break
        if offsets is None:
            start, stretch = latest, problem.stretch(latest, stop)
            kept = set(stretch.buffers)
            offsets = {i: at for i, at in after.offsets.items() if i in kept}
        else:
            changed = True
        made.append(_Placed(start, stop, stretch, offsets))
        stop = start
    first = found[0]
    kept_first = problem.stretch(first.start, stop)
    inside = set(kept_first.buffers)
    made.append(
        _Placed(first.start, stop, kept_first, {i: at for i, at in first.offsets.items() if i in inside})
    )
    return made[::-1] if changed else []


def _stretches(problem: _Problem, height: int) -> Iterator[_Placed]:
    """From the first cut on, each as long as it can be placed within `height`, with its offsets.

    How long that is, is found by steps that double as long as they succeed, and then are halved: the
    effort depends on the stretch's own length. Short searches come first; where they end it, long ones
    go on from there.
    """
    start, count = 0, problem.stretches
    while start < count:
        best = problem.stretch(start, start + 1)
        offsets = problem.single(start, height)
        if offsets is None:
            offsets = best.offsets(problem.placed(best))
        low = start + 1
        for nodes in (QUICK_NODES, PROBE_NODES):
            high, step = count + 1, 1  # what ends at `low` can be placed, at `high` it cannot
            while high - low > 1:
                stop = min(low + step, (low + high) // 2 if high <= count else count)
                stretch = problem.stretch(start, stop)
                found = _tried(problem, start, stop, stretch, height, nodes)
                if found is None:
                    high = stop
                else:
                    low, best, offsets, step = stop, stretch, found, 2 * step
        yield _Placed(start, low, best, offsets)
        start = low


def _tried(
    problem: _Problem, start: int, stop: int, stretch: _Stretch, height: int, nodes: int
) -> dict[int, int] | None:
    """Offsets of a stretch, of `start` to `stop`, within `height`.

    A long search for all of it comes after one for its end, which is small, and shows soonest that
    nothing fits.
    """
    if len(stretch.buffers) > MOST_TOGETHER:
        return None
    if nodes == PROBE_NODES and stop - start > TAIL:
        tail = problem.stretch(stop - TAIL, stop)
        if _pinned(problem, tail, height, {}, TAIL_NODES) is None:
            return None
    return _pinned(problem, stretch, height, {}, nodes)


def _offsets(
    problem: _Problem, stretch: _Stretch, offsets: dict[int, int], height: int, wished: dict[int, int]
) -> dict[int, int]:
    """Position -> offset in a stretch; as many as can be of the largest buffers lie where it is wished.

    Where some in a row cannot, the smaller ones behind them lie where they came to lie.
    """
    pins: dict[int, int] = {}
    failed = 0
    for i in sorted(wished, key=lambda i: (-problem.buffers[i].size, i)):
        tried = pins | {i: wished[i]}
        if all(offsets[k] == at for k, at in tried.items()):
            pins = tried
            continue
        if failed == MOST_FAILED:
            continue
        found = _pinned(problem, stretch, height, tried)
        failed += 1
        if found is not None:
            offsets, pins, failed = found, tried, 0
    return offsets


def _fits(problem: _Problem, number: int, single: _Stretch, height: int) -> bool:
    """Whether the stretch from a cut to the next was found to fit within `height` bytes."""
    return sum(single.problem.sizes) <= height or problem.single(number, height) is not None


def _pinned(
    whole: _Problem, stretch: _Stretch, height: int, pins: dict[int, int], nodes: int = PROBE_NODES
) -> dict[int, int] | None:
    """Offsets within `height` with some of them given; None where none were found."""
    if not whole.work.goes_on():
        return None
    problem = stretch.problem
    if pins:
        items = [
            item._replace(offset=pins[i]) if i in pins else item
            for i, item in zip(stretch.buffers, problem.items, strict=True)
        ]
        problem = arena.Problem(tuple(items), problem.permissions)
    try:
        solution = decide(problem, height, nodes, work=whole.work).solution
    except UnsupportedError:
        return None
    return None if solution is None else stretch.offsets(solution)


def _parted(
    problem: _Problem,
    stretches: Sequence[_Stretch],
    offsets: Sequence[dict[int, int]],
    height: int,
    least: int,
) -> Parted | None:
    """The parts of all stretches, as high as they are; None where no order of the moves keeps every byte."""
    parts: list[Buffer] = []
    origin: list[int] = []
    current: dict[int, int] = {}  # position -> its latest part
    moves: list[Move] = []
    overlaps: list[Overlap] = []
    for stretch, at in zip(stretches, offsets, strict=True):
        moved: list[Move] = []
        for i, item in zip(stretch.buffers, stretch.problem.items, strict=True):
            known = current.get(i)
            if known is not None and parts[known].offset == at[i]:
                parts[known] = changed(parts[known], last=item.upper - 1)
                continue
            current[i] = len(parts)
            first, last = item.lower, item.upper - 1
            parts.append(changed(problem.buffers[i], first=first, last=last, offset=at[i]))
            origin.append(i)
            if known is not None:
                moved.append(Move(known, current[i]))
        ordered = in_order(moved, parts)
        if ordered is None:
            return None
        moves += ordered
        named = (changed(o, input=current[o.input], output=current[o.output]) for o in stretch.options)
        overlaps += [o for o in named if parts[o.input].touches(parts[o.output])]
    order = sorted(range(len(parts)), key=lambda part: (origin[part], parts[part].first))
    top = max(part.offset + part.size for part in parts)
    at_last = {part: i for i, part in enumerate(order)}
    return Parted(
        Placed(
            height=min(height, arena.round_up(top, problem.alignment)),
            bound=least,
            buffers=tuple(parts[part] for part in order),
            overlaps=tuple(
                changed(o, input=at_last[o.input], output=at_last[o.output]) for o in dict.fromkeys(overlaps)
            ),
        ),
        tuple(origin[part] for part in order),
        tuple(Move(at_last[move.source], at_last[move.target]) for move in moves),
    )


def in_order(moves: Iterable[Move], parts: Sequence[Buffer]) -> tuple[Move, ...] | None:
    """Moves so that none writes over what a later one of the same moment reads; None for a circle of them."""
    left, ordered = sorted(moves, key=lambda move: parts[move.target].first), list[Move]()
    while left:
        now = [move for move in left if parts[move.target].first == parts[left[0].target].first]
        for move in now:
            target = parts[move.target]
            if not any(target.touches(parts[other.source]) for other in now if other is not move):
                break
        else:
            return None
        left.remove(move)
        ordered.append(move)
    return tuple(ordered)
