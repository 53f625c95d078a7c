"""Arena problems solved exactly: is there a placement within a capacity, and which is the lowest?

Effort is counted in nodes, never in time: the same problem and budget give the same answer
everywhere. Offsets found are checked before anything is done with them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import msgpack

from buildtool.base.errors import UnsupportedError
from buildtool.base.session import Level, Session
from buildtool.base.work import Work
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.allowed import allowed_offsets, is_small
from buildtool.plan.place.arena import Problem, Solution
from buildtool.plan.place.bounds import bound
from buildtool.plan.place.instance import MOST_UNITS, compile_problem
from buildtool.plan.place.orders import FIRST_LIMIT, runs
from buildtool.plan.place.search import Search, Verdict

LEAST_TABLE_BITS, MOST_TABLE_BITS = 10, 20  # of the table of states known to fail: 16 KiB to 16 MiB
SETTING_UP = 1000  # units of work an item that any search takes besides its nodes: what its CPU is worth
LOOK = 100  # nodes before it is found out which offsets are left to the items
_SCHEMA = 1  # of what a session keeps
SHARE = 4  # of the budget that is left, 1 / SHARE is spent on one height


class Status(enum.Enum):
    """What is proven."""

    OPTIMAL = "optimal"  # no placement is lower
    FEASIBLE = "feasible"  # a placement, perhaps not the lowest
    INFEASIBLE = "infeasible"  # nothing fits within the capacity
    UNKNOWN = "unknown"  # the budget is spent


@dataclass(frozen=True)
class Result:
    """`solution` where there is one; no placement is lower than `bound` bytes; `nodes` were visited."""

    status: Status
    solution: Solution | None
    bound: int
    nodes: int


class _Solver:
    """One problem, searched at one capacity after the other within one budget."""

    def __init__(self, problem: Problem, budget: int) -> None:
        self.problem, self.left, self.nodes = problem, budget, 0
        self.instance = compile_problem(problem)
        self._bits = min(MOST_TABLE_BITS, max(LEAST_TABLE_BITS, budget.bit_length()))

    def search(self, capacity: int, budget: int) -> tuple[Verdict, Solution | None]:
        """Looks for a placement within `capacity` bytes, at most `budget` nodes long."""
        # All on top of each other is below MOST_UNITS, so a larger capacity makes no difference.
        units = min(capacity // self.instance.unit, MOST_UNITS - 1)
        small = is_small(self.instance, units)
        search = Search(self.instance, units, LEAST_TABLE_BITS if small else self._bits)
        order = runs(self.problem, self.instance)
        first = next(order)
        tried = [first]
        if small:
            # Most problems are easy; where one is not, what is found out about offsets helps.
            tried.insert(0, replace(first, limit=LOOK))
        for run in chain(tried, order):
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
                allowed = allowed_offsets(self.instance, units)
                if allowed is None:
                    return self._impossible, None
                search = Search(self.instance, units, self._bits, allowed)
        return Verdict.LIMIT, None

    @property
    def _impossible(self) -> Verdict:
        """What it means that the search has tried everything."""
        return Verdict.LIMIT if self.instance.capped else Verdict.IMPOSSIBLE

    def _solution(self, units: Sequence[int]) -> Solution:
        offsets = [item.offset or 0 for item in self.problem.items]
        for item, at in zip(self.instance.items, units, strict=True):
            offsets[item] = at * self.instance.unit
        arena.validate(self.problem, offsets)
        return Solution(tuple(offsets), arena.height(self.problem, offsets))


def decide(problem: Problem, capacity: int, budget: int, work: Work | None = None) -> Result:
    """A placement no higher than `capacity` bytes: any; OPTIMAL if it meets the bound.

    `work`: what it counts to.
    """
    least = bound(problem).bytes
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


def solve(problem: Problem, budget: int) -> Result:
    """The lowest placement found; UNKNOWN only where fixed offsets leave not even a first one."""
    top = sum(size + item.alignment for size, item in zip(problem.sizes, problem.items, strict=True))
    top += max((i.offset or 0 for i in problem.items), default=0)
    first = decide(problem, max(top, bound(problem).bytes), budget)
    if first.solution is None or first.status is Status.OPTIMAL:
        return first
    rest = minimise(problem, first.solution, budget - first.nodes)
    return replace(rest, nodes=first.nodes + rest.nodes)


def minimise(problem: Problem, start: Solution, budget: int) -> Result:
    """The lowest placement found, from `start` down; never a higher one than `start`.

    First the bound itself is tried: if that can be met at all, it is often not hard. Then the middle
    between what is thought to be too low and what has been reached, until they touch.
    """
    least = bound(problem).bytes
    if start.height <= least:
        return Result(Status.OPTIMAL, start, least, 0)
    solver = _Solver(problem, budget)
    unit, best = solver.instance.unit, start
    proven = -(-least // unit)  # in units: no placement is lower
    doubtful = proven  # nothing has been found below, whatever the reason
    target = proven
    while best.height > proven * unit and solver.left > 0:
        highest = -(-best.height // unit) - 1
        if doubtful > highest:
            break
        last = target == highest
        verdict, found = solver.search(target * unit, solver.left if last else _slice(solver.left))
        if found is not None:
            best = found
        else:
            doubtful = target + 1
            proven = doubtful if verdict is Verdict.IMPOSSIBLE else proven
        target = (doubtful + -(-best.height // unit) - 1) // 2
    least = max(least, proven * unit)
    status = Status.OPTIMAL if best.height <= least else Status.FEASIBLE
    return Result(status, best, least, solver.nodes)


def _slice(left: int) -> int:
    return max(min(left, FIRST_LIMIT), left // SHARE)


def improve(problem: Problem, solution: Solution, budget: int, work: Work | None = None) -> Solution:
    """A placement that is not higher than `solution`: lower if one was found within `budget` nodes.

    What the search does not take (too many items) comes back as it is, and so does all where nothing is left
    of `work`.
    """
    if work is not None and not work.goes_on():
        return solution
    try:
        result = minimise(problem, solution, budget)
    except UnsupportedError:
        return solution
    found = result.solution
    if work is not None:
        work.spend((SETTING_UP + result.nodes) * len(problem.items))
    return solution if found is None or found.height >= solution.height else found


def solved(problem: Problem, capacity: int | None, budget: int, session: Session | None = None) -> Result:
    """The lowest placement that `solve` finds; with a capacity in bytes, what `decide` finds."""
    if capacity is None:
        return _kept(problem, "solve", budget, None, session, lambda: solve(problem, budget))
    return _kept(problem, "solve", budget, capacity, session, lambda: decide(problem, capacity, budget))


def improved(problem: Problem, budget: int, session: Session | None = None) -> Solution:
    """The lowest placement by greedy orders, lowered by an exact search."""

    def made() -> Result:
        return Result(Status.FEASIBLE, improve(problem, greedy.solve(problem), budget), 0, 0)

    solution = _kept(problem, "improve", budget, None, session, made).solution
    assert solution is not None
    return solution


def _kept(
    problem: Problem,
    how: str,
    budget: int,
    capacity: int | None,
    session: Session | None,
    make: Callable[[], Result],
) -> Result:
    """What a session has by the problem itself, or makes."""
    if session is None:
        return make()
    parts = {
        "schema": _SCHEMA,
        "items": [[i.lower, i.upper, i.size, i.alignment, i.offset] for i in problem.items],
        "permissions": [[p.output, p.input, p.distance] for p in problem.permissions],
        "how": how,
        "budget": budget,
        "capacity": capacity,
    }
    return session.keep(Level("arenas", _packed, lambda data: _unpacked(data, problem)), parts, make)


def _packed(result: Result) -> bytes:
    offsets = None if result.solution is None else list(result.solution.offsets)
    data: bytes = msgpack.packb([result.status.value, offsets, result.bound, result.nodes])
    return data


def _unpacked(data: bytes, problem: Problem) -> Result:
    """The result in `data`; an exception for what is no legal placement of the problem."""
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
