"""Placing where tensors may move: between two regions a whole tensor can be copied to another place.

A region's output that lies over its dying input lies lower than that; so in a chain of regions every
tensor lies lower than the one before, and the first ones lie high, in the way. A copy ends the chain and
costs a few instructions a word. With one before every region, each region could be placed by itself; as
few are made as that height needs.
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
from buildtool.plan.place.solver import decide
from buildtool.plan.types import Buffer, Move, Overlap, replace_numbers

QUICK_NODES = 500  # of the exact search for how far a stretch goes without a move
PROBE_NODES = 8_000  # of the same where it is about to end
TAIL = 6  # regions at the end of a stretch that are searched before all of it
TAIL_NODES = 5_000  # of the exact search for these
EARLIER_CUTS = 3  # that are tried, where less would have to be moved than at the last one
MOST_FAILED = 8  # wishes in a row that were not met: no other one is tried after that
MOST_TOGETHER = 512  # buffers of a stretch of several regions: longer ones are placed piece by piece

Offsets = dict[int, int]  # buffer's position -> offset


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
        """The bytes that all moves copy together."""
        return sum(self.placed.buffers[move.source].size for move in self.moves)


@dataclass(frozen=True)
class _Stretch:
    """The part of a problem between the cuts `start` and `stop` (positions in the problem's times).

    `buffers`: by position, ascending; `options`: the overlaps in it; `problem`: the same in the arena's
    terms, lives cut off at the cuts.
    """

    start: int
    stop: int
    buffers: tuple[int, ...]
    options: tuple[Overlap, ...]
    problem: arena.Problem


class _Problem:
    """Buffers and overlaps, in stretches between the cuts at which nothing but tensors is alive.

    `alive`: bytes of the buffers alive on both sides of each cut.
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
        barred = [0] * (end + 1)  # how many more of the fixed buffers are alive on both sides of a time
        for i in fixed:
            barred[buffers[i].first + 1] += 1
            barred[buffers[i].last + 1] -= 1
        across = list(accumulate(barred))
        self.times = [0, *(c for c in cuts if 0 < c < end and not across[c]), end]
        self.stretches = len(self.times) - 1
        self._items = arena_problem(buffers, (), alignment).items
        self._buffers = _Spans(self.times, [(b.first, b.last) for b in buffers])
        self.alive = [sum(buffers[i].size for i in held) for held in self._buffers.held]
        pairs = ((buffers[o.input], buffers[o.output]) for o in options)
        self._options = _Spans(self.times, [(max(a.first, b.first), min(a.last, b.last)) for a, b in pairs])

    @property
    def is_cut_short(self) -> bool:
        """Whether a search was left out because the budget of work had ended."""
        return self.work.denied > self._denied

    @remembered
    def stretch(self, start: int, stop: int) -> _Stretch:
        """From the cut `start` to the cut `stop`."""
        first, end = self.times[start], self.times[stop]
        inside = self._buffers.between(start, stop)
        options = tuple(self.options[k] for k in self._options.between(start, stop))
        index = {position: i for i, position in enumerate(inside)}
        items = []
        for item in (self._items[i] for i in inside):
            lower, upper = max(first, item.lower), min(end, item.upper)
            is_whole = (lower, upper) == (item.lower, item.upper)
            items.append(item if is_whole else item._replace(lower=lower, upper=upper))
        permissions = (arena.Permission(index[o.output], index[o.input], o.distance) for o in options)
        problem = arena.Problem(tuple(items), tuple(permissions))
        return _Stretch(start, stop, tuple(inside), options, problem)

    def singles(self) -> list[_Stretch]:
        """The stretches between neighbouring cuts."""
        return [self.stretch(i, i + 1) for i in range(self.stretches)]

    @remembered
    def single(self, number: int, height: int) -> Offsets | None:
        """Offsets within `height` from a cut to the next; None where none were found."""
        return _place_pinned(self, self.stretch(number, number + 1), height, {})

    def placed(self, stretch: _Stretch) -> arena.Solution:
        """A stretch by itself, as low as found."""
        index = {position: i for i, position in enumerate(stretch.buffers)}
        buffers = [
            replace_numbers(self.buffers[position], first=item.lower, last=item.upper - 1)
            for position, item in zip(stretch.buffers, stretch.problem.items, strict=True)
        ]
        options = [replace_numbers(o, input=index[o.input], output=index[o.output]) for o in stretch.options]
        lowest = place(buffers, options, self.alignment, self.work)
        return arena.Solution(tuple(b.offset for b in lowest.buffers), lowest.height)


class _Spans:
    """Which spans of time (both ends inside; empty if the last is before the first) meet a stretch.

    `held`: for each cut, the spans that go across it.
    """

    def __init__(self, times: Sequence[int], spans: Sequence[tuple[int, int]]) -> None:
        self._begun: list[list[int]] = [[] for _ in times]  # by the stretch in which they begin
        self.held: list[list[int]] = [[] for _ in times]
        for k, (first, last) in enumerate(spans):
            if first <= last:
                begun = bisect_right(times, first) - 1
                self._begun[begun].append(k)
                for cut in range(begun + 1, bisect_right(times, last)):
                    self.held[cut].append(k)

    def between(self, start: int, stop: int) -> list[int]:
        """The spans alive between two cuts, ascending."""
        return sorted(chain(self.held[start], *self._begun[start:stop]))


def least_between(
    buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, cuts: Sequence[int]
) -> list[int]:
    """For each two neighbouring cuts a lower bound of placements of what is alive there, moves or not."""
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
    """A placement with moves at some of the `cuts` (times), if one is lower than `below` bytes.

    `fixed`: positions of buffers that cannot move. The lowest that is found, or one within `enough` bytes:
    the more bytes there are, the fewer tensors have to be moved. None where the budget of `work` has ended.
    """
    work = work or Work()
    if not buffers or not work.goes_on():
        return None
    problem = _Problem(buffers, options, alignment, cuts, fixed, work)
    singles = problem.singles()
    least = 0
    for size, single in sorted(((sum(s.problem.sizes), s) for s in singles), key=lambda pair: -pair[0]):
        if size <= least:
            break  # and so are the others, whatever shares its bytes in them
        least = max(least, single.problem.bound.bytes)
    if len(singles) < 2 or least >= below:
        return None
    high = [s for s in singles if sum(s.problem.sizes) > least and problem.single(s.start, least) is None]
    height = max([least, *(problem.placed(single).height for single in high)])
    if height >= below or problem.is_cut_short:
        return None
    free = int(min(enough, below - 1)) // alignment * alignment
    tried = [_place_within(problem, h, least) for h in dict.fromkeys((height, max(height, free)))]
    return min((parted for parted in tried if parted), key=Parted.moved_bytes, default=None)


def _place_within(problem: _Problem, height: int, least: int) -> Parted | None:
    """A placement within `height` bytes, in as few stretches as are found."""
    longest = list(_longest(problem, height))
    if problem.is_cut_short:
        return None  # stretches that nobody looked for are no reason to move tensors
    ways = (longest, _cheaper(problem, longest, height))
    tried = (_join_stretches(problem, way, height, least) for way in ways if way)
    return min((parted for parted in tried if parted), key=Parted.moved_bytes, default=None)


def _longest(problem: _Problem, height: int) -> Iterator[tuple[_Stretch, Offsets]]:
    """From the first cut on, each stretch as long as it can be placed within `height`, with its offsets.

    The length is found by steps that double as long as they succeed, and then are halved: the effort
    depends on the stretch's own length. Short searches come first; where they end, long ones go on.
    """
    start = 0
    while start < problem.stretches:
        best = problem.stretch(start, start + 1)
        offsets = problem.single(start, height)
        if offsets is None:
            offsets = dict(zip(best.buffers, problem.placed(best).offsets, strict=True))
        low = start + 1
        for nodes in (QUICK_NODES, PROBE_NODES):
            high, step = problem.stretches + 1, 1  # what ends at `low` can be placed, at `high` it cannot
            while high - low > 1:
                middle = (low + high) // 2 if high <= problem.stretches else problem.stretches
                stretch = problem.stretch(start, min(low + step, middle))
                tried = _try_stretch(problem, stretch, height, nodes)
                if tried is None:
                    high = stretch.stop
                else:
                    low, best, offsets, step = stretch.stop, stretch, tried, 2 * step
        yield best, offsets
        start = low


def _cheaper(
    problem: _Problem, longest: Sequence[tuple[_Stretch, Offsets]], height: int
) -> list[tuple[_Stretch, Offsets]]:
    """As many stretches, which begin where fewer bytes are alive than where the longest ones end.

    Empty where there are none. From the last one on: what is before an earlier cut was placed already.
    """
    is_cheaper, stretches, stop = False, list[tuple[_Stretch, Offsets]](), longest[-1][0].stop
    for (before, _), (after, offsets) in reversed(list(pairwise(longest))):
        alive = problem.alive
        fewer = [s for s in range(before.start + 1, after.start) if alive[s] < alive[after.start]]
        for start in sorted(fewer, key=lambda s: (problem.alive[s], -s))[:EARLIER_CUTS]:
            stretch = problem.stretch(start, stop)
            tried = _try_stretch(problem, stretch, height, QUICK_NODES)
            if tried is not None:
                is_cheaper = True
                break
        else:
            stretch = problem.stretch(after.start, stop)
            tried = {i: offsets[i] for i in stretch.buffers}
        stretches.append((stretch, tried))
        stop = stretch.start
    first = problem.stretch(0, stop)
    stretches.append((first, {i: longest[0][1][i] for i in first.buffers}))
    return stretches[::-1] if is_cheaper else []


def _try_stretch(problem: _Problem, stretch: _Stretch, height: int, nodes: int) -> Offsets | None:
    """Offsets of a stretch within `height`.

    A long search for all of it comes after one for its end, which is small, and shows soonest that
    nothing fits.
    """
    if len(stretch.buffers) > MOST_TOGETHER:
        return None
    if nodes == PROBE_NODES and stretch.stop - stretch.start > TAIL:
        tail = problem.stretch(stretch.stop - TAIL, stretch.stop)
        if _place_pinned(problem, tail, height, {}, TAIL_NODES) is None:
            return None
    return _place_pinned(problem, stretch, height, {}, nodes)


def _offsets(problem: _Problem, stretch: _Stretch, offsets: Offsets, height: int, wished: Offsets) -> Offsets:
    """The offsets of a stretch, with as many as possible of the largest buffers where it is wished.

    Where some in a row cannot, the smaller ones behind them lie where they came to lie.
    """
    pins: Offsets = {}
    failed = 0
    for i in sorted(wished, key=lambda i: (-problem.buffers[i].size, i)):
        wanted = pins | {i: wished[i]}
        if all(offsets[k] == at for k, at in wanted.items()):
            pins = wanted
        elif failed < MOST_FAILED:
            tried = _place_pinned(problem, stretch, height, wanted)
            failed += 1
            if tried is not None:
                offsets, pins, failed = tried, wanted, 0
    return offsets


def _place_pinned(
    whole: _Problem, stretch: _Stretch, height: int, pins: Offsets, nodes: int = PROBE_NODES
) -> Offsets | None:
    """Offsets within `height`, some of them given; None where none were found."""
    if not whole.work.goes_on():
        return None
    problem = stretch.problem
    if pins:
        items = zip(stretch.buffers, problem.items, strict=True)
        pinned = (item._replace(offset=pins[i]) if i in pins else item for i, item in items)
        problem = arena.Problem(tuple(pinned), problem.permissions)
    try:
        solution = decide(problem, height, nodes, work=whole.work).solution
    except UnsupportedError:
        return None
    return None if solution is None else dict(zip(stretch.buffers, solution.offsets, strict=True))


def _join_stretches(
    problem: _Problem, stretches: Sequence[tuple[_Stretch, Offsets]], height: int, least: int
) -> Parted | None:
    """The parts of stretches that follow each other; as few bytes move between them as are found.

    None where no order of the moves keeps every byte.
    """
    parts, origin, overlaps = list[Buffer](), list[int](), list[Overlap]()
    current: dict[int, int] = {}  # buffer's position -> its latest part
    moves: list[Move] = []
    for stretch, offsets in stretches:
        wished = {i: parts[current[i]].offset for i in stretch.buffers if i in current}
        at = _offsets(problem, stretch, offsets, height, wished)
        moved: list[Move] = []
        for i, item in zip(stretch.buffers, stretch.problem.items, strict=True):
            first, last, known = item.lower, item.upper - 1, current.get(i)
            if known is not None and parts[known].offset == at[i]:
                parts[known] = replace_numbers(parts[known], last=last)
                continue
            current[i] = len(parts)
            parts.append(replace_numbers(problem.buffers[i], first=first, last=last, offset=at[i]))
            origin.append(i)
            if known is not None:
                moved.append(Move(known, current[i]))
        ordered = in_order(moved, parts)
        if ordered is None:
            return None
        moves += ordered
        named = (
            replace_numbers(o, input=current[o.input], output=current[o.output]) for o in stretch.options
        )
        overlaps += [o for o in named if parts[o.input].touches(parts[o.output])]
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
