"""Analysis: does a model fit a board, what binds, by how much, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from buildtool.api.answers.cures import Cure as Cured
from buildtool.api.answers.cures import Fitting, Settings, cures, fit, fits, next_smaller
from buildtool.api.answers.estimate import price
from buildtool.base.errors import BuildtoolError, Hint, UsageError, to_data
from buildtool.base.layers import short_names
from buildtool.emit.ctext import shape
from buildtool.firmware.needs import AROUND, CODE, GUARD, STATE, VARIABLES, Need
from buildtool.firmware.planned import prepare
from buildtool.graph.liveness import live_ranges, live_sum_bound
from buildtool.graph.macs import total_macs
from buildtool.options.values import TargetChoice
from buildtool.plan.models import Network, load_network
from buildtool.plan.summary.summary import binding
from buildtool.target.choice import load_target
from buildtool.target.registry import board_names, load_board

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Analyze
    from buildtool.base.session import Session
    from buildtool.graph.types import Graph
    from buildtool.schema import analysis as answers

DETAILED = 2  # boards at most for which it is planned what would help, or what a smaller plan would cost


def analysis(request: Analyze, session: Session) -> answers.AnalysisAnswer:
    """The answer to an `analyze` request: the network, then a verdict for each board."""
    boards = request.boards or tuple(board_names())
    choices = [replace(request.target, board=board) for board in boards]
    for choice in choices:
        load_target(choice, session)  # what is wrong with a board is said before anything is read
    network = load_network(request.model, session)
    return {
        "model": network.model.name,
        "file_bytes": len(network.model.data),
        "operators_in_file": len(network.source.ops),
        "network": _network(network.graph),
        "boards": [_verdict(network, choice, request, session) for choice in choices],
    }


def _network(graph: Graph) -> answers.NetworkFacts:
    bound = live_sum_bound(graph)
    op = graph.ops[bound.position] if graph.ops else None
    constants = {t for o in graph.ops for t in o.inputs if t >= 0 and graph.tensors[t].is_constant}
    return {
        "operators": len(graph.ops),
        "kinds": dict(sorted(Counter(str(o.kind) for o in graph.ops).items())),
        "inputs": [_interface(graph, t) for t in graph.inputs],
        "outputs": [_interface(graph, t) for t in graph.outputs],
        "macs": total_macs(graph),
        "weight_bytes": sum(graph.tensors[t].size for t in constants),
        "activation_bytes": sum(r.size for r in live_ranges(graph)),
        "state_bytes": sum(graph.tensors[state.before].size for state in graph.states),
        "live_bound_bytes": bound.bytes,
        "live_bound_operator": f"{op.place} {graph.op_name(bound.position)}" if op else None,
        "live_bound_layer": _layer(graph, bound.position) if op else None,
    }


def _layer(graph: Graph, position: int) -> str:
    """The short name of an operator's layer."""
    return short_names([graph.op_name(each) for each in range(len(graph.ops))])[position]


def _interface(graph: Graph, index: int) -> answers.Interface:
    tensor = graph.tensors[index]
    quant = tensor.quant
    return {
        "name": tensor.name,
        "shape": shape(tensor.shape),
        "order": list(tensor.source.perm) if tensor.source else [],
        "type": str(tensor.dtype),
        "scale": quant.scale if quant else None,
        "zero_point": quant.zero_point if quant else None,
    }


def _verdict(
    network: Network, choice: TargetChoice, request: Analyze, session: Session
) -> answers.Verdict | answers.NoPlan:
    """The verdict on a board: exact, with cures, for one that is named; by an upper bound for others."""
    target, name = load_target(choice, session), network.model.name
    board, title, is_named = target.board.name, target.board.title, request.boards != ()
    is_prepared = False
    try:
        prepared = prepare(network, target, request.options, session)
        is_prepared = True
        fitting = fit(prepared, name, exactly=is_named)
    except BuildtoolError as error:
        # of a named board an option that means nothing there is refused: max_ms, where costs are no time
        if not is_prepared and (is_named or not isinstance(error, UsageError)):
            raise
        return {"board": board, "title": title, "fits": False, "error": to_data(error)}
    detailed = is_named and len(request.boards) <= DETAILED
    told = cures(network, choice, fitting, session) if detailed and not fitting.fits else []
    smaller = next_smaller(fitting) if detailed and fitting.fits else None
    return verdict_of(fitting, told, smaller)


def verdict_of(
    fitting: Fitting, told: Sequence[Cured], smaller: tuple[Settings, Fitting] | None
) -> answers.Verdict:
    """The verdict on a plan; `told`: what makes it fit, `smaller`: the next plan with less memory."""
    plan, graph, target, stack = fitting.plan, fitting.graph, fitting.prepared.target, fitting.count.stack
    at = binding(plan, graph, fitting.prepared.session)
    # the memory or limit that is fullest, relative to its size; the stack, where only it is too small
    fullest = max(fitting.needs, key=lambda need: need.required / max(need.available, 1))
    binds = f"{fullest.what} ({fullest.memory})" if fullest.what in ("RAM", "flash") else fullest.what
    if fitting.stack_excess and fits(fitting.needs):
        binds = "stack"
    return {
        "board": target.board.name,
        "title": target.board.title,
        "fits": fitting.fits,
        "needs": list(map(_need, fitting.needs)),
        "stack": {"required": stack, "available": target.board.stack_bytes} if stack is not None else None,
        "counted": {
            "how": fitting.count.how,
            "compiler": fitting.count.footprint.compiler if fitting.count.footprint else "",
            "note": fitting.count.note,
        },
        "strategy": plan.strategy,
        **price(plan, target),
        "arena_bound_bytes": plan.arena_bound_bytes,
        "state_bytes": plan.state_bytes,
        "flash_bytes": fitting.flash,
        "cost_unit": plan.cost_unit,
        "binding_operator": f"{at.place} {graph.op_name(at.op)}" if at.op >= 0 else "",
        "binding_layer": _layer(graph, at.op) if at.op >= 0 else "",
        "binding_bytes": at.live_bytes,
        "binds": binds,
        "cures": [_cure(one.settings, one.found, fitting) for one in told],
        "smaller": _cure(*smaller, fitting) if smaller else None,
        "advice": [] if fitting.fits else [hint.data() for hint in _advice(fitting, at.op, told)],
    }


def _need(need: Need) -> answers.NeedAnswer:
    return {
        "what": need.what,
        "memory": need.memory,
        "required": need.required,
        "available": need.available,
        "excess": need.excess,
        "parts": [{"name": part.name, "bytes": part.bytes} for part in need.parts],
    }


def _cure(settings: Settings, cured: Fitting, asked: Fitting) -> answers.Cure:
    """A plan that fits, with its price beside the plan that was asked for."""
    board, before = cured.prepared.target.board.name, asked.price["cost"]
    same = board == asked.prepared.target.board.name
    return {
        **cured.price,
        "settings": settings,
        "board": board,
        "cost_unit": cured.plan.cost_unit,
        "cost_ratio": cured.price["cost"] / before if same and before else None,
        "left": [
            {"what": need.what, "memory": need.memory, "bytes": need.available - need.required}
            for need in cured.needs
            if need.what in ("RAM", "flash")
        ],
        "image": cured.plan.image,
    }


def _advice(fitting: Fitting, position: int, told: Sequence[Cured]) -> list[Hint]:
    """Further help beside the cures: changes of the board's file or the network, or else other boards."""
    board, advice = fitting.prepared.target.board, list[Hint]()
    if fitting.stack_excess:
        advice.append(Hint(f"stack_bytes = {fitting.count.stack} or more in the board's file"))
    arena = {board.arena, board.second}
    over = max((n.excess for n in fitting.needs if n.memory in arena and n.what == "RAM"), default=0)
    if over and board.reserved_bytes >= over and board.kept(board.arena) >= board.reserved_bytes:
        advice.append(Hint(f"reserved_bytes = {board.reserved_bytes - over} or less in the board's file"))
    if position >= 0 and any(n.excess for n in fitting.needs if n.what in ("RAM", "arena limit")):
        graph = fitting.graph
        out = shape(graph.tensors[graph.ops[position].outputs[0]].shape)
        text = f"a smaller input, or fewer channels at {_layer(graph, position)} (output {out})"
        advice.append(Hint(f"{text}, where most is alive"))
    return advice if told else [*advice, *_elsewhere(fitting)]


def _elsewhere(fitting: Fitting) -> list[Hint]:
    """The known boards that have room for the plan, its weights and the code, on whatever core that is."""
    brought = Counter[str]()
    for need in fitting.needs:
        brought.update({part.name: part.bytes for part in need.parts})
    code = sum(size for name, size in brought.items() if name.startswith(CODE))
    variables = sum(size for name, size in brought.items() if name.startswith(VARIABLES))
    with_room = []
    for name in board_names():
        board = load_board(name)
        taken = Counter({board.arena: fitting.plan.arena_bytes + board.reserved_bytes + brought[AROUND]})
        taken.update({board.weights: fitting.flash})
        taken.update({board.data: board.stack_bytes + brought[GUARD] + variables + brought[STATE]})
        taken.update({board.code: 2 * code})  # another core's code may be larger
        if all(size <= board.memory(memory).size for memory, size in taken.items()):
            with_room.append(name)
    return [Hint(f"boards with room for this plan: {', '.join(with_room)}")] if with_room else []
