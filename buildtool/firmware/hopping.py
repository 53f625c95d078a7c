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

_MORE_WORK = 1.05  # choices with more work than this share above the best plan's are not tried


def hop_problems(
    hoppings: Sequence[Hopping], target: Target, options: PlanOptions, session: Session, path: str
) -> list[Prepared]:
    """The planning problems of all choices of what is kept, the least work first."""
    return [_problem(one, target, options, session, path) for one in hoppings]


def best_problem(problems: Sequence[Prepared], options: PlanOptions) -> Prepared:
    """The problem of the choice with the best plan within the limits.

    If there is no such plan, it is the problem of the choice with the least memory.
    """
    best: tuple[tuple[float, ...], Prepared] | None = None
    by_ram = options.objective == Objective.RAM
    for problem in problems:
        if best is not None and not by_ram and problem.hop is not None:
            least = best[1].hop
            if least is not None and problem.hop.needs.macs > _MORE_WORK * least.needs.macs:
                break
        if options.ram is not None and options.ram <= problem.kept_bytes:
            continue
        try:
            plan = choose(problem).plan
        except PlanError:
            continue
        total = plan.arena_bytes + problem.kept_bytes
        merit = (total, plan.cost) if by_ram else (plan.cost, total)
        if best is None or merit < best[0]:
            best = merit, problem
    return best[1] if best is not None else min(problems, key=_least_bytes)


def _problem(hopping: Hopping, target: Target, options: PlanOptions, session: Session, path: str) -> Prepared:
    """The problem of one choice. The limit on memory is that of the arena beside what is kept."""
    bare = prepare_problem(hopping.graph, target, options, session, firmware, path=path)
    problem = replace(bare, hop=replace(hopping, asked=options))
    if options.ram is None:
        return problem
    return replace(problem, options=replace(problem.options, ram=max(1, options.ram - problem.kept_bytes)))


def _least_bytes(problem: Prepared) -> float:
    """The least memory of a choice, without limits; infinite if it has no plan."""
    free = replace(problem.options, ram=None, objective=Objective.RAM)
    try:
        return choose(replace(problem, options=free, bounded=False)).plan.arena_bytes + problem.kept_bytes
    except PlanError:
        return float("inf")


def with_kept(error: PlanError, problem: Prepared) -> PlanError:
    """The error with hints whose limits on memory include what is kept."""
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
    """The bytes that the option `ram` limits: the arena's, and those that are kept from hop to hop."""
    return plan.arena_bytes + (plan.state_bytes if plan.hop is not None else 0)
