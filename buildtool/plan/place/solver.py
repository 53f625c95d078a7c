"""The exact solver for arena problems: a placement within a capacity, or the lowest placement.

Effort is counted in nodes, never in time: the same problem and budget give the same answer
everywhere. Offsets are validated before use.

A depth-first search with a wrong start loses much time. So it is restarted with other orders of the items and
growing limits: a few good orders, and orders with noise. The noise comes from a linear congruential
generator, with the multiplier and the increment of Knuth's MMIX.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import msgpack
import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.base.session import Namespace, Session
from buildtool.base.work import Work
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.arena import Problem, Solution
from buildtool.plan.place.instance import MOST_UNITS, Instance, compile_problem
from buildtool.plan.place.search import Search, Verdict, find_allowed_offsets, is_small

LEAST_TABLE_BITS, MOST_TABLE_BITS = 10, 20  # size of the table of failed states: 16 KiB to 16 MiB
SETTING_UP = 1000  # units of work per item of any search, besides its nodes; it matches the CPU time
LOOK = 100  # nodes of a first run, before the possible offsets of the items are computed
_SCHEMA = 1  # the version of the results that a session keeps
SHARE = 4  # 1 / SHARE of the remaining budget is spent on one height
FIRST_LIMIT = 1000  # nodes of the runs of the first round; doubles from round to round
NOISY = 4  # runs with noise in a round
CROWDED_LIMIT = 4 * FIRST_LIMIT  # limit of the first round with crowded runs, for hard problems
SEED = 0x9E3779B97F4A7C15
_MULTIPLIER, _INCREMENT, _MODULUS = 6364136223846793005, 1442695040888963407, 1 << 64
_LOW_BITS = 33  # low bits of the generator's state, which have short periods
LEAST_WEIGHT, WEIGHTS = 768, 512  # an area counts from 3/4 to 5/4 of itself, in 1024ths


class Status(enum.Enum):
    """What a search has proven about a problem."""

    OPTIMAL = "optimal"  # no placement is lower
    FEASIBLE = "feasible"  # a placement, perhaps not the lowest
    INFEASIBLE = "infeasible"  # nothing fits within the capacity
    UNKNOWN = "unknown"  # the budget is spent


@dataclass(frozen=True)
class Result:
    """The result of a search that visited `nodes` nodes.

    `solution`: the placement that was found; None if there is none. `bound`: no placement is lower than this,
    in bytes.
    """

    status: Status
    solution: Solution | None
    bound: int
    nodes: int


class _Solver:
    """Searches one problem at one capacity after the other, all within one budget of nodes."""

    def __init__(self, problem: Problem, budget: int) -> None:
        self.problem, self.left, self.nodes = problem, budget, 0
        self.instance = compile_problem(problem)
        self._bits = min(MOST_TABLE_BITS, max(LEAST_TABLE_BITS, budget.bit_length()))

    def search(self, capacity: int, budget: int) -> tuple[Verdict, Solution | None]:
        """Searches for a placement within `capacity` bytes. Visits at most `budget` nodes.

        Returns how the search ended, and the placement if one was found.
        """
        # All items on top of each other stay below MOST_UNITS, so a larger capacity makes no difference.
        units = min(capacity // self.instance.unit, MOST_UNITS - 1)
        small = is_small(self.instance, units)
        search = Search(self.instance, units, LEAST_TABLE_BITS if small else self._bits)
        order = runs(self.problem, self.instance)
        first = next(order)
        first_runs = [first]
        if small:
            # Most problems are easy; for a hard one it helps to know the possible offsets.
            first_runs.insert(0, replace(first, limit=LOOK))
        for run in chain(first_runs, order):
            if budget <= 0:
                break
            outcome = search.run(run.order, min(run.limit, budget), run.crowded)
            budget -= outcome.nodes
            self.left -= outcome.nodes
            self.nodes += outcome.nodes
            if outcome.verdict is Verdict.FOUND:
                return Verdict.FOUND, self._solution(outcome.offsets)
            if outcome.verdict is Verdict.IMPOSSIBLE:
                return self._impossible, None
            if run.limit == LOOK:
                allowed = find_allowed_offsets(self.instance, units)
                if allowed is None:
                    return self._impossible, None
                search = Search(self.instance, units, self._bits, allowed)
        return Verdict.LIMIT, None

    @property
    def _impossible(self) -> Verdict:
        """Returns the verdict after a search has tried everything without success."""
        return Verdict.LIMIT if self.instance.capped else Verdict.IMPOSSIBLE

    def _solution(self, units: Sequence[int]) -> Solution:
        offsets = [item.offset or 0 for item in self.problem.items]
        for item, at in zip(self.instance.items, units, strict=True):
            offsets[item] = at * self.instance.unit
        arena.validate(self.problem, offsets)
        return Solution(tuple(offsets), arena.height(self.problem, offsets))


def _least_height(problem: Problem) -> int:
    """Returns a lower bound in bytes of all placements: of live bytes, and of items at fixed offsets.

    The search leaves out items that are never live, but they count as part of a placement's height.
    """
    ends = (
        i.offset + size for i, size in zip(problem.items, problem.sizes, strict=True) if i.offset is not None
    )
    return max(problem.bound.bytes, max(ends, default=0))


def decide(problem: Problem, capacity: int, budget: int, work: Work | None = None) -> Result:
    """Returns any placement of at most `capacity` bytes that a search of `budget` nodes finds.

    The status is OPTIMAL if the placement is as low as the lower bound. `work`: the budget that is spent.
    """
    least = _least_height(problem)
    if work is not None:
        work.spend(SETTING_UP * len(problem.items))
    if least > capacity:
        return Result(Status.INFEASIBLE, None, least, 0)
    solver = _Solver(problem, budget)
    verdict, solution = solver.search(capacity, budget)
    if work is not None:
        work.spend(solver.nodes * len(problem.items))
    if solution is not None:
        status = Status.OPTIMAL if solution.height <= least else Status.FEASIBLE
    else:
        status = Status.INFEASIBLE if verdict is Verdict.IMPOSSIBLE else Status.UNKNOWN
    return Result(status, solution, least, solver.nodes)


def units(problem: Problem, result: Result) -> int:
    """Returns the units of work that `decide` spends on a result."""
    return (SETTING_UP + result.nodes) * len(problem.items)


def solve(problem: Problem, budget: int) -> Result:
    """Returns the lowest placement that a search of `budget` nodes finds.

    The status is UNKNOWN only if fixed offsets prevent even a first placement.
    """
    top = sum(size + item.alignment for size, item in zip(problem.sizes, problem.items, strict=True))
    top += max((i.offset or 0 for i in problem.items), default=0)
    first = decide(problem, max(top, _least_height(problem)), budget)
    if first.solution is None or first.status is Status.OPTIMAL:
        return first
    rest = minimise(problem, first.solution, budget - first.nodes)
    return replace(rest, nodes=first.nodes + rest.nodes)


def minimise(problem: Problem, start: Solution, budget: int) -> Result:
    """Returns the lowest placement that a search of `budget` nodes finds, at most as high as `start`.

    It tries the lower bound first: if this can be reached, it is often easy. Then it tries the middle between
    the highest height that failed and the best height, until no height is between the two.
    """
    least = _least_height(problem)
    if start.height <= least:
        return Result(Status.OPTIMAL, start, least, 0)
    solver = _Solver(problem, budget)
    unit, best = solver.instance.unit, start
    proven = -(-least // unit)  # in units: no placement is lower
    doubtful = proven  # no placement was found below it, for any reason
    target = proven
    while best.height > proven * unit and solver.left > 0:
        highest = -(-best.height // unit) - 1
        if doubtful > highest:
            break
        share = max(min(solver.left, FIRST_LIMIT), solver.left // SHARE)
        verdict, lower = solver.search(target * unit, solver.left if target == highest else share)
        if lower is not None:
            best = lower
        else:
            doubtful = target + 1
            proven = doubtful if verdict is Verdict.IMPOSSIBLE else proven
        target = (doubtful + -(-best.height // unit) - 1) // 2
    least = max(least, proven * unit)
    status = Status.OPTIMAL if best.height <= least else Status.FEASIBLE
    return Result(status, best, least, solver.nodes)


def improve(problem: Problem, solution: Solution, budget: int, work: Work | None = None) -> Solution:
    """Returns a placement that is at most as high as `solution`: a lower one if `budget` nodes find it.

    Returns `solution` itself if the problem has too many items for the search, or if the budget of `work` has
    ended.
    """
    if work is not None and not work.goes_on():
        return solution
    try:
        result = minimise(problem, solution, budget)
    except UnsupportedError:
        return solution
    if work is not None:
        work.spend((SETTING_UP + result.nodes) * len(problem.items))
    return result.solution or solution


def solve_problem(
    problem: Problem, capacity: int | None, budget: int, session: Session | None = None
) -> Result:
    """Returns the result of `solve` if `capacity` is None, else that of `decide` for this many bytes."""

    def make() -> Result:
        return solve(problem, budget) if capacity is None else decide(problem, capacity, budget)

    return _keep(session, problem, make, how="solve", budget=budget, capacity=capacity)


def improved(problem: Problem, budget: int, session: Session | None = None) -> Solution:
    """Returns the lowest placement by greedy orders, lowered by an exact search of `budget` nodes."""

    def make() -> Result:
        return Result(Status.FEASIBLE, improve(problem, greedy.solve(problem), budget), 0, 0)

    solution = _keep(session, problem, make, how="improve", budget=budget, capacity=None).solution
    assert solution is not None
    return solution


def _keep(
    session: Session | None, problem: Problem, make: Callable[[], Result], **how: str | int | None
) -> Result:
    """Returns the result that a session keeps for the problem, or a new one."""
    if session is None:
        return make()
    parts = {
        "schema": _SCHEMA,
        "items": [list(item) for item in problem.items],
        "permissions": [list(permission) for permission in problem.permissions],
        **how,
    }
    return session.keep(Namespace("arenas", _pack, lambda data: _unpack(data, problem)), parts, make)


def _pack(result: Result) -> bytes:
    offsets = None if result.solution is None else list(result.solution.offsets)
    data: bytes = msgpack.packb([result.status.value, offsets, result.bound, result.nodes])
    return data


def _unpack(data: bytes, problem: Problem) -> Result:
    """Returns the result in `data`. Raises an exception if it is not a legal placement of the problem."""
    status, offsets, bound, nodes = msgpack.unpackb(data)
    solution = None
    if offsets is not None:
        if not all(type(offset) is int for offset in offsets):
            raise ValueError("not a placement")
        arena.validate(problem, offsets)
        solution = Solution(tuple(offsets), arena.height(problem, offsets))
    if type(bound) is not int or type(nodes) is not int or (solution and bound > solution.height):
        raise ValueError("not a result")
    return Result(Status(status), solution, bound, nodes)


def following(state: int) -> int:
    """Returns the state of the pseudorandom generator after `state`."""
    return (state * _MULTIPLIER + _INCREMENT) % _MODULUS


def choice(state: int, choices: int) -> int:
    """Returns a pseudorandom number from 0 to `choices` - 1, taken from the generator's state."""
    return (state >> _LOW_BITS) % choices


@dataclass(frozen=True)
class Run:
    """One run of the search: the order of items, the most nodes it may visit, `crowded` as in Search.run."""

    order: tuple[int, ...]
    limit: int
    crowded: bool = False


def runs(problem: Problem, instance: Instance) -> Iterator[Run]:
    """Yields an endless sequence of runs of the search, the more promising ones first."""
    if instance.order:
        yield Run(instance.order, FIRST_LIMIT)
    live = np.zeros(instance.sections, np.int64)
    spans = [slice(*span) for span in zip(instance.first.tolist(), instance.last.tolist(), strict=True)]
    sizes = instance.size.tolist()
    for span, size in zip(spans, sizes, strict=True):
        live[span] += size
    crowd = [int(live[span].max()) for span in spans]  # by item: the largest live sum during its life
    length = [problem.items[i].upper - problem.items[i].lower for i in instance.items]
    area = [size * time for size, time in zip(sizes, length, strict=True)]
    fixed = ((area, crowd, length), (crowd, length, area), (crowd, area, length), (length, area, crowd))
    crowded = ((length, area, crowd), (area, length, crowd))
    state, limit = SEED, FIRST_LIMIT
    while True:
        for measures in fixed[1:] if instance.order and limit == FIRST_LIMIT else fixed:
            yield Run(_order(list(zip(*measures, strict=True)), instance), limit)
        for _ in range(NOISY):
            keys = []
            for i in range(len(sizes)):
                state = following(state)
                weight = LEAST_WEIGHT + choice(state, WEIGHTS)
                keys.append((area[i] * weight, crowd[i], length[i]))
            yield Run(_order(keys, instance), limit)
        for measures in crowded if limit >= CROWDED_LIMIT else ():
            yield Run(_order(list(zip(*measures, strict=True)), instance), limit, crowded=True)
        limit *= 2


def _order(keys: Sequence[tuple[int, int, int]], instance: Instance) -> tuple[int, ...]:
    """Returns the items by descending key. Items with equal keys, and twins, are ordered by position."""
    try:
        first, second, third = -np.array(keys, np.int64).reshape(-1, 3).T
        order: list[int] = np.lexsort((third, second, first)).tolist()
    except OverflowError:  # lives of arena problems may be of any length
        order = sorted(range(len(keys)), key=lambda i: (*(-k for k in keys[i]), i))
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
