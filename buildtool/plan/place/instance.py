"""Arena problems as the search wants them: whole units, sections of time, neighbours with distances.

A section is a stretch of time at which more is live than just before and just after it: what fits
there fits everywhere. Items that are never live or have no size are left out; nothing collides with
them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from math import gcd
from pathlib import Path

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import load
from buildtool.base.errors import UnsupportedError
from buildtool.plan.place.arena import Permission, Problem, round_up

Int32s = npt.NDArray[np.int32]

ABI = 1  # of instance.c; a library of another one is not used
SHARES = tuple(f"share_{of}" for of in ("output", "input", "first", "last", "units", "distance"))
FACTS = 5  # that it tells besides arrays
ARRAYS = (  # that the search asks for
    *("first", "last", "size", "alignment", "pinned", "floor", "low", "loose", "twin"),
    *("start", "neighbour", "above", "below"),
    *("share_output", "share_input", "share_first", "share_last", "share_units"),
)

MOST_ITEMS = 1024  # neighbours and work grow with the square
MOST_UNITS = 1 << 29  # what all items and alignments add up to, so that sums stay in 32 bits


@dataclass(frozen=True)
class Instance:
    """A problem in units of `unit` bytes; arrays are indexed by item unless said otherwise.

    `items`: positions in Problem.items. `first`, `last`: sections, half-open. `pinned`: where the item
    has to lie, or -1. `floor`: the lowest offset at which it does not collide with pinned items.
    `low`: no neighbour that lies above it is nearer than that. `loose`: 1 if it has a permission.
    `twin`: the previous item that is the same in everything, or -1. Item i's neighbours are at
    start[i] to start[i + 1] of `neighbour`; one that lies above i is at least `above` away from it,
    and if i lies above, then at least `below`. Arrays `share_*` are indexed by permission: both items,
    the sections both are live in, how many units they can share, and their distance. `capped`: some
    permissions are not used in full (negative distances count as 0; of items that may lie at one offset
    because each is the next one's output in a circle, not all will), so that finding no placement
    proves nothing. `order`: the items in the first order of `orders.runs`, where that is known.
    """

    unit: int
    items: tuple[int, ...]
    capped: bool
    sections: int
    first: Int32s
    last: Int32s
    size: Int32s
    alignment: Int32s
    pinned: Int32s
    floor: Int32s
    low: Int32s
    loose: Int32s
    twin: Int32s
    start: Int32s
    neighbour: Int32s
    above: Int32s
    below: Int32s
    share_output: Int32s
    share_input: Int32s
    share_first: Int32s
    share_last: Int32s
    share_units: Int32s
    share_distance: Int32s
    order: tuple[int, ...] = ()

    @cached_property
    def _searched(self) -> dict[str, Int32s]:
        return {name: np.ascontiguousarray(getattr(self, name)) for name in ARRAYS}

    @cached_property
    def addresses(self) -> dict[str, int]:
        """Where each of the search's arrays is in memory, for as long as the instance lives."""
        return {name: array.ctypes.data for name, array in self._searched.items()}


@cache
def library(path: Path | None = None) -> ctypes.CDLL | None:
    """The compiled instance.c at `path`, by default the one built with the package; None if there is none."""
    found = load(__file__, "instance", ABI, path)
    if found is not None:
        found.instance_compile.restype = ctypes.c_int32
        found.instance_compile.argtypes = [
            *(ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64),
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
        ]
    return found


def compile_problem(problem: Problem, lib: ctypes.CDLL | None = None) -> Instance:
    """The instance of a problem; UnsupportedError if it has too many items or too large sizes.

    `lib`: instance.c, which makes the same arrays.
    """
    made = _compile_in_c(problem, lib) if lib is not None else None
    if made is not None:
        return made
    live = tuple(i for i, x in enumerate(problem.items) if x.lower < x.upper and problem.sizes[i] > 0)
    if len(live) > MOST_ITEMS:
        raise UnsupportedError(f"the exact search takes {MOST_ITEMS} items, the problem has {len(live)}")
    index = {item: position for position, item in enumerate(live)}
    shares = _shares(problem, index)
    unit, coarse = _unit(problem, live, shares)
    sizes = [problem.sizes[i] // unit for i in live]
    ends = sum(sizes) + sum(1 if coarse else problem.items[i].alignment // unit for i in live)
    if ends + max((problem.items[i].offset or 0 for i in live), default=0) // unit >= MOST_UNITS:
        raise UnsupportedError(f"sizes and offsets add up to {MOST_UNITS:,} units of {unit} bytes or more")
    alignments = [1 if coarse else problem.items[i].alignment // unit for i in live]
    pins = [-1 if (at := problem.items[i].offset) is None else at // unit for i in live]
    first, last, sections = _sections([(problem.items[i].lower, problem.items[i].upper) for i in live])
    distance = {(index[p.output], index[p.input]): p.distance // unit for p in shares}
    links = _links(first, last, _ints(sizes), distance)
    loose = {i for pair in distance for i in pair}
    savings = [max(0, min(sizes[n], sizes[o] - away)) for (o, n), away in distance.items()]
    kinds = list(zip(first.tolist(), last.tolist(), sizes, alignments, strict=True))
    return Instance(
        unit=unit,
        items=live,
        capped=_is_capped(problem, index, shares),
        sections=sections,
        first=first,
        last=last,
        size=_ints(sizes),
        alignment=_ints(alignments),
        pinned=_ints(pins),
        floor=_floors(alignments, pins, links),
        low=links.low,
        loose=_ints([int(i in loose) for i in range(len(live))]),
        twin=_ints(_twins(kinds, pins, loose)),
        start=links.start,
        neighbour=links.neighbour,
        above=links.above,
        below=links.below,
        share_output=_ints([o for o, _ in distance]),
        share_input=_ints([n for _, n in distance]),
        share_first=_ints([max(first[o], first[n]) for o, n in distance]),
        share_last=_ints([min(last[o], last[n]) for o, n in distance]),
        share_units=_ints(savings),
        share_distance=_ints([min(sizes[o], away) for (o, _), away in distance.items()]),
    )


def _compile_in_c(problem: Problem, lib: ctypes.CDLL) -> Instance | None:
    """The same made in C; None where numbers or items are too many for that, or there are none."""
    count, permitted = len(problem.items), problem.permissions
    if not 0 < count <= MOST_ITEMS:
        return None
    rows = [
        (x.lower, x.upper, size, x.alignment, -1 if x.offset is None else x.offset)
        for x, size in zip(problem.items, problem.sizes, strict=True)
    ]
    try:
        items = np.array(rows, np.int64)
        permissions = np.array([(p.output, p.input, p.distance) for p in permitted], np.int64)
    except OverflowError:
        return None
    scratch = np.empty(4 * count + FACTS, np.int64)
    memory = np.empty(12 * count + 1 + 6 * len(permitted) + 3 * count * (count - 1), np.int32)
    facts = scratch.ctypes.data
    found = lib.instance_compile(
        *(count, len(permitted), items.ctypes.data, permissions.ctypes.data, problem.granule),
        *(facts, facts + 8 * FACTS, memory.ctypes.data),
    )
    return _taken(problem, memory, *scratch[:FACTS].tolist()) if found else None


def _taken(
    problem: Problem, memory: Int32s, unit: int, live: int, sections: int, links: int, shares: int
) -> Instance:
    """The instance in what instance.c has filled."""
    count, permitted = len(problem.items), len(problem.permissions)
    column = memory[: 11 * count].reshape(11, count)[:, :live]
    at = 11 * count
    start = memory[at : at + live + 1]
    at += count + 1
    share = memory[at : at + 6 * permitted].reshape(6, permitted)[:, :shares]
    at += 6 * permitted
    link = memory[at : at + 3 * links].reshape(3, links)
    items = tuple(column[0].tolist())
    index = {item: position for position, item in enumerate(items)} if permitted else {}
    names = ("first", "last", "size", "alignment", "pinned", "floor", "low", "loose", "twin")
    arrays = dict(zip(names, column[1:10], strict=True))
    arrays |= zip(("neighbour", "above", "below"), link, strict=True)
    arrays |= zip(SHARES, share, strict=True)
    return Instance(
        unit=unit,
        items=items,
        capped=_is_capped(problem, index, _shares(problem, index)),
        sections=sections,
        start=start,
        order=tuple(column[10].tolist()),
        **arrays,
    )


def _ints(values: Sequence[int]) -> Int32s:
    return np.array(values, dtype=np.int32)


def _shares(problem: Problem, index: Mapping[int, int]) -> list[Permission]:
    """Permissions of items that are live together; distances are multiples of the granule, at least 0."""
    found = []
    for p in problem.permissions:
        if p.output in index and p.input in index:
            a, b = problem.items[p.output], problem.items[p.input]
            if a.lower < b.upper and b.lower < a.upper:
                found.append(Permission(p.output, p.input, round_up(max(0, p.distance), problem.granule)))
    return found


def _is_capped(problem: Problem, index: Mapping[int, int], shares: Sequence[Permission]) -> bool:
    """Whether the search may miss placements; never with the permissions of a network's operators."""
    if any(p.distance < 0 for p in problem.permissions if p.output in index and p.input in index):
        return True
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for p in shares:
        if p.distance == 0:
            sorter.add(p.input, p.output)
    try:
        sorter.prepare()
    except CycleError:
        return True
    return False


def _unit(problem: Problem, live: Sequence[int], shares: Sequence[Permission]) -> tuple[int, bool]:
    """What all offsets are multiples of, in bytes, and whether that alone keeps every alignment.

    Items that lie as low as they can lie on others, so their offsets are sums of sizes, distances
    and fixed offsets, rounded up to alignments.
    """
    unit = gcd(
        *(problem.sizes[i] for i in live),
        *(problem.items[i].offset or 0 for i in live),
        *(p.distance for p in shares),
    )
    alignments = [problem.items[i].alignment for i in live]
    if all(unit % alignment == 0 for alignment in alignments):
        return unit or 1, True
    return gcd(unit, *alignments), False


def _sections(lives: Sequence[tuple[int, int]]) -> tuple[Int32s, Int32s, int]:
    """The sections that each item is live in (half-open), and how many there are."""
    births, deaths = {lower for lower, _ in lives}, {upper for _, upper in lives}
    times = sorted(births | deaths)
    # The stretch from times[k] is a section if something is born as it begins and dies as it ends.
    count = [0]
    for begin, end in pairwise(times):
        count.append(count[-1] + int(begin in births and end in deaths))
    position = {time: k for k, time in enumerate(times)}
    first = _ints([count[position[lower]] for lower, _ in lives])
    last = _ints([count[position[upper]] for _, upper in lives])
    return first, last, count[-1]


@dataclass(frozen=True)
class _Links:
    """Who is live together, and how near they may lie: arrays of Instance."""

    start: Int32s
    neighbour: Int32s
    above: Int32s
    below: Int32s
    low: Int32s


def _links(first: Int32s, last: Int32s, size: Int32s, distance: Mapping[tuple[int, int], int]) -> _Links:
    """The neighbours of all items, as rows of one array; `distance` of (output, input) where permitted."""
    together = (first[:, None] < last[None, :]) & (first[None, :] < last[:, None])
    np.fill_diagonal(together, False)
    start = np.zeros(len(first) + 1, np.int32)
    np.cumsum(together.sum(axis=1), out=start[1:])
    owner, neighbour = np.nonzero(together)
    above, below, low = size[owner], size[neighbour], size.copy()
    for (output, source), away in distance.items():
        for array, i, other in ((above, output, source), (below, source, output)):
            begin = int(start[i])
            link = begin + int(np.searchsorted(neighbour[begin : start[i + 1]], other))
            array[link] = min(int(size[output]), away)
        low[output] = min(int(low[output]), away)
    return _Links(start, neighbour.astype(np.int32), above, below, low)


def _twins(kinds: Sequence[tuple[int, int, int, int]], pins: Sequence[int], loose: set[int]) -> list[int]:
    """For every item the one before it that could take its place, -1 if there is none."""
    latest: dict[tuple[int, int, int, int], int] = {}
    twins = []
    for i, kind in enumerate(kinds):
        if pins[i] >= 0 or i in loose:
            twins.append(-1)
            continue
        twins.append(latest.get(kind, -1))
        latest[kind] = i
    return twins


def _floors(alignments: Sequence[int], pins: Sequence[int], links: _Links) -> Int32s:
    """The lowest offset of every item among the pinned ones alone; a pinned one's own."""
    floors, pinned = np.zeros(len(pins), np.int32), _ints(pins)
    if not (pinned >= 0).any():
        return floors
    fixed = np.flatnonzero(pinned[links.neighbour] >= 0)
    owner = np.searchsorted(links.start, fixed, side="right") - 1
    near: dict[int, list[tuple[int, int, int]]] = {}  # item -> its pinned neighbours: offset, above, below
    for i, link in zip(owner.tolist(), fixed.tolist(), strict=True):
        pin = int(pinned[links.neighbour[link]])
        near.setdefault(i, []).append((pin, int(links.above[link]), int(links.below[link])))
    for i, found in near.items():
        floor = 0
        for pin, above, below in sorted(found):
            if floor + above > pin:
                floor = max(floor, round_up(pin + below, alignments[i]))
        floors[i] = floor
    return np.where(pinned >= 0, pinned, floors)
