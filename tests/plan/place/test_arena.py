"""Arena problems: the lower bound and greedy placements, both compared with an exhaustive search.

Placements over two memories are legal, within the capacities, and as cheap as any choice of memories.
"""

import csv
import itertools
import random

import pytest
from exactlib import apart, lowest, problems
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import needs_shared

from buildtool.base.errors import PlanError, UnsupportedError
from buildtool.plan.place.arena import Item, Permission, Problem, height, validate
from buildtool.plan.place.greedy import MOST_BYTES, solve
from buildtool.plan.place.spread import part, spread


def is_legal(problem, offsets):
    """Whether a placement is legal, checked pair by pair by the definition."""
    pairs = itertools.combinations(enumerate(offsets), 2)
    return all(apart(problem, *one, *other) for one, other in pairs)


def exhaustive(problem):
    """The least height, found by trying every aligned offset of every item within growing heights."""
    return lowest(problem, sum(problem.sizes))


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=60)
@given(problems() | problems(alignments=(2, 4)))
def test_placements_are_legal_and_none_is_lower_than_the_bound(problem):
    solution = solve(problem)
    least = lowest(problem, solution.height)
    assert least is not None and problem.bound.bytes <= least
    assert is_legal(problem, solution.offsets)
    assert solution.height == height(problem, solution.offsets)
    validate(problem, solution.offsets)


def _seeded(count):
    """Problems similar to networks: chains whose outputs may partly lie over their inputs, and long lives."""
    rng = random.Random(7)
    for _ in range(count):
        n = rng.randint(3, 5)
        items = [Item(i, i + 2, rng.randint(1, 6)) for i in range(n)]
        longer = rng.randrange(n)
        items[longer] = Item(longer, longer + rng.randint(2, 4), items[longer].size)
        permissions = tuple(
            Permission(i + 1, i, rng.randint(0, 3))
            for i in range(n - 1)
            if i != longer and rng.random() < 0.6
        )
        yield Problem(tuple(items), permissions)


def test_greedy_orders_find_the_minimum_of_nearly_all_small_chains():
    problems = list(_seeded(100))
    missed = [p for p in problems if solve(p).height > exhaustive(p)]
    assert len(missed) <= 2


@pytest.mark.parametrize(
    ("items", "permissions", "least"),
    [
        # two inputs of one output: the overlap counts once
        ([Item(0, 2, 10), Item(0, 2, 10), Item(1, 2, 10)], [(2, 0, 0), (2, 1, 0)], 20),
        # a chain climbs by 2 and 3; at any one time less is live
        ([Item(2, 3, 10), Item(1, 3, 10), Item(0, 2, 10), Item(0, 3, 5)], [(0, 1, 2), (1, 2, 3)], 20),
        # a distance is rounded up to the granule
        ([Item(0, 2, 32, 16), Item(1, 3, 32, 16)], [(1, 0, 1)], 48),
        ([], [], 0),
    ],
)
def test_the_bound_and_the_placement_are_the_least_height(items, permissions, least):
    problem = Problem(tuple(items), tuple(Permission(*p) for p in permissions))
    assert problem.bound.bytes == least == exhaustive(problem) == solve(problem).height


def test_fixed_offsets_are_kept_and_avoided():
    problem = Problem((Item(0, 4, 4, 4, offset=8), Item(0, 4, 8, 4), Item(1, 2, 4, 4)))
    solution = solve(problem)
    assert solution.offsets[0] == 8 and solution.height == 16
    validate(problem, solution.offsets)


def test_validate_refuses_overlaps_misalignment_and_moved_items():
    """A permitted overlap is accepted only at its distance. An item without bytes collides with nothing."""
    fixed = Problem((Item(0, 2, 4, 4), Item(1, 3, 4, 4), Item(2, 4, 4, 4, offset=0)))
    permitted = Problem((Item(0, 2, 8), Item(1, 3, 8)), (Permission(1, 0, 3),))
    inside = [Problem((Item(0, 4, 8), Item(1, 3, size, offset=3))) for size in (0, 1)]
    for problem, offsets in ((fixed, (0, 4, 0)), (permitted, (3, 0)), (inside[0], (0, 3))):
        validate(problem, offsets)
    wrong = [(fixed, at) for at in ((0, 0, 0), (0, 5, 0), (0, 4, 8), (4, 0, 0), (0, 4), (-4, 4, 0))]
    for problem, offsets in (*wrong, (permitted, (2, 0)), (permitted, (0, 3)), (inside[1], (0, 3))):
        with pytest.raises(PlanError):
            validate(problem, offsets)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A", "C", "F", "input.12"])
def test_hard_problems_are_placed_legally_above_their_bound(name):
    path = needs_shared(f"minimalloc/{name}.csv" if "." in name else f"minimalloc/{name}.1048576.csv")
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    items = tuple(Item(int(r["lower"]), int(r["upper"]), int(r["size"])) for r in rows)
    problem = Problem(items)
    live = max(sum(i.size for i in items if i.lower <= t < i.upper) for t in {i.lower for i in items})
    solution = solve(problem)
    validate(problem, solution.offsets)
    assert problem.bound.bytes == live <= solution.height


CROWDS = {
    "most": 40,
    "lower": (0, 11),
    "life": (0, 5),
    "sizes": (0, 59),
    "distances": (-3, 49),
    "overlaps": 13,
}


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    problems(**CROWDS) | problems(**CROWDS, alignments=(1, 4, 16)),
    st.sampled_from([None, 0]),
)
def test_placements_of_many_items_are_legal_and_more_orders_are_never_worse(problem, enough):
    few, many = (solve(problem, variations=n, enough=enough) for n in (0, 40))
    for solution in (few, many):
        validate(problem, solution.offsets)
        assert solution.height == height(problem, solution.offsets) >= problem.bound.bytes
    assert many.height <= few.height
    assert solve(problem, variations=40, enough=enough) == many


def test_items_of_more_bytes_than_can_be_summed_are_refused():
    half = Item(0, 1, MOST_BYTES // 2)
    assert solve(Problem((half,))).height == MOST_BYTES // 2
    with pytest.raises(UnsupportedError, match="add up to"):
        solve(Problem((half, half)))


def cheapest(problem, prices, capacities):
    """The least price of all choices of memories that brute force can place; None if there is none."""
    costs = []
    for choice in itertools.product((0, 1), repeat=len(problem.items)):
        price = sum(prices[i][memory] for i, memory in enumerate(choice))
        if costs and price >= min(costs):
            continue
        parts = [part(problem, [i for i, m in enumerate(choice) if m == which]) for which in (0, 1)]
        if all(lowest(one, room) is not None for one, room in zip(parts, capacities, strict=True)):
            costs.append(price)
    return min(costs, default=None)


def assert_legal(problem, found, capacities):
    """Each memory's items are placed legally, within its capacity."""
    for which in (False, True):
        inside = [i for i, second in enumerate(found.second) if second == which]
        validate(part(problem, inside), [found.offsets[i] for i in inside])
        top = max((found.offsets[i] + problem.items[i].size for i in inside), default=0)
        assert top <= found.heights[which] <= capacities[which]


PRICES = st.integers(0, 9)


@settings(max_examples=40)
@given(problems(), st.lists(st.tuples(PRICES, PRICES), min_size=5, max_size=5), st.tuples(PRICES, PRICES))
def test_no_choice_of_memories_is_cheaper(problem, prices, capacities):
    prices = prices[: len(problem.items)]
    found, least = spread(problem, prices, capacities), cheapest(problem, prices, capacities)
    if least is None:
        assert found is None
        return
    assert found is not None
    assert (found.price, found.is_proven) == (least, True)
    assert found.price == sum(price[second] for price, second in zip(prices, found.second, strict=True))
    assert_legal(problem, found, capacities)


def test_of_many_items_a_placement_is_found_where_the_search_cannot_look_at_all_choices():
    """At each of 30 times, twice as many bytes are live as either memory holds."""
    items = tuple(Item(time, time + 2, 16 * (1 + (7 * time + k) % 5)) for time in range(30) for k in range(4))
    prices = [(1 + (11 * i) % 13, 3 + (5 * i) % 17) for i in range(len(items))]
    problem = Problem(items)
    live = max(sum(i.size for i in items if i.lower <= t < i.upper) for t in range(31))
    rooms = (live * 5 // 8, live * 5 // 8)
    solution = spread(problem, prices, rooms, nodes=500)
    assert solution is not None
    assert not solution.is_proven
    assert_legal(problem, solution, rooms)
