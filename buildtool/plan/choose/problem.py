"""What planning starts from: a network's graphs in the orders that are asked for, a target, and options."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import msgpack

from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import InPlace, Objective, Order, Strategy
from buildtool.base.session import Level, Session
from buildtool.graph.fusions import with_sliced_fusions
from buildtool.graph.partviews import views, with_views
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions
from buildtool.plan.choose import forms
from buildtool.plan.choose.cost_units import within_cost
from buildtool.plan.choose.limits import Limits
from buildtool.plan.summary.fit import available_bytes, excess_bytes
from buildtool.target.choice import loads
from buildtool.target.hardware import Taken
from buildtool.target.types import Target

if TYPE_CHECKING:
    from buildtool.graph import order as graph_order
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
        found = (forms.viewed(graph, self.target, self.options) for graph in self.unsliced if self.varied)
        return tuple(chain.from_iterable(found))

    @cached_property
    def twice(self) -> tuple[Graph, ...]:
        """The graphs with the second passes that may pay, which takes a search."""
        graphs = self.graphs if self.varied else ()
        found = (forms.with_passes(graph, self.target, self.options, self.session) for graph in graphs)
        return tuple(chain.from_iterable(found))

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
        from buildtool.plan.assemble.buffers import state_bytes

        return state_bytes(self.graph, self.target.board.alignment)

    @property
    def ram(self) -> int | None:
        """Bytes that the arena may have; None: there is no limit."""
        limits = [self.options.ram, self.available if self.bounded else None]
        return min((limit for limit in limits if limit is not None), default=None)

    def limits(self, ram: float | None) -> Limits:
        """What a plan has to keep to: `ram` bytes (None: any), and the options' limits on work and cost."""
        return Limits.of(self.options, self.target, ram)


def problem(
    graph: Graph, target: Target, options: PlanOptions, session: Session, beside: Beside, *, path: str
) -> Prepared:
    """The planning problem of a network on a target; UsageError for an option that has no effect there.

    `graph`: as it was rewritten for planning.
    """
    refuse_idle(target, options)
    options = within_cost(options, target)
    target = target.with_firmware(beside(graph, target))
    graphs, status = _orders(graph, options, session)
    other_form = _with_sliced_fusions(graph, target, options)
    return Prepared(
        path,
        (*graphs, *other_form),
        target,
        options,
        session=session,
        order_status=status,
        sliced=bool(other_form),
        beside=beside,
    )


def own_firmware(
    beside: Beside, graph: Graph, plan: Plan, target: Target, session: Session
) -> tuple[Taken, ...]:
    """What the firmware of a plan takes, counted at the least that it may turn out to be where the plan fits
    beside no more: then linking decides.
    """
    most = beside(graph, target, plan, session)
    if not excess_bytes(target.with_firmware(most).board, plan):
        return most
    least = beside(graph, target, plan, session, least=True)
    return most if excess_bytes(target.with_firmware(least).board, plan) else least


def _orders(graph: Graph, options: PlanOptions, session: Session) -> tuple[tuple[Graph, ...], str | None]:
    """A network in the order that it has and in others that may be better; what is proven of the best order.

    Where the operators' relations alone tell that no order has less alive than the given one, nothing is
    searched. The strategies that follow other systems take another order only where that is asked for.
    """
    follows = options.strategy not in (Strategy.BEST, Strategy.LAYERWISE)
    if options.order == Order.GIVEN or (follows and options.order != Order.BEST):
        return (graph,), None
    from buildtool.graph.order import BUDGET, SHORT_BUDGET, in_order
    from buildtool.graph.topology import topology_digest

    is_long = options.order == Order.BEST
    budget = BUDGET if is_long else SHORT_BUDGET
    whole = _best_order(graph, budget, session)
    of_chains = _best_order(graph, budget, session, of_chains=True)
    found = [in_order(graph, of_chains)]
    if is_long or whole.peak < of_chains.peak:  # else one more plan is hardly worth its time
        found.insert(0, in_order(graph, whole))
    graphs: tuple[Graph, ...] = (graph,)
    for one in found:
        if topology_digest(one) not in map(topology_digest, graphs):
            graphs = (*graphs, one)
    return graphs, whole.status if is_long else None


def _with_sliced_fusions(graph: Graph, target: Target, options: PlanOptions) -> tuple[Graph, ...]:
    """The form of a network in which slices may take the places of branches, where it has one."""
    if options.strategy != Strategy.BEST or options.in_place != InPlace.ROWS or loads(target.board):
        return ()
    sliced = with_sliced_fusions(graph)
    return () if sliced is graph else (sliced,)


def _best_order(graph: Graph, budget: int, session: Session, *, of_chains: bool = False) -> graph_order.Order:
    """The order with the least peak of live bytes; it depends on the topology alone.

    `of_chains`: one in which chains of operators stay together (see graph.order).
    """
    from buildtool.graph.flow import flow_of
    from buildtool.graph.order import Order, is_order, least_peak_of_chains, least_peak_order
    from buildtool.graph.topology import topology_digest

    def unpacked(data: bytes) -> Order:
        order, status, *numbers = msgpack.unpackb(data)
        found = Order(tuple(order), status, *numbers)
        if status not in ("optimal", "feasible") or not is_order(graph, found):
            raise ValueError("not an order of these operators")
        return found

    level = Level("orders", lambda found: bytes(msgpack.packb(list(vars(found).values()))), unpacked)
    parts = {"topology": topology_digest(graph), "budget": budget, **({"of": "chains"} if of_chains else {})}
    search = least_peak_of_chains if of_chains else least_peak_order
    session.tell("looking for the best order of operators")
    return session.keep(level, parts, lambda: search(flow_of(graph), budget=budget))


def refuse_idle(target: Target, options: PlanOptions) -> None:
    """UsageError for an objective where there is nothing to choose.

    The strategies that follow other systems make one plan: of two orders of the operators the better one is
    taken, and where weights are loaded, the objective says how many buffers they get. Layer by layer, tensors
    are moved between operators where the least memory is asked for.
    """
    chooses = options.strategy in (Strategy.BEST, Strategy.LAYERWISE) or options.order == Order.BEST
    if options.objective != Objective.COST and not chooses and not loads(target.board):
        raise UsageError(
            f"it has no effect with strategy {options.strategy}, which makes one plan",
            option="objective",
            hint=[suggest(objective=None), suggest(strategy="best")],
        )
