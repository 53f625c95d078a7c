"""Analysis: whether a model fits a board, what is too small, by how much, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from buildtool.api.answers.cures import Cure as Cured
from buildtool.api.answers.cures import Fitting, Settings, cures, fit, fits, next_smaller
from buildtool.api.answers.estimate import price
from buildtool.api.answers.simplified import describe, describe_four_bits
from buildtool.api.answers.slowwork import float_work
from buildtool.base.errors import BuildtoolError, Hint, UsageError, to_data
from buildtool.base.modes import Objective
from buildtool.emit.ctext import shape
from buildtool.firmware.needs import AROUND, CODE, GUARD, STATE, VARIABLES, Need
from buildtool.firmware.planned import prepare
from buildtool.graph.floats import float_operators
from buildtool.graph.liveness import live_ranges, live_sum_bound
from buildtool.graph.macs import total_macs
from buildtool.options.values import TargetChoice
from buildtool.plan.models import Network, load_network
from buildtool.plan.summary.summary import binding, layer_name, summarize
from buildtool.target.choice import load_target
from buildtool.target.registry import board_names, load_board

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Analyze
    from buildtool.base.session import Session
    from buildtool.graph.types import Graph
    from buildtool.schema import analysis as answers
    from buildtool.schema.plans import FloatWork

DETAILED = 2  # cures or a smaller plan are computed for up to this number of boards


def analysis(request: Analyze, session: Session) -> answers.AnalysisAnswer:
    """Returns the answer to an `analyze` request: the network, then a verdict for each board."""
    boards = request.boards or tuple(board_names())
    choices = [replace(request.target, board=board) for board in boards]
    for choice in choices:
        load_target(choice, session)  # a wrong board is reported before the model is read
    network = load_network(request.model, session)
    return {
        "model": network.model.name,
        "file_bytes": len(network.model.data),
        "operators_in_file": len(network.source.ops),
        "network": _describe_network(network.graph),
        "boards": [_make_verdict(network, choice, request, session) for choice in choices],
    }


def _describe_network(graph: Graph) -> answers.NetworkFacts:
    bound = live_sum_bound(graph)
    op = graph.ops[bound.position] if graph.ops else None
    return {
        "operators": len(graph.ops),
        "kinds": dict(sorted(Counter(str(o.kind) for o in graph.ops).items())),
        "inputs": [_describe_interface(graph, t) for t in graph.inputs],
        "outputs": [_describe_interface(graph, t) for t in graph.outputs],
        "macs": total_macs(graph),
        "weight_bytes": graph.constant_bytes,
        "activation_bytes": sum(r.size for r in live_ranges(graph)),
        "state_bytes": sum(graph.tensors[state.before].size for state in graph.states),
        "live_bound_bytes": bound.bytes,
        "live_bound_operator": f"{op.place} {graph.op_name(bound.position)}" if op else None,
        "live_bound_layer": layer_name(graph, bound.position) if op else None,
    }


def _describe_interface(graph: Graph, index: int) -> answers.Interface:
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


def _make_verdict(
    network: Network, choice: TargetChoice, request: Analyze, session: Session
) -> answers.Verdict | answers.NoPlan:
    """Returns the verdict on a board: whether the network fits.

    The firmware is counted exactly for a board that the request names. For other boards an upper limit may
    suffice. If the request names at most DETAILED boards, their verdicts have cures or a smaller plan.
    """
    target, name = load_target(choice, session), network.model.name
    board, title, is_named = target.board.name, target.board.title, request.boards != ()
    is_prepared = False
    try:
        prepared = prepare(network, target, request.options, session)
        is_prepared = True
        fitting = fit(prepared, name, exactly=is_named)
    except BuildtoolError as error:
        # Only for a named board an option without effect is an error, such as max_ms if costs are not times.
        if not is_prepared and (is_named or not isinstance(error, UsageError)):
            raise
        return {"board": board, "title": title, "fits": False, "error": to_data(error)}
    detailed = is_named and len(request.boards) <= DETAILED
    helping = cures(network, choice, fitting, session) if detailed and not fitting.fits else []
    smaller = next_smaller(network, choice, fitting) if detailed and fitting.fits else None
    smallest = next_smaller(network, choice, smaller[1], Objective.RAM) if smaller else None
    return verdict_of(fitting, helping, smaller, smallest)


def verdict_of(
    fitting: Fitting,
    helping: Sequence[Cured],
    smaller: tuple[Settings, Fitting] | None = None,
    smallest: tuple[Settings, Fitting] | None = None,
) -> answers.Verdict:
    """Returns the verdict on a plan.

    `helping` are settings with which it fits; `smaller` and `smallest` are the next smaller and the smallest
    plan, with the settings that make them.
    """
    plan, graph, target, stack = fitting.plan, fitting.graph, fitting.prepared.target, fitting.count.stack
    at = binding(plan, graph, fitting.prepared.session)
    # the fullest memory or limit, relative to its size, or the stack where only the stack is too small
    fullest = max(fitting.needs, key=lambda need: need.required / max(need.available, 1))
    binds = fullest.name
    if fitting.stack_excess and fits(fitting.needs):
        binds = "stack"
    return {
        "board": target.board.name,
        "title": target.board.title,
        "fits": fitting.fits,
        "needs": list(map(_describe_need, fitting.needs)),
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
        "floats": _floats(fitting),
        "removed": describe(fitting.prepared.simplified) if fitting.prepared.simplified else None,
        "four_bits": describe_four_bits(fitting.prepared.simplified, fitting.prepared.target)
        if fitting.prepared.simplified
        else None,
        "binding_operator": f"{at.place} {graph.op_name(at.op)}" if at.op >= 0 else "",
        "binding_layer": layer_name(graph, at.op) if at.op >= 0 else "",
        "binding_bytes": at.live_bytes,
        "binds": binds,
        "cures": [_describe_cure(one.settings, one.fitting, fitting) for one in helping],
        "smaller": _describe_cure(*smaller, fitting) if smaller else None,
        "smallest": _describe_cure(*smallest, fitting) if smallest else None,
        "advice": [] if fitting.fits else [hint.data() for hint in _list_advice(fitting, at.op, helping)],
    }


def _floats(fitting: Fitting) -> FloatWork | None:
    """Returns what the plan's operators of float32 cost; None if it has no such operators."""
    plan, graph, target = fitting.plan, fitting.graph, fitting.prepared.target
    if not float_operators(graph):
        return None
    kernels = target.kernels_by_name(plan.kernels)
    return float_work(graph, summarize(plan, graph, kernels, target.costs), target)


def _describe_need(need: Need) -> answers.NeedAnswer:
    return {
        "what": need.what,
        "memory": need.memory,
        "name": need.name,
        "required": need.required,
        "available": need.available,
        "excess": need.excess,
        "parts": [{"name": part.name, "bytes": part.bytes} for part in need.parts],
    }


def _describe_cure(settings: Settings, cured: Fitting, original: Fitting) -> answers.Cure:
    """Describes a plan that fits, and compares its cost with that of the original plan."""
    board, before = cured.prepared.target.board.name, original.price["cost"]
    same = board == original.prepared.target.board.name
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


def _list_advice(fitting: Fitting, position: int, helping: Sequence[Cured]) -> list[Hint]:
    """Returns hints that are not settings.

    They are about the board's file and the network, and, if there are no cures, about other boards.
    `position` is the operator with the most live bytes (-1: none).
    """
    board, advice = fitting.prepared.target.board, list[Hint]()
    if fitting.stack_excess:
        advice.append(Hint(f"stack_bytes = {fitting.count.stack} or more in the board's file"))
    arena = {board.arena, board.second}
    over = max((n.excess for n in fitting.needs if n.memory in arena and n.what == "RAM"), default=0)
    if (
        over
        and board.reserved_bytes >= over
        and board.reserved_for_others(board.arena) >= board.reserved_bytes
    ):
        advice.append(Hint(f"reserved_bytes = {board.reserved_bytes - over} or less in the board's file"))
    if position >= 0 and any(n.excess for n in fitting.needs if n.what in ("RAM", "arena limit")):
        graph = fitting.graph
        out = shape(graph.tensors[graph.ops[position].outputs[0]].shape)
        text = f"a smaller input, or fewer channels at {layer_name(graph, position)} (output {out})"
        advice.append(Hint(f"{text}, where most bytes are live"))
    return advice if helping else [*advice, *_suggest_boards(fitting)]


def _suggest_boards(fitting: Fitting) -> list[Hint]:
    """Returns a hint that names the known boards with room for the plan, its weights and the code."""
    parts = Counter[str]()
    for need in fitting.needs:
        parts.update({part.name: part.bytes for part in need.parts})
    code = sum(size for name, size in parts.items() if name.startswith(CODE))
    variables = sum(size for name, size in parts.items() if name.startswith(VARIABLES))
    with_room = []
    for name in board_names():
        board = load_board(name)
        required = Counter({board.arena: fitting.plan.arena_bytes + board.reserved_bytes + parts[AROUND]})
        required.update({board.weights: fitting.flash})
        required.update({board.data: board.stack_bytes + parts[GUARD] + variables + parts[STATE]})
        required.update({board.code: 2 * code})  # another core's code may be larger
        if all(size <= board.memory(memory).size for memory, size in required.items()):
            with_room.append(name)
    return [Hint(f"boards with room for this plan: {', '.join(with_room)}")] if with_room else []
