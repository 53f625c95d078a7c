"""What the next request about a network may ask for, made one by one while nobody waits.

A daemon's process of low priority does this: it places the points of the front, and plans for the limits on
memory that people choose, largest first, until one cannot be kept. Such a limit is then found in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from buildtool.api.requests import Planning, parse
from buildtool.base.errors import BuildtoolError
from buildtool.base.modes import Objective, Strategy
from buildtool.base.session import Session

STEPS = (8, 10)  # KiB between two limits that are prepared for
MOST_STEPS = 48


def points_ahead(request: Any, session: Session) -> Iterator[None]:
    """Prepares for other limits than a planning request has; a step a plan."""
    try:
        asked = parse(request)
        if isinstance(asked, Planning) and not asked.lock and asked.options.strategy == Strategy.BEST:
            yield from _prepared(asked, session)
    except BuildtoolError:
        return  # whoever asks for it will hear why


def _prepared(asked: Planning, session: Session) -> Iterator[None]:
    from buildtool.api.answers.planreport import beside, described
    from buildtool.firmware.planned import planned, prepare
    from buildtool.plan.choose.choose import choice
    from buildtool.plan.choose.fronts import searched
    from buildtool.plan.models import load_network
    from buildtool.target.choice import load_target

    target = load_target(asked.target, session)
    network = load_network(asked.model, session)
    prepared = prepare(network, target, asked.options, session)
    fronts = [searched(prepared.of(graph)) for graph in prepared.graphs]
    for found in fronts:
        for index in range(len(found.points)):
            found.plan(index)
            yield
    whole = choice(replace(prepared, options=replace(asked.options, ram=None))).plan.arena_bytes
    least = replace(asked.options, ram=None, objective=Objective.RAM)
    for options in (least, *(replace(asked.options, ram=limit) for limit in _limits(whole))):
        choice(replace(prepared, options=options))
        yield
        made = planned(asked.model, asked.target, options, session)
        described(made)
        beside(made, False)
        yield


def _limits(most: int) -> list[int]:
    """Round numbers of bytes, the largest first: those that are given as limits more often than others."""
    twos = {1 << n for n in range(10, 24)}
    steps = {n * step << 10 for step in STEPS for n in range(1, MOST_STEPS + 1)}
    return sorted((n for n in twos | steps if n < most), reverse=True)
