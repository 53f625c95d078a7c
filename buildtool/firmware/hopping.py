"""Chooses what a network on a moving window keeps: the best plan of those for each choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from buildtool.base.errors import Hint, PlanError
from buildtool.base.modes import Objective
from buildtool.base.session import Session
from buildtool.firmware.bound import firmware
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.choose import choose
from buildtool.plan.choose.hops import Hopping
from buildtool.plan.choose.problem import Prepared, prepare_problem
from buildtool.plan.types import Plan
from buildtool.target.types import Target

_MORE_WORK = (
    1.05  # choices that do more than this multiple of the least work are not tried for the least cost
)
_NEARLY = 1.01  # of plans up to this multiple of the least cost, the one with the least memory is chosen


def hop_problems(
    hoppings: Sequence[Hopping], target: Target, options: PlanOptions, session: Session, path: str
) -> list[Prepared]:
    """Returns the planning problems of all choices of what is kept, the least work first."""
    return [_problem(one, target, options, session, path) for one in hoppings]


def best_problem(problems: Sequence[Prepared], options: PlanOptions) -> Prepared:
    """Returns the problem of the choice with the best plan within the limits.

    For the least cost, plans that cost hardly more count as equal, and the least memory decides. If there is
    no such plan, it is the problem of the choice with the least memory.
    """
    tried: list[tuple[Prepared, float, float]] = []  # with cost and memory
    for problem in problems:
        least = min((one.hop.needs.macs for one, _, _ in tried if one.hop), default=None)
        works = problem.hop.needs.macs if problem.hop else 0
        if options.objective != Objective.RAM and least is not None and works > _MORE_WORK * least:
            break
        if options.ram is not None and options.ram <= problem.kept_bytes:
            continue
        try:
            plan = choose(problem).plan
        except PlanError:
            continue
        tried.append((problem, plan.cost, plan.arena_bytes + problem.kept_bytes))
    if not tried:
        return min(problems, key=_least_bytes)
    if options.objective == Objective.RAM:
        return min(tried, key=lambda one: (one[2], one[1]))[0]
    most = _NEARLY * min(cost for _, cost, _ in tried)
    return min((one for one in tried if one[1] <= most), key=lambda one: (one[2], one[1]))[0]


def _problem(hopping: Hopping, target: Target, options: PlanOptions, session: Session, path: str) -> Prepared:
    """Returns the problem of one choice. The limit on memory is that of the arena beside what is kept."""
    bare = prepare_problem(hopping.graph, target, options, session, firmware, path=path)
    problem = replace(bare, hop=replace(hopping, asked=options))
    if options.ram is None:
        return problem
    return replace(problem, options=replace(problem.options, ram=max(1, options.ram - problem.kept_bytes)))


def _least_bytes(problem: Prepared) -> float:
    """Returns the least memory of a choice, without limits; infinite if it has no plan."""
    free = replace(problem.options, ram=None, objective=Objective.RAM)
    try:
        return choose(replace(problem, options=free, bounded=False)).plan.arena_bytes + problem.kept_bytes
    except PlanError:
        return float("inf")


def with_kept(error: PlanError, problem: Prepared) -> PlanError:
    """Returns the error with hints whose limits on memory include what is kept."""
    kept = problem.kept_bytes
    if kept:
        error.text += f" (beside {kept:,} bytes that are kept from hop to hop)"
        error.hints = tuple(_with_kept(hint, kept) for hint in error.hints)
    return error


def _with_kept(hint: Hint, kept: int) -> Hint:
    settings = tuple(
        (name, value + kept if name == "ram" and isinstance(value, int) else value)
        for name, value in hint.settings
    )
    return hint._replace(settings=settings)


def needed_bytes(plan: Plan) -> int:
    """Returns the bytes that the option `ram` limits: the arena's, and those that are kept from hop to
    hop.
    """
    return plan.arena_bytes + (plan.state_bytes if plan.hop is not None else 0)
