"""Chooses what a network on a moving window keeps from invoke to invoke.

The window moves by some rows (a hop) in each invoke. A tensor's earlier rows are kept or computed again. Each
choice gives a planning problem of its own; the one with the best plan is taken.
"""

from __future__ import annotations

import math
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
    """Returns the planning problem of each choice of what is kept, in the order of `hoppings`: the least work
    first.
    """
    return [_problem(one, target, options, session, path) for one in hoppings]


def best_problem(problems: Sequence[Prepared], options: PlanOptions) -> Prepared:
    """Returns the planning problem whose plan is the best one within the limits.

    If cost is minimised, plans within 1 % of the least cost count as equal, and the one with the least memory
    is taken. If no problem has a plan within the limits, it is the one that needs the least memory.
    """
    tried: list[tuple[Prepared, float, float]] = []  # with cost and memory
    for_memory = options.objective == Objective.RAM
    for problem in sorted(problems, key=_kept_bytes) if for_memory else problems:
        least = min((one.hop.needs.macs for one, _, _ in tried if one.hop), default=None)
        works = problem.hop.needs.macs if problem.hop else 0
        if not for_memory and least is not None and works > _MORE_WORK * least:
            break
        if for_memory and tried and problem.kept_bytes >= min(memory for _, _, memory in tried):
            break  # it and all later ones keep more than a whole plan needs
        if options.ram is not None and options.ram <= problem.kept_bytes:
            continue
        try:
            plan = choose(problem).plan
        except PlanError:
            continue
        tried.append((problem, plan.cost, plan.arena_bytes + problem.kept_bytes))
    if not tried:
        return _smallest(problems)
    if for_memory:
        return min(tried, key=lambda one: (one[2], one[1]))[0]
    most = _NEARLY * min(cost for _, cost, _ in tried)
    return min((one for one in tried if one[1] <= most), key=lambda one: (one[2], one[1]))[0]


def _problem(hopping: Hopping, target: Target, options: PlanOptions, session: Session, path: str) -> Prepared:
    """Returns the planning problem of one choice, `hopping`. The kept rows reduce its limit for the arena."""
    bare = prepare_problem(hopping.graph, target, options, session, firmware, path=path)
    problem = replace(bare, hop=replace(hopping, asked=options))
    if options.ram is None:
        return problem
    return replace(problem, options=replace(problem.options, ram=max(1, options.ram - problem.kept_bytes)))


def _kept_bytes(problem: Prepared) -> int:
    return problem.kept_bytes


def _smallest(problems: Sequence[Prepared]) -> Prepared:
    """Returns the problem that needs the least memory without limits."""
    best, least = problems[0], math.inf
    for problem in sorted(problems, key=_kept_bytes):
        if problem.kept_bytes < least and (needed := _least_bytes(problem)) < least:
            best, least = problem, needed
    return best


def _least_bytes(problem: Prepared) -> float:
    """Returns the least bytes that a problem needs without limits, for the arena and the kept rows; infinity
    if it has no plan.
    """
    free = replace(problem.options, ram=None, objective=Objective.RAM)
    try:
        return choose(replace(problem, options=free, bounded=False)).plan.arena_bytes + problem.kept_bytes
    except PlanError:
        return float("inf")


def with_kept(error: PlanError, problem: Prepared) -> PlanError:
    """Returns the error with the bytes that are kept from hop to hop in its text, and added to the limits on
    memory in its hints.
    """
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
    """Returns the bytes that the option `ram` limits: the arena's, and those kept from hop to hop."""
    return plan.arena_bytes + (plan.state_bytes if plan.hop is not None else 0)
