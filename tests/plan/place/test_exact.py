"""Exact placement and the sets of allowed offsets, compared with brute force."""

import random
from dataclasses import replace

import numpy as np
import pytest
from exactlib import lowest, placements, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.base.errors import UnsupportedError
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.arena import Item, Permission, Problem, Solution
from buildtool.plan.place.instance import MOST_ITEMS, compile_problem
from buildtool.plan.place.search import WORD, find_allowed_offsets
from buildtool.plan.place.solver import Status, decide, improve, minimise, solve

BUDGET = 200_000
TOP = 40  # above the heights of all `problems`

deterministic = settings(derandomize=True, deadline=None, max_examples=50)


SMALL = {"most": 6, "lower": (0, 5), "sizes": (1, 5), "distances": (0, 3)}
ANY = (
    problems(**SMALL, overlaps=0)
    | problems(**SMALL, overlaps=0, pins=2)
    | problems(**SMALL, overlaps=0, alignments=(1, 2, 3, 4))
    | problems(**SMALL, overlaps=9)
    | problems(**SMALL, overlaps=9, pins=2, alignments=(1, 2, 3, 4))
)


def solved(problem: Problem) -> Solution:
    """The lowest placement, checked to be legal and proven optimal."""
    result = solve(problem, BUDGET)
    assert result.status is Status.OPTIMAL
    assert result.solution is not None
    assert result.solution.height == result.bound
    arena.validate(problem, result.solution.offsets)
    return result.solution


@pytest.mark.slow
@deterministic
@given(ANY)
def test_decides_like_brute_force_at_the_least_height_and_just_below(problem: Problem) -> None:
    least = lowest(problem, TOP)
    heights = {problem.bound.bytes, TOP} | ({least, least - 1} if least is not None else set())
    for capacity in sorted(heights):
        result = decide(problem, capacity, BUDGET)
        if least is not None and capacity >= least:
            assert result.solution is not None
            assert result.solution.height <= capacity
            arena.validate(problem, result.solution.offsets)
        else:
            assert (result.status, result.solution) == (Status.INFEASIBLE, None)


@pytest.mark.slow
@deterministic
@given(ANY)
def test_minimises_to_the_least_height(problem: Problem) -> None:
    least = lowest(problem, TOP)
    if least is None:
        assert solve(problem, BUDGET).status is Status.INFEASIBLE
        return
    solution = solved(problem)
    assert solution.height == least
    assert improve(problem, solution, BUDGET) == solution


@pytest.mark.parametrize("others", [(), (Item(0, 20, 3),), (Item(17, 17, 3), Item(0, 2, 9))])
def test_an_item_that_is_never_live_ends_the_search_where_it_lies(others: tuple[Item, ...]) -> None:
    problem = Problem((Item(17, 17, 1, 1, 7), *others))
    assert solved(problem).height == lowest(problem, TOP)
    assert decide(problem, 7, BUDGET).status is Status.INFEASIBLE


def test_numbers_that_are_too_large_for_the_arrays_are_refused() -> None:
    for size in (1 << 29, 1 << 40, 1 << 50, 1 << 60, 1 << 80):
        with pytest.raises(UnsupportedError, match="add up to"):
            compile_problem(Problem((Item(0, 1, size), Item(0, 1, 1))))


def tight(count: int, seed: int, *, height: int = 1000) -> Problem:
    """Items cut out of one rectangle, so that `height` can be reached; then some of them are shortened."""
    state = seed

    def random(most: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (state >> 33) % most

    pieces = [(0, 400, height)]
    while len(pieces) < count:
        lower, upper, size = pieces.pop(max(range(len(pieces)), key=lambda i: _area(pieces[i])))
        if random(2) and upper - lower > 3:
            middle = lower + 1 + random(upper - lower - 1)
            pieces += [(lower, middle, size), (middle, upper, size)]
        else:
            part = 1 + random(max(1, size - 1))
            pieces += [(lower, upper, part), (lower, upper, max(1, size - part))]
    items = [Item(a, b - (random(3) == 0 and b - a > 4), size) for a, b, size in pieces]
    return Problem(tuple(sorted(items, key=lambda i: (i.size * 7919 % 1009, i.lower))))


def _area(piece: tuple[int, int, int]) -> int:
    return (piece[1] - piece[0]) * piece[2]


@pytest.mark.parametrize("seed", range(8))
def test_meets_the_bound_where_greedy_orders_miss_it(seed: int) -> None:
    problem = tight(100, seed)
    start = greedy.solve(problem, variations=0)
    result = minimise(problem, start, BUDGET)
    assert start.height > problem.bound.bytes
    assert result.solution is not None
    assert result.status is Status.OPTIMAL
    assert result.solution.height == result.bound == problem.bound.bytes
    arena.validate(problem, result.solution.offsets)


def test_a_permission_with_a_negative_distance_is_used_but_nothing_is_proven_without_it() -> None:
    problem = Problem((Item(0, 2, 4), Item(1, 3, 4)), (Permission(1, 0, -2),))
    result = solve(problem, BUDGET)
    assert (result.status, result.solution) == (Status.OPTIMAL, Solution((0, 0), 4))
    assert compile_problem(problem).capped
    assert not compile_problem(replace(problem, permissions=(Permission(1, 0, 0),))).capped


def test_budgets_end_the_search_and_the_same_budget_gives_the_same_answer() -> None:
    problem = tight(120, 3)
    capacity = problem.bound.bytes
    few = decide(problem, capacity, 50)
    assert (few.status, few.nodes) == (Status.UNKNOWN, 50)
    once, again = (solve(problem, 3000) for _ in range(2))
    assert once == again
    assert once.nodes <= 3000


def test_improving_never_makes_it_worse_and_leaves_what_is_too_large() -> None:
    problem = tight(60, 1)
    start = greedy.solve(problem, variations=0)
    for budget in (0, 1, 10, 100, 1000):
        better = improve(problem, start, budget)
        assert better.height <= start.height
        arena.validate(problem, better.offsets)
    crowd = Problem(tuple(Item(i, i + 1, 1 + i % 3) for i in range(MOST_ITEMS + 1)))
    high = Solution(tuple(5 for _ in crowd.items), 8)
    assert improve(crowd, high, 1000) == high


def chained(seed: int, scale: int = 1) -> Problem:
    """A few regions whose outputs may lie over their inputs, beside workspaces that almost fill them.

    Some have a second input, some offsets are fixed, some alignments are two.
    """
    draw = random.Random(seed)
    items, permissions = [Item(0, 2, draw.randint(2, 6))], []
    regions = draw.randint(1, 3)
    for region in range(regions):
        source = len(items) - 1
        begin = 2 * region
        items[source] = Item(items[source].lower, begin + 2, items[source].size)
        if draw.random() < 0.3:
            items.append(Item(max(0, begin - 2), begin + 2, draw.randint(1, 4)))
        items += [Item(begin, begin + 2 - draw.randint(0, 1), draw.randint(1, 4)) for _ in range(2)]
        items.append(Item(begin, 2 * regions, draw.randint(2, 6), draw.choice((1, 1, 2))))
        if region:
            items[-1] = Item(begin, begin + 2, items[-1].size)
        permissions.append(Permission(len(items) - 1, source, draw.randint(0, 3)))
    if draw.random() < 0.3:
        pinned = draw.randrange(len(items))
        old = items[pinned]
        items[pinned] = Item(old.lower, old.upper, old.size, old.alignment, 2 * draw.randint(0, 2))
    if scale > 1:  # sizes that are not multiples of it: some are a byte larger
        items = [i._replace(size=scale * i.size + draw.randint(0, 1)) for i in items]
        permissions = [p._replace(distance=scale * p.distance) for p in permissions]
    return Problem(tuple(items), tuple(permissions))


def offsets_in(words: np.ndarray) -> set[int]:
    """The offsets of a set, in units."""
    return {WORD * w + k for w, word in enumerate(words.tolist()) for k in range(WORD) if word >> k & 1}


@pytest.mark.parametrize("scale", [1, 9, 37])  # sets of one, two and more words
def test_every_placement_keeps_to_the_offsets_that_are_allowed(scale: int) -> None:
    said_something = 0
    for seed in range(30):
        problem = chained(seed, scale)
        instance = compile_problem(problem)
        for more in (0, 1, 3 * scale):
            capacity = problem.bound.bytes + more
            allowed = find_allowed_offsets(instance, capacity // instance.unit)
            sets = [set[int]()] * len(instance.items) if allowed is None else [*map(offsets_in, allowed)]
            for found in placements(problem, capacity, tries=1000):
                for item, offsets in zip(instance.items, sets, strict=True):
                    at, off = divmod(found[item], instance.unit)
                    assert off or at in offsets  # an item at its lowest place
            said_something += any(len(s) < capacity // instance.unit // 2 for s in sets)
    assert said_something > 20


# Items with all properties; some are never live, some have no size.
WIDE = {"most": 14, "lower": (-3, 10), "life": (0, 6), "distances": (-2, 40), "overlaps": 6}


@deterministic
@given(
    problems(**WIDE, alignments=(1, 2, 3, 8))
    | problems(**WIDE, alignments=(4, 8, 48), sizes=(0, 21))
    | problems(**WIDE, alignments=(1, 2, 4), pins=9),
    st.integers(0, 9),
)
def test_what_is_found_is_legal_and_what_is_refused_greedy_orders_miss_too(problem, more) -> None:
    capacity = problem.bound.bytes + more
    result, start = decide(problem, capacity, 5_000), greedy.solve(problem)
    if result.solution is not None:
        assert result.solution.height <= capacity
        arena.validate(problem, result.solution.offsets)
    elif all(item.offset is None for item in problem.items):  # fixed ones may collide at any height
        arena.validate(problem, start.offsets)
        assert result.status is Status.UNKNOWN or start.height > capacity


def test_a_chain_that_cannot_climb_on_is_refused_at_once() -> None:
    # In each region 11 of 22 are beside the tensors of 6 that lie over each other, so that these lie at
    # 0 or 1, or 11 or above; and each lies lower than the one before by 3.
    lives = [Item(2 * k, 2 * k + 4, 6) for k in range(4)]
    beside = [Item(2 * k + 2, 2 * k + 4, 11) for k in range(3)] + [
        Item(2 * k + 2, 2 * k + 4, 4) for k in range(3)
    ]
    problem = Problem((*lives, *beside), tuple(Permission(k + 1, k, 3) for k in range(3)))
    instance = compile_problem(problem)
    least = problem.bound.bytes
    assert decide(problem, least, 100_000).status is Status.INFEASIBLE
    assert find_allowed_offsets(instance, least // instance.unit) is None
