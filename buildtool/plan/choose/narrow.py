"""Plans with constants in the narrowest slices, where these need less memory than slices of usual width.

On boards that load weights into the arena, an operator's constants may be loaded in slices of its output
channels (see `assemble.loads`).
"""

from __future__ import annotations

from dataclasses import replace

from buildtool.base.modes import Objective, Strategy
from buildtool.graph.partviews import tensors_written_in_place
from buildtool.plan.choose.fronts import search_front
from buildtool.plan.choose.problem import Prepared, settings
from buildtool.plan.summary.fit import holds
from buildtool.plan.types import Plan
from buildtool.target.choice import loads


def narrow(alone: Prepared) -> Prepared:
    """Returns the problem whose plans are searched with the narrowest slices."""
    return replace(alone, narrow=True)


def may_pay(prepared: Prepared, best: Plan | None) -> bool:
    """Returns whether a search with the narrowest slices may find a better plan than `best`.

    `best` is None if there is no plan yet.
    """
    options, target = prepared.options, prepared.target
    if options.strategy != Strategy.BEST or not loads(target.board):
        return False
    return best is None or not holds(target.board, best) or options.objective == Objective.RAM


def pays(alone: Prepared, best: Plan | None) -> bool:
    """Returns whether a graph has a plan in narrow slices with fewer live bytes than the arena of `best`."""
    if tensors_written_in_place(alone.graph) or settings(alone) == settings(narrow(alone)):
        return False
    if best is None or not holds(alone.target.board, best):
        return True
    front = search_front(narrow(alone))
    return any(front.may_fit(i, best.arena_bytes - 1) for i in range(len(front.points)))
