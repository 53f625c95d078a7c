"""Costs in the target's unit and in milliseconds: the limit on them, and how messages show them."""

from __future__ import annotations

from dataclasses import replace

from buildtool.base.errors import Hint, UsageError, suggest
from buildtool.base.modes import CostUnit
from buildtool.options.values import PlanOptions
from buildtool.target.cycle_costs import FIGURES
from buildtool.target.types import Target


def cost_limit(options: PlanOptions, target: Target) -> float | None:
    """The most that a plan may cost on the target; None: there is no limit.

    UsageError for a limit of milliseconds where costs are no time.
    """
    if options.max_ms is None:
        return options.max_cost
    per_cost = target.cost_ms
    if per_cost is None:
        helps = [Hint(f"max_cost, which is a limit on the {target.cost_unit}"), suggest(max_ms=None)]
        raise UsageError(_no_time(target), option="max_ms", hint=helps)
    return options.max_ms / per_cost


def within_cost(options: PlanOptions, target: Target) -> PlanOptions:
    """The options with their limit of milliseconds as one on the cost; UsageError as `cost_limit`."""
    return replace(options, max_cost=cost_limit(options, target))


def _no_time(target: Target) -> str:
    board = target.board
    if target.cost_unit is CostUnit.CYCLES:
        return f"the file of board '{board.name}' does not say its clock (clock_hz)"
    said = ""
    if board.pipeline:
        figures = (f"{name} = {getattr(board.pipeline, name)}" for name in ("model", *FIGURES))
        said = f" with {', '.join(figures)} ([pipeline] of its file)"
    return (
        f"costs on board '{board.name}' are {target.cost_unit}, which are no time: there are no formulas in "
        f"cycles for its core '{board.core.name}'{said}"
    )


def estimated_ms(cost: float, target: Target) -> float | None:
    """A cost in milliseconds at the board's clock; None where it is no time, or the clock is not known."""
    return None if target.cost_ms is None else cost * target.cost_ms


def shown_cost(cost: float, target: Target) -> str:
    """A cost with its unit, and with the milliseconds where they are known."""
    text, milliseconds = f"{cost:,.0f} {target.cost_unit}", estimated_ms(cost, target)
    return text if milliseconds is None else f"{text} ({milliseconds:,.4g} ms)"
