"""In which order the search tries items that could lie equally low: a few good orders, and noise.

A depth-first search that starts wrongly stays wrong for long, so it is restarted with other orders
and growing limits. Nothing is left to chance: the noise comes from a linear congruential generator, with
the multiplier and the increment of Knuth's MMIX.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from buildtool.plan.place.arena import Problem
from buildtool.plan.place.instance import Instance

FIRST_LIMIT = 1000  # nodes of the runs of the first round; doubles from round to round
NOISY = 4  # runs with noise in a round
CROWDED_LIMIT = 4 * FIRST_LIMIT  # of the first round with crowded runs: for what is hard for the others
SEED = 0x9E3779B97F4A7C15
_MULTIPLIER, _INCREMENT, _MODULUS = 6364136223846793005, 1442695040888963407, 1 << 64
_LOW_BITS = 33  # of the generator's state, which repeat soon
LEAST_WEIGHT, WEIGHTS = 768, 512  # an area counts from 3/4 to 5/4 of itself, in 1024ths


def following(state: int) -> int:
    """The state after this one."""
    return (state * _MULTIPLIER + _INCREMENT) % _MODULUS


def choice(state: int, choices: int) -> int:
    """One of 0, 1, ... `choices` - 1."""
    return (state >> _LOW_BITS) % choices


@dataclass(frozen=True)
class Run:
    """One run of the search: the order of items, how many nodes it may visit, and `crowded` (see Search)."""

    order: tuple[int, ...]
    limit: int
    crowded: bool = False


def runs(problem: Problem, instance: Instance) -> Iterator[Run]:
    """Runs without end, the more promising ones first."""
    if instance.order:
        yield Run(instance.order, FIRST_LIMIT)
    crowd, length, area = _measures(problem, instance)
    count = range(len(instance.items))
    fixed = (
        (area, crowd, length),
        (crowd, length, area),
        (crowd, area, length),
        (length, area, crowd),
    )
    crowded = ((length, area, crowd), (area, length, crowd))
    state, limit = SEED, FIRST_LIMIT
    while True:
        for measures in fixed[1:] if instance.order and limit == FIRST_LIMIT else fixed:
            yield Run(_order(list(zip(*measures, strict=True)), instance), limit)
        for _ in range(NOISY):
            keys = []
            for i in count:
                state = following(state)
                weight = LEAST_WEIGHT + choice(state, WEIGHTS)
                keys.append((area[i] * weight, crowd[i], length[i]))
            yield Run(_order(keys, instance), limit)
        for measures in crowded if limit >= CROWDED_LIMIT else ():
            yield Run(_order(list(zip(*measures, strict=True)), instance), limit, crowded=True)
        limit *= 2


def _measures(problem: Problem, instance: Instance) -> tuple[list[int], list[int], list[int]]:
    """Of every item: the most that is live during its life, the life's length, and that with its size."""
    live = [0] * instance.sections
    spans = list(zip(instance.first.tolist(), instance.last.tolist(), strict=True))
    sizes = instance.size.tolist()
    for (first, last), size in zip(spans, sizes, strict=True):
        for section in range(first, last):
            live[section] += size
    length = [problem.items[i].upper - problem.items[i].lower for i in instance.items]
    crowd = [max(live[first:last]) for first, last in spans]
    return crowd, length, [size * time for size, time in zip(sizes, length, strict=True)]


def _order(keys: Sequence[tuple[int, int, int]], instance: Instance) -> tuple[int, ...]:
    """Items by descending key; ties, and twins among each other, by position."""
    order = _descending(keys)
    twin = instance.twin.tolist()
    if max(twin, default=-1) < 0:
        return tuple(order)
    families: dict[int, list[int]] = {}
    head: list[int] = []  # of every item, the first of its twins
    for i, previous in enumerate(twin):
        head.append(i if previous < 0 else head[previous])
        families.setdefault(head[i], []).append(i)
    waiting = {first: iter(members) for first, members in families.items()}
    return tuple(next(waiting[head[i]]) for i in order)


def _descending(keys: Sequence[tuple[int, int, int]]) -> list[int]:
    """Positions by descending key, ties by position."""
    try:
        columns = np.array(keys, np.int64).reshape(-1, 3).T
    except OverflowError:  # lives of arena problems may be of any length
        return sorted(range(len(keys)), key=lambda i: (*(-k for k in keys[i]), i))
    found: list[int] = np.lexsort((-columns[2], -columns[1], -columns[0])).tolist()
    return found
