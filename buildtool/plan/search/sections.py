"""Sections: groups whose way over their input is no window that moves by a whole stride.

Mostly they are the elements between a tensor that forks and the join of all that it feeds, as one group.
A single element whose rows follow a table is one, too.

What is inside of a section is read nowhere else, and it reads nothing from outside row by row but the
tensor that forks. Where all elements feed the next one, residual or not, there is no section: those
are chains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate

from buildtool.base.errors import PlanError
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.branches import INPUT, Branches, Progress, branches
from buildtool.plan.schedule.inner import needs
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.search.chain import Elements
from buildtool.plan.types import Group, Scheme

MOST_ELEMENTS = 48  # in one section
NEVER = 1 << 60  # no row is read any more


@dataclass(frozen=True)
class Section:
    """Elements [first, last] of a section: its group, the row axis through it, and what its run shows.

    `rings`: aligned bytes of all rows held inside; `lanes`: what runs. By how many rows of the output are
    made: `read_after`, the lowest row of the input that is still read, or NEVER. By row of the output:
    `read_from`, the lowest row of the input that is read when this one is written, or later.
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
    """The smallest section with this last element, if there is one."""
    first = _first_element(e, last)
    if first is None:
        return None
    group, source = Group(e.positions[first : last + 1], Scheme.BRANCHES, 1), e.main[first]
    if first == last:
        group = replace(group, scheme=Scheme.OPERATOR)
    try:
        axis = needs(e.graph, group)[source][0]
        lanes = branches(e.graph, group, source)
    except PlanError:  # ways of different strides
        return None
    if first == last:  # it asks for all that its next row needs at once
        lanes = replace(lanes, pace=lanes.height)
    return _run_section(e, first, last, group, Axis() if isinstance(axis, AxisTable) else axis, lanes)


def _first_element(e: Elements, last: int) -> int | None:
    """The section's first element: from there on, one tensor alone comes from outside row by row.

    An element whose rows follow a table is a section by itself.
    """
    if e.uneven[last]:
        return last if e.by_rows[last] else None
    if len(e.rows_read[last]) < 2 or not e.by_rows[last]:
        return None
    outside, whole = set(e.rows_read[last]), set(e.read_whole[last])
    for first in range(last - 1, max(-1, last - MOST_ELEMENTS), -1):
        made, op = e.makes[first], e.ops[first]
        if not e.by_rows[first] or accumulates(e.graph, op) or made in e.outputs:
            return None
        if made not in outside or made in whole or max(e.readers[made]) > last:
            return None  # it feeds something else
        outside.remove(made)
        outside.update(e.rows_read[first])
        whole.update(e.read_whole[first])
        if outside == {e.main[first]}:
            return None if all(e.feeds[k] for k in range(first, last)) else first
    return None


def _run_section(e: Elements, first: int, last: int, group: Group, axis: Axis, lanes: Branches) -> Section:
    """The section, once it has been run through."""
    progress, count = Progress(lanes), len(lanes.lanes)
    heights = [0] * count
    reads: list[tuple[int, bool, int]] = []  # rows of the output made, whether by it, row of the input
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
    """Section.read_after and .read_from."""
    height, low = lanes.lanes[-1].height, NEVER
    after, starting = [NEVER] * (height + 1), [NEVER] * height
    for made, joins, row in reversed(reads):
        after[made] = low = min(low, row)
        if joins:
            starting[made] = low
    after = [*accumulate(reversed(after), min)][::-1]
    return tuple(after), tuple(map(min, starting, after[1:]))


def section_progress(section: Section, tall: int) -> tuple[list[int], list[int]]:
    """By row of the input, of which there are `tall`: rows of the output that are made before it; the lowest
    row still read.

    A ring is filled some rows at a time. While rows from x on are made, it has to hold all from the lowest
    one that is still read by then. Rows that the section leaves out count as read.
    """
    progress, made, low = Progress(section.lanes), list[int](), list[int]()
    while progress.made[-1] < section.lanes.lanes[-1].height:
        at = progress.made[-1], progress.lowest(INPUT, tall)
        more = max(0, progress.ask() - len(made))
        made += [at[0]] * more
        low += [at[1]] * more
        for _ in progress.advance():
            pass
    rest = tall - len(made)
    return made + [progress.made[-1]] * rest, low + [tall] * rest
