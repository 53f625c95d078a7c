"""Forms of a network that are planned besides the one that it has: with views, and with second passes.

A network with views of channels (see `graph.partviews`) or with second passes (see `graph.secondpass`) is one
more graph of the problem, as one in another order of operators is.

A view keeps all of the wider tensor alive until its last reader has run, so that it may need more memory
than a copy; so does a tensor that its parts are written into, which is there from the first part on. So the
network without views is always planned, too. Where parts are written in place, it runs operator by operator.

Which choices of second passes may pay is found once, for all limits of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgpack

from buildtool.base.modes import Image, Strategy
from buildtool.base.session import Level, Session
from buildtool.graph.partviews import views, with_views, written_in_place
from buildtool.graph.secondpass import with_second_passes, without_second_passes
from buildtool.graph.types import Graph, OpKind, SecondPass
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.limits import F_SLACK
from buildtool.plan.schedule.gates import may_have_gates
from buildtool.plan.schedule.viewing import possible_views
from buildtool.plan.types import Plan
from buildtool.target.catalogue import select_all
from buildtool.target.choice import loads
from buildtool.target.types import Target

if TYPE_CHECKING:
    from buildtool.plan.search.front import Settings
    from buildtool.plan.search.passsearch import Passes


def settings(graph: Graph, target: Target, options: PlanOptions) -> Settings:
    """What a front depends on, of the options and the board."""
    from buildtool.plan.search.front import Settings

    # as little above the limit as `Limits` allows, so that a point keeps the limit that is its own F
    most = Settings.max_f if options.max_f is None else options.max_f + F_SLACK
    return Settings(options.in_place, options.image, options.hand_off, most, loaded(graph, target))


def loaded(graph: Graph, target: Target) -> tuple[tuple[int, int], ...]:
    """By operator: bytes of its constants, and the least of them that it needs while it runs alone.

    Empty for boards that read their weights in place.
    """
    from buildtool.plan.assemble.constants import constants
    from buildtool.plan.place.arena import round_up

    if not loads(target.board):
        return ()
    kernels = select_all(target, graph)
    blocks = constants(graph, kernels)
    alignment = target.board.alignment
    found = []
    for position in range(len(graph.ops)):
        block = blocks.get(position)
        whole = round_up(block.size, alignment) if block else 0
        alone = block.least_bytes() if block else 0
        found.append((whole, round_up(alone, alignment)))
    return tuple(found)


# ---- views ---------------------------------------------------------------------------------------------


def viewed(graph: Graph, target: Target, options: PlanOptions) -> tuple[Graph, ...]:
    """A network with all the views that its kernels can read; with those that they can write, too, and alone.

    Nothing where there are none, or the options ask for a strategy without them.
    """
    if options.strategy not in (Strategy.BEST, Strategy.LAYERWISE):
        return ()
    kernels = select_all(target, graph)
    slices = _readable(graph, possible_views(graph, kernels), options.image)
    joined = tuple(
        position
        for position in possible_views(graph, kernels, joined=True)
        if graph.ops[position].kind is OpKind.CONCATENATION
    )
    choices = [slices]
    if joined and options.image != Image.STREAM:
        choices += [tuple(sorted((*slices, *joined))), joined]
    return tuple(with_views(graph, found) for found in dict.fromkeys(choices) if found)


def _readable(graph: Graph, slices: tuple[int, ...], image: str) -> tuple[int, ...]:
    """Of slices that may be views those that leave a streamed image one reader: its rows come once."""
    made = with_views(graph, slices)
    if image != Image.STREAM or len(made.consumers().get(made.inputs[0], ())) < 2:
        return slices
    return tuple(position for position in slices if made.ops[position].inputs[0] != made.inputs[0])


def with_fewer_views(graph: Graph, made: Graph, plan: Plan, session: Session) -> Graph | None:
    """`graph` with fewer of the views of `made`, whose plan needs too much; None where that cannot help.

    Those concatenations are copied whose outputs are there, for parts to come, when most bytes are.
    """
    from buildtool.plan.summary.binding import binding

    step, inside = binding(plan, made, session).step, written_in_place(made)
    alive = {t for buffer in plan.buffers if buffer.first <= step <= buffer.last for t in buffer.tensors}
    copied = {
        position
        for position in views(made)
        if made.ops[position].kind is OpKind.JOINED
        and made.ops[position].outputs[0] in alive
        and made.ops[position].outputs[0] not in inside
    }
    kept = tuple(position for position in views(made) if position not in copied)
    return with_views(graph, kept) if copied and kept else None


# ---- second passes -------------------------------------------------------------------------------------


def may_have_passes(graphs: Sequence[Graph], options: PlanOptions) -> bool:
    """Whether any of some networks may have second passes at all."""
    return options.strategy == Strategy.BEST and any(map(may_have_gates, graphs))


def with_passes(graph: Graph, target: Target, options: PlanOptions, session: Session) -> tuple[Graph, ...]:
    """A network with each choice of second passes that may pay; the one of least memory comes last."""
    if not may_have_passes((graph,), options):
        return ()
    found = session.keep(
        _LEVEL, _parts(graph, target, options), lambda: _found(graph, target, options, session)
    )
    return tuple(with_second_passes(graph, passes) for passes in found)


def least_cost_with_passes(
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
    from buildtool.graph.topology import topology_digest
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
