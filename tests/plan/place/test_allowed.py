"""Where items can lie at all, against every placement of small problems; searches that keep to it."""

import random
from collections.abc import Iterator

import pytest
from allowed_twin import allowed_offsets as twin_offsets
from allowed_twin import as_sets
from exactlib import same_runs

from buildtool.plan.place import search, solver
from buildtool.plan.place.arena import Item, Permission, Problem
from buildtool.plan.place.bounds import bound
from buildtool.plan.place.instance import compile_problem
from buildtool.plan.place.search import WORD, Verdict, allowed_offsets
from buildtool.plan.place.solver import Status, decide


def chained(seed: int, scale: int = 1) -> Problem:
    """A few regions, each of whose outputs may lie over its input, beside workspaces that fill them nearly.

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
    if scale > 1:  # no longer multiples of it: a byte more here and there
        items = [i._replace(size=scale * i.size + draw.randint(0, 1)) for i in items]
        permissions = [p._replace(distance=scale * p.distance) for p in permissions]
    return Problem(tuple(items), tuple(permissions))


def placements(problem: Problem, capacity: int, tries: int = 4000) -> Iterator[tuple[int, ...]]:
    """Every placement within a capacity, whatever lies below it or not; those that so many tries find."""
    permitted = {(p.output, p.input): p.distance for p in problem.permissions}
    offsets: list[int] = []
    left = tries

    def collide(a: int, b: int) -> bool:
        one, two = problem.items[a], problem.items[b]
        if one.upper <= two.lower or two.upper <= one.lower:
            return False
        if offsets[a] + problem.sizes[a] <= offsets[b] or offsets[b] + problem.sizes[b] <= offsets[a]:
            return False
        below = permitted.get((a, b)), permitted.get((b, a))
        return not (
            (below[0] is not None and offsets[b] >= offsets[a] + below[0])
            or (below[1] is not None and offsets[a] >= offsets[b] + below[1])
        )

    def go_on() -> Iterator[tuple[int, ...]]:
        nonlocal left
        i = len(offsets)
        if i == len(problem.items):
            yield tuple(offsets)
            return
        item = problem.items[i]
        last = capacity - problem.sizes[i]
        for at in range(0, last + 1, item.alignment) if item.offset is None else (item.offset,):
            left -= 1
            if at > last or left < 0:
                continue
            offsets.append(at)
            if not any(collide(i, k) for k in range(i)):
                yield from go_on()
            offsets.pop()

    return go_on()


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_every_placement_keeps_to_the_offsets_that_are_allowed(first: int) -> None:
    said_something = 0
    for seed in range(first, first + 20):
        problem = chained(seed)
        instance = compile_problem(problem)
        for capacity in (bound(problem).bytes - 1, bound(problem).bytes, bound(problem).bytes + 1):
            sets = twin_offsets(instance, capacity // instance.unit)
            used = [0] * len(sets)
            for found in placements(problem, capacity):
                for k, item in enumerate(instance.items):
                    if found[item] % instance.unit == 0:  # what lies as low as it can
                        used[k] |= 1 << found[item] // instance.unit
            assert all(used[k] & ~sets[k] == 0 for k in range(len(sets)))
            said_something += any(s.bit_count() < capacity // 2 for s in sets)
    assert said_something > 20


def test_a_chain_that_cannot_climb_on_is_refused_at_once() -> None:
    # In each region 11 of 22 are beside the tensors of 6 that lie over each other, so that these lie at
    # 0 or 1, or 11 or above; and each lies lower than the one before by 3.
    lives = [Item(2 * k, 2 * k + 4, 6) for k in range(4)]
    beside = [Item(2 * k + 2, 2 * k + 4, 11) for k in range(3)] + [
        Item(2 * k + 2, 2 * k + 4, 4) for k in range(3)
    ]
    problem = Problem((*lives, *beside), tuple(Permission(k + 1, k, 3) for k in range(3)))
    instance = compile_problem(problem)
    least = bound(problem).bytes
    assert decide(problem, least, 100_000).status is Status.INFEASIBLE
    assert allowed_offsets(instance, least // instance.unit) is None


def test_the_twins_visit_the_same_nodes_where_offsets_are_known() -> None:
    for seed in range(120):
        problem = chained(seed)
        instance = compile_problem(problem)
        capacity = (bound(problem).bytes + seed % 3) // instance.unit
        sets = twin_offsets(instance, capacity)
        free = same_runs(problem, capacity, count=4, limit=5000)
        for one, other in zip(
            same_runs(problem, capacity, count=4, limit=5000, sets=sets), free, strict=True
        ):
            assert (one.verdict is Verdict.FOUND) == (other.verdict is Verdict.FOUND)


def test_the_twins_leave_the_same_offsets() -> None:
    answers = set()
    for seed in range(200):
        scale = (1, 9, 37)[seed % 3]  # in one, two and more words
        problem = chained(seed, scale)
        instance = compile_problem(problem)
        for more in (-1, 0, 1, 3 * scale):
            capacity = max(0, bound(problem).bytes + more) // instance.unit
            sets = twin_offsets(instance, capacity)
            found = allowed_offsets(instance, capacity)
            assert (found is None) == (not all(sets))
            assert found is None or (found == as_sets(sets, capacity)).all()
            answers.add((found is None, capacity // WORD))
    assert {(some, words) for some in (False, True) for words in (0, 1, 2)} <= answers


def test_large_problems_are_searched_without(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = chained(1)
    known = decide(problem, bound(problem).bytes, 1000)
    monkeypatch.setattr(search, "MOST_UNITS", 1)
    monkeypatch.setattr(solver, "allowed_offsets", None)  # is not asked
    assert decide(problem, bound(problem).bytes, 1000).status is known.status
