"""How much of a tensor a streamed region keeps: rows of rings, columns of windows, accumulators."""

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
from buildtool.plan.schedule.bands import input_axis, lines, window_rows
from buildtool.plan.schedule.delivery import delivered_image
from buildtool.plan.schedule.inner import (
    columns_kept,
    inner_tensors,
    needs,
    read_whole,
    remember,
    whole_tensors,
)
from buildtool.plan.schedule.receptive import fed_in_parts
from buildtool.plan.schedule.schedule import Run
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
    """The windows of the tensors between the operators of a group, first to last.

    A tensor that is also read outside of the group is whole and has no window. Branches have rings instead.
    """
    if len(group.ops) == 1 or group.scheme is Scheme.BRANCHES:
        return ()
    return remember(graph, "windows", group, lambda: _windows(graph, group))


def _windows(graph: Graph, group: Group) -> tuple[LineBuffer, ...]:
    along, whole = needs(graph, group), whole_tensors(graph, group)
    of_bands = window_rows(graph, group) if group.scheme is Scheme.BANDS else {}
    buffers = []
    for tensor in (t for t in inner_tensors(graph, group) if t not in whole):
        _, height, width, _ = graph.tensors[tensor].nhwc
        rows = of_bands.get(tensor) or min(height, along[tensor][0].extent(group.rows_per_step))
        columns = columns_kept(graph, group, tensor, along) if group.hand_off else width
        buffers.append(LineBuffer.of(graph, tensor, rows, min(width, columns)))
    return tuple(buffers)


def kept_lines(graph: Graph, group: Group) -> Sequence[LineBuffer]:
    """The rows that a group of bands keeps of the tensors inside it, as buffers of whole rows."""
    return [
        LineBuffer.of(graph, t, rows, graph.tensors[t].nhwc[2]) for t, rows in lines(graph, group).items()
    ]


def rings(graph: Graph, run: Run) -> list[LineBuffer]:
    """The rings of a region: of the tensors between its groups, and of a streamed input image.

    The region's output, and tensors that are read outside of the region, have no ring.
    """
    if not run.advance_count:
        return []  # one operator over whole tensors
    inside, readers = set(run.region.ops), graph.consumers()
    return [
        LineBuffer.of(graph, tensor, rows, graph.tensors[tensor].nhwc[2])
        for tensor, rows in sorted(_rows_needed(graph, run).items())
        if tensor not in graph.outputs and inside.issuperset(readers.get(tensor, (-1,)))
    ]


def _rows_needed(graph: Graph, run: Run) -> dict[int, int]:
    """Tensor -> the largest number of its rows that are needed at the same time.

    When rows of a tensor were made, those are needed that a later advance reads, up to the last one made.
    """
    lines = run.advance_lines
    made: dict[int, tuple[Numbers, bool]] = {}  # tensor -> the advances that make its rows, whether it comes
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
    """The most rows of a tensor that are needed when an advance has made some.

    `lines`, `at`: the advances that make its rows, and their places. An image comes row by row. `reads`: the
    places of advances that read it, and the lowest row that each reads.
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
    """The tensors from outside the group that its operators read, each with its row axis.

    The axis is None for a tensor that is needed as a whole.
    """
    inside = {graph.ops[position].outputs[0] for position in group.ops}
    by_row = ((t, axis) for t, (axis, _) in needs(graph, group).items() if t not in inside)
    if group.scheme is Scheme.BANDS:
        by_row = ((t, input_axis(graph, group, t)) for t, _ in by_row)
    return (*by_row, *((t, None) for t in read_whole(graph, group)))


def accumulator_bytes(graph: Graph, position: int) -> int:
    """Bytes of the sums of a global pooling in a streamed region."""
    return ACCUMULATOR_BYTES * graph.tensors[graph.ops[position].as_seen.inputs[0]].nhwc[3]
