"""What a plan's slow operators cost: those of float32, and those that run on plain kernels.

Plain kernels run on every core; they are the last family in the board's list.
"""

from __future__ import annotations

from collections.abc import Collection

from buildtool.graph.floats import float_operators
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import Graph
from buildtool.plan.summary.summary import Summary
from buildtool.schema.plans import FloatWork, PlainWork
from buildtool.target.types import Target


def float_work(graph: Graph, summary: Summary, target: Target) -> FloatWork | None:
    """Returns the cost share of the operators that read or write float32; None if there are no such
    operators.
    """
    floats = float_operators(graph)
    if not floats:
        return None
    running = _running(graph)
    return {
        "operators": len(floats.intersection(running)),
        "operators_of_network": len(running),
        "cost_share": _cost_share(summary, floats),
        "float_unit": target.board.core.has_float_unit,
    }


def plain_work(graph: Graph, kernels: tuple[str, ...], summary: Summary, target: Target) -> PlainWork | None:
    """Returns the cost share of the integer operators that run on plain kernels.

    `kernels` has the name of the plan's kernel for each operator. None if the core has only plain kernels, or
    no operator runs on one.
    """
    *faster, last = target.board.core.families
    variants = target.kernels_by_name(kernels)
    plain = [
        position
        for position, kernel in enumerate(variants)
        if kernel is not None and kernel.sources[0].startswith(f"{last}/")
    ]
    plain = sorted(set(plain) - float_operators(graph))
    if not faster or not plain:
        return None
    return {
        "operators": plain,
        "operators_of_network": len(_running(graph)),
        "cost_share": _cost_share(summary, plain),
    }


def _running(graph: Graph) -> list[int]:
    """Returns the positions of the operators for which code runs."""
    return [position for position, op in enumerate(graph.ops) if op.kind not in ALIAS_KINDS]


def _cost_share(summary: Summary, operators: Collection[int]) -> float:
    """Returns the operators' share of the plan's cost, from 0 to 1."""
    costs = {op: work.cost for region in summary.regions for op, _, work in region.operators}
    whole = sum(region.work.cost for region in summary.regions)
    return sum(costs.get(op, 0.0) for op in operators) / whole if whole else 0.0
