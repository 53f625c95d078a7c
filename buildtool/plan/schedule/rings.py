"""How much of a tensor a streamed region keeps: rows of rings, windows, sums of poolings.

A ring is a line buffer between two groups. A window has some columns of some rows of a tensor inside a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from buildtool.base.distinct import distinct
from buildtool.graph.types import Graph
from buildtool.plan.schedule.advances import Ints
from buildtool.plan.schedule.axis import Axis
from buildtool.plan.schedule.bands import first_row, input_axis, lines, swapped_rows
from buildtool.plan.schedule.delivery import delivered_image
from buildtool.plan.schedule.inner import inner_tensors, needs, read_whole, remember, whole_tensors
from buildtool.plan.schedule.pace import pace
from buildtool.plan.schedule.ranges import Ranges, held
from buildtool.plan.schedule.receptive import axes, fed_in_parts, row_inputs
from buildtool.plan.schedule.schedule import Run, column_ranges, row_ranges
from buildtool.plan.types import SOURCE, Group, Scheme

ACCUMULATOR_BYTES = 4
Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class LineBuffer:
    """A buffer for the last `rows` rows of a tensor, with `columns` columns of each. `size` is in bytes."""

    tensor: int
    rows: int
    columns: int
    size: int

    @staticmethod
    def of(graph: Graph, tensor: int, rows: int, columns: int) -> LineBuffer:
        """Returns the line buffer with its size computed."""
        return LineBuffer(tensor, rows, columns, rows * columns * graph.tensors[tensor].pixel_bytes)


def windows(graph: Graph, group: Group) -> Sequence[LineBuffer]:
    """Returns the windows of the tensors between the operators of a group, first to last.

    A tensor that is also read outside of the group is whole and has no window. Groups of branches have rings
    instead of windows. The windows of `lasting_windows` are in the result as well.
    """
    if len(group.ops) == 1 or group.scheme is Scheme.BRANCHES:
        return ()
    return remember(graph, "windows", group, lambda: _windows(graph, group))


def _windows(graph: Graph, group: Group) -> tuple[LineBuffer, ...]:
    own = pace(graph, group)
    steps = own.steps(own.height, first_row(graph, group))
    made = [Ranges(*both) for both in zip(*(r.T for r in row_ranges(group, graph, *steps)), strict=True)]
    calls, whole, buffers = column_ranges(group, graph), whole_tensors(graph, group), list[LineBuffer]()
    kept = lines(graph, group) if group.scheme is Scheme.SWAPS else {}
    for place, tensor in enumerate(inner_tensors(graph, group)):
        if tensor in whole:
            continue
        most_rows = max(1, made[place].longest)
        if group.in_bands:
            most_rows = held(made[place], _readers(graph, group, tensor, 0, made))
        if tensor in kept:
            most_rows = max(most_rows, swapped_rows(*made[place], kept[tensor]))
        most_columns = held(calls[place], _readers(graph, group, tensor, 1, calls))
        buffers.append(LineBuffer.of(graph, tensor, most_rows, most_columns))
    return tuple(buffers)


def _readers(
    graph: Graph, group: Group, tensor: int, side: int, made: Sequence[Ranges]
) -> list[tuple[Axis, Ranges]]:
    """Returns for each reader of a tensor in a group its axis, and the ranges that it makes along this axis.

    `side`: 0 for rows, 1 for columns. `made`: the ranges of each operator of the group.
    """
    both = zip((graph.ops[position] for position in group.ops), made, strict=True)
    return [(axes(graph, op)[side], own) for op, own in both if tensor in row_inputs(graph, op)]


def kept_lines(graph: Graph, group: Group) -> Sequence[LineBuffer]:
    """Returns the rows that a group of bands keeps outside of its windows, for the tensors inside the group.

    A group that copies keeps whole rows. In a group that swaps (see `bands`), as many columns of these rows
    as the window has are in the window, and only the others are outside. Tensors without such columns are
    left out.
    """
    kept = lines(graph, group)
    if group.scheme is not Scheme.SWAPS:
        return [LineBuffer.of(graph, t, rows_, graph.tensors[t].nhwc[2]) for t, rows_ in kept.items()]
    made = dict(zip(inner_tensors(graph, group), column_ranges(group, graph), strict=False))
    outside = {w.tensor: int(made[w.tensor].high.max()) - w.columns for w in lasting_windows(graph, group)}
    return [LineBuffer.of(graph, t, kept[t], columns) for t, columns in outside.items() if columns > 0]


def lasting_windows(graph: Graph, group: Group) -> Sequence[LineBuffer]:
    """Returns the windows needed from step to step: those of tensors with kept rows, if the group swaps.

    In such a group (see `bands`) a part of each kept row is in the window. For other groups the result is
    empty.
    """
    kept = lines(graph, group) if group.scheme is Scheme.SWAPS else {}
    return [window for window in windows(graph, group) if window.tensor in kept] if kept else []


def rings(graph: Graph, run: Run) -> list[LineBuffer]:
    """Returns the rings of a region, and its windows that last from step to step.

    Rings belong to the tensors between the region's groups and to a streamed input image. The region's
    output, and tensors that are read outside of the region, have no ring.
    """
    if not run.advance_count:
        return []  # one operator over whole tensors
    inside, readers = set(run.region.ops), graph.consumers()
    between = [
        LineBuffer.of(graph, tensor, kept, graph.tensors[tensor].nhwc[2])
        for tensor, kept in sorted(_rows_needed(graph, run).items())
        if tensor not in graph.outputs and inside.issuperset(readers.get(tensor, (-1,)))
    ]
    return between + [window for group in run.region.groups for window in lasting_windows(graph, group)]


def _rows_needed(graph: Graph, run: Run) -> dict[int, int]:
    """Returns tensor -> the largest number of its rows that are needed at the same time.

    After an advance, the needed rows go from the lowest one that a later advance reads to the last one made.
    """
    lines = run.advance_lines
    made: dict[int, tuple[Numbers, bool]] = {}  # tensor -> advances that make its rows, is it delivered
    reads: dict[int, list[tuple[Numbers, Numbers]]] = {}  # tensor -> advances, and the lowest row each reads
    for last in distinct(lines[:, 1]).values.tolist():
        at = np.flatnonzero(lines[:, 1] == last)
        if last == SOURCE:
            made[delivered_image(graph).tensor] = at, True
            continue
        index = int(lines[at[0], 0])
        group = run.region.groups[index]
        one = replace(group, ops=run.advancing(index, last))
        if not fed_in_parts(graph, graph.ops[last]):
            made[graph.ops[last].outputs[0]] = at, False
        for u, axis in remember(graph, "reads", one, partial(_reads, graph, one)):
            low = np.maximum(0, axis.lows(lines[at, 2])) if axis else np.zeros_like(lines[at, 2])
            reads.setdefault(u, []).append((at, low))
    return {t: _most_rows(lines[at], is_image, at, reads.get(t, [])) for t, (at, is_image) in made.items()}


def _most_rows(lines: Ints, is_image: bool, at: Numbers, reads: Sequence[tuple[Numbers, Numbers]]) -> int:
    """Returns the most rows of a tensor that are needed after an advance has made some of them.

    `lines`: the advances that make its rows. `at`: their places among all advances. `is_image`: whether it is
    an input image, which is delivered row by row. `reads`: pairs (places of the advances that read the
    tensor, the lowest row that each of them reads).
    """
    begin = lines[:, 3] - 1 if is_image else lines[:, 2]
    lowest = begin
    if reads:
        places = np.concatenate([place for place, _ in reads])
        order = np.argsort(places, kind="stable")
        low = np.concatenate([row for _, row in reads])[order]
        from_here = np.minimum.accumulate(low[::-1])[::-1]  # of each read and all later ones
        following = np.searchsorted(places[order], at, side="right")
        later = np.append(from_here, np.iinfo(np.int32).max)[following]
        lowest = np.minimum(begin, later)
    return int((lines[:, 3] - lowest).max())


def _reads(graph: Graph, group: Group) -> tuple[tuple[int, Axis | None], ...]:
    """Returns the tensors from outside the group that its operators read, each with its row axis.

    The axis is None for a tensor of which all rows are needed.
    """
    inside = {graph.ops[position].outputs[0] for position in group.ops}
    by_row = ((t, axis) for t, (axis, _) in needs(graph, group).items() if t not in inside)
    if group.in_bands:
        by_row = ((t, input_axis(graph, group, t)) for t, _ in by_row)
    return (*by_row, *((t, None) for t in read_whole(graph, group)))


def accumulator_bytes(graph: Graph, position: int) -> int:
    """Returns the bytes of the sums of a global pooling in a streamed region."""
    return ACCUMULATOR_BYTES * graph.tensors[graph.ops[position].as_seen.inputs[0]].nhwc[3]
