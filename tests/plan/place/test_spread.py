"""Items over two memories: legal in both, within the capacities, and as cheap as any choice of memories."""

import itertools

from exactlib import lowest, small_problems
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.plan.place.arena import Item, Problem, validate
from buildtool.plan.place.spread import part, spread


def cheapest(problem, prices, capacities):
    """The least price of all choices of memories that brute force can place; None where there is none."""
    found = []
    for choice in itertools.product((0, 1), repeat=len(problem.items)):
        price = sum(prices[i][memory] for i, memory in enumerate(choice))
        if found and price >= min(found):
            continue
        parts = [part(problem, [i for i, m in enumerate(choice) if m == which]) for which in (0, 1)]
        if all(lowest(one, room) is not None for one, room in zip(parts, capacities, strict=True)):
            found.append(price)
    return min(found, default=None)


def assert_legal(problem, found, capacities):
    """Each memory's items are placed legally, within its capacity."""
    for which in (False, True):
        inside = [i for i, second in enumerate(found.second) if second == which]
        validate(part(problem, inside), [found.offsets[i] for i in inside])
        top = max((found.offsets[i] + problem.items[i].size for i in inside), default=0)
        assert top <= found.heights[which] <= capacities[which]


@st.composite
def spreads(draw):
    """A problem, a price for each item in both memories, and two capacities."""
    problem = draw(small_problems())
    numbers = st.integers(0, 9)
    prices = [(draw(numbers), draw(numbers)) for _ in problem.items]
    return problem, prices, (draw(numbers), draw(numbers))


@settings(max_examples=40)
@given(spreads())
def test_no_choice_of_memories_is_cheaper(case):
    problem, prices, capacities = case
    found, least = spread(problem, prices, capacities), cheapest(problem, prices, capacities)
    if least is None:
        assert found is None
        return
    assert found is not None
    assert (found.price, found.is_proven) == (least, True)
    assert found.price == sum(price[second] for price, second in zip(prices, found.second, strict=True))
    assert_legal(problem, found, capacities)


def test_of_many_items_a_placement_is_found_where_the_search_cannot_look_at_all_choices():
    """Twice as much as either memory holds is live at each of 30 moments."""
    items = tuple(Item(time, time + 2, 16 * (1 + (7 * time + k) % 5)) for time in range(30) for k in range(4))
    prices = [(1 + (11 * i) % 13, 3 + (5 * i) % 17) for i in range(len(items))]
    problem = Problem(items)
    live = max(sum(i.size for i in items if i.lower <= t < i.upper) for t in range(31))
    rooms = (live * 5 // 8, live * 5 // 8)
    found = spread(problem, prices, rooms, nodes=500)
    assert found is not None
    assert not found.is_proven
    assert_legal(problem, found, rooms)
