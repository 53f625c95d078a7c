"""How much of a tensor a streamed region keeps: rows of rings, columns of windows, accumulators.

Rows of a ring. A group that makes R rows in one go reads t = extent(R) rows of its input; the group
before it makes R' rows in one go, so it may be up to R' - 1 rows ahead: t + R' - 1 rows. Where a
residual addition reads the same tensor, it lags behind the main path by what that path needs ahead
of the row being added; `leads` follows that path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.graph.types import Graph
from buildtool.plan.inner import columns_kept, group_axis, held_whole, made, needs
from buildtool.plan.receptive import Axis, through
from buildtool.plan.types import Group

ACCUMULATOR_BYTES = 4


@dataclass(frozen=True)
class Kept:
    """What is kept of a tensor: `rows` rows of `columns` columns; `size` in bytes."""

    tensor: int
    rows: int
    columns: int
    size: int


def _kept(graph: Graph, tensor: int, row_count: int, column_count: int) -> Kept:
    _, _, _, channels = graph.tensors[tensor].nhwc
    return Kept(tensor, row_count, column_count, row_count * column_count * channels)


def windows(graph: Graph, group: Group) -> list[Kept]:
    """The windows of the tensors between the operators of a group, first to last.

    A tensor that is read outside of the group as well is held whole, and has none.
    """
    if len(group.ops) == 1:
        return []
    along, whole = needs(graph, group), held_whole(graph, group)
    found = []
    for tensor in made(graph, group):
        if tensor in whole:
            continue
        _, height, width, _ = graph.tensors[tensor].nhwc
        row_count = min(height, along[tensor][0].extent(group.rows_per_step))
        column_count = columns_kept(graph, group, tensor, along) if group.hand_off else width
        found.append(_kept(graph, tensor, row_count, min(width, column_count)))
    return found


def main_input(graph: Graph, groups: Sequence[Group], index: int) -> int:
    """The tensor through which a group is fed: the previous group's output, or its first input."""
    first = graph.ops[groups[index].ops[0]]
    if index:
        before = graph.ops[groups[index - 1].ops[-1]].outputs[0]
        if before in first.inputs:
            return before
    return first.inputs[0]


def ring(graph: Graph, groups: Sequence[Group], index: int, ahead: int) -> Kept:
    """The ring at the input of group `index`, filled `ahead` rows at a time."""
    group = groups[index]
    tensor = main_input(graph, groups, index)
    _, height, width, _ = graph.tensors[tensor].nhwc
    needed = group_axis(graph, group).extent(group.rows_per_step)
    for lag in leads(graph, groups, index, tensor):
        needed = max(needed, lag)
    return _kept(graph, tensor, min(height, needed + ahead - 1), width)


def leads(graph: Graph, groups: Sequence[Group], index: int, tensor: int) -> list[int]:
    """Rows of `tensor` (the input of group `index`) made before a later addition is done with one."""
    found = []
    for later in range(index, len(groups)):
        for place, position in enumerate(groups[later].ops):
            op = graph.ops[position]
            if tensor not in op.inputs or (later == index and place == 0):
                continue
            found.append(_lead(graph, groups, index, later, place))
    return found


def _lead(graph: Graph, groups: Sequence[Group], index: int, later: int, place: int) -> int:
    """Follows the main path back from the addition at `place` of group `later` to group `index`."""
    ops = groups[later].ops
    made = through(graph, ops[place + 1 :]).extent(groups[later].rows_per_step)
    ahead = _needed(through(graph, ops[: place + 1]), made)
    for group in reversed(groups[index:later]):
        ahead = _needed(through(graph, group.ops), ahead + group.rows_per_step - 1)
    return ahead


def _needed(axis: Axis, ahead: int) -> int:
    """Rows of input that have to be there for `ahead` rows of output (of stride 1)."""
    return ahead - 1 + axis.kernel - axis.pad


def accumulator_bytes(graph: Graph, position: int) -> int:
    """Bytes of the sums of a global pooling in a streamed region."""
    return ACCUMULATOR_BYTES * graph.tensors[graph.ops[position].inputs[0]].nhwc[3]
