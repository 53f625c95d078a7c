"""The planning problem: a network's graphs in their possible orders and forms, a target, and options.

A network may also run with views of channels (slices and concatenations without code of their own, see
`graph.partviews`) or second passes (recomputation, see `graph.secondpass`). Each such form, like each order
of the operators, is one more graph of the problem.

A view keeps the whole wider tensor alive until its last reader has run, so it may need more memory than a
copy. A tensor into which its parts are written lives from the first part on, so it may also need more. So the
network without views is always planned, too. Where parts are written in place, it runs operator by operator.

The second passes that may pay are searched once, for all limits on memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgpack

from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Image, InPlace, Objective, Order, Strategy
from buildtool.base.session import Namespace, Session
from buildtool.graph.fusions import with_sliced_fusions
from buildtool.graph.partviews import tensors_written_in_place, views, with_views
from buildtool.graph.rewrite.turns import turn_signals
from buildtool.graph.secondpass import with_second_passes, without_second_passes
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph, OpKind, SecondPass
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.limits import F_SLACK, Limits, limit_cost
from buildtool.plan.schedule.delivery import delivered_image, objection
from buildtool.plan.schedule.gates import may_have_gates
from buildtool.plan.schedule.viewing import possible_views
from buildtool.plan.summary.fit import available_bytes, excess_bytes
from buildtool.target.catalogue import select_all
from buildtool.target.choice import loads
from buildtool.target.hardware import FirmwareUse
from buildtool.target.types import Target

if TYPE_CHECKING:
    from buildtool.graph import order as graph_order
    from buildtool.plan.choose.channels import Simplified
    from buildtool.plan.choose.hops import Hopping
    from buildtool.plan.search.passsearch import Passes, PassNetwork
    from buildtool.plan.search.space import Settings
    from buildtool.plan.types import Plan

# Returns what firmware takes of a board's memories beside the arena and the network's state, called with
# (graph, target, plan=None, session=None, *, least=False). If code lies in the arena's memory, the result is
# for `plan`; without a plan, it is a lower bound for all plans. `least`: return the least that an estimate
# may turn out to be after linking.
Beside = Callable[..., tuple[FirmwareUse, ...]]


@dataclass(frozen=True)
class Prepared:
    """One planning problem.

    path: the model file's path, for messages.
    graphs: the network in the given order of operators, then in orders that may be better.
    options: those of the request; a limit in milliseconds is present as a limit on the cost, too.
    bounded: whether the board's memory is a limit.
    order_status: see `graph.order.Order`; None unless the options ask for the best order.
    varied: whether plans with views and with second passes are allowed.
    sliced: whether the last graph is the first one with its fusions in slices (see `graph.fusions`). Only
        strategy `best` plans it.
    beside: returns the bytes that firmware takes in each of the board's memories beside the arena.
    gaps: the same as `Front.gaps`, shared by all fronts of this problem.
    simplified: how the first graph was made from the network with all channels.
    hop: what is kept from one position of a moving window to the next (a hop), if the graphs run on such a
        window.
    narrow: whether plans are searched with the narrowest slices of loaded constants, not with usual ones.
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
    beside: Beside = field(default=lambda *_, **__: (), compare=False)
    gaps: dict[int, float] = field(default_factory=dict, compare=False)
    simplified: Simplified | None = field(default=None, compare=False)
    hop: Hopping | None = field(default=None, compare=False)
    narrow: bool = False

    @property
    def asked(self) -> PlanOptions:
        """Returns the options of the request.

        They differ from `options` only on a moving window: there `ram` in `options` does not include what is
        kept from hop to hop.
        """
        return self.hop.asked if self.hop else self.options

    @property
    def in_plan(self) -> dict[str, Any]:
        """Returns the fields of a plan that say what was simplified, and what is kept from hop to hop."""
        simplified = self.simplified.in_plan if self.simplified else {}
        return simplified | ({"hop": self.hop.hop} if self.hop else {})

    @property
    def kept_bytes(self) -> int:
        """Returns the bytes beside the arena that count for the limit on memory.

        They are what is kept from hop to hop; 0 without a moving window.
        """
        return self.state_bytes if self.hop else 0

    @property
    def graph(self) -> Graph:
        """Returns the first graph. A problem made by `of` has only this one."""
        return self.graphs[0]

    @property
    def unsliced(self) -> tuple[Graph, ...]:
        """Returns all graphs except the one with fusions in slices, which only strategy `best` plans."""
        return self.graphs[:-1] if self.sliced and len(self.graphs) > 1 else self.graphs

    @cached_property
    def every_graph(self) -> tuple[Graph, ...]:
        """Returns all graphs: those in `graphs`, then those with second passes."""
        return (*self.graphs, *self.with_second_passes)

    def with_strategy(self, options: PlanOptions) -> Prepared:
        """Returns the problem with other options, such as another strategy, and without the board's limit."""
        follows = options.strategy not in (Strategy.BEST, Strategy.LAYERWISE)
        graphs = self.graphs[:1] if follows and options.order != Order.BEST else self.unsliced
        return replace(self, graphs=graphs, options=options, bounded=False, sliced=False)

    def with_graph(self, graph: Graph) -> Prepared:
        """Returns the problem of planning only this graph."""
        return replace(self, graphs=(graph,), varied=False, sliced=False)

    @cached_property
    def viewed(self) -> tuple[Graph, ...]:
        """Returns the graphs with views in place of operators that copy channels, where this is possible."""
        graphs = self.unsliced if self.varied else ()
        return tuple(chain.from_iterable(graphs_with_views(self.with_graph(graph)) for graph in graphs))

    @cached_property
    def with_second_passes(self) -> tuple[Graph, ...]:
        """Returns the graphs with second passes (recomputation) that may make a better plan.

        A search finds them.
        """
        graphs = self.graphs if self.varied else ()
        return tuple(chain.from_iterable(with_passes(self.with_graph(graph)) for graph in graphs))

    def graph_for(self, index: int, plan: Plan) -> Graph:
        """Returns the graph at an index in `every_graph`, with a plan's views.

        Raises PlanError if the graph cannot have these views.
        """
        graph = self.graphs[index] if index < len(self.graphs) else self.every_graph[index]
        return graph if views(graph) == plan.views else with_views(graph, plan.views)

    @property
    def is_beside_code(self) -> bool:
        """Returns whether code lies in a memory of the arena.

        Then the room for the arena depends on the plan.
        """
        return self.target.board.code in self.target.board.holders and bool(self.target.board.firmware)

    @property
    def available(self) -> int:
        """Returns the bytes that the board has for an arena."""
        return available_bytes(self.target.board, self.state_bytes)

    @property
    def state_bytes(self) -> int:
        """Returns the bytes that the network keeps between invokes."""
        from buildtool.plan.assemble.assemble import state_bytes

        return state_bytes(self.graph, self.target.board.alignment)

    @property
    def ram(self) -> int | None:
        """Returns the limit for the arena in bytes; None: there is no limit.

        It is the option or what the board has, whichever is less.
        """
        limits = [self.options.ram, self.available if self.bounded else None]
        return min((limit for limit in limits if limit is not None), default=None)

    def limits(self, ram: float | None) -> Limits:
        """Returns the limits for a plan: `ram` bytes (None: any), and the options' limits."""
        return Limits.of(self.options, self.target, ram)


def settings(alone: Prepared) -> Settings:
    """Returns the settings on which the front of one graph depends, from the options and the board."""
    from buildtool.plan.search.space import Settings

    options = alone.options
    # with the tolerance of `Limits`, so that a point keeps a limit equal to its own F
    most = Settings.max_f if options.max_f is None else options.max_f + F_SLACK
    return Settings(options.in_place, options.image, options.hand_off, most, _constant_bytes(alone))


def _constant_bytes(alone: Prepared) -> tuple[tuple[int, int], ...]:
    """Returns for each operator the bytes of its constants, and the fewest of these that it needs at a time.

    The fewest bytes are enough when the operator runs alone. The result is empty for boards that read weights
    in place.
    """
    from buildtool.plan.assemble.arrivals import constants
    from buildtool.plan.place.arena import round_up

    graph, board = alone.graph, alone.target.board
    if not loads(board):
        return ()
    blocks = constants(graph, select_all(alone.target, graph))
    in_order = (blocks.get(position) for position in range(len(graph.ops)))
    sizes = ((block.size, block.least_bytes(alone.narrow)) if block else (0, 0) for block in in_order)
    return tuple(
        (round_up(whole, board.alignment), round_up(least, board.alignment)) for whole, least in sizes
    )


def prepare_problem(
    graph: Graph, target: Target, options: PlanOptions, session: Session, beside: Beside, *, path: str
) -> Prepared:
    """Returns the planning problem of a rewritten network.

    `beside`: see `Prepared`. `path`: the model file's path. Raises UsageError for an objective that has no
    effect with the other options.
    """
    refuse_idle(target, options)
    target = target.with_firmware(beside(graph, target))
    return with_options(Prepared(path, (graph,), target, options, session=session, beside=beside), options)


def with_options(prepared: Prepared, options: PlanOptions) -> Prepared:
    """Returns the problem of the first graph with these options, in the orders and forms that they allow."""
    graph, target = prepared.graph, prepared.target
    options = limit_cost(options, target)
    graphs, status = _orders(graph, options, prepared.session)
    graphs = _with_turned(graphs, options)
    if options.strategy == Strategy.BEST and options.in_place == InPlace.ROWS and not loads(target.board):
        sliced = with_sliced_fusions(graph)
    else:
        sliced = graph
    return replace(
        prepared,
        graphs=graphs if sliced is graph else (*graphs, sliced),
        options=options,
        order_status=status,
        sliced=sliced is not graph,
        gaps={},
    )


def own_firmware(
    beside: Beside, graph: Graph, plan: Plan, target: Target, session: Session
) -> tuple[FirmwareUse, ...]:
    """Returns an upper bound of the bytes that a plan's firmware takes in the board's memories.

    If the plan fits only beside the lower bound, the result is the lower bound. Linking then shows whether
    the plan fits.
    """
    most = beside(graph, target, plan, session)
    if not excess_bytes(target.with_firmware(most).board, plan):
        return most
    least = beside(graph, target, plan, session, least=True)
    return most if excess_bytes(target.with_firmware(least).board, plan) else least


def refuse_idle(target: Target, options: PlanOptions) -> None:
    """Raises UsageError if the objective in `options` has no effect.

    A strategy that follows another system makes one plan for each order of the operators. With it the
    objective has an effect only if there are several orders, or if weights are loaded, since it decides how
    large their buffers are. Layer by layer it decides whether tensors move between operators.
    """
    chooses = options.strategy in (Strategy.BEST, Strategy.LAYERWISE) or options.order == Order.BEST
    if options.objective != Objective.COST and not chooses and not loads(target.board):
        raise UsageError(
            f"it has no effect with strategy {options.strategy}, which makes one plan",
            option="objective",
            hint=[suggest(objective=None), suggest(strategy="best")],
        )


# ---- orders of the operators ---------------------------------------------------------------------------


def _orders(graph: Graph, options: PlanOptions, session: Session) -> tuple[tuple[Graph, ...], str | None]:
    """Returns the network in the given order and in orders that may be better, and the best order's status.

    The status is None unless the options ask for the best order. The strategies that follow other systems use
    another order only then.
    """
    follows = options.strategy not in (Strategy.BEST, Strategy.LAYERWISE)
    if options.order == Order.GIVEN or (follows and options.order != Order.BEST):
        return (graph,), None
    from buildtool.graph.order import BUDGET, SHORT_BUDGET, in_order

    is_long = options.order == Order.BEST
    budget = BUDGET if is_long else SHORT_BUDGET
    whole = _best_order(graph, budget, session)
    of_chains = _best_order(graph, budget, session, of_chains=True)
    graphs = [graph, in_order(graph, of_chains)]
    if is_long or whole.peak < of_chains.peak:  # otherwise one more plan is rarely worth its time
        graphs.insert(1, in_order(graph, whole))
    distinct: dict[str, Graph] = {}
    for one in graphs:
        distinct.setdefault(topology_digest(one), one)
    return tuple(distinct.values()), whole.status if is_long else None


def _best_order(graph: Graph, budget: int, session: Session, *, of_chains: bool = False) -> graph_order.Order:
    """Returns the order with the least peak of live bytes; it depends only on the topology.

    `budget`: how many sets of operators the search may visit. `of_chains`: chains of operators stay together
    (see `graph.order`).
    """
    from buildtool.graph.flow import flow_of
    from buildtool.graph.order import Order, is_order, least_peak_of_chains, least_peak_order

    def pack(order: Order) -> bytes:
        return bytes(msgpack.packb(list(vars(order).values())))

    def unpack(data: bytes) -> Order:
        positions, status, *numbers = msgpack.unpackb(data)
        order = Order(tuple(positions), status, *numbers)
        if status not in ("optimal", "feasible") or not is_order(graph, order):
            raise ValueError("not an order of these operators")
        return order

    namespace = Namespace("orders", pack, unpack)
    parts = {"topology": topology_digest(graph), "budget": budget, **({"of": "chains"} if of_chains else {})}
    search = least_peak_of_chains if of_chains else least_peak_order
    session.tell("searching for the best order of operators")
    return session.keep(namespace, parts, lambda: search(flow_of(graph), budget=budget))


# ---- turned signals ------------------------------------------------------------------------------------


def _with_turned(graphs: tuple[Graph, ...], options: PlanOptions) -> tuple[Graph, ...]:
    """Returns the graphs, and the same networks with turned signals, which strategy `best` may run by rows.

    A signal is a network input of one row; turned, its samples are the rows. If a signal can be streamed only
    when it is turned, the result has only the turned graphs.
    """
    turned = tuple(turn_signals(graph) for graph in graphs)
    if turned[0] is graphs[0] or graphs[0].window is not None:  # a hop has columns of its own
        return graphs
    if options.image == Image.STREAM and not _streams(turned[0]):
        return graphs
    if options.image == Image.STREAM and not _streams(graphs[0]):
        return turned
    return (*graphs, *turned) if options.strategy == Strategy.BEST else graphs


def _streams(graph: Graph) -> bool:
    """Returns whether the application may deliver an input of the network row by row."""
    return objection(graph, delivered_image(graph)) is None


# ---- views ---------------------------------------------------------------------------------------------


def graphs_with_views(alone: Prepared) -> tuple[Graph, ...]:
    """Returns the network with each of up to three choices of views.

    The first choice is all views that kernels can read, which are slices. The second choice adds all views
    that kernels can write, which are the parts of concatenations. The third choice has only the latter. The
    result is empty if there are no views, or if the strategy supports none.
    """
    graph, streams = alone.graph, alone.options.image == Image.STREAM
    if alone.options.strategy not in (Strategy.BEST, Strategy.LAYERWISE):
        return ()
    kernels = select_all(alone.target, graph)
    slices = possible_views(graph, kernels)
    sliced = with_views(graph, slices)
    if streams and len(sliced.consumers().get(sliced.inputs[0], ())) > 1:
        # a streamed input image keeps one reader, since each row arrives once
        slices = tuple(position for position in slices if sliced.ops[position].inputs[0] != sliced.inputs[0])
    choices = [slices]
    writable = possible_views(graph, kernels, joined=True)
    joined = tuple(one for one in writable if graph.ops[one].kind is OpKind.CONCATENATION)
    if joined and not streams:
        choices += [tuple(sorted((*slices, *joined))), joined]
    return tuple(with_views(graph, choice) for choice in dict.fromkeys(choices) if choice)


def with_fewer_views(alone: Prepared, viewed: Graph, plan: Plan) -> Graph | None:
    """Returns the network with fewer views than `viewed`, whose `plan` needs too much memory.

    A concatenation whose parts are written in place loses this view, and is copied, if its output already has
    memory at the step where most bytes are live. Returns None if there is no such concatenation, or if no
    view remains.
    """
    from buildtool.plan.summary.summary import binding

    step, inside = binding(plan, viewed, alone.session).step, tensors_written_in_place(viewed)
    alive = {t for buffer in plan.buffers if buffer.first <= step <= buffer.last for t in buffer.tensors}

    def is_copied(position: int) -> bool:
        op = viewed.ops[position]
        return op.kind is OpKind.JOINED and op.outputs[0] in alive and op.outputs[0] not in inside

    positions = tuple(position for position in views(viewed) if not is_copied(position))
    return with_views(alone.graph, positions) if positions and len(positions) < len(views(viewed)) else None


# ---- second passes -------------------------------------------------------------------------------------


def may_have_passes(prepared: Prepared) -> bool:
    """Returns whether any of a problem's graphs may have second passes."""
    return prepared.options.strategy == Strategy.BEST and any(map(may_have_gates, prepared.graphs))


def with_passes(alone: Prepared) -> tuple[Graph, ...]:
    """Returns the network with each choice of second passes that may pay, fewest passes first."""
    if not may_have_passes(alone):
        return ()
    choices = alone.session.keep(_PASSES, _key_parts(alone), lambda: _choices(alone))
    return tuple(with_second_passes(alone.graph, passes) for passes in choices)


def least_cost_with_passes(repeating: Prepared) -> float:
    """Returns a lower bound of the cost of all plans within the memory, whichever second passes they have.

    `repeating`: the problem of a graph with second passes. The result is 0 if no bound is known.
    """
    from buildtool.plan.search.passsearch import least_cost
    from buildtool.plan.search.regions import INFINITE

    alone = repeating.with_graph(without_second_passes(repeating.graph))
    most = INFINITE if alone.ram is None else alone.ram
    return alone.session.remember(
        "least cost with passes",
        (*_key_parts(alone).values(), most),
        lambda: least_cost(_networks(alone), settings(alone).most_labels, most),
    )


def _networks(alone: Prepared) -> tuple[PassNetwork, ...]:
    """Returns the networks, each with some second passes, that are searched in parallel."""
    from buildtool.plan.search.passsearch import networks_with_passes
    from buildtool.plan.search.space import space_of

    return networks_with_passes(
        alone.graph,
        lambda graph: space_of(graph, alone.target, settings(alone.with_graph(graph)), alone.session),
    )


def _choices(alone: Prepared) -> tuple[Passes, ...]:
    from buildtool.plan.search.passsearch import worthwhile

    alone.session.tell("searching for second passes that pay")
    try:
        networks = _networks(alone)
    except UsageError:  # an input image that cannot be streamed: planning without passes raises the error
        return ()
    by_weight = (worthwhile(networks, settings(alone), by_cost=by_cost) for by_cost in (False, True))
    return tuple(sorted(dict.fromkeys(chain.from_iterable(by_weight)), key=len))


def _key_parts(alone: Prepared) -> dict[str, str | int | float | None]:
    """Returns all values that the choices of second passes depend on, by name; they are the cache key."""
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


def _pack(choices: tuple[Passes, ...]) -> bytes:
    data: bytes = msgpack.packb([[[one.first, one.last, one.reader] for one in passes] for passes in choices])
    return b"passes" + data


def _unpack(data: bytes) -> tuple[Passes, ...]:
    choices = msgpack.unpackb(data.removeprefix(b"passes"))
    return tuple(tuple(SecondPass(*map(int, one)) for one in passes) for passes in choices)


_PASSES: Namespace[tuple[Passes, ...]] = Namespace("passes", _pack, _unpack)
