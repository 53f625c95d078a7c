"""Sections: groups that do not read their input through a window that moves by a whole stride.

Most sections are the elements between a tensor that forks and the join of its readers, as one group. A single
element whose rows follow a table is a section, too.

The tensors inside a section are not read outside of it. Row by row, a section reads only the tensor that
forks. Where each element feeds the next one, with or without a residual, there is no section but a chain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate

from buildtool.base.errors import PlanError
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.branches import INPUT, Branches, Progress, branches
from buildtool.plan.schedule.inner import needs
from buildtool.plan.schedule.receptive import fed_in_parts
from buildtool.plan.search.chain import Elements
from buildtool.plan.types import Group, Scheme

MOST_ELEMENTS = 48  # in one section
NEVER = 1 << 60  # no row is read any more, as a row number


@dataclass(frozen=True)
class Section:
    """A section of elements [first, last]: its group, its row axis from input to output, and its branches.

    `rings`: aligned bytes of the ring buffers between its elements. `read_after[n]`: the lowest input row
    that is still read after n output rows are computed, or NEVER. `read_from[y]`: the lowest input row that
    is read when output row y is written, or later.
    """

    first: int
    last: int
    group: Group
    axis: Axis
    lanes: Branches
    rings: int
    read_after: tuple[int, ...]
    read_from: tuple[int, ...]


def section(e: Elements, last: int) -> Section | None:
    """The smallest section that ends at this element; None if there is none."""
    first = _first_element(e, last)
    if first is None:
        return None
    group, source = Group(e.positions[first : last + 1], Scheme.BRANCHES, 1), e.main[first]
    if first == last:
        group = replace(group, scheme=Scheme.OPERATOR)
    try:
        axis = needs(e.graph, group)[source][0]
        lanes = branches(e.graph, group, source)
    except PlanError:  # branches with different strides
        return None
    if first == last:  # it requests all input rows of its next row at once
        lanes = replace(lanes, pace=lanes.height)
    return _run_section(e, first, last, group, Axis() if isinstance(axis, AxisTable) else axis, lanes)


def _first_element(e: Elements, last: int) -> int | None:
    """The first element of the section that ends at `last`; None if there is none.

    The section reads only one tensor from outside row by row. An element whose rows follow a table is a
    section by itself.
    """
    if e.uneven[last]:
        return last if e.by_rows[last] else None
    if len(e.rows_read[last]) < 2 or not e.by_rows[last]:
        return None
    outside, whole = set(e.rows_read[last]), set(e.read_whole[last])
    for first in range(last - 1, max(-1, last - MOST_ELEMENTS), -1):
        output, op = e.makes[first], e.ops[first]
        if not e.by_rows[first] or fed_in_parts(e.graph, op) or output in e.outputs:
            return None
        if output not in outside or output in whole or max(e.readers[output]) > last:
            return None  # it feeds something else
        outside.remove(output)
        outside.update(e.rows_read[first])
        whole.update(e.read_whole[first])
        if outside == {e.main[first]}:
            return None if all(e.feeds[k] for k in range(first, last)) else first
    return None


def _run_section(e: Elements, first: int, last: int, group: Group, axis: Axis, lanes: Branches) -> Section:
    """Simulates the section's run, and returns the section."""
    progress, count = Progress(lanes), len(lanes.lanes)
    heights = [0] * count
    reads: list[tuple[int, bool, int]] = []  # output rows so far, whether the join reads, input row
    while progress.made[-1] < lanes.lanes[-1].height:
        progress.ask()
        for lane, y0, y1 in progress.advance():
            heights[lane] = max(heights[lane], y1 - min(y0, progress.lowest(lane, y0)))
            joins = lane == count - 1
            rows = (max(0, r.axis.low(y0)) for r in lanes.lanes[lane].reads if r.lane == INPUT)
            reads += [(y0 if joins else progress.made[-1], joins, row) for row in rows]
    tensors = (e.graph.tensors[t] for t in e.makes[first:last])
    rings = (round_up(n * t.row_bytes, e.alignment) for n, t in zip(heights, tensors, strict=False))
    return Section(first, last, group, axis, lanes, sum(rings), *_lowest_reads(reads, lanes))


def _lowest_reads(
    reads: list[tuple[int, bool, int]], lanes: Branches
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Computes `Section.read_after` and `Section.read_from`."""
    height, low = lanes.lanes[-1].height, NEVER
    after, starting = [NEVER] * (height + 1), [NEVER] * height
    for count, joins, row in reversed(reads):
        after[count] = low = min(low, row)
        if joins:
            starting[count] = low
    after = [*accumulate(reversed(after), min)][::-1]
    return tuple(after), tuple(map(min, starting, after[1:]))


def section_progress(section: Section, tall: int) -> tuple[list[int], list[int]]:
    """Returns two lists of row numbers, with an item for each of the `tall` input rows.

    The first one says how many output rows are computed before the row arrives, and the second one which is
    the lowest input row that is still read. A ring is filled some rows at a time. While new rows arrive, it
    must contain all rows from the lowest one that is still read. Rows that the section never reads count as
    already read.
    """
    progress, rows, low = Progress(section.lanes), list[int](), list[int]()
    while progress.made[-1] < section.lanes.lanes[-1].height:
        at = progress.made[-1], progress.lowest(INPUT, tall)
        more = max(0, progress.ask() - len(rows))
        rows += [at[0]] * more
        low += [at[1]] * more
        for _ in progress.advance():
            pass
    rest = tall - len(rows)
    return rows + [progress.made[-1]] * rest, low + [tall] * rest
