"""Analysis: does a model fit a board, what binds, by how much, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from buildtool.emit.image import image_layout
from buildtool.emit.names import shape
from buildtool.emit.sources import plan_kernels
from buildtool.errors import BuildtoolError
from buildtool.graph.liveness import live_ranges, live_sum_bound
from buildtool.graph.macs import total_macs
from buildtool.graph.types import Graph
from buildtool.plan.summary.binding import binding
from buildtool.plan.types import Plan
from buildtool.service.pipeline.models import load_model, read_graph
from buildtool.service.pipeline.options import PlanOptions
from buildtool.service.pipeline.pipeline import limits, make_ordered_plan, needs, settings
from buildtool.service.pipeline.slow_weights import loads_weights
from buildtool.target.registry import board_names, load_target
from buildtool.target.types import Target


def analysis(spec: str, names: Sequence[str], options: PlanOptions) -> dict[str, Any]:
    """The answer to an `analyze` request: the network, then a verdict for each board."""
    targets = [load_target(name) for name in (names or board_names())]
    model = load_model(spec)
    source, graph = read_graph(model)
    return {
        "model": model.name,
        "file_bytes": len(model.data),
        "operators_in_file": len(source.ops),
        "network": _network(graph),
        "boards": [_verdict(graph, target, options) for target in targets],
    }


def _network(graph: Graph) -> dict[str, Any]:
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


def _interface(graph: Graph, index: int) -> dict[str, Any]:
    tensor = graph.tensors[index]
    quant = tensor.quant
    return {
        "name": tensor.name,
        "shape": shape(tensor.shape),
        "type": str(tensor.dtype),
        "scale": quant.scale if quant else None,
        "zero_point": quant.zero_point if quant else None,
    }


def _verdict(graph: Graph, target: Target, options: PlanOptions) -> dict[str, Any]:
    board = target.board
    verdict: dict[str, Any] = {"board": board.name, "title": board.title}
    try:
        graph, plan = _plan(graph, target, options)
        image_bytes = image_layout(graph, plan_kernels(plan, target)).size
    except BuildtoolError as error:
        return {**verdict, "fits": False, "error": str(error)}
    found = needs(plan, target, image_bytes)
    at = binding(plan, graph)
    fits = not any(need.excess for need in found)
    return {
        **verdict,
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
        "flash_bytes": image_bytes,
        "cost": plan.cost,
        "binding_operator": f"{at.place} {graph.op_name(at.op)}" if at.op >= 0 else "",
        "binding_bytes": at.live_bytes,
        "binds": _binds(found),
        "advice": []
        if fits
        else [*_advice(plan, graph, target, options, at.op), *_elsewhere(plan, image_bytes)],
    }


def _plan(graph: Graph, target: Target, options: PlanOptions) -> tuple[Graph, Plan]:
    """The plan that the options ask for, or the one that comes nearest to the board's memory.

    With the graph in the order of operators that the plan is for.
    """
    alone = options.strategy == "best" and options.order == "given"
    if alone and not loads_weights(target.board):
        from buildtool.plan.search.choose import plan_within

        chosen = plan_within(graph, target, settings(options), limits(target, options))
        if chosen is None:
            chosen = _least(graph, target, options)
        if chosen is not None:
            return graph, chosen
    return make_ordered_plan(graph, target, options)


def _binds(found: Sequence[Any]) -> str:
    """The memory that is fullest, relative to what there is of it."""
    return str(max(found, key=lambda need: need.required / max(need.available, 1)).what)


def _advice(plan: Plan, graph: Graph, target: Target, options: PlanOptions, position: int) -> list[str]:
    """What would bring the arena down."""
    advice = []
    if needs(plan, target, 0)[0].excess:
        for changed in _cheaper(options):
            smaller = _least(graph, target, changed)
            if smaller is not None and smaller.arena_bytes < plan.arena_bytes:
                what = ", ".join(_difference(options, changed))
                advice.append(f"{what}: {smaller.arena_bytes:,} bytes, F {smaller.f:.3f}")
        if position >= 0:
            op = graph.ops[position]
            out = shape(graph.tensors[op.outputs[0]].shape)
            advice.append(
                f"a smaller input, or fewer channels at {op.place} (output {out}), where most is alive"
            )
    return advice


def _elsewhere(plan: Plan, size: int) -> list[str]:
    """The known boards that have room for the plan and its weights."""
    fitting = [n for n in board_names() if not any(need.excess for need in needs(plan, load_target(n), size))]
    return [f"boards with room for this plan: {', '.join(fitting)}"] if fitting else []


def _cheaper(options: PlanOptions) -> list[PlanOptions]:
    """The same options with one restriction lifted."""
    best = replace(options, strategy="best", in_place="rows", objective="ram")
    found = [best, replace(best, image="stream")]
    return [changed for changed in found if changed != options]


def _difference(options: PlanOptions, changed: PlanOptions) -> list[str]:
    """As on the command line."""
    return [
        f"--{f.name.replace('_', '-')} {getattr(changed, f.name)}"
        for f in fields(PlanOptions)
        if getattr(changed, f.name) != getattr(options, f.name) and f.name != "objective"
    ]


def _least(graph: Graph, target: Target, options: PlanOptions) -> Plan | None:
    """The plan with the least memory, whether the board has it or not; None if there is none."""
    from buildtool.plan.search.choose import Limits, best_plan

    without = Limits(1 << 62, options.max_f, options.max_cost, "ram")
    try:
        return best_plan(graph, target, settings(options), without)
    except BuildtoolError:
        return None
