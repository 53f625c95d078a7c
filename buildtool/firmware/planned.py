"""Plans a model for a target: the only way from a request's model, board and options to a plan.

    load_target, load_network   the board, and the network after reading and rewriting
    prepare                     the planning problem, with the firmware's bytes besides the arena
    choice                      a checked plan within the limits (see plan/choose)
    refuse_unless_fits          refuses a plan that does not fit the board's memories

All requests that need a plan go this way, so that an option means the same for each of them. A given plan is
the .plan file of a build, or a text file that is kept beside the model (see plan/locked.py). It may come from
an earlier version, other costs, or another board, as long as it is valid here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, cast
from zlib import crc32

import msgpack

from buildtool.base.errors import BuildtoolError, Hint, PlanError, suggest
from buildtool.base.files import Cut, File, Named, NetworkSpec
from buildtool.base.modes import Image, Objective, Simplify, Strategy
from buildtool.base.plain import to_plain
from buildtool.base.session import Namespace, Session
from buildtool.firmware.bound import firmware
from buildtool.firmware.hopping import best_problem, hop_problems, needed_bytes, with_kept
from buildtool.firmware.narrowing import narrow, narrow_as
from buildtool.firmware.needs import refuse_weights
from buildtool.graph.fusions import with_sliced_fusions
from buildtool.graph.partviews import with_views
from buildtool.graph.rewrite.turns import turn_signals
from buildtool.graph.secondpass import with_second_passes
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.options import spell
from buildtool.options.values import Lock, PlanOptions, TargetChoice
from buildtool.plan.check.check import check
from buildtool.plan.choose.channels import Simplified, simplify, simplify_as
from buildtool.plan.choose.choose import choose
from buildtool.plan.choose.hints import strategy_best
from buildtool.plan.choose.hops import Hopping, hopping_as, list_hoppings
from buildtool.plan.choose.limits import NO_SETTING, Limits, cost_limit, format_cost
from buildtool.plan.choose.problem import Prepared, own_firmware, prepare_problem
from buildtool.plan.codec import from_bytes
from buildtool.plan.locked import COMMAND, Locked, from_text, is_text, name_files, operators
from buildtool.plan.models import MOST_MODELS, Model, Network, load_network, read_graph
from buildtool.plan.summary.fit import available_bytes, fit, holds
from buildtool.plan.types import Plan
from buildtool.target.choice import choice as target_choice
from buildtool.target.choice import load_target
from buildtool.target.digest import planning_digest
from buildtool.target.partitions import weights_room
from buildtool.target.types import Target

if TYPE_CHECKING:
    from buildtool.emit.golden import Checks
    from buildtool.emit.image import WeightImage
    from buildtool.emit.sources import Sources

MOST_PLAN_BYTES = 1 << 28
_AGAIN = Hint(f"make a plan that fits: {COMMAND}")


@dataclass(frozen=True)
class Planned:
    """A model with its plan for a target.

    `source` is the graph of the model's file, `graph` the rewritten one that `plan` is for.
    """

    model: Model
    source: Graph
    graph: Graph
    target: Target
    plan: Plan
    choice: TargetChoice
    options: PlanOptions
    session: Session
    simplified: Simplified
    order_status: str | None = None  # as in Prepared
    search_factor: float = 1.0  # as `kept.Choice.factor`
    placing_ended: bool = False  # as `kept.Choice.ended`
    hop: Hopping | None = None  # as in Prepared

    @property
    def unsliced(self) -> Graph:
        """The graph in which no fusion computes its output in slices. Only the strategy `best` uses sliced
        fusions.
        """
        return self.simplified.graph if self.hop is None else self.hop.graph


def prepare(network: Network, target: Target, options: PlanOptions, session: Session) -> Prepared:
    """Returns a network's planning problem on a target. Raises UsageError for an option that has no effect
    there.

    On a moving window, there is a problem for each choice of what is kept from invoke to invoke; it returns
    the best one (see `best_problem`).
    """
    problems = prepare_each(network, target, options, session)
    if len(problems) == 1:
        return problems[0]
    key = (network.model.digest, network.model.path, planning_digest(target), *to_plain(options))
    return session.remember("hop", key, lambda: best_problem(problems, options), MOST_MODELS)


def prepare_each(network: Network, target: Target, options: PlanOptions, session: Session) -> list[Prepared]:
    """Returns a network's planning problems on a target.

    On a moving window, there is one for each choice of what is kept from invoke to invoke. Otherwise there is
    one.
    """
    model, how = network.model, simplification(options, target)
    options = replace(options, simplify=how)
    key = (model.digest, model.path, planning_digest(target), how)
    simplified = session.remember(
        "simplified", key, lambda: simplify(network.graph, target, how), MOST_MODELS
    )
    room = weights_room(target.board)
    narrow_key = (*key, options.objective == Objective.FLASH, options.max_flash, room)
    simplified = session.remember(
        "narrowed", narrow_key, lambda: narrow(simplified, target, options), MOST_MODELS
    )
    if options.objective == Objective.FLASH:
        options = replace(options, objective=Objective.COST)
    if options.hop is None:
        prepared = prepare_problem(simplified.graph, target, options, session, firmware, path=model.path)
        return [replace(prepared, simplified=simplified)]
    window, rows = simplified.graph, options.hop
    try:
        hoppings = session.remember(
            "hops", (*narrow_key, rows), lambda: list_hoppings(window, rows), MOST_MODELS
        )
    except BuildtoolError as error:
        raise error.at(path=model.path) from None
    problems = hop_problems(hoppings, target, options, session, model.path)
    return [replace(problem, simplified=simplified) for problem in problems]


def simplification(options: PlanOptions, target: Target) -> Simplify:
    """Returns to what extent a network is simplified: as the options say, or the default for the board.

    On a board with several slots for weight images, weights may change without the firmware. So by default
    only the structure is simplified there.
    """
    default = Simplify.STRUCTURE if target.board.image.slots > 1 else Simplify.WEIGHTS
    return options.simplify or default


def plan_model(
    spec: NetworkSpec, target: TargetChoice | Named, options: PlanOptions, session: Session | None = None
) -> Planned:
    """Reads and rewrites the model, plans it and checks the plan.

    The plan may be too large for the board: see `refuse_unless_fits`.
    """
    session = session or Session()
    chosen_target = target_choice(target)
    loaded = load_target(chosen_target, session)
    network = load_network(spec, session)
    prepared = prepare(network, loaded, options, session)
    try:
        choice = choose(prepared)
    except PlanError as error:
        alone = [*_one_image(spec, network, chosen_target, options, session)]
        error.hints = (*alone, *(hint for hint in error.hints if hint != NO_SETTING or not alone))
        raise with_kept(error, prepared) from None
    assert prepared.simplified is not None
    return Planned(
        network.model,
        network.source,
        prepared.graph_for(choice.index, choice.plan),
        prepared.target.with_firmware(choice.firmware),
        replace(choice.plan, **prepared.in_plan),
        chosen_target,
        options,
        session,
        prepared.simplified,
        prepared.order_status,
        choice.factor,
        choice.ended,
        prepared.hop,
    )


def _one_image(
    spec: NetworkSpec, batch: Network, choice: TargetChoice, options: PlanOptions, session: Session
) -> Iterator[Hint]:
    """Yields the hint to stream the input image (image=stream), if the network computes a batch, and a plan
    for one image of it would fit the board.
    """
    inputs = [batch.source.tensors[t].shape for t in batch.source.inputs]
    if options.image == Image.STREAM or not inputs or len(inputs[0]) < 2 or inputs[0][0] < 2:
        return
    try:
        planned = plan_model(_streamed(spec), choice, replace(options, image=Image.STREAM), session)
    except BuildtoolError:
        return
    if holds(planned.target.board, planned.plan):
        yield suggest(f"{planned.plan.arena_bytes:,} bytes for one image of the batch", image="stream")


def _streamed(spec: NetworkSpec) -> Cut:
    """Returns the network as it is planned for an image that arrives row by row: for one image of a batch."""
    return replace(spec, single=True) if isinstance(spec, Cut) else Cut(spec, single=True)


def plan_or_read(
    spec: NetworkSpec, choice: TargetChoice, options: PlanOptions, lock: Lock | None, session: Session
) -> Planned:
    """Returns the model with a new plan, or with the plan of `lock`. Raises PlanError if that plan exceeds a
    limit of `options`.
    """
    if lock is None:
        return plan_model(spec, choice, options, session)
    planned = read_plan(spec, choice, lock.file, session)
    if why := _find_excess(planned.plan, options, planned.target, lock.image):
        error, image = PlanError(why, path=lock.file.path, hint=_AGAIN), lock.image or planned.plan.image
        raise _named(error, planned.model, choice, lock.file, replace(options, image=Image(image)))
    return replace(planned, options=options)


def read_plan(spec: NetworkSpec, choice: TargetChoice, file: File, session: Session) -> Planned:
    """Returns the model with the plan in `file`. Raises PlanError if it is for another network, or not valid
    for this network and board.
    """
    target = load_target(choice, session)
    network = load_network(spec, session)
    try:
        locked = _read_locked(file)
        if locked.plan.image == Image.STREAM:  # such a plan is for one image of a batch
            network = load_network(_streamed(spec), session)
        simplified = narrow_as(simplify_as(network.graph, locked.plan.removed), locked.plan.narrowed, target)
        plan = locked.plan
        hop = None if plan.hop is None else hopping_as(simplified.graph, plan.hop)
        graph = _find_order(plan, simplified.graph if hop is None else hop.graph)
        _check_plan(locked, graph, target)
    except PlanError as error:
        raise _named(error, network.model, choice, file, PlanOptions()).at(path=file.path) from None
    target = target.with_firmware(own_firmware(firmware, graph, locked.plan, target, session))
    options = PlanOptions(hop=plan.hop.rows if plan.hop else None)
    return Planned(
        network.model, network.source, graph, target, plan, choice, options, session, simplified, hop=hop
    )


def _named(
    error: PlanError, model: Model, choice: TargetChoice, file: File, options: PlanOptions
) -> PlanError:
    """Returns `error` with hints that can be run as they are.

    A hint may contain the command that makes the plan again: it gets the names of the files, and the limits
    of `options`.
    """
    error.hints = error.hints or (_AGAIN,)
    usual, limits = PlanOptions(), ("image", "ram", "max_flash", "max_f", "max_cost", "max_ms", "hop")
    given = {name: getattr(options, name) for name in limits}
    settings = (spell(name, value) for name, value in given.items() if value != getattr(usual, name))
    board = choice.board if isinstance(choice.board, str) else choice.board.path
    return name_files(error, model.path, board, file.path, " ".join(settings))


def _read_locked(file: File) -> Locked:
    """Returns the plan in a file, unchecked."""
    data = file.read("the plan", MOST_PLAN_BYTES)
    return from_text(data) if is_text(data) else Locked(from_bytes(data), "", ())


def hop_of_plan(file: File) -> int | None:
    """Returns by how many rows the moving window of a file's plan advances in an invoke; None for a plan
    without a moving window.
    """
    try:
        hop = _read_locked(file).plan.hop
    except PlanError as error:
        raise error.at(path=file.path) from None
    return hop.rows if hop else None


def _check_plan(locked: Locked, graph: Graph, target: Target) -> None:
    """Raises PlanError unless the plan is valid for this network and target."""
    if locked.plan.topology != topology_digest(graph):
        raise PlanError(f"the plan is for another network: {_find_difference(locked, graph)}", hint=_AGAIN)
    try:
        check(locked.plan, graph, target, made_for_it=False)
    except PlanError as error:
        board = target.board.name
        origin = f" (it was made for '{locked.board}')" if locked.board not in ("", board) else ""
        what = f"the plan is not valid on board '{board}'{origin}: {error.text}"
        raise PlanError(what, operator=error.operator, tensor=error.tensor, hint=_AGAIN) from None


def _find_difference(locked: Locked, graph: Graph) -> str:
    """Returns a text about the first difference between the plan's network and this one."""
    if not locked.operators:
        return "its topology differs"
    for number, (old, new) in enumerate(zip_longest(locked.operators, operators(graph))):
        if old != new:
            return f"operator {number} is {new or 'missing'}, but {old or 'missing'} in the plan's network"
    return "an operator's geometry (strides, padding, connections) differs"


def _find_excess(plan: Plan, options: PlanOptions, target: Target, image: Image | None) -> str:
    """Returns a text about the limit that a plan exceeds, or about an option that it does not follow; "" if
    it is within the options. `image` is the treatment of the input image that the request demands (None:
    any).
    """
    if image is not None and plan.image != image:
        return f"the plan has image {plan.image}, but the request says {image}"
    hop = plan.hop.rows if plan.hop else None
    if options.hop not in (None, hop):
        how = f"for a window that moves by {hop:,} rows" if hop else "for whole inputs"
        return f"the plan is {how}, but the request says hop {options.hop}"
    if options.ram is not None and needed_bytes(plan) > options.ram:
        over = needed_bytes(plan) - options.ram
        what = "the plan's arena" if hop is None else "the plan's arena, with what is kept from hop to hop,"
        return f"{what} requires {needed_bytes(plan):,} bytes, {options.ram:,} are allowed: {over:,} too many"
    limit_name = Limits.of(options, target).first_missed(plan)
    if limit_name == "max_f":
        return f"the plan's F is {plan.f:.3f}, {options.max_f} is allowed"
    limit = cost_limit(options, target)
    if limit is not None and plan.cost_unit != target.cost_unit:
        text = f"the plan's cost was estimated in {plan.cost_unit}, but costs on board"
        return f"{text} '{target.board.name}' are in {target.cost_unit}"
    if limit is not None and plan.cost > limit:
        cost, allowed = (format_cost(one, target) for one in (plan.cost, limit))
        return f"the plan's cost was {cost}, {allowed} is allowed"
    return ""


def _find_order(plan: Plan, graph: Graph) -> Graph:
    """Returns the graph in the form that a plan was made for.

    That is the graph in the order of the plan's operators, with the plan's second passes (recomputation) and
    views. If no form of the graph matches the plan, the graph is returned unchanged.
    """
    for ordered in _list_orders(graph):
        for turned in dict.fromkeys((ordered, turn_signals(ordered))):
            try:
                form = with_views(with_second_passes(turned, plan.second_passes), plan.views)
            except PlanError:
                continue
            if topology_digest(form) == plan.topology:
                return form
    return graph


def _list_orders(graph: Graph) -> Iterator[Graph]:
    """Yields every form of the graph that planning may have chosen: the graph itself, the graph with sliced
    fusions, and the graph in the orders that the searches for little memory find.
    """
    yield graph
    yield with_sliced_fusions(graph)
    from buildtool.graph.flow import flow_of
    from buildtool.graph.order import BUDGET, SHORT_BUDGET, in_order, least_peak_of_chains, least_peak_order

    for budget in (SHORT_BUDGET, BUDGET):
        for search in (least_peak_order, least_peak_of_chains):
            yield in_order(graph, search(flow_of(graph), budget=budget))


# ---- against the board's memories ---------------------------------------------------------------


def notes(planned: Planned) -> list[str]:
    """Returns a note in a list if the limit for the arena is above what the board has; otherwise an empty
    list.
    """
    board, limit = planned.target.board, planned.options.ram
    room = available_bytes(board, planned.plan.state_bytes)
    if limit is None or limit <= room:
        return []
    memories = []
    for name in board.holders:
        others = board.unavailable_bytes(name, planned.plan.state_bytes)
        beside = board.describe_other_contents(name) or (f" less {others:,} for all else" if others else "")
        memories.append(f"'{name}' of {board.memory(name).size:,}{beside}")
    return [
        f"{limit:,} bytes are allowed for the arena, and board '{board.name}' has {room:,} for it, which is "
        f"the limit then: memory {' and '.join(memories)}"
    ]


def refuse_unless_fits(planned: Planned, image_bytes: int) -> None:
    """Raises PlanError if the arena or the weight image, of `image_bytes`, does not fit the board."""
    try:
        try:
            fit(planned.plan, planned.target, planned.graph, planned.session)
        except PlanError as error:
            error.hints = (*_hint_strategy_best(planned), *error.hints)
            raise
        refuse_weights(planned.target, planned.options, image_bytes)
    except PlanError as error:
        raise error.at(path=planned.model.path) from None


def _hint_strategy_best(planned: Planned) -> tuple[Hint, ...]:
    """Returns the hint to plan with the strategy `best`, if its plan would fit.

    There is no hint if this strategy was already used.
    """
    if planned.options.strategy == Strategy.BEST:
        return ()
    network = Network(planned.model, *read_graph(planned.model, planned.session))
    target = load_target(planned.choice, planned.session)
    return strategy_best(prepare(network, target, planned.options, planned.session), choose)


# ---- the emitted sources, cached by model, plan and target ---------------------------------------------


Text = tuple[dict[str, bytes], tuple[str, ...]]  # files, and the names of those that are compiled


def emit_sources(planned: Planned, name: str, checks: Checks | None = None) -> Sources:
    """Returns the sources of a planned network, from the cache or by `buildtool.emit.sources.emit`."""
    from buildtool.emit.ctext import identifier
    from buildtool.emit.golden import NO_CHECKS
    from buildtool.emit.sources import Sources, emit
    from buildtool.plan.codec import digest
    from buildtool.target.digest import emitting_digest

    planned.session.tell("packing weights and writing sources")
    image = _pack_weights(planned)
    parts = {
        "model": planned.model.digest,
        "plan": digest(planned.plan),
        "target": emitting_digest(planned.target),
        "name": name,
        "layout": image.layout,
        **(_describe_checks(checks, image) if checks else {}),
    }
    cached = planned.session.load(_CODE, parts)
    if cached is None:
        sources = emit(
            planned.graph, planned.plan, planned.target, name, planned.session, image, checks or NO_CHECKS
        )
        others = {path: data for path, data in sources.files.items() if not path.endswith(".bin")}
        planned.session.store(_CODE, parts, (others, sources.c_files))
        return sources
    net, (others, c_files) = identifier(name), cached
    return Sources(net, {**others, f"{net}_weights.bin": image.data}, c_files, image)


def _describe_checks(checks: Checks, image: WeightImage) -> dict[str, object]:
    """Returns the parts of the cache key for emitted checks. They include the weights' values, because the
    golden output depends on them.
    """
    golden = checks.golden
    told = [golden.seed, golden.data, golden.crc32, crc32(image.data)] if golden else []
    return {"checks": [str(checks.guards), *told]}


def _pack_weights(planned: Planned) -> WeightImage:
    """Returns the weight image, from the cache or newly packed."""
    from buildtool.emit.image import read_image, weight_image
    from buildtool.graph.topology import topology_digest
    from buildtool.target.digest import packing_digest

    graph, kernels = planned.graph, planned.target.kernels_by_name(planned.plan.kernels)
    parts = {
        "model": planned.model.digest,
        "topology": topology_digest(graph),
        "removed": [[one.tensor, *one.channels] for one in planned.plan.removed],
        **({"hop": to_plain(planned.plan.hop)} if planned.plan.hop else {}),
        "target": packing_digest(planned.target),
        "kernels": list(planned.plan.kernels),
    }
    level = Namespace("weights", lambda image: image.data, lambda data: read_image(data, graph, kernels))
    return planned.session.keep(level, parts, lambda: weight_image(graph, kernels))


def _unpack(data: bytes) -> Text:
    files, c_files = msgpack.unpackb(data)
    right = isinstance(files, dict) and all(isinstance(v, bytes) and "/" not in k for k, v in files.items())
    if not right or not all(name in files for name in c_files):
        raise ValueError("not emitted files")
    return files, tuple(c_files)


_CODE: Namespace[Text] = Namespace("code", lambda text: cast(bytes, msgpack.packb(text)), _unpack)
