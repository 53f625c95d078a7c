"""Arena problems solved exactly: is there a placement within a capacity, and which is the lowest?

Effort is counted in nodes, never in time: the same problem and budget give the same answer
everywhere. Offsets found are checked before anything is done with them.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from buildtool.base.errors import PlanError, UnsupportedError
from buildtool.base.work import Work
from buildtool.plan.place import arena
from buildtool.plan.place.allowed import allowed_offsets, is_small
from buildtool.plan.place.allowed_in_c import as_sets, sets_in_c
from buildtool.plan.place.allowed_in_c import library as sets_library
from buildtool.plan.place.arena import Problem, Solution
from buildtool.plan.place.bounds import bound
from buildtool.plan.place.instance import MOST_UNITS, Instance, compile_problem
from buildtool.plan.place.instance import library as instance_library
from buildtool.plan.place.native import NativeSearch, library
from buildtool.plan.place.orders import FIRST_LIMIT, runs
from buildtool.plan.place.outcome import Search, Verdict
from buildtool.plan.place.search import PythonSearch

LEAST_TABLE_BITS, MOST_TABLE_BITS = 10, 20  # of the table of states known to fail: 16 KiB to 16 MiB
SETTING_UP = 1000  # units of work an item that any search takes besides its nodes: what its CPU is worth
LOOK = 100  # nodes before it is found out which offsets are left to the items
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

    def __init__(self, problem: Problem, budget: int, lib: Path | None, *, native: bool) -> None:
        self.problem, self.left, self.nodes = problem, budget, 0
        self._library = library(lib) if native else None
        compiler = instance_library() if native else None
        self.instance: Instance = compile_problem(problem, compiler)
        self._bits = min(MOST_TABLE_BITS, max(LEAST_TABLE_BITS, budget.bit_length()))

    def search(self, capacity: int, budget: int) -> tuple[Verdict, Solution | None]:
        """Looks for a placement within `capacity` bytes, at most `budget` nodes long."""
        # All on top of each other is below MOST_UNITS, so a larger capacity makes no difference.
        units = min(capacity // self.instance.unit, MOST_UNITS - 1)
        small = is_small(self.instance, units)
        search = self._search(units, LEAST_TABLE_BITS if small else self._bits)
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
                narrowed = self._narrowed(units)
                if narrowed is None:
                    return self._impossible, None
                search = narrowed
        return Verdict.LIMIT, None

    @property
    def _impossible(self) -> Verdict:
        """What it means that the search has tried everything."""
        return Verdict.LIMIT if self.instance.capped else Verdict.IMPOSSIBLE

    def _search(self, units: int, bits: int) -> Search:
        if self._library is None:
            return PythonSearch(self.instance, units, bits)
        return NativeSearch(self._library, self.instance, units, bits)

    def _narrowed(self, units: int) -> Search | None:
        """A search that keeps to the offsets that are left to the items; None where nothing fits."""
        native, lib = self._library, sets_library()
        if native is not None and lib is not None:
            sets = sets_in_c(lib, self.instance, units)
            return None if sets is None else NativeSearch(native, self.instance, units, self._bits, sets)
        allowed = allowed_offsets(self.instance, units)
        if not all(allowed):
            return None
        if native is None:
            return PythonSearch(self.instance, units, self._bits, allowed)
        return NativeSearch(native, self.instance, units, self._bits, as_sets(allowed, units))

    def _solution(self, units: Sequence[int]) -> Solution:
        offsets = [item.offset or 0 for item in self.problem.items]
        for item, at in zip(self.instance.items, units, strict=True):
            offsets[item] = at * self.instance.unit
        arena.validate(self.problem, offsets)
        return Solution(tuple(offsets), arena.height(self.problem, offsets))


def decide(
    problem: Problem,
    capacity: int,
    budget: int,
    *,
    native: bool = True,
    lib: Path | None = None,
    work: Work | None = None,
) -> Result:
    """A placement no higher than `capacity` bytes: any; OPTIMAL if it meets the bound.

    `native`: in C where that was built; the Python search visits the same nodes. `work`: what it counts to.
    """
    least = bound(problem).bytes
    if work is not None:
        work.spend(SETTING_UP * len(problem.items))
    if least > capacity:
        return Result(Status.INFEASIBLE, None, least, 0)
    solver = _Solver(problem, budget, lib, native=native)
    verdict, solution = solver.search(capacity, budget)
    if work is not None:
        work.spend(solver.nodes * len(problem.items))
    if solution is not None:
        status = Status.OPTIMAL if solution.height <= least else Status.FEASIBLE
    else:
        status = Status.INFEASIBLE if verdict is Verdict.IMPOSSIBLE else Status.UNKNOWN
    return Result(status, solution, least, solver.nodes)


def solve(problem: Problem, budget: int, *, native: bool = True, lib: Path | None = None) -> Result:
    """The lowest placement found; UNKNOWN only where fixed offsets leave not even a first one."""
    top = sum(size + item.alignment for size, item in zip(problem.sizes, problem.items, strict=True))
    top += max((i.offset or 0 for i in problem.items), default=0)
    first = decide(problem, max(top, bound(problem).bytes), budget, native=native, lib=lib)
    if first.solution is None or first.status is Status.OPTIMAL:
        return first
    rest = minimise(problem, first.solution, budget - first.nodes, native=native, lib=lib)
    return replace(rest, nodes=first.nodes + rest.nodes)


def minimise(
    problem: Problem, start: Solution, budget: int, *, native: bool = True, lib: Path | None = None
) -> Result:
    """The lowest placement found, from `start` down; never a higher one than `start`.

    First the bound itself is tried: if that can be met at all, it is often not hard. Then the middle
    between what is thought to be too low and what has been reached, until they touch.
    """
    least = bound(problem).bytes
    if start.height <= least:
        return Result(Status.OPTIMAL, start, least, 0)
    solver = _Solver(problem, budget, lib, native=native)
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


def decide_memories(
    problem: Problem, memory: Sequence[int], capacities: Sequence[int], budget: int
) -> list[Result]:
    """Items pinned to memories: a result for each; `memory[i]` is where item i lies.

    Offsets are in the order of the memory's items. PlanError if an overlap is permitted across memories.
    """
    results = []
    for which, capacity in enumerate(capacities):
        index = {item: k for k, item in enumerate(i for i, m in enumerate(memory) if m == which)}
        inside = []
        for p in problem.permissions:
            if (p.output in index) != (p.input in index):
                raise PlanError(f"items {p.output} and {p.input} may overlap, but lie in different memories")
            if p.output in index:
                inside.append(p._replace(output=index[p.output], input=index[p.input]))
        part = Problem(tuple(problem.items[i] for i in index), tuple(inside))
        results.append(decide(part, capacity, budget))
    return results
