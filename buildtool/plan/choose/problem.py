"""What is planned: a network's graphs, in the orders and the forms that it may run as, a target, and options.

Besides the form that it has, a network may have views of channels (see `graph.partviews`) or second passes
(see `graph.secondpass`): it is one more graph of the problem then, as it is in another order of operators.

A view keeps all of the wider tensor alive until its last reader has run, so that it may need more memory
than a copy; so does a tensor that its parts are written into, which is there from the first part on. So the
network without views is always planned, too. Where parts are written in place, it runs operator by operator.

Which choices of second passes may pay is found once, for all limits of memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import msgpack

from buildtool.base.modes import Image, Order, Strategy
from buildtool.base.session import Level, Session
from buildtool.graph.partviews import views, with_views, written_in_place
from buildtool.graph.secondpass import with_second_passes, without_second_passes
from buildtool.graph.types import Graph, OpKind, SecondPass
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.limits import F_SLACK, Limits
from buildtool.plan.schedule.gates import may_have_gates
from buildtool.plan.schedule.viewing import possible_views
from buildtool.plan.summary.fit import available_bytes
from buildtool.target.catalogue import select_all
from buildtool.target.choice import loads
from buildtool.target.hardware import Taken
from buildtool.target.types import Target

if TYPE_CHECKING:
    from buildtool.plan.search.front import Settings
    from buildtool.plan.search.passsearch import Passes
    from buildtool.plan.types import Plan


class Beside(Protocol):
    """What firmware takes of a board's memories beside the arena and what the network keeps."""

    def __call__(
        self,
        graph: Graph,
        target: Target,
        plan: Plan | None = None,
        session: Session | None = None,
        *,
        least: bool = False,
    ) -> tuple[Taken, ...]:
        """Where code lies in the arena's memory it is that of `plan`, and without one what every plan has at
        the least. `least`: of what is known as a bound, the least that it may turn out to be.
        """


def _nothing(*_: object, **__: object) -> tuple[Taken, ...]:
    return ()


@dataclass(frozen=True)
class Prepared:
    """One planning problem.

    `path` is for messages. `graphs`: the network's operators in the given order, and in better ones where
    such are found. `options` have a limit of milliseconds as one on the cost, too. `bounded`:
    whether the board's memory is a limit. `order_status`: of the
    best order, see `graph.order.Order`; None where that was not asked for. `varied`: whether plans of the
    network's other forms count, with views and with second passes. `sliced`: whether the last graph is one
    more form of the first, its fusions in slices (see `graph.fusions`): for strategy `best` alone. `beside`:
    what a plan's firmware takes of the board's memories. `missed`: as `Front.missed`, of all fronts that are
    searched for this problem.
    """

    path: str
    graphs: tuple[Graph, ...]
    target: Target
    options: PlanOptions
    bounded: bool = True
    session: Session = field(default_factory=Session, compare=False)
    order_status: str | None = None
    varied: bool = True
    sliced: bool = False
    beside: Beside = field(default=_nothing, compare=False)
    missed: dict[int, float] = field(default_factory=dict, compare=False)

    @property
    def graph(self) -> Graph:
        """The first of the graphs: the only one, of a problem made by `of`."""
        return self.graphs[0]

    @property
    def unsliced(self) -> tuple[Graph, ...]:
        """`graphs` without the form for strategy `best`."""
        return self.graphs[:-1] if self.sliced and len(self.graphs) > 1 else self.graphs

    @cached_property
    def every_graph(self) -> tuple[Graph, ...]:
        """`graphs`, and behind them `twice`."""
        return (*self.graphs, *self.twice)

    def by_itself(self, options: PlanOptions) -> Prepared:
        """The problem of another strategy, whether its plan fits the board or not."""
        follows = options.strategy not in (Strategy.BEST, Strategy.LAYERWISE)
        graphs = self.graphs[:1] if follows and options.order != Order.BEST else self.unsliced
        return replace(self, graphs=graphs, options=options, bounded=False, sliced=False)

    def of(self, graph: Graph) -> Prepared:
        """The problem of one graph by itself."""
        return replace(self, graphs=(graph,), varied=False, sliced=False)

    @cached_property
    def viewed(self) -> tuple[Graph, ...]:
        """The graphs with views in the place of slices of channels, where any can be."""
        graphs = self.unsliced if self.varied else ()
        return tuple(chain.from_iterable(viewed(self.of(graph)) for graph in graphs))

    @cached_property
    def twice(self) -> tuple[Graph, ...]:
        """The graphs with the second passes that may pay, which takes a search."""
        graphs = self.graphs if self.varied else ()
        return tuple(chain.from_iterable(with_passes(self.of(graph)) for graph in graphs))

    def graph_for(self, index: int, plan: Plan) -> Graph:
        """The graph with an index in `every_graph`, with a plan's views; PlanError where it has no such."""
        graph = self.graphs[index] if index < len(self.graphs) else self.every_graph[index]
        return graph if views(graph) == plan.views else with_views(graph, plan.views)

    @property
    def is_beside_code(self) -> bool:
        """Whether code lies in a memory of the arena, so that what is there for that depends on the plan."""
        return self.target.board.code in self.target.board.holders and bool(self.target.board.firmware)

    @property
    def available(self) -> int:
        """Bytes that the board has for an arena."""
        return available_bytes(self.target.board, self.state_bytes)

    @property
    def state_bytes(self) -> int:
        """Bytes that the network keeps between invokes."""
        from buildtool.plan.assemble.assemble import state_bytes

        return state_bytes(self.graph, self.target.board.alignment)

    @property
    def ram(self) -> int | None:
        """Bytes that the arena may have; None: there is no limit."""
        limits = [self.options.ram, self.available if self.bounded else None]
        return min((limit for limit in limits if limit is not None), default=None)

    def limits(self, ram: float | None) -> Limits:
        """What a plan has to keep to: `ram` bytes (None: any), and the options' limits on work and cost."""
        return Limits.of(self.options, self.target, ram)


def settings(alone: Prepared) -> Settings:
    """What the front of a problem of one graph depends on, of the options and the board."""
    from buildtool.plan.search.front import Settings

    options = alone.options
    # as little above the limit as `Limits` allows, so that a point keeps the limit that is its own F
    most = Settings.max_f if options.max_f is None else options.max_f + F_SLACK
    return Settings(options.in_place, options.image, options.hand_off, most, _loaded(alone))


def _loaded(alone: Prepared) -> tuple[tuple[int, int], ...]:
    """By operator: bytes of its constants, and the least of them that it needs while it runs alone.

    Empty for boards that read their weights in place.
    """
    from buildtool.plan.assemble.arrivals import constants
    from buildtool.plan.place.arena import round_up

    graph, board = alone.graph, alone.target.board
    if not loads(board):
        return ()
    blocks = constants(graph, select_all(alone.target, graph))
    found = []
    for position in range(len(graph.ops)):
        block = blocks.get(position)
        whole, least = (block.size, block.least_bytes()) if block else (0, 0)
        found.append((round_up(whole, board.alignment), round_up(least, board.alignment)))
    return tuple(found)


# ---- views ---------------------------------------------------------------------------------------------


def viewed(alone: Prepared) -> tuple[Graph, ...]:
    """A network with all the views that its kernels can read; with those that they can write, too, and alone.

    Nothing where there are none, or the options ask for a strategy without them.
    """
    graph, image = alone.graph, alone.options.image
    if alone.options.strategy not in (Strategy.BEST, Strategy.LAYERWISE):
        return ()
    kernels = select_all(alone.target, graph)
    slices = _readable(graph, possible_views(graph, kernels), image)
    joined = tuple(
        position
        for position in possible_views(graph, kernels, joined=True)
        if graph.ops[position].kind is OpKind.CONCATENATION
    )
    choices = [slices]
    if joined and image != Image.STREAM:
        choices += [tuple(sorted((*slices, *joined))), joined]
    return tuple(with_views(graph, found) for found in dict.fromkeys(choices) if found)


def _readable(graph: Graph, slices: tuple[int, ...], image: str) -> tuple[int, ...]:
    """Of slices that may be views those that leave a streamed image one reader: its rows come once."""
    made = with_views(graph, slices)
    if image != Image.STREAM or len(made.consumers().get(made.inputs[0], ())) < 2:
        return slices
    return tuple(position for position in slices if made.ops[position].inputs[0] != made.inputs[0])


def with_fewer_views(alone: Prepared, made: Graph, plan: Plan) -> Graph | None:
    """The network with fewer of the views of `made`, whose plan needs too much; None where that cannot help.

    Those concatenations are copied whose outputs are there, for parts to come, when most bytes are.
    """
    from buildtool.plan.summary.summary import binding

    step, inside = binding(plan, made, alone.session).step, written_in_place(made)
    alive = {t for buffer in plan.buffers if buffer.first <= step <= buffer.last for t in buffer.tensors}
    copied = {
        position
        for position in views(made)
        if made.ops[position].kind is OpKind.JOINED
        and made.ops[position].outputs[0] in alive
        and made.ops[position].outputs[0] not in inside
    }
    kept = tuple(position for position in views(made) if position not in copied)
    return with_views(alone.graph, kept) if copied and kept else None


# ---- second passes -------------------------------------------------------------------------------------


def may_have_passes(prepared: Prepared) -> bool:
    """Whether any of a problem's networks may have second passes at all."""
    return prepared.options.strategy == Strategy.BEST and any(map(may_have_gates, prepared.graphs))


def with_passes(alone: Prepared) -> tuple[Graph, ...]:
    """A network with each choice of second passes that may pay; the one of least memory comes last."""
    if not may_have_passes(alone):
        return ()
    found = alone.session.keep(_LEVEL, _parts(alone), lambda: _found(alone))
    return tuple(with_second_passes(alone.graph, passes) for passes in found)


def least_cost_with_passes(twice: Prepared) -> float:
    """A cost that no plan within the problem's memory is below, whatever its second passes; 0: not known."""
    from buildtool.plan.search.passsearch import least_cost
    from buildtool.plan.search.regions import INFINITE

    alone = twice.of(without_second_passes(twice.graph))
    most = INFINITE if alone.ram is None else alone.ram
    return alone.session.remember(
        "least cost with passes",
        (*_parts(alone).values(), most),
        lambda: least_cost(
            alone.graph, alone.target, lambda one: settings(alone.of(one)), alone.session, most
        ),
    )


def _found(alone: Prepared) -> tuple[Passes, ...]:
    from buildtool.base.errors import UsageError
    from buildtool.plan.search.passsearch import worthwhile

    def own(one: Graph) -> Settings:
        return settings(alone.of(one))

    session = alone.session
    session.tell("looking for second passes that pay")
    found: list[Passes] = []
    try:
        for by_cost in (False, True):
            found += worthwhile(alone.graph, alone.target, own, session, by_cost=by_cost)
    except UsageError:  # an image that cannot be streamed: whoever plans without passes says so
        return ()
    return tuple(sorted(dict.fromkeys(found), key=len))


def _parts(alone: Prepared) -> dict[str, str | int | float | None]:
    """What the choices depend on."""
    from buildtool.graph.topology import topology_digest
    from buildtool.target.digest import planning_digest

    options = alone.options
    return {
        "schema": 1,
        "topology": topology_digest(alone.graph),
        "target": planning_digest(alone.target),
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
