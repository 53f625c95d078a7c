"""What the next request about a network may ask for, made one by one while nobody waits.

A daemon's worker does this between two requests: it places the points of the front, and the cheapest ways
for every limit on memory, checks their plans, and knows what to say of them. A new limit is then a look-up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from buildtool.errors import BuildtoolError
from buildtool.modes import Strategy
from buildtool.service.requests import Planning, parse
from buildtool.session import Session

STEP = 16 << 10  # bytes: between two limits that are prepared for
MOST_STEPS = 24

if TYPE_CHECKING:
    from buildtool.plan.search.front import Front
    from buildtool.plan.types import Plan


def points_ahead(request: Any, session: Session) -> Iterator[None]:
    """Prepares for other limits than a planning request has; a step a plan."""
    try:
        asked = parse(request)
        if isinstance(asked, Planning) and asked.options.strategy == Strategy.BEST:
            yield from _prepared(asked, session)
    except BuildtoolError:
        return  # whoever asks for it will hear why


def _prepared(asked: Planning, session: Session) -> Iterator[None]:
    from buildtool.service.answers.planreport import described
    from buildtool.service.pipeline.fronts import searched
    from buildtool.service.pipeline.kept import checked
    from buildtool.service.pipeline.pipeline import Planned
    from buildtool.service.pipeline.prepare import load_network, prepare
    from buildtool.service.pipeline.targets import load_target

    target = load_target(asked.target, session)
    network = load_network(asked.model, session)
    options = replace(asked.options, ram=None, max_cost=None)
    prepared = prepare(network, target, options, session)
    for graph in prepared.graphs:
        alone = replace(prepared, graphs=(graph,))
        for plan in _plans(searched(graph, alone)):
            yield
            if plan.arena_bytes <= alone.available and not plan.loads:
                checked(plan, graph, alone)
                described(
                    Planned(
                        network.model, network.source, graph, target, plan, asked.target, options, session
                    )
                )
                yield


def _plans(found: Front) -> Iterator[Plan]:
    """Of the front's points, and of the cheapest ways within the limits that people choose."""
    from buildtool.plan.search.choose import least_cost

    for index in range(len(found.points)):
        yield found.plan(index)
    search = least_cost(found)
    most = None
    for limit in _limits(found.points[-1].live_bytes if found.points else 0):
        if most is None or limit < most:
            way = search.least(limit)
            if way is None:
                return
            most = way.bytes
            yield found.cheap(way, enough=limit)


def _limits(most: int) -> list[int]:
    """Round numbers of bytes, the largest first: those that are given as limits more often than others."""
    twos = {1 << n for n in range(10, 24)}
    steps = {n * STEP for n in range(1, MOST_STEPS + 1)}
    return sorted((n for n in twos | steps if n < 2 * most), reverse=True)
