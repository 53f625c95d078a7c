"""Costs as text: in which unit they are, and how long they take where that is a time."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import Cell

if TYPE_CHECKING:
    from buildtool.schema.fronts import Figures
    from buildtool.schema.plans import OtherPlan, PlanAnswer

WIDTH = 110  # columns


def cost_titles(unit: str, milliseconds: float | None) -> list[str]:
    """The columns of a table that has costs: the unit's name, and `est. ms` where there are milliseconds."""
    return [unit] if milliseconds is None else [unit, "est. ms"]


def milliseconds(figures: Figures | OtherPlan | PlanAnswer) -> list[Cell]:
    """What stands in the second of these columns, if there is one."""
    found = figures["estimated_ms"]
    return [] if found is None else [f"{found:,.2f}"]


def in_ms(answer: PlanAnswer) -> str:
    """The milliseconds behind a plan's cost, "" where none are known."""
    found = answer["estimated_ms"]
    return "" if found is None else f", about {found:,.1f} ms"


def by_ratio(answer: PlanAnswer) -> list[str]:
    """A line for kernels whose cycles are instructions times a mean."""
    names = answer["cost_by_ratio"]
    if not names:
        return []
    said = "their" if len(names) > 1 else "its"
    text = f"{', '.join(names)}: no formula in cycles, {said} instructions at the mean of cycles"
    return wrap(text, WIDTH, initial_indent="         - ", subsequent_indent="           ")
