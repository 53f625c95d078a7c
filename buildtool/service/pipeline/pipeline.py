"""The way from a request's model and board to a checked plan and emitted sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.errors import PlanError
from buildtool.graph.types import Graph
from buildtool.plan.summary.binding import binding
from buildtool.plan.types import Plan
from buildtool.service.pipeline import slow_weights, strategies
from buildtool.service.pipeline.cmsis_nn import with_adapters, with_library
from buildtool.service.pipeline.models import Model, load_model, read_graph
from buildtool.service.pipeline.options import PlanOptions
from buildtool.target.types import Target, Toolchain

if TYPE_CHECKING:
    from buildtool.plan.search.choose import Limits
    from buildtool.plan.search.front import Settings


@dataclass(frozen=True)
class Planned:
    """A model, planned for a target: `graph` is the rewritten one that the plan is for."""

    model: Model
    source: Graph
    graph: Graph
    target: Target
    plan: Plan
    max_flash: int | None = None  # bytes that the weights may have; None: as many as the board has
    cmsis_nn: str = ""  # the checkout of CMSIS-NN that its kernels call; "": they do not

    def toolchain(self, name: str, work: Path) -> Toolchain:
        """The compiler `name` ("": the board's default), as the family's plugin sets it up below `work`."""
        from buildtool.target.registry import plugin

        tools = plugin(self.target.board).toolchain(self.target.board, name)
        return with_library(tools, self.cmsis_nn) if self.cmsis_nn else tools


def planned(spec: str, board: str, options: PlanOptions) -> Planned:
    """Reads, rewrites, plans and checks; does not ask whether the plan fits the board."""
    target = load(board, options)
    model = load_model(spec)
    source, graph = read_graph(model)
    try:
        graph, plan = make_ordered_plan(graph, target, options)
    except PlanError as error:
        raise error.at(path=model.path) from None
    return Planned(model, source, graph, target, plan, options.max_flash, options.cmsis_nn)


def load(board: str, options: PlanOptions) -> Target:
    """The board with its kernels, best first; with the adapters to CMSIS-NN where that is asked for."""
    from buildtool.target.registry import load_board, make_target

    found = load_board(board)
    return make_target(with_adapters(found, options.cmsis_nn) if options.cmsis_nn else found)


def make_ordered_plan(graph: Graph, target: Target, options: PlanOptions) -> tuple[Graph, Plan]:
    """The plan that the options ask for, and the graph in the operator order that it is for.

    Order `best` plans the given order as well, and takes the other one only where it is better.
    """
    from buildtool.graph.order import reorder

    other = reorder(graph).graph if options.order == "best" else graph
    if other is graph:
        return graph, make_plan(graph, target, options)
    made: list[tuple[Graph, Plan]] = []
    refused: list[PlanError] = []
    for candidate in (graph, other):
        try:
            made.append((candidate, make_plan(candidate, target, options)))
        except PlanError as error:
            refused.append(error)
    if not made:
        raise refused[-1]
    # min keeps the first of equals: the given order
    return min(made, key=lambda found: _merit(found[1], target, options))


def _merit(plan: Plan, target: Target, options: PlanOptions) -> tuple[float, ...]:
    """The less, the better: what does not fit the board comes last, then the objective counts."""
    from buildtool.plan.summary.fit import available_bytes

    over = max(0, plan.arena_bytes - available_bytes(target.board))
    if options.objective == "ram":
        return (over, plan.arena_bytes, plan.cost)
    return (over, plan.cost, plan.arena_bytes)


def make_plan(graph: Graph, target: Target, options: PlanOptions) -> Plan:
    """The plan that the options ask for, checked if the board has room for it.

    One that does not fit is returned all the same: `analyze` says by how much, and every other
    request ends in `refuse_unless_fits`.
    """
    from buildtool.plan.check.check import check
    from buildtool.plan.summary.fit import available_bytes

    planner = _PLANNERS[options.strategy]
    if slow_weights.loads_weights(target.board):
        made = slow_weights.plan_with_loads(planner, graph, target, options)
    else:
        made = planner(graph, target, options)
    if made.arena_bytes <= available_bytes(target.board):
        check(made, graph, target)
    return made


def _layerwise(graph: Graph, target: Target, options: PlanOptions) -> Plan:
    from buildtool.plan.assemble.layerwise import plan

    made = plan(graph, target, in_place=options.in_place, image=options.image)
    if options.ram is not None and made.arena_bytes > options.ram:
        raise PlanError(
            f"layer by layer the arena requires {made.arena_bytes} bytes, {options.ram} are allowed: "
            f"{made.arena_bytes - options.ram} too many",
            operator=binding(made, graph).place,
            hint=f"--ram {made.arena_bytes}, or strategy=best",
        )
    return made


def _best(graph: Graph, target: Target, options: PlanOptions) -> Plan:
    from buildtool.plan.search.choose import best_plan

    chosen = settings(options)
    if slow_weights.loads_weights(target.board):
        chosen = replace(chosen, loaded=slow_weights.loaded(graph, target))
    return best_plan(graph, target, chosen, limits(target, options))


def limits(target: Target, options: PlanOptions) -> Limits:
    """What a plan has to keep to, of the options and the board."""
    from buildtool.plan.search.choose import Limits
    from buildtool.plan.summary.fit import available_bytes

    available = available_bytes(target.board)
    ram = available if options.ram is None else min(options.ram, available)
    return Limits(ram, options.max_f, options.max_cost, options.objective)


def settings(options: PlanOptions) -> Settings:
    """What a front depends on, of the options."""
    from buildtool.plan.search.front import Settings

    most = Settings.max_f if options.max_f is None else options.max_f
    return Settings(options.in_place, options.image, options.hand_off, most)


_PLANNERS = {
    "layerwise": _layerwise,
    "best": _best,
    "msf-cnn": strategies.msf_cnn,
    "xcore-strips": strategies.xcore_strips,
}


@dataclass(frozen=True)
class Need:
    """A board's memory against what a plan asks of it, in bytes."""

    what: str
    memory: str
    required: int
    available: int

    @property
    def excess(self) -> int:
        """Bytes that are missing; 0 when it fits."""
        return max(0, self.required - self.available)


def needs(plan: Plan, target: Target, image_bytes: int) -> tuple[Need, ...]:
    """RAM (arena, and the stack where it shares the arena's memory) and the weights' memory."""
    from buildtool.plan.summary.fit import available_bytes

    board = target.board
    weights = board.memory(board.weights)
    return (
        Need("RAM", board.arena, plan.arena_bytes, available_bytes(board)),
        Need("flash", weights.name, image_bytes, weights.size),
    )


def refuse_unless_fits(planned_: Planned, image_bytes: int) -> None:
    """PlanError when the weights do not fit; the arena's own fit is the planner's question."""
    from buildtool.plan.summary.fit import fit

    try:
        fit(planned_.plan, planned_.target, planned_.graph)
    except PlanError as error:
        raise error.at(path=planned_.model.path) from None
    board = planned_.target.board
    need = needs(planned_.plan, planned_.target, image_bytes)[1]
    most = need.available if planned_.max_flash is None else min(planned_.max_flash, need.available)
    if need.required > most:
        limit = f"memory '{need.memory}' of {board.name} has {most:,}"
        more = "take a board with more flash or a narrower network"
        if most < need.available:
            limit = f"max-flash allows {most:,}"
            more = f"max-flash {need.required}" if need.required <= need.available else more
        raise PlanError(
            f"the weight image needs {need.required:,} bytes, {limit}: {need.required - most:,} too many",
            path=planned_.model.path,
            hint=more,
        )
