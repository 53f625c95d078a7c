"""Groups of bands: they make a few columns at a time and keep the rows that neighbouring steps share.

Columns go from operator to operator as in an h-cached group, but no row is made twice. Two neighbouring steps
of a group share rows of the tensors inside it: k - s rows of a tensor whose reader has kernel size k and
stride s. An h-cached group makes these rows again. A group of bands keeps them: as whole rows (buffers of
kind LINES), outside of the window that its kernels see. At each hand-off the kept rows of its columns are
copied from LINES into the window, and the tensor's operator makes its new rows below them. Then the rows that
the next step shares are copied back to LINES, over rows that no step reads any more.

The first steps of a group make no row of its output, but the rows of the tensors inside it that come before
its first row. So its steps begin at a row below 0.

A group may instead swap (scheme SWAPS): each pixel of a kept row is either in the window or in LINES. When
columns come into the window, the columns that leave it take their places in LINES. So no pixel is held twice.
But the window is needed from step to step, so no other group can use its memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from buildtool.graph.types import Graph
from buildtool.plan.schedule.axis import Axis, AxisTable, N, Numbers
from buildtool.plan.schedule.inner import inner_tensors, needs, remember, whole_tensors
from buildtool.plan.schedule.receptive import axes, row_inputs, rows, scatters
from buildtool.plan.types import Group


def bands_objection(graph: Graph, ops: Sequence[int]) -> str:
    """Returns why operators cannot be a group of bands, in words; empty if they can.

    They can if each operator reads only the output of the operator before it row by row, and no other
    operator reads this output.
    """
    group, readers = Group(tuple(ops)), graph.consumers()
    if whole_tensors(graph, group):
        return "an operator outside of it reads a tensor inside it"
    for before, position in pairwise(ops):
        tensor = graph.ops[before].outputs[0]
        if row_inputs(graph, graph.ops[position]) != (tensor,) or readers[tensor] != (position,):
            return "it is not a chain"
        if isinstance(axes(graph, graph.ops[position])[0], AxisTable):
            return "an operator enlarges its input"
    first = graph.ops[ops[0]]
    if len(row_inputs(graph, first)) != 1 or isinstance(axes(graph, first)[0], AxisTable):
        return "its first operator does not read one tensor through a window"
    if scatters(graph, graph.ops[ops[-1]]):
        return "its last operator makes planes"
    return ""


def swaps_objection(graph: Graph, ops: Sequence[int]) -> str:
    """Returns why operators cannot be a group of bands that swaps, in words; empty if they can.

    In such a group every column from the first one to the last one that is made is swapped. So no operator
    may leave out columns.
    """
    across = [axes(graph, graph.ops[position])[1] for position in ops[1:]]
    if any(axis.kernel < axis.stride or axis.pad < 0 for axis in across):
        return "an operator leaves out columns"
    return bands_objection(graph, ops)


def lines(graph: Graph, group: Group) -> Mapping[int, int]:
    """Returns tensor inside a group of bands -> how many of its rows are kept from step to step.

    Tensors without such rows are left out.
    """
    if not group.in_bands:
        return {}
    return remember(graph, "lines", group, partial(_lines, graph, group))


def _lines(graph: Graph, group: Group) -> dict[int, int]:
    readers = (axes(graph, graph.ops[position])[0] for position in group.ops[1:])
    kept = {t: own.kernel - own.stride for t, own in zip(inner_tensors(graph, group), readers, strict=True)}
    return {t: min(rows_, graph.tensors[t].nhwc[1]) for t, rows_ in kept.items() if rows_ > 0}


def input_axis(graph: Graph, group: Group, tensor: int) -> Axis:
    """Returns the row axis from a group's input to its output, without rows that an earlier step has read.

    `group`: a group of bands. `tensor`: its input.
    """
    along, first = needs(graph, group), graph.ops[group.ops[0]]
    return without_repeats(axes(graph, first)[0], along[tensor][0], along[first.outputs[0]][0])


def without_repeats(first: Axis, through: Axis, after: Axis) -> Axis:
    """Returns the row axis of a chain without the rows that its first operator has read in an earlier step.

    first: the first operator's own axis.
    through: the chain's row axis, from its input to its output.
    after: the axis from the first operator's output to the chain's output. Before the chain makes row q of
        its output, the first operator has made after.high(q) rows.
    """
    repeated = through.pad + through.stride - after.kernel * first.stride
    return Axis(through.kernel + repeated - through.pad, through.stride, repeated)


def leading_steps(axes_: Sequence[Axis], rows_per_step: int) -> int:
    """Returns the number of steps of a group of bands before the step that makes its first row.

    `axes_`: the row axes from the tensors inside the group to its output.
    """
    return max(0, *(-(-axis.high(0) // (axis.stride * rows_per_step)) for axis in axes_))


def first_row(graph: Graph, group: Group) -> int:
    """Returns the row with which a group's steps begin: 0, or less in a group of bands."""
    if not group.in_bands:
        return 0
    along = needs(graph, group)
    inside = [along[t][0] for t in inner_tensors(graph, group)]
    return -leading_steps(inside, group.rows_per_step) * group.rows_per_step


def row_ends(graph: Graph, group: Group, ends: N) -> list[N]:
    """Returns for each operator of a group of bands one past the last row that it has made by some time.

    `ends`: the same for the group's last operator; an array with an item for each time. A value of 0 or less
    means that no row is made yet.
    """
    need = np.minimum(rows(graph, graph.ops[group.ops[-1]]), ends)
    found = [need]
    for position in reversed(group.ops[1:]):
        axis, tensor = axes(graph, graph.ops[position])[0], row_inputs(graph, graph.ops[position])[0]
        need = np.minimum(axis.reach(graph.tensors[tensor].nhwc[1]), axis.highs(need))
        found.append(need.astype(ends.dtype))
    return found[::-1]


def band_ranges(graph: Graph, group: Group, y0: N, y1: N) -> tuple[N, N]:
    """Returns the rows [low, high) that each operator makes for rows [y0, y1) of the last one.

    The arrays are as in `schedule.row_ranges`.
    """
    low, high = (np.maximum(0, np.stack(row_ends(graph, group, y), axis=1)) for y in (y0, y1))
    return low, high


def swapped_rows(low: Numbers, high: Numbers, kept: int) -> int:
    """Returns how many rows the window of a tensor needs in a group that swaps.

    This is the most that any step needs: the rows that it makes, and the kept rows above them. `low`, `high`:
    the rows [low, high) that each step makes. `kept`: how many rows are kept from step to step.
    """
    return int((high - np.maximum(0, low - kept)).max())


def copied_rows(low: Numbers, high: Numbers, kept: int) -> Numbers:
    """Returns how many rows are copied into the window in each step, followed by how many are copied back.

    `low`, `high`: the rows [low, high) that each step makes. `kept`: how many rows are kept from step to
    step.
    """
    return np.concatenate((np.minimum(low, kept), np.minimum(high - low, kept)))
