"""The limits on a plan, and the settings that would allow a plan that exceeds them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from buildtool.base.errors import Hint, UsageError, Value, suggest
from buildtool.base.modes import CostUnit, Objective
from buildtool.options.values import PlanOptions
from buildtool.plan.types import Plan
from buildtool.target.cycle_costs import FIGURES
from buildtool.target.types import Target

F_SLACK = 1e-9  # tolerance, so that a plan keeps a limit equal to its own rounded F
NO_SETTING = Hint("choose a board with more RAM, a smaller input image or fewer channels")
MS_STEPS = 1000  # suggested times are rounded up to 1 / MS_STEPS of a millisecond


def merit(plan: Plan, objective: str) -> tuple[float, float]:
    """Returns a sort key: the objective (cost or memory) first, then the other one."""
    return (plan.arena_bytes, plan.cost) if objective == Objective.RAM else (plan.cost, plan.arena_bytes)


@dataclass(frozen=True)
class Limits:
    """Upper limits for a plan, and the objective.

    ram: bytes of the arena, or infinite.
    f: the work, as a multiple of the network's own; None: no limit.
    cost: the cost in the target's unit; None: no limit.
    objective: what to minimise, "cost" or "ram".
    in_ms: how many milliseconds a cost of 1 takes; None unless the limit on cost was given in milliseconds.
    """

    ram: float
    f: float | None = None
    cost: float | None = None
    objective: str = Objective.COST
    in_ms: float | None = None

    @classmethod
    def of(cls, options: PlanOptions, target: Target, ram: float | None = None) -> Limits:
        """Returns the limits of `options` on work and cost, and `ram` bytes for the arena.

        If `ram` is None, the arena has no limit.
        """
        in_ms = None if options.max_ms is None else target.cost_ms
        most = math.inf if ram is None else ram
        return cls(most, options.max_f, options.max_cost, options.objective, in_ms)

    def allow(self, plan: Plan) -> bool:
        """Returns whether a plan is within all limits."""
        return plan.arena_bytes <= self.ram and self.allow_work(plan)

    def allow_work(self, plan: Plan) -> bool:
        """Returns whether a plan is within the limits on work and cost."""
        return self.allow_f(plan.f) and self.allow_cost(plan.cost)

    def allow_f(self, f: float) -> bool:
        """Returns whether this work, as a multiple of the network's own, is within its limit."""
        return self.f is None or f <= self.f + F_SLACK

    def allow_cost(self, cost: float) -> bool:
        """Returns whether a cost is within its limit."""
        return self.cost is None or cost <= self.cost

    def best(self, plans: Iterable[Plan]) -> Plan | None:
        """Returns the best of the plans that are within all limits; None if no plan is."""
        return min(filter(self.allow, plans), key=lambda plan: merit(plan, self.objective), default=None)

    def first_missed(self, plan: Plan) -> str:
        """Returns the first of ram, max_f and max_cost whose limit a plan exceeds; "" if it exceeds none."""
        if plan.arena_bytes > self.ram:
            return "ram"
        if not self.allow_f(plan.f):
            return "max_f"
        return "" if self.allow_cost(plan.cost) else "max_cost"

    def wider(self, plan: Plan, **others: Value) -> Hint:
        """Returns a hint with limits that are high enough for a plan, and with the settings `others`."""
        settings = dict(others)
        if plan.arena_bytes > self.ram:
            settings["ram"] = plan.arena_bytes
        if self.f is not None and not self.allow_f(plan.f):
            settings["max_f"] = math.ceil((plan.f - F_SLACK) * 1000) / 1000
        if not self.allow_cost(plan.cost):
            settings |= self.cost_setting(plan.cost)
        cost = f"cost {plan.cost:,.0f}" if self.in_ms is None else f"{format_ms(plan.cost * self.in_ms)}"
        return suggest(f"{plan.arena_bytes:,} bytes, F {plan.f:.3f} times the work, {cost}", **settings)

    def cost_setting(self, cost: float) -> dict[str, Value]:
        """Returns the setting of max_cost, rounded up, that allows a cost.

        If the limit was given in milliseconds, it is a setting of max_ms.
        """
        if self.in_ms is None:
            return {"max_cost": math.ceil(cost)}
        return {"max_ms": math.ceil(cost * self.in_ms * MS_STEPS + 1e-6) / MS_STEPS}


# ---- costs in the target's unit and in milliseconds ---------------------------------------------------


def cost_limit(options: PlanOptions, target: Target) -> float | None:
    """Returns the upper limit for a plan's cost on the target; None: there is no limit.

    Raises UsageError for a limit in milliseconds if costs cannot be converted to a time.
    """
    if options.max_ms is None:
        return options.max_cost
    if target.cost_ms is not None:
        return options.max_ms / target.cost_ms
    board, pipeline = target.board, ""
    if board.pipeline:
        figures = (f"{name} = {getattr(board.pipeline, name)}" for name in ("model", *FIGURES))
        pipeline = f" with {', '.join(figures)} ([pipeline] of its file)"
    text = (
        f"costs on board '{board.name}' are {target.cost_unit}, which are not times: its core "
        f"'{board.core.name}'{pipeline} has no cost formulas in cycles"
    )
    if target.cost_unit is CostUnit.CYCLES:
        text = f"the file of board '{board.name}' does not give its clock (clock_hz)"
    hints = [Hint(f"use max_cost, which limits the {target.cost_unit}"), suggest(max_ms=None)]
    raise UsageError(text, option="max_ms", hint=hints)


def limit_cost(options: PlanOptions, target: Target) -> PlanOptions:
    """Returns the options with the limit in milliseconds converted to a limit on the cost.

    Raises UsageError if there is such a limit, but costs cannot be converted to a time.
    """
    return replace(options, max_cost=cost_limit(options, target))


def estimate_ms(cost: float, target: Target) -> float | None:
    """Returns a cost in milliseconds at the board's clock.

    None if costs are not times, or if the clock is not known.
    """
    return None if target.cost_ms is None else cost * target.cost_ms


def format_ms(milliseconds: float) -> str:
    """Returns a time in milliseconds as text, with at least four digits: 601.0 ms, 12,730 ms."""
    return f"{milliseconds:,.0f} ms" if milliseconds >= 1000 else f"{milliseconds:.4g} ms"


def format_price(plan: Plan, target: Target) -> str:
    """Returns what a plan costs, in a few words for a hint."""
    ms = estimate_ms(plan.cost, target)
    return f"F {plan.f:.3f} times the work{'' if ms is None else f', about {format_ms(ms)}'}"


def format_cost(cost: float, target: Target) -> str:
    """Returns a cost with its unit, and with the milliseconds if they are known."""
    text, milliseconds = f"{cost:,.0f} {target.cost_unit}", estimate_ms(cost, target)
    return text if milliseconds is None else f"{text} ({format_ms(milliseconds)})"
