"""The cost of a plan by formulas in instructions, on boards whose costs are in cycles, too."""

from __future__ import annotations

import dataclasses

from buildtool.graph.types import Graph
from buildtool.plan.summary.summary import summarize
from buildtool.plan.types import Plan
from buildtool.target.registry import make_target
from buildtool.target.types import Board


def in_instructions(plan: Plan, graph: Graph, board: Board) -> float:
    """Returns the instructions that a plan executes, as predicted by the formulas of the catalogues."""
    target = make_target(dataclasses.replace(board, pipeline=None))
    regions = summarize(plan, graph, target.kernels_by_name(plan.kernels), target.costs).regions
    return sum(region.work.cost for region in regions)
