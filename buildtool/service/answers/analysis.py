"""Analysis: does a model fit a board, what binds, by how much, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from buildtool.emit.image import image_layout
from buildtool.emit.names import shape
from buildtool.errors import BuildtoolError, Hint, Value, suggest, to_data
from buildtool.graph.liveness import live_ranges, live_sum_bound
from buildtool.graph.macs import total_macs
from buildtool.modes import Image, InPlace, Objective, Strategy
from buildtool.plan.summary.binding import binding
from buildtool.service.firmware.counting import counted
from buildtool.service.pipeline.choose import least, nearest
from buildtool.service.pipeline.footprint import AROUND, CODE, GUARD, VARIABLES, Footprint
from buildtool.service.pipeline.needs import Need, needs, needs_of
from buildtool.service.pipeline.options import PlanOptions
from buildtool.service.pipeline.prepare import Prepared, load_network, prepare
from buildtool.service.pipeline.targets import TargetChoice, load_target
from buildtool.target.registry import board_names, load_board

if TYPE_CHECKING:
    from buildtool.graph.types import Graph
    from buildtool.plan.types import Plan
    from buildtool.schema.analysis import AnalysisAnswer, Interface, NeedAnswer, NetworkFacts, NoPlan, Verdict
    from buildtool.service.requests import Analyze
    from buildtool.session import Session

SPARE_CODE = 0.05  # of the code that is bounded: where less is left, the firmware is linked


def analysis(request: Analyze, session: Session) -> AnalysisAnswer:
    """The answer to an `analyze` request: the network, then a verdict for each board."""
    boards = request.boards or tuple(board_names())
    asked = TargetChoice(
        "",
        cmsis_nn=request.cmsis_nn,
        threads=request.threads,
        weights_in=request.weights_in,
        requantise=request.requantise,
    )
    choices = [replace(asked, board=board) for board in boards]
    targets = [load_target(choice, session) for choice in choices]
    network = load_network(request.model, session)
    return {
        "model": network.model.name,
        "file_bytes": len(network.model.data),
        "operators_in_file": len(network.source.ops),
        "network": _network(network.graph),
        "boards": [
            _verdict(
                prepare(network, target, request.options, session), network.model.name, request.boards != ()
            )
            for target in targets
        ],
    }


def _network(graph: Graph) -> NetworkFacts:
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
        "live_bound_bytes": bound.bytes,
        "live_bound_operator": f"{op.place} {graph.op_name(bound.position)}" if op else None,
    }


def _interface(graph: Graph, index: int) -> Interface:
    tensor = graph.tensors[index]
    quant = tensor.quant
    return {
        "name": tensor.name,
        "shape": shape(tensor.shape),
        "type": str(tensor.dtype),
        "scale": quant.scale if quant else None,
        "zero_point": quant.zero_point if quant else None,
    }


def _verdict(prepared: Prepared, name: str, is_named: bool) -> Verdict | NoPlan:
    """`is_named`: exact figures are wanted; otherwise an upper bound does that leaves no doubt."""
    target, options = prepared.target, prepared.options
    board, title = target.board.name, target.board.title
    try:
        graph, plan = nearest(prepared)
        flash = image_layout(graph, target.named(plan.kernels)).size
        least_needs = needs(plan, target, flash, options)

        def suffices(bound: Footprint) -> bool:
            above = needs_of(bound, plan, target, flash, options)
            return not is_named and (_fits_surely(above) or not _fits(least_needs))

        count = counted(graph, plan, target, name, suffices, prepared.session)
    except BuildtoolError as error:
        return {"board": board, "title": title, "fits": False, "error": to_data(error)}
    found = least_needs
    if count.footprint is not None:
        found = needs_of(count.footprint, plan, target, flash, options)
    at = binding(plan, graph, prepared.session)
    fits = _fits(found)
    return {
        "board": board,
        "title": title,
        "fits": fits,
        "needs": [_need(need) for need in found],
        "counted": {
            "how": count.how,
            "compiler": count.footprint.compiler if count.footprint else "",
            "note": count.note,
        },
        "strategy": plan.strategy,
        "f": plan.f,
        "arena_bytes": plan.arena_bytes,
        "arena_bound_bytes": plan.arena_bound_bytes,
        "flash_bytes": flash,
        "cost": plan.cost,
        "binding_operator": f"{at.place} {graph.op_name(at.op)}" if at.op >= 0 else "",
        "binding_bytes": at.live_bytes,
        "binds": _binds(found),
        "advice": []
        if fits
        else [
            hint.data()
            for hint in (*_advice(prepared, plan, graph, at.op, found), *_elsewhere(plan, flash, found))
        ],
    }


def _fits(found: Sequence[Need]) -> bool:
    return not any(need.excess for need in found)


def _fits_surely(found: Sequence[Need]) -> bool:
    """Whether a bound fits with room for code that the recorded sizes do not foresee."""
    for need in found:
        code = sum(part.bytes for part in need.parts if part.name.startswith(CODE))
        if need.required + code * SPARE_CODE > need.available:
            return False
    return True


def _need(need: Need) -> NeedAnswer:
    return {
        "what": need.what,
        "memory": need.memory,
        "required": need.required,
        "available": need.available,
        "excess": need.excess,
        "parts": [{"name": part.name, "bytes": part.bytes} for part in need.parts],
    }


def _binds(found: Sequence[Need]) -> str:
    """The memory (or limit) that is fullest, relative to its size."""
    fullest = max(found, key=lambda need: need.required / max(need.available, 1))
    return f"{fullest.what} ({fullest.memory})" if fullest.what in ("RAM", "flash") else fullest.what


def _advice(prepared: Prepared, plan: Plan, graph: Graph, position: int, found: Sequence[Need]) -> list[Hint]:
    """What would make the arena smaller, where its memory or its limit is exceeded."""
    advice = []
    arena = prepared.target.board.arena
    over = max((n.excess for n in found if n.memory == arena and n.what in ("RAM", "arena limit")), default=0)
    if over:
        wanted, least = plan.arena_bytes - over, _least(prepared)
        if least is not None and least.arena_bytes <= wanted:
            advice.append(suggest("the plan of that limit fits", ram=wanted))
        for changed in _cheaper(prepared.options):
            smaller = _least(replace(prepared, options=changed))
            if smaller is not None and smaller.arena_bytes < plan.arena_bytes:
                settings = _difference(prepared.options, changed)
                advice.append(Hint(f"{smaller.arena_bytes:,} bytes, F {smaller.f:.3f}", settings))
        if position >= 0:
            op = graph.ops[position]
            out = shape(graph.tensors[op.outputs[0]].shape)
            text = f"a smaller input, or fewer channels at {op.place} (output {out}), where most is alive"
            advice.append(Hint(text))
    return advice


def _elsewhere(plan: Plan, flash: int, found: Sequence[Need]) -> list[Hint]:
    """The known boards that have room for the plan, its weights and the code, on whatever core that is."""
    brought = Counter[str]()
    for need in found:
        brought.update({part.name: part.bytes for part in need.parts})
    code = sum(size for name, size in brought.items() if name.startswith(CODE))
    variables = sum(size for name, size in brought.items() if name.startswith(VARIABLES))
    fitting = []
    for name in board_names():
        board = load_board(name)
        taken = Counter({board.arena: plan.arena_bytes + board.reserved_bytes + brought[AROUND]})
        taken.update({board.weights: flash})
        taken.update({board.data: board.stack_bytes + brought[GUARD] + variables})
        taken.update({board.code: 2 * code})  # another core's code may be larger
        if all(size <= board.memory(memory).size for memory, size in taken.items()):
            fitting.append(name)
    return [Hint(f"boards with room for this plan: {', '.join(fitting)}")] if fitting else []


def _cheaper(options: PlanOptions) -> list[PlanOptions]:
    """The same options with one restriction lifted."""
    best = replace(
        options, strategy=Strategy.BEST, in_place=InPlace.ROWS, objective=Objective.RAM, segments=""
    )
    found = [best, replace(best, image=Image.STREAM)]
    return [changed for changed in found if changed != options]


def _difference(options: PlanOptions, changed: PlanOptions) -> tuple[tuple[str, Value], ...]:
    """The options to give for `changed`, where it is not what `options` has."""
    return tuple(
        (field.name, getattr(changed, field.name) or None)
        for field in fields(PlanOptions)
        if getattr(changed, field.name) != getattr(options, field.name) and field.name != "objective"
    )


def _least(prepared: Prepared) -> Plan | None:
    """The plan with the least memory, whether the board has it or not; None if there is none."""
    try:
        return least(prepared)[1]
    except BuildtoolError:
        return None
