"""What the next request about a network may ask for: the points of its front, placed one by one.

A daemon's worker does this between two requests, so that a new limit on memory finds its plan placed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from buildtool.errors import BuildtoolError
from buildtool.modes import Strategy
from buildtool.service.requests import Planning, parse
from buildtool.session import Session


def points_ahead(request: Any, session: Session) -> Iterator[None]:
    """Places the points of the front that a planning request is about; a step a point."""
    try:
        asked = parse(request)
        if isinstance(asked, Planning) and asked.options.strategy == Strategy.BEST:
            yield from _placed(asked, session)
    except BuildtoolError:
        return  # whoever asks for it will hear why


def _placed(asked: Planning, session: Session) -> Iterator[None]:
    from buildtool.service.pipeline.fronts import searched
    from buildtool.service.pipeline.prepare import load_network, prepare
    from buildtool.service.pipeline.targets import load_target

    target = load_target(asked.target, session)
    network = load_network(asked.model, session)
    yield
    options = replace(asked.options, ram=None, max_cost=None)
    for graph in prepare(network, target, options, session).graphs:
        prepared = replace(prepare(network, target, options, session), graphs=(graph,))
        found = searched(graph, prepared)
        yield
        for index in range(len(found.points)):
            found.plan(index)
            yield
