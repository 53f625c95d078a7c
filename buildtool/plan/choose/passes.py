"""Second passes of a planning problem: the networks with them that are planned as well.

A network with second passes (see `graph.secondpass`) is one more graph of the problem, as one in another
order of operators is. Which choices of passes may pay is found once, for all limits of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgpack

from buildtool.base.modes import Strategy
from buildtool.base.session import Level, Session
from buildtool.graph.secondpass import with_second_passes, without_second_passes
from buildtool.graph.types import Graph, SecondPass
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.slow_weights import loaded
from buildtool.plan.schedule.gates import may_have_gates
from buildtool.target.types import Target

if TYPE_CHECKING:
    from buildtool.plan.search.front import Settings
    from buildtool.plan.search.passsearch import Passes


def settings(graph: Graph, target: Target, options: PlanOptions) -> Settings:
    """What a front depends on, of the options and the board."""
    from buildtool.plan.search.front import Settings

    # as little above the limit as `Limits` allows, so that a point keeps the limit that is its own F
    most = Settings.max_f if options.max_f is None else options.max_f + 1e-9
    return Settings(options.in_place, options.image, options.hand_off, most, loaded(graph, target))


def possible(graphs: Sequence[Graph], options: PlanOptions) -> bool:
    """Whether any of some networks may have second passes at all."""
    return options.strategy == Strategy.BEST and any(map(may_have_gates, graphs))


def graphs(graph: Graph, target: Target, options: PlanOptions, session: Session) -> tuple[Graph, ...]:
    """A network with each choice of second passes that may pay; the one of least memory comes last."""
    if not possible((graph,), options):
        return ()
    found = session.keep(
        _LEVEL, _parts(graph, target, options), lambda: _found(graph, target, options, session)
    )
    return tuple(with_second_passes(graph, passes) for passes in found)


def least_cost(
    twice: Graph, target: Target, options: PlanOptions, session: Session, most_bytes: int | None
) -> float:
    """A cost that no plan within so many bytes is below, whatever its second passes; 0: it is not known."""
    from buildtool.plan.search.lower_bound import INFINITE
    from buildtool.plan.search.passsearch import least_cost

    graph = without_second_passes(twice)
    most = INFINITE if most_bytes is None else most_bytes
    key = tuple(_parts(graph, target, options).values())
    return session.remember(
        "least cost with passes",
        (key, most),
        lambda: least_cost(graph, target, lambda one: settings(one, target, options), session, most),
    )


def _found(graph: Graph, target: Target, options: PlanOptions, session: Session) -> tuple[Passes, ...]:
    from buildtool.base.errors import UsageError
    from buildtool.plan.search.passsearch import worthwhile

    session.tell("looking for second passes that pay")

    def own(one: Graph) -> Settings:
        return settings(one, target, options)

    try:
        found = [
            *worthwhile(graph, target, own, session),
            *worthwhile(graph, target, own, session, by_cost=True),
        ]
    except UsageError:  # an image that cannot be streamed: whoever plans without passes says so
        return ()
    return tuple(sorted(dict.fromkeys(found), key=len))


def _parts(graph: Graph, target: Target, options: PlanOptions) -> dict[str, str | int | float | None]:
    """What the choices depend on."""
    from buildtool.graph.digest import topology_digest
    from buildtool.target.digest import planning_digest

    return {
        "schema": 1,
        "topology": topology_digest(graph),
        "target": planning_digest(target),
        "image": str(options.image),
        "in_place": str(options.in_place),
        "hand_off": options.hand_off,
        "max_f": options.max_f,
    }


def _packed(found: tuple[Passes, ...]) -> bytes:
    data: bytes = msgpack.packb([[[one.first, one.last, one.reader] for one in passes] for passes in found])
    return b"passes" + data


def _unpacked(data: bytes) -> tuple[Passes, ...]:
    found = msgpack.unpackb(data.removeprefix(b"passes"))
    return tuple(tuple(SecondPass(*map(int, one)) for one in passes) for passes in found)


_LEVEL: Level[tuple[Passes, ...]] = Level("passes", _packed, _unpacked)
