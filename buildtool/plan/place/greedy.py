"""Arena offsets by greedy orders: items one after the other into the lowest or the tightest gap.

A single order misses the bound on common networks; the best of a few nearly never does. So several
orders are tried, bottom up and top down, and where the bound is still not met, variations of the
best of them in which the item that sticks out moves forward. Everything is deterministic: ties are
broken by a total order, variations come from a fixed generator, and effort is counted in
placements, never in time. Placing itself is in C; tests/oracles/greedy_twin.py is the same in Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import load
from buildtool.base.errors import UnsupportedError
from buildtool.base.work import Work
from buildtool.plan.place.arena import Permission, Problem, Solution, round_up
from buildtool.plan.place.bounds import bound

Ints = npt.NDArray[np.int64]
Found = tuple[list[int], int, int]  # offsets, height, the way up in which they are

VARIATIONS = 240  # orders tried beyond the fixed ones, at most
MOST_BYTES = 1 << 40  # so that sums, and areas in bytes times steps, stay in 64 bits
LINKS = 4  # neighbours that are looked at in one unit of work
PLACEMENTS = 60_000  # items placed in variations, at most
MOST_LINKS = 8_000_000  # neighbours looked at in variations, at most
FITS = (False, True)  # the lowest gap; the tightest, the top of the arena only if there is no other


@dataclass(frozen=True)
class Links:
    """Item i's neighbours in time are at start[i] to start[i + 1] of `neighbour`, in the order of births.

    One at offset o forbids item i the offsets between o - below and o + above; `below` and `above` have
    a row for each way up.
    """

    start: Ints
    neighbour: Ints
    below: Ints
    above: Ints


@dataclass(frozen=True)
class Task:
    """Placements to try: in every order (a row each), by every fit, every way up; then variations.

    Arrays are by item; `pinned`: where the item has to lie, or -1. A height of `least` ends the trials.
    """

    sizes: Ints
    alignments: Ints
    pinned: Ints
    links: Links
    ways: int
    orders: Ints
    least: int
    variations: int


class _Problem(ctypes.Structure):
    """struct greedy_problem."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("items", "links", "ways", "orders")),
        *((name, ctypes.c_void_p) for name in ("size", "alignment", "pinned")),
        *((name, ctypes.c_void_p) for name in ("start", "neighbour", "below", "above", "order")),
        *((name, ctypes.c_int64) for name in ("least", "variations")),
    )


_C = load(
    __file__,
    "greedy",
    1,
    {
        "greedy_memory": (ctypes.c_size_t, ctypes.POINTER(_Problem)),
        "greedy_run": (
            *(ctypes.c_int64, ctypes.POINTER(_Problem), ctypes.c_void_p, ctypes.c_void_p),
            ctypes.POINTER(ctypes.c_int64),
        ),
    },
)


def best(task: Task) -> Found:
    """The lowest placement found."""
    links = task.links
    arrays = {
        **{"size": task.sizes, "alignment": task.alignments, "pinned": task.pinned},
        **{"start": links.start, "neighbour": links.neighbour},
        **{"below": links.below, "above": links.above, "order": task.orders},
    }
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    problem = _Problem(
        items=len(task.sizes),
        links=len(links.neighbour),
        ways=task.ways,
        orders=len(task.orders),
        least=task.least,
        variations=task.variations,
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    memory = np.empty(_C.greedy_memory(ctypes.byref(problem)), np.int64)
    offsets, way = np.empty(len(task.sizes), np.int64), ctypes.c_int64(0)
    height = _C.greedy_run(ctypes.byref(problem), memory.ctypes.data, offsets.ctypes.data, ctypes.byref(way))
    return offsets.tolist(), height, way.value


def solve(
    problem: Problem,
    *,
    variations: int = VARIATIONS,
    enough: int | None = None,
    work: Work | None = None,
) -> Solution:
    """The lowest placement found; stops as soon as it is within `enough` bytes (None: the problem's bound).

    Items with fixed offsets that contradict each other are not noticed here: arena.validate says so.
    `work`: what it counts to; where nothing is left of it, there are no variations. UnsupportedError where
    the items add up to MOST_BYTES.
    """
    if not problem.items:
        return Solution((), 0)
    top = max(item.alignment + (item.offset or 0) for item in problem.items) * len(problem.items)
    if sum(problem.sizes) + top >= MOST_BYTES:
        raise UnsupportedError(f"buffers and offsets add up to {MOST_BYTES:,} bytes or more")
    ways = [problem]
    if all(i.offset is None and i.alignment == problem.granule for i in problem.items):
        ways.append(_upside_down(problem))
    links = _links(ways)
    tries = min(variations, PLACEMENTS // len(problem.items), MOST_LINKS // max(1, len(links.neighbour)))
    task = Task(
        sizes=_ints(problem.sizes),
        alignments=_ints([item.alignment for item in problem.items]),
        pinned=_ints([-1 if item.offset is None else item.offset for item in problem.items]),
        links=links,
        ways=len(ways),
        orders=np.array(list(_orders(problem)), np.int64),
        least=bound(problem).bytes if enough is None else enough,
        variations=tries if work is None or work.goes_on() else 0,
    )
    offsets, height, way = best(task)
    if work is not None:
        tried = task.variations if height > task.least else 0
        work.spend((len(task.orders) * len(FITS) * task.ways + tried) * len(links.neighbour) // LINKS)
    if way:
        turned = zip(offsets, problem.sizes, strict=True)
        offsets = [height - offset - size for offset, size in turned]
    return Solution(tuple(offsets), height)


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def _upside_down(problem: Problem) -> Problem:
    """The same problem with address a standing for -a; only without fixed offsets and mixed alignments.

    offset(in) >= offset(out) + d becomes offset'(out) >= offset'(in) + d + size(in) - size(out).
    """
    sizes = problem.sizes
    permissions = tuple(
        Permission(
            output=p.input,
            input=p.output,
            distance=round_up(p.distance, problem.granule) + sizes[p.input] - sizes[p.output],
        )
        for p in problem.permissions
    )
    return replace(problem, permissions=permissions)


def _links(ways: Sequence[Problem]) -> Links:
    """Who is live together, and what they forbid each other; the ways differ in permissions alone."""
    problem = ways[0]
    sizes = _ints(problem.sizes)
    lower, upper = _ints([i.lower for i in problem.items]), _ints([i.upper for i in problem.items])
    live = np.flatnonzero((lower < upper) & (sizes > 0))
    births = live[np.argsort(lower[live], kind="stable")]
    # Whoever is born after an item and before it dies is live together with it.
    later = np.searchsorted(lower[births], upper[births]) - np.arange(len(births)) - 1
    first = np.repeat(np.arange(len(births)), later)
    begin = np.repeat(np.cumsum(later) - later, later)
    second = first + 1 + np.arange(len(first)) - begin
    mine, other = np.concatenate([first, second]), np.concatenate([second, first])
    rows = np.lexsort((other, births[mine]))  # by item, neighbours in the order of their births
    owner, neighbour = births[mine[rows]], births[other[rows]]
    start = np.searchsorted(owner, np.arange(len(sizes) + 1))
    below = np.tile(sizes[owner], (len(ways), 1))
    above = np.tile(sizes[neighbour], (len(ways), 1))
    for way, turned in enumerate(ways):
        for p in turned.permissions:
            for link in np.flatnonzero(neighbour[start[p.output] : start[p.output + 1]] == p.input):
                at = start[p.output] + link
                below[way, at] = min(below[way, at], p.distance)
            for link in np.flatnonzero(neighbour[start[p.input] : start[p.input + 1]] == p.output):
                at = start[p.input] + link
                above[way, at] = min(above[way, at], p.distance)
    return Links(start.astype(np.int64), neighbour.astype(np.int64), below, above)


def _orders(problem: Problem) -> Iterator[Ints]:
    """Orders that do well on networks, by what they put first; ties: size, then later birth, then index."""
    sizes = _ints(problem.sizes)
    lower, upper = _ints([i.lower for i in problem.items]), _ints([i.upper for i in problem.items])
    crowd, length = _crowds(lower, upper, sizes), upper - lower
    keys = (
        (-sizes,),
        (-crowd,),
        (-crowd, -lower),
        (-sizes * length,),
        (-length,),
        (lower,),
        (-upper,),
        (upper,),
    )
    half = (int(upper.max()) - int(lower.min())) / 2
    for key in keys:
        order = np.lexsort((-lower, -sizes, *reversed(key)))
        yield order
        yield order[np.argsort(length[order] < half, kind="stable")]


def _crowds(lower: Ints, upper: Ints, sizes: Ints) -> Ints:
    """For every item, the largest live sum during its life."""
    times = np.unique(lower)
    live = _begun(lower, sizes, times) - _begun(upper, sizes, times)
    spans = zip(np.searchsorted(times, lower).tolist(), np.searchsorted(times, upper).tolist(), strict=True)
    return _ints([live[first:last].max(initial=0) for first, last in spans])


def _begun(times: Ints, sizes: Ints, until: Ints) -> Ints:
    """The sizes that have come by some moments, if each comes at its time."""
    order = np.argsort(times, kind="stable")
    sums = np.concatenate(([0], np.cumsum(sizes[order])))
    found: Ints = sums[np.searchsorted(times[order], until, side="right")]
    return found
