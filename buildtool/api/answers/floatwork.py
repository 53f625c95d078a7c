"""What a plan's operators of float32 cost."""

from __future__ import annotations

from buildtool.graph.floats import float_operators
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import Graph
from buildtool.plan.summary.summary import Summary
from buildtool.schema.plans import FloatWork
from buildtool.target.types import Target


def float_work(graph: Graph, summary: Summary, target: Target) -> FloatWork | None:
    """Returns the share of the cost of operators that read or write float32; None if there are none."""
    floats = float_operators(graph)
    if not floats:
        return None
    costs = {op: work.cost for region in summary.regions for op, _, work in region.operators}
    whole = sum(region.work.cost for region in summary.regions)
    running = [i for i, op in enumerate(graph.ops) if op.kind not in ALIAS_KINDS]
    return {
        "operators": sum(i in floats for i in running),
        "operators_of_network": len(running),
        "cost_share": sum(costs.get(op, 0.0) for op in floats) / whole if whole else 0.0,
        "float_unit": target.board.core.has_float_unit,
    }
