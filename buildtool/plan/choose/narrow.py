"""Constants in the narrowest slices, where these need less memory than slices of the usual width."""

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
    """The problem whose plans are searched with the narrowest slices."""
    return replace(alone, narrow=True)


def may_pay(prepared: Prepared, best: Plan | None) -> bool:
    """Whether a search with the narrowest slices may find a plan better than `best` (None: there is none)."""
    options, target = prepared.options, prepared.target
    if options.strategy != Strategy.BEST or not loads(target.board):
        return False
    return best is None or not holds(target.board, best) or options.objective == Objective.RAM


def pays(alone: Prepared, best: Plan | None) -> bool:
    """Whether a graph has a plan in narrow slices whose live bytes are fewer than the arena of `best`."""
    if tensors_written_in_place(alone.graph) or settings(alone) == settings(narrow(alone)):
        return False
    if best is None or not holds(alone.target.board, best):
        return True
    front = search_front(narrow(alone))
    return any(front.may_fit(i, best.arena_bytes - 1) for i in range(len(front.points)))
