"""Arena offsets by greedy orders: items are placed one after the other into the lowest or the tightest gap.

A single order does not reach the lower bound on common networks; the best of a few orders nearly always does.
So several orders are tried, bottom up and top down. If the bound is still not reached, variations of the best
order follow, in which the item at the top moves forward. Everything is deterministic: a total order breaks
ties, variations come from a fixed generator, and effort is counted in placements, never in time. Placing
itself is in C (greedy.c).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import load, struct
from buildtool.base.errors import UnsupportedError
from buildtool.base.work import Work
from buildtool.plan.place.arena import Permission, Problem, Solution, round_up

Ints = npt.NDArray[np.int64]
Found = tuple[list[int], int, int]  # offsets, height, and the number of the way up of the offsets

VARIATIONS = 240  # orders tried beyond the fixed ones, at most
MOST_BYTES = 1 << 40  # so that sums, and areas in bytes times steps, stay in 64 bits
LINKS = 4  # neighbours that are examined in one unit of work
PLACEMENTS = 60_000  # items placed in variations, at most
MOST_LINKS = 8_000_000  # neighbours examined in variations, at most
FITS = (False, True)  # the lowest gap; the tightest, the top of the arena only if there is no other


@dataclass(frozen=True)
class Task:
    """The placements to try, and the problem as arrays.

    Every order is tried with every rule in FITS (which gap an item takes), upright and upside down.
    Variations of the best order follow. Arrays are indexed by item.

    order: one order of the items per row.
    pinned: the item's fixed offset, or -1.
    start, neighbour: the items that are live together with item i are at start[i] to start[i + 1] of
        `neighbour`, in the order of births.
    below, above: a neighbour at offset o forbids item i the offsets between o - below and o + above. Both
        arrays have a row for the upright problem, and one for the problem upside down if it is tried.
    least: a height of this many bytes ends the trials.
    variations: how many variations to try.
    """

    size: Ints
    alignment: Ints
    pinned: Ints
    start: Ints
    neighbour: Ints
    below: Ints
    above: Ints
    order: Ints
    least: int
    variations: int


_ARRAYS = ("size", "alignment", "pinned", "start", "neighbour", "below", "above", "order")


# struct greedy_problem
_Problem = struct(
    (ctypes.c_int64, "items links ways orders"),
    (ctypes.c_void_p, " ".join(_ARRAYS)),
    (ctypes.c_int64, "least variations"),
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
    """Returns the lowest placement that is found."""
    arrays = {name: np.ascontiguousarray(getattr(task, name)) for name in _ARRAYS}
    problem = _Problem(
        items=len(task.size),
        links=len(task.neighbour),
        ways=len(task.below),
        orders=len(task.order),
        least=task.least,
        variations=task.variations,
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    memory = np.empty(_C.greedy_memory(ctypes.byref(problem)), np.int64)
    offsets, way = np.empty(len(task.size), np.int64), ctypes.c_int64(0)
    height = _C.greedy_run(ctypes.byref(problem), memory.ctypes.data, offsets.ctypes.data, ctypes.byref(way))
    return offsets.tolist(), height, way.value


def solve(
    problem: Problem,
    *,
    variations: int = VARIATIONS,
    enough: int | None = None,
    work: Work | None = None,
) -> Solution:
    """Returns the lowest placement that is found.

    variations: how many variations of the best order are tried at most.
    enough: the search stops at this height in bytes; None: at the problem's lower bound.
    work: the budget that is spent; if it has ended, there are no variations.

    The function does not notice fixed offsets that contradict each other; `arena.validate` does. Raises
    UnsupportedError if the items add up to MOST_BYTES or more.
    """
    items = problem.items
    if not items:
        return Solution((), 0)
    top = max(item.alignment + (item.offset or 0) for item in items) * len(items)
    if sum(problem.sizes) + top >= MOST_BYTES:
        raise UnsupportedError(f"buffers and offsets add up to {MOST_BYTES:,} bytes or more")
    ways = [problem]
    if all(i.offset is None and i.alignment == problem.granule for i in items):
        ways.append(_upside_down(problem))
    start, neighbour, below, above = _list_neighbours(ways)
    tries = min(variations, PLACEMENTS // len(items), MOST_LINKS // max(1, len(neighbour)))
    task = Task(
        _ints(problem.sizes),
        _ints([item.alignment for item in items]),
        _ints([-1 if item.offset is None else item.offset for item in items]),
        *(start, neighbour, below, above),
        order=np.array(list(_orders(problem)), np.int64),
        least=problem.bound.bytes if enough is None else enough,
        variations=tries if work is None or work.goes_on() else 0,
    )
    offsets, height, way = best(task)
    if work is not None:
        variations_run = task.variations if height > task.least else 0
        work.spend((len(task.order) * len(FITS) * len(ways) + variations_run) * len(neighbour) // LINKS)
    if way:
        offsets = [height - offset - size for offset, size in zip(offsets, problem.sizes, strict=True)]
    return Solution(tuple(offsets), height)


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def _upside_down(problem: Problem) -> Problem:
    """Returns the same problem with addresses negated.

    The problem must have no fixed offsets, and the same alignment for all items. offset(in) >= offset(out) +
    d becomes offset'(out) >= offset'(in) + d + size(in) - size(out).
    """
    sizes, granule = problem.sizes, problem.granule
    permissions = (
        Permission(p.input, p.output, round_up(p.distance, granule) + sizes[p.input] - sizes[p.output])
        for p in problem.permissions
    )
    return replace(problem, permissions=tuple(permissions))


def _list_neighbours(ways: Sequence[Problem]) -> tuple[Ints, Ints, Ints, Ints]:
    """Returns the arrays `start`, `neighbour`, `below` and `above` of Task.

    `ways`: the problem upright, and upside down if that is tried. The two differ only in permissions.
    """
    problem = ways[0]
    sizes = _ints(problem.sizes)
    lower, upper = _ints([i.lower for i in problem.items]), _ints([i.upper for i in problem.items])
    live = np.flatnonzero((lower < upper) & (sizes > 0))
    births = live[np.argsort(lower[live], kind="stable")]
    # An item that is born during another one's life is live together with it.
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
            for apart, item, its in ((below, p.output, p.input), (above, p.input, p.output)):
                at = start[item] + np.flatnonzero(neighbour[start[item] : start[item + 1]] == its)
                apart[way, at] = np.minimum(apart[way, at], p.distance)
    return start.astype(np.int64), neighbour.astype(np.int64), below, above


def _orders(problem: Problem) -> Iterator[Ints]:
    """Yields orders of the items that do well on networks.

    Ties are broken by size, then by later birth, then by index.
    """
    sizes = _ints(problem.sizes)
    lower, upper = _ints([i.lower for i in problem.items]), _ints([i.upper for i in problem.items])
    crowd, length = _crowd_of_each(lower, upper, sizes), upper - lower
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


def _crowd_of_each(lower: Ints, upper: Ints, sizes: Ints) -> Ints:
    """Returns for every item the largest number of bytes that are live at one time during its life."""
    times = np.unique(lower)
    live = np.zeros(len(times), np.int64)
    for moments, sign in ((lower, 1), (upper, -1)):
        order = np.argsort(moments, kind="stable")
        sums = np.concatenate(([0], np.cumsum(sizes[order])))
        live += sign * sums[np.searchsorted(moments[order], times, side="right")]
    spans = zip(np.searchsorted(times, lower).tolist(), np.searchsorted(times, upper).tolist(), strict=True)
    return _ints([live[first:last].max(initial=0) for first, last in spans])
