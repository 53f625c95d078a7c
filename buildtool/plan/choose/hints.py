"""Tries the hints of an error before users see them, so that each hint's settings really give a plan."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from buildtool.base.errors import Hint, PlanError, UsageError, Value, suggest
from buildtool.base.modes import Order, Strategy
from buildtool.graph.topology import topology_digest
from buildtool.options import parse
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.cache import Choice
from buildtool.plan.choose.limits import NO_SETTING
from buildtool.plan.choose.planners import REFUSING
from buildtool.plan.choose.problem import Prepared, with_options
from buildtool.plan.summary.fit import holds

Plans = Callable[[Prepared], Choice]  # returns the best plan of a problem, or raises PlanError
MOST_STEPS = 3  # limits that are tried one after the other, each from the refusal of the one before


def tried(prepared: Prepared, error: PlanError, plans: Plans) -> tuple[Hint, ...]:
    """Returns those hints of an error that lead to a plan.

    `plans`: returns the best plan of a problem. The hints of strategy `best` come from plans that it made, so
    they are not tried again. For those of other strategies, this function makes the plans. A hint to search
    longer for an order of the operators is added if a plan then fits.
    """
    hints = list(error.hints)
    if prepared.options.strategy != Strategy.BEST:
        hints = [found for hint in error.hints for found in _follow(prepared, hint, plans, MOST_STEPS)]
    return (*_best_order(prepared, plans), *hints) or (NO_SETTING,)


def strategy_best(prepared: Prepared, plans: Plans) -> tuple[Hint, ...]:
    """Returns the hint to use strategy `best`, with the other settings that its plan needs to fit, if any."""
    return tuple(_follow(prepared, suggest(strategy=str(Strategy.BEST)), plans, 1))


def _follow(prepared: Prepared, hint: Hint, plans: Plans, left: int) -> Iterator[Hint]:
    """Yields a hint if its settings lead to a plan that fits the board.

    If planning with them fails, the hints of that error are tried in addition. `left`: how many more limits
    may be tried one after the other.
    """
    settings = dict(hint.settings)
    if "strategy" in settings and prepared.options.segments:
        settings["segments"] = None
    if not all(hasattr(PlanOptions, name) for name in settings) or not settings:
        yield hint  # it names settings of the board, which whoever made it has tried
        return
    try:
        if _fits(_with_settings(prepared, settings), plans):
            yield Hint(hint.text, tuple(settings.items()))
    except UsageError:  # an option that names operators, in another order
        return
    except PlanError as error:
        for other in (one for one in error.hints if one.settings):
            both = Hint(other.text, tuple({**settings, **dict(other.settings)}.items()))
            if "strategy" in settings:
                yield both  # strategy `best` has planned it
            elif left > 1 and dict(other.settings).keys() <= settings.keys():
                yield from _follow(prepared, both, plans, left - 1)


def _best_order(prepared: Prepared, plans: Plans) -> Iterator[Hint]:
    """Yields the hint to search longer for an order of the operators, if a plan then fits."""
    if prepared.options.order == Order.BEST:
        return
    other = with_options(prepared, replace(prepared.options, order=Order.BEST))
    known = set(map(topology_digest, prepared.graphs))
    with contextlib.suppress(PlanError, UsageError):
        if not known.issuperset(map(topology_digest, other.graphs)) and _fits(other, plans):
            yield suggest(order=str(Order.BEST))


def _fits(prepared: Prepared, plans: Plans) -> bool:
    """Returns whether the best plan of a problem fits the board.

    Raises PlanError if no plan is within the limits.
    """
    with prepared.session.budget(REFUSING):
        found = plans(prepared)
    return holds(prepared.target.with_firmware(found.firmware).board, found.plan)


def _with_settings(prepared: Prepared, settings: Mapping[str, Value]) -> Prepared:
    """Returns the problem with other values of options; the value None stands for the default."""
    values: dict[str, Any] = {
        name: getattr(PlanOptions, name) if value is None else parse(name, value)
        for name, value in settings.items()
    }
    return with_options(prepared, replace(prepared.options, **values))
