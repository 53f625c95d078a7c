"""How much of a tensor a streamed region keeps: rows of rings, columns of windows, accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from buildtool.graph.types import Graph
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
from buildtool.plan.types import Group, Scheme

ACCUMULATOR_BYTES = 4


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

    The loop goes backwards over the run's advances, so that all reads after a row was made are already known.
    """
    reads = {}  # by group and the operators that advance by themselves
    for index, group in enumerate(run.region.groups):
        alone = [replace(group, ops=(position,)) for position in group.ops]
        for one in alone if group.scheme is Scheme.BRANCHES else [group]:
            reads[index, one.ops] = remember(graph, "reads", one, partial(_reads, graph, one))
    lowest: dict[int, int] = {}  # tensor -> the lowest row that is still read
    rows: dict[int, int] = {}
    for advance in reversed(run.advances):
        is_image = advance.group < 0
        t = delivered_image(graph).tensor if is_image else graph.ops[advance.ops[-1]].outputs[0]
        if is_image or not fed_in_parts(graph, graph.ops[advance.ops[-1]]):
            begin = advance.y1 - 1 if is_image else advance.y0  # an image comes row by row
            rows[t] = max(advance.y1 - min(begin, lowest.get(t, begin)), rows.get(t, 0))
        for u, axis in reads.get((advance.group, advance.ops), ()):
            low = max(0, axis.low(advance.y0)) if axis else 0
            lowest[u] = min(low, lowest.get(u, low))
    return rows


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
