"""Oracles for small placement problems: brute force."""

import math
from collections.abc import Iterator
from itertools import permutations

from hypothesis import strategies as st

from buildtool.plan.place.arena import Item, Permission, Problem


@st.composite
def problems(
    draw: st.DrawFn,
    most: int = 5,
    *,
    lower: tuple[int, int] = (0, 4),
    life: tuple[int, int] = (1, 3),
    sizes: tuple[int, int] = (0, 6),
    distances: tuple[int, int] = (0, 6),
    alignments: tuple[int, ...] = (1,),
    pins: int | None = None,
    overlaps: int = 3,
) -> Problem:
    """Up to `most` items, some pairs of which may overlap. Each range is (least, greatest).

    `pins`: the greatest fixed offset, in alignments. None: no offset is fixed.
    """
    items = []
    for _ in range(draw(st.integers(1, most))):
        begin, alignment = draw(st.integers(*lower)), draw(st.sampled_from(alignments))
        pin = None if pins is None else draw(st.none() | st.integers(0, pins))
        offset = None if pin is None else pin * alignment
        items.append(
            Item(begin, begin + draw(st.integers(*life)), draw(st.integers(*sizes)), alignment, offset)
        )
    pairs = [*permutations(range(len(items)), 2)]
    permitted = (
        draw(st.lists(st.sampled_from(pairs), max_size=overlaps, unique_by=frozenset)) if pairs else []
    )
    return Problem(tuple(items), tuple(Permission(a, b, draw(st.integers(*distances))) for a, b in permitted))


def lowest(problem: Problem, top: int) -> int | None:
    """Returns the lowest height of a placement up to `top`. Tries every offset of every item."""
    heights = range(top + 1)
    return next((h for h in heights if next(placements(problem, h), None) is not None), None)


def placements(problem: Problem, height: int, tries: float = math.inf) -> Iterator[tuple[int, ...]]:
    """Yields every placement within a height that `tries` attempts find."""
    offsets: list[int] = []
    budget = tries

    def go_on() -> Iterator[tuple[int, ...]]:
        nonlocal budget
        index = len(offsets)
        if index == len(problem.items):
            yield tuple(offsets)
            return
        item, last = problem.items[index], height - problem.sizes[index]
        for offset in range(0, last + 1, item.alignment) if item.offset is None else [item.offset]:
            budget -= 1
            if offset > last or budget < 0:
                continue
            if all(apart(problem, index, offset, other, at) for other, at in enumerate(offsets)):
                offsets.append(offset)
                yield from go_on()
                offsets.pop()

    return go_on()


def apart(problem: Problem, a: int, at_a: int, b: int, at_b: int) -> bool:
    """Whether two items may lie at these offsets."""
    one, two = problem.items[a], problem.items[b]
    if one.upper <= two.lower or two.upper <= one.lower:
        return True
    if at_a + problem.sizes[a] <= at_b or at_b + problem.sizes[b] <= at_a:
        return True
    at = {a: at_a, b: at_b}
    return any(
        {p.output, p.input} == {a, b} and at[p.input] >= at[p.output] + p.distance
        for p in problem.permissions
    )
