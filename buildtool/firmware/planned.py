"""A model planned for a target: the one way from a request's model, board and options to a plan.

    load_target, load_network   the board, and the network that is read and rewritten
    prepare                     the planning problem, with the bytes that firmware takes beside an arena
    choice                      one plan within the limits, checked (see plan/choose)
    refuse_unless_fits          refuses a plan that does not fit the board's memories

All requests that need a plan go this way, so that an option means the same to each of them. A given plan is
the emitted .plan of a build, or a file that was kept beside the model (see plan/locked.py). It may come from
an earlier version, other costs, or another board, as long as it is valid here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, cast

import msgpack

from buildtool.base.errors import Hint, PlanError
from buildtool.base.files import File, Named
from buildtool.base.modes import Image, Strategy
from buildtool.base.session import Level, Session
from buildtool.firmware.bound import firmware
from buildtool.firmware.needs import refuse_weights
from buildtool.graph.fusions import with_sliced_fusions
from buildtool.graph.partviews import with_views
from buildtool.graph.secondpass import with_second_passes
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.options.values import Lock, PlanOptions, TargetChoice
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import choose
from buildtool.plan.choose.limits import Limits, cost_limit, format_cost
from buildtool.plan.choose.problem import Prepared, own_firmware, prepare_problem
from buildtool.plan.choose.tried import strategy_best
from buildtool.plan.codec import from_bytes
from buildtool.plan.locked import Locked, from_text, is_text, operators
from buildtool.plan.models import Model, Network, load_network, read_graph
from buildtool.plan.summary.fit import available_bytes, fit
from buildtool.plan.types import Plan
from buildtool.target.choice import choice as target_choice
from buildtool.target.choice import load_target
from buildtool.target.types import Target

if TYPE_CHECKING:
    from buildtool.emit.image import WeightImage
    from buildtool.emit.sources import Sources

MOST_PLAN_BYTES = 1 << 28
_AGAIN = Hint("make a plan that fits: buildtool plan MODEL --board BOARD --out FILE")


@dataclass(frozen=True)
class Planned:
    """A model, planned for a target: `graph` is the rewritten one that the plan is for."""

    model: Model
    source: Graph
    graph: Graph
    target: Target
    plan: Plan
    choice: TargetChoice
    options: PlanOptions
    session: Session
    order_status: str | None = None  # as in Prepared
    search_factor: float = 1.0  # as `kept.Choice.factor`
    placing_ended: bool = False  # as `kept.Choice.ended`


def prepare(network: Network, target: Target, options: PlanOptions, session: Session) -> Prepared:
    """The planning problem of a network on a target; UsageError for an option that has no effect there."""
    return prepare_problem(network.graph, target, options, session, firmware, path=network.model.path)


def plan_model(
    spec: Named, target: TargetChoice | Named, options: PlanOptions, session: Session | None = None
) -> Planned:
    """Reads, rewrites, plans and checks the plan; it may still not fit the board."""
    session = session or Session()
    chosen_target = target_choice(target)
    loaded = load_target(chosen_target, session)
    network = load_network(spec, session)
    prepared = prepare(network, loaded, options, session)
    found = choose(prepared)
    return Planned(
        network.model,
        network.source,
        prepared.graph_for(found.index, found.plan),
        prepared.target.with_firmware(found.firmware),
        found.plan,
        chosen_target,
        options,
        session,
        prepared.order_status,
        found.factor,
        found.ended,
    )


def plan_or_read(
    spec: Named, choice: TargetChoice, options: PlanOptions, lock: Lock | None, session: Session
) -> Planned:
    """The model with a plan that is made now, or with that of `lock`, which must keep `options`."""
    if lock is None:
        return plan_model(spec, choice, options, session)
    made = read_plan(spec, choice, lock.file, session)
    if why := _beyond(made.plan, options, made.target, lock.image):
        raise PlanError(why, path=lock.file.path, hint=_AGAIN)
    return replace(made, options=options)


def read_plan(spec: Named, choice: TargetChoice, file: File, session: Session) -> Planned:
    """The model with the plan of a file; PlanError if that is of another network, or not valid here."""
    target = load_target(choice, session)
    network = load_network(spec, session)
    data = file.read("the plan", MOST_PLAN_BYTES)
    try:
        locked = from_text(data) if is_text(data) else Locked(from_bytes(data), "", ())
        graph = _order_for(locked.plan, network.graph)
        _check(locked, graph, target)
    except PlanError as error:
        raise error.at(path=file.path) from None
    target = target.with_firmware(own_firmware(firmware, graph, locked.plan, target, session))
    return Planned(network.model, network.source, graph, target, locked.plan, choice, PlanOptions(), session)


def _check(locked: Locked, graph: Graph, target: Target) -> None:
    """PlanError unless the plan is legal for the network and the target as they are now."""
    if locked.plan.topology != topology_digest(graph):
        raise PlanError(f"the plan is for another network: {_difference(locked, graph)}", hint=_AGAIN)
    try:
        check(locked.plan, graph, target, made_for_it=False)
    except PlanError as error:
        board = target.board.name
        was = f", it was made for '{locked.board}'" if locked.board not in ("", board) else ""
        what = f"the plan does not hold on board '{board}'{was}: {error.text}"
        raise PlanError(what, operator=error.operator, tensor=error.tensor, hint=_AGAIN) from None


def _difference(locked: Locked, graph: Graph) -> str:
    """A difference between the plan's network and this one."""
    if not locked.operators:
        return "its topology differs"
    for number, (was, now) in enumerate(zip_longest(locked.operators, operators(graph))):
        if was != now:
            return f"operator {number} is {now or 'missing'}, in the plan's network it is {was or 'missing'}"
    return "an operator's geometry (strides, padding, connections) differs"


def _beyond(plan: Plan, options: PlanOptions, target: Target, image: Image | None) -> str:
    """Which limit a plan exceeds, or what else was asked for that it does not have; "" if nothing."""
    if image is not None and plan.image != image:
        return f"the plan has image {plan.image}, {image} is asked for"
    missed = Limits.of(options, target, options.ram).first_missed(plan)
    if missed == "ram":
        over = plan.arena_bytes - (options.ram or 0)
        return (
            f"the plan's arena requires {plan.arena_bytes} bytes, {options.ram} are allowed: {over} too many"
        )
    if missed == "max_f":
        return f"the plan's F is {plan.f:.3f}, {options.max_f} is allowed"
    limit = cost_limit(options, target)
    if limit is not None and plan.cost_unit != target.cost_unit:
        text = f"the plan's cost was estimated in {plan.cost_unit}, and costs on board"
        return f"{text} '{target.board.name}' are in {target.cost_unit}"
    if limit is not None and plan.cost > limit:
        was, allowed = (format_cost(cost, target) for cost in (plan.cost, limit))
        return f"the plan's cost was {was}, {allowed} is allowed"
    return ""


def _order_for(plan: Plan, graph: Graph) -> Graph:
    """The graph in the plan's order of operators, with its second passes and views; as it is if none fits."""
    for one in _orders(graph):
        try:
            twice = with_views(with_second_passes(one, plan.second_passes), plan.views)
        except PlanError:
            continue
        if topology_digest(twice) == plan.topology:
            return twice
    return graph


def _orders(graph: Graph) -> Iterator[Graph]:
    """Every form that planning may have chosen: with sliced fusions, and in orders that take a search."""
    yield graph
    yield with_sliced_fusions(graph)
    from buildtool.graph.flow import flow_of
    from buildtool.graph.order import BUDGET, SHORT_BUDGET, in_order, least_peak_of_chains, least_peak_order

    for budget in (SHORT_BUDGET, BUDGET):
        for search in (least_peak_order, least_peak_of_chains):
            yield in_order(graph, search(flow_of(graph), budget=budget))


# ---- against the board's memories ---------------------------------------------------------------


def notes(made: Planned) -> list[str]:
    """A note on a limit for the arena that is above what the board has."""
    board, asked = made.target.board, made.options.ram
    room = available_bytes(board, made.plan.state_bytes)
    if asked is None or asked <= room:
        return []
    memories = []
    for name in board.holders:
        taken = board.taken(name, made.plan.state_bytes)
        beside = board.beside(name) or (f" less {taken} for all else" if taken else "")
        memories.append(f"'{name}' of {board.memory(name).size}{beside}")
    return [
        f"{asked} bytes are allowed for the arena, and board '{board.name}' has {room} for it, which is the "
        f"limit then: memory {' and '.join(memories)}"
    ]


def refuse_unless_fits(made: Planned, image_bytes: int) -> None:
    """PlanError when the arena or the weights do not fit."""
    try:
        try:
            fit(made.plan, made.target, made.graph, made.session)
        except PlanError as error:
            error.hints = (*_by_strategy_best(made), *error.hints)
            raise
        refuse_weights(made.target, made.options, image_bytes)
    except PlanError as error:
        raise error.at(path=made.model.path) from None


def _by_strategy_best(made: Planned) -> tuple[Hint, ...]:
    """The hint to let strategy `best` plan, where its plan fits and another strategy was asked for."""
    if made.options.strategy == Strategy.BEST:
        return ()
    network = Network(made.model, *read_graph(made.model, made.session))
    target = load_target(made.choice, made.session)
    return strategy_best(prepare(network, target, made.options, made.session), choose)


# ---- its sources, emitted once for the same model, plan and target -------------------------------------


Text = tuple[dict[str, bytes], tuple[str, ...]]  # files, and the names of those that are compiled


def emit_sources(made: Planned, name: str) -> Sources:
    """The sources of a planned network, of `buildtool.emit.sources.emit` or from the cache."""
    from buildtool.emit.ctext import identifier
    from buildtool.emit.sources import Sources, emit
    from buildtool.plan.codec import digest
    from buildtool.target.digest import emitting_digest

    made.session.tell("packing weights and writing sources")
    image = _image(made)
    parts = {
        "model": made.model.digest,
        "plan": digest(made.plan),
        "target": emitting_digest(made.target),
        "name": name,
        "layout": image.layout,
    }
    known = made.session.kept(_CODE, parts)
    if known is None:
        sources = emit(made.graph, made.plan, made.target, name, made.session, image)
        others = {path: data for path, data in sources.files.items() if not path.endswith(".bin")}
        made.session.hold(_CODE, parts, (others, sources.c_files))
        return sources
    net, (others, c_files) = identifier(name), known
    return Sources(net, {**others, f"{net}_weights.bin": image.data}, c_files, image)


def _image(made: Planned) -> WeightImage:
    """The packed weights."""
    from buildtool.emit.image import read_image, weight_image
    from buildtool.graph.topology import topology_digest
    from buildtool.target.digest import packing_digest

    kernels = made.target.named(made.plan.kernels)
    parts = {
        "model": made.model.digest,
        "topology": topology_digest(made.graph),
        "target": packing_digest(made.target),
        "kernels": list(made.plan.kernels),
    }
    level = Level("weights", lambda image: image.data, lambda data: read_image(data, made.graph, kernels))
    return made.session.keep(level, parts, lambda: weight_image(made.graph, kernels))


def _unpack(data: bytes) -> Text:
    files, c_files = msgpack.unpackb(data)
    right = isinstance(files, dict) and all(isinstance(v, bytes) and "/" not in k for k, v in files.items())
    if not right or not all(name in files for name in c_files):
        raise ValueError("not emitted files")
    return files, tuple(c_files)


_CODE: Level[Text] = Level("code", lambda text: cast(bytes, msgpack.packb(text)), _unpack)
