"""Analysis: does a model fit a board, what binds, by how much, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from buildtool.emit.image import image_layout
from buildtool.emit.names import shape
from buildtool.errors import BuildtoolError, Hint, Value, to_data
from buildtool.graph.liveness import live_ranges, live_sum_bound
from buildtool.graph.macs import total_macs
from buildtool.graph.types import Graph
from buildtool.modes import Image, InPlace, Objective, Strategy
from buildtool.plan.summary.binding import binding
from buildtool.plan.types import Plan
from buildtool.schema.analysis import AnalysisAnswer, Interface, NetworkFacts, NoPlan, Verdict
from buildtool.service.pipeline.choose import least, nearest
from buildtool.service.pipeline.needs import needs
from buildtool.service.pipeline.options import PlanOptions
from buildtool.service.pipeline.prepare import Prepared, load_network, prepare
from buildtool.service.pipeline.targets import TargetChoice, load_target
from buildtool.service.requests import Analyze
from buildtool.session import Session
from buildtool.target.registry import board_names


def analysis(request: Analyze, session: Session) -> AnalysisAnswer:
    """The answer to an `analyze` request: the network, then a verdict for each board."""
    boards = request.boards or tuple(board_names())
    targets = [load_target(TargetChoice(board, cmsis_nn=request.cmsis_nn)) for board in boards]
    network = load_network(request.model, session)
    return {
        "model": network.model.name,
        "file_bytes": len(network.model.data),
        "operators_in_file": len(network.source.ops),
        "network": _network(network.graph),
        "boards": [_verdict(prepare(network, target, request.options, session)) for target in targets],
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


def _verdict(prepared: Prepared) -> Verdict | NoPlan:
    target = prepared.target
    board, title = target.board.name, target.board.title
    try:
        graph, plan = nearest(prepared)
        flash = image_layout(graph, target.named(plan.kernels)).size
    except BuildtoolError as error:
        return {"board": board, "title": title, "fits": False, "error": to_data(error)}
    found = needs(plan, target, flash, prepared.options)
    at = binding(plan, graph, prepared.session)
    fits = not any(need.excess for need in found)
    return {
        "board": board,
        "title": title,
        "fits": fits,
        "needs": [
            {
                "what": need.what,
                "memory": need.memory,
                "required": need.required,
                "available": need.available,
                "excess": need.excess,
            }
            for need in found
        ],
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
        else [hint.data() for hint in (*_advice(prepared, plan, graph, at.op), *_elsewhere(plan, flash))],
    }


def _binds(found: Sequence[Any]) -> str:
    """The memory that is fullest, relative to its size."""
    return str(max(found, key=lambda need: need.required / max(need.available, 1)).what)


def _advice(prepared: Prepared, plan: Plan, graph: Graph, position: int) -> list[Hint]:
    """What would make the arena smaller."""
    advice = []
    if needs(plan, prepared.target, 0, prepared.options)[0].excess:
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


def _elsewhere(plan: Plan, size: int) -> list[Hint]:
    """The known boards that have room for the plan and its weights."""
    targets = {name: load_target(TargetChoice(name)) for name in board_names()}
    fitting = [
        n for n, target in targets.items() if not any(need.excess for need in needs(plan, target, size))
    ]
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
