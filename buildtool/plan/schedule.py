"""The one order of execution: what the checker, the counters and the emitted C all follow."""

from __future__ import annotations

from collections.abc import Iterable

from buildtool.errors import PlanError
from buildtool.graph.types import Graph
from buildtool.plan.types import Group, Region, Scheme, Step


def schedule(region: Region, graph: Graph) -> tuple[Step, ...]:
    """The steps of one region, in order; rows and columns as in Tensor.nhwc of the operator's first output.

    Raises PlanError for a region that no scheme covers.
    """
    if len(region.groups) != 1:
        raise PlanError(f"a region of {len(region.groups)} groups has no schedule")
    group = region.groups[0]
    if group.scheme is Scheme.OPERATOR:
        return _operator_steps(group, graph)
    raise PlanError(f"groups of scheme '{group.scheme}' have no schedule")


def plan_steps(regions: Iterable[Region], graph: Graph) -> tuple[Step, ...]:
    """The steps of all regions, one after the other; a lifetime's unit is an index into them."""
    return tuple(step for region in regions for step in schedule(region, graph))


def _operator_steps(group: Group, graph: Graph) -> tuple[Step, ...]:
    """One operator, top to bottom over its full width."""
    if len(group.ops) != 1 or not 0 <= group.ops[0] < len(graph.ops):
        raise PlanError(f"a group of scheme 'operator' has one operator of the graph, not {list(group.ops)}")
    position = group.ops[0]
    _, rows, columns, _ = graph.tensors[graph.ops[position].outputs[0]].nhwc
    if not group.rows_per_step:
        return (Step(position, 0, rows, 0, columns),)
    height = group.rows_per_step
    return tuple(Step(position, y, min(y + height, rows), 0, columns) for y in range(0, rows, height))
