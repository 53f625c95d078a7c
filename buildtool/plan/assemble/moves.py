"""Placing where tensors may move: between two regions a whole tensor can be copied to another place.

A region's output that lies over its dying input lies lower than that; so in a chain of regions every
tensor lies lower than the one before, and the first ones high, where they are in the way. A copy ends
the chain, and costs a few instructions a word. With one before every region, each region could be
placed by itself; as few are made as that height needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from buildtool.errors import UnsupportedError
from buildtool.plan.assemble.placement import SEARCH_NODES, Placed, place
from buildtool.plan.place import arena
from buildtool.plan.place.bounds import bound
from buildtool.plan.place.problem import arena_problem
from buildtool.plan.place.solver import decide
from buildtool.plan.types import Buffer, Move, Overlap


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
    """The part of a problem between two cuts: buffers with their lives in it, by position."""

    first: int
    end: int  # of time, exclusive
    buffers: dict[int, Buffer]
    options: tuple[Overlap, ...]

    def numbered(self) -> tuple[list[Buffer], list[Overlap]]:
        """Buffers and overlaps, which name the buffers by their place in the list."""
        index = {position: i for i, position in enumerate(self.buffers)}
        options = [replace(o, input=index[o.input], output=index[o.output]) for o in self.options]
        return list(self.buffers.values()), options

    def least(self, alignment: int) -> int:
        """No placement of the stretch is lower."""
        return bound(arena_problem(*self.numbered(), alignment)).bytes

    def placed(self, alignment: int) -> Placed:
        """The stretch by itself."""
        return place(*self.numbered(), alignment)

    def offsets(self, placed: Placed) -> dict[int, int]:
        """Position -> offset."""
        return {i: b.offset for i, b in zip(self.buffers, placed.buffers, strict=True)}


class _Problem:
    """Buffers and overlaps, in stretches between the cuts at which nothing but tensors is alive."""

    def __init__(
        self,
        buffers: Sequence[Buffer],
        options: Sequence[Overlap],
        cuts: Sequence[int],
        fixed: Collection[int],
    ) -> None:
        self.buffers, self.options = buffers, options
        end = max(b.last for b in buffers) + 1
        still = [b for i, b in enumerate(buffers) if i in fixed]
        free = [c for c in cuts if not any(b.first < c <= b.last for b in still)]
        self.times = [0, *(c for c in free if 0 < c < end), end]

    def stretch(self, start: int, stop: int) -> _Stretch:
        """From the cut `start` to the cut `stop` (positions in `times`)."""
        first, end = self.times[start], self.times[stop]
        inside = {
            i: replace(b, first=max(first, b.first), last=min(end - 1, b.last))
            for i, b in enumerate(self.buffers)
            if b.first < end and b.last >= first
        }
        options = tuple(o for o in self.options if o.input in inside and o.output in inside)
        return _Stretch(first, end, inside, tuple(o for o in options if _meet(inside, o)))


def _meet(buffers: dict[int, Buffer], o: Overlap) -> bool:
    a, b = buffers[o.input], buffers[o.output]
    return a.first <= b.last and b.first <= a.last


def least_between(
    buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, cuts: Sequence[int]
) -> list[int]:
    """For each two neighbouring cuts: no placement of what is alive between them is lower, moves or not."""
    problem = _Problem(buffers, options, cuts, ())
    stretches = [problem.stretch(i, i + 1) for i in range(len(problem.times) - 1)]
    return [stretch.least(alignment) for stretch in stretches]


def place_in_parts(
    buffers: Sequence[Buffer],
    options: Sequence[Overlap],
    alignment: int,
    cuts: Sequence[int],
    fixed: Collection[int],
    below: int,
    enough: float = 0,
) -> Parted | None:
    """A placement with moves at some of the `cuts` (times), if one is lower than `below` bytes.

    `fixed`: positions of buffers that cannot move. The lowest that is found, or one within `enough` bytes:
    the more bytes there are, the fewer tensors have to be moved.
    """
    if not buffers:
        return None
    problem = _Problem(buffers, options, cuts, fixed)
    singles = [problem.stretch(i, i + 1) for i in range(len(problem.times) - 1)]
    least = max(single.least(alignment) for single in singles)
    if len(singles) < 2 or least >= below:
        return None
    high = [single for single in singles if _pinned(single, alignment, least, {}) is None]
    height = max([least, *(single.placed(alignment).height for single in high)])
    if height >= below:
        return None
    free = int(min(enough, below - 1)) // alignment * alignment
    heights = dict.fromkeys((height, max(height, free)))
    found = [_within(problem, alignment, h, least) for h in heights]
    return min((parted for parted in found if parted), key=Parted.moved_bytes, default=None)


def _within(problem: _Problem, alignment: int, height: int, least: int) -> Parted | None:
    """A placement within `height` bytes, in as few stretches as are found."""
    found = list(_stretches(problem, alignment, height))
    offsets = [found[0][1]]
    for (before, _), (after, anywhere) in pairwise(found):
        wished = {i: offsets[-1][i] for i in after.buffers if i in before.buffers}
        offsets.append(_offsets(after, anywhere, alignment, height, wished))
    return _parted([stretch for stretch, _ in found], offsets, Placed((), (), height, least), alignment)


def _stretches(problem: _Problem, alignment: int, height: int) -> Iterator[tuple[_Stretch, dict[int, int]]]:
    """From the first cut on, each as long as it can be placed within `height`, with its offsets."""
    start, count = 0, len(problem.times) - 1
    while start < count:
        low, high = start + 1, count + 1  # what ends at `low` can be placed, at `high` it cannot
        best: tuple[_Stretch, dict[int, int]] | None = None
        while high - low > 1 or best is None:
            stop = (low + high) // 2 if high - low > 1 else low
            stretch = problem.stretch(start, stop)
            offsets = _pinned(stretch, alignment, height, {})
            if offsets is None and stop == start + 1:
                offsets = stretch.offsets(stretch.placed(alignment))
            if offsets is None:
                high = stop
            else:
                low, best = stop, (stretch, offsets)
        yield best
        start = low


def _offsets(
    stretch: _Stretch, offsets: dict[int, int], alignment: int, height: int, wished: dict[int, int]
) -> dict[int, int]:
    """Position -> offset in a stretch; as many as can be of the largest buffers lie where it is wished."""
    pins: dict[int, int] = {}
    for i in sorted(wished, key=lambda i: (-stretch.buffers[i].size, i)):
        tried = pins | {i: wished[i]}
        if all(offsets[k] == at for k, at in tried.items()):
            pins = tried
            continue
        found = _pinned(stretch, alignment, height, tried)
        if found is not None:
            offsets, pins = found, tried
    return offsets


def _pinned(stretch: _Stretch, alignment: int, height: int, pins: dict[int, int]) -> dict[int, int] | None:
    """Offsets within `height` with some of them given; None where none were found."""
    problem = arena_problem(*stretch.numbered(), alignment)
    pinned = {i: pins[position] for i, position in enumerate(stretch.buffers) if position in pins}
    items = [replace(item, offset=pinned.get(i)) for i, item in enumerate(problem.items)]
    try:
        solution = decide(arena.Problem(tuple(items), problem.permissions), height, SEARCH_NODES).solution
    except UnsupportedError:
        return None
    return None if solution is None else dict(zip(stretch.buffers, solution.offsets, strict=True))


def _parted(
    stretches: Sequence[_Stretch], offsets: Sequence[dict[int, int]], totals: Placed, alignment: int
) -> Parted | None:
    """The parts of all stretches, as high as they are; None where no order of the moves keeps every byte."""
    parts: list[Buffer] = []
    origin: list[int] = []
    current: dict[int, int] = {}  # position -> its latest part
    moves: list[Move] = []
    overlaps: list[Overlap] = []
    for stretch, at in zip(stretches, offsets, strict=True):
        moved: list[Move] = []
        for i, buffer in stretch.buffers.items():
            known = current.get(i)
            if known is not None and parts[known].offset == at[i]:
                parts[known] = replace(parts[known], last=buffer.last)
                continue
            current[i] = len(parts)
            parts.append(replace(buffer, offset=at[i]))
            origin.append(i)
            if known is not None:
                moved.append(Move(known, current[i]))
        ordered = _in_order(moved, parts)
        if ordered is None:
            return None
        moves += ordered
        named = (replace(o, input=current[o.input], output=current[o.output]) for o in stretch.options)
        overlaps += [o for o in named if _share(parts[o.input], parts[o.output])]
    order = sorted(range(len(parts)), key=lambda part: (origin[part], parts[part].first))
    top = max(part.offset + part.size for part in parts)
    at_last = {part: i for i, part in enumerate(order)}
    return Parted(
        replace(
            totals,
            height=min(totals.height, arena.round_up(top, alignment)),
            buffers=tuple(parts[part] for part in order),
            overlaps=tuple(
                replace(o, input=at_last[o.input], output=at_last[o.output]) for o in dict.fromkeys(overlaps)
            ),
        ),
        tuple(origin[part] for part in order),
        tuple(Move(at_last[move.source], at_last[move.target]) for move in moves),
    )


def _in_order(moves: list[Move], parts: Sequence[Buffer]) -> list[Move] | None:
    """The moves such that none writes over what another still has to read; None where they go round."""
    left, ordered = list(moves), []
    while left:
        free = next(
            (
                m
                for m in left
                if not any(_share(parts[m.target], parts[o.source]) for o in left if o is not m)
            ),
            None,
        )
        if free is None:
            return None
        left.remove(free)
        ordered.append(free)
    return ordered


def _share(a: Buffer, b: Buffer) -> bool:
    """Whether two placed buffers have bytes in common."""
    return a.offset < b.offset + b.size and b.offset < a.offset + a.size
