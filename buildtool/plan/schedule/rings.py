"""How much of a tensor a streamed region keeps: rows of rings, columns of windows, accumulators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from buildtool.graph.types import Graph
from buildtool.plan.schedule.axis import Axis
from buildtool.plan.schedule.inner import columns_kept, known, made, needs, read_whole, whole_tensors
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.schedule.schedule import Run
from buildtool.plan.types import Group, Region, Scheme

ACCUMULATOR_BYTES = 4


@dataclass(frozen=True)
class LineBuffer:
    """The last `rows` rows of a tensor, `columns` columns of each, while they are read; `size` in bytes."""

    tensor: int
    rows: int
    columns: int
    size: int


def _line_buffer(graph: Graph, tensor: int, row_count: int, column_count: int) -> LineBuffer:
    size = row_count * column_count * graph.tensors[tensor].pixel_bytes
    return LineBuffer(tensor, row_count, column_count, size)


def windows(graph: Graph, group: Group) -> Sequence[LineBuffer]:
    """The windows of the tensors between the operators of a group, first to last.

    A tensor that is read outside of the group as well is whole, and has none; branches have rings.
    """
    if len(group.ops) == 1 or group.scheme is Scheme.BRANCHES:
        return ()
    return known(graph, "windows", group, lambda: tuple(_windows(graph, group)))


def _windows(graph: Graph, group: Group) -> Iterator[LineBuffer]:
    along, whole = needs(graph, group), whole_tensors(graph, group)
    for tensor in made(graph, group):
        if tensor in whole:
            continue
        _, height, width, _ = graph.tensors[tensor].nhwc
        row_count = min(height, along[tensor][0].extent(group.rows_per_step))
        column_count = columns_kept(graph, group, tensor, along) if group.hand_off else width
        yield _line_buffer(graph, tensor, row_count, min(width, column_count))


def rings(graph: Graph, run: Run) -> list[LineBuffer]:
    """The rings of a region: of the tensors that its groups hand on, and of a streamed image.

    Tensors that something outside of the region reads, and the region's own output, have none.
    """
    rows = _rows_needed(graph, run)
    inside = set(run.region.ops)
    readers = graph.consumers()
    found = []
    for tensor, row_count in sorted(rows.items()):
        if tensor not in graph.outputs and inside.issuperset(readers.get(tensor, (-1,))):
            found.append(_line_buffer(graph, tensor, row_count, graph.tensors[tensor].nhwc[2]))
    return found


def _rows_needed(graph: Graph, run: Run) -> dict[int, int]:
    """Tensor -> the most rows of it that are there at once and not yet read for the last time.

    The run's advances are gone through backwards: what is read after rows were made is known then.
    """
    reads = {
        (index, group.ops): known(graph, "reads", group, partial(_reads, graph, group))
        for index, group in _movers(run.region)
    }
    lowest: dict[int, int] = {}  # tensor -> the lowest row that is still read
    rows: dict[int, int] = {}
    for advance in reversed(run.advances):
        t = graph.inputs[0] if advance.group < 0 else graph.ops[advance.ops[-1]].outputs[0]
        if advance.group < 0 or not accumulates(graph, graph.ops[advance.ops[-1]]):
            begin = advance.y1 - 1 if advance.group < 0 else advance.y0  # an image comes row by row
            count = advance.y1 - min(begin, lowest.get(t, begin))
            rows[t] = max(count, rows.get(t, 0))
        for u, axis in reads.get((advance.group, advance.ops), ()):
            low = max(0, axis.low(advance.y0)) if axis else 0
            lowest[u] = min(low, lowest.get(u, low))
    return rows


def _movers(region: Region) -> Iterator[tuple[int, Group]]:
    """All that advances by itself, as groups, each with the position of the group that it is of."""
    for index, group in enumerate(region.groups):
        if group.scheme is Scheme.BRANCHES:
            yield from ((index, replace(group, ops=(position,))) for position in group.ops)
        else:
            yield index, group


def _reads(graph: Graph, group: Group) -> tuple[tuple[int, Axis | None], ...]:
    """The tensors that a group's operators read from outside of it, and the row axis (None: as a whole)."""
    inside = {graph.ops[position].outputs[0] for position in group.ops}
    by_row = ((t, axis) for t, (axis, _) in needs(graph, group).items() if t not in inside)
    return (*by_row, *((t, None) for t in read_whole(graph, group)))


def accumulator_bytes(graph: Graph, position: int) -> int:
    """Bytes of the sums of a global pooling in a streamed region."""
    return ACCUMULATOR_BYTES * graph.tensors[graph.ops[position].as_seen.inputs[0]].nhwc[3]
