"""Sections: groups that do not read their input through a window that moves by a whole stride.

Most sections are the elements (operators that run) between a tensor that forks and the join of its readers,
as one group. A single element whose rows follow a table is a section, too.

The tensors inside a section are not read outside of it. Row by row, a section reads only the tensor that
forks. Where each element feeds the next one, with or without a residual, there is no section but a chain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import PlanError
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.advances import Ints, branch_advances
from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.branches import INPUT, Branches, branches
from buildtool.plan.schedule.inner import needs
from buildtool.plan.schedule.receptive import fed_in_parts
from buildtool.plan.search.chain import Elements
from buildtool.plan.types import Group, Scheme

MOST_ELEMENTS = 48  # in one section
NEVER = 1 << 60  # no row is read any more, as a row number
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Section:
    """A section of elements [first, last].

    group: as plans describe it.
    axis: the row axis from its input to its output.
    lanes: its operators, which advance together (see `schedule.branches`).
    rings: aligned bytes of the ring buffers between its elements.
    read_after: item n is the lowest input row that is still read after n output rows are computed, or NEVER.
    read_from: item y is the lowest input row that is read when output row y is written, or later.
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
    """Returns the smallest section that ends with element `last`; None if there is no such section."""
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
    """Returns the first element of the section that ends with `last`; None if there is no such section.

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
            return None  # its output is also read elsewhere
        outside.remove(output)
        outside.update(e.rows_read[first])
        whole.update(e.read_whole[first])
        if outside == {e.main[first]}:
            return None if all(e.feeds[k] for k in range(first, last)) else first
    return None


def _run_section(e: Elements, first: int, last: int, group: Group, axis: Axis, lanes: Branches) -> Section:
    """Simulates the run of a section's operators, and returns the section."""
    lines = branch_advances(lanes)
    tensors = (e.graph.tensors[t] for t in e.makes[first:last])
    rings = (
        round_up(_most_rows(lanes, lines, lane) * tensor.row_bytes, e.alignment)
        for lane, tensor in enumerate(tensors)
    )
    return Section(first, last, group, axis, lanes, sum(rings), *_lowest_reads(lanes, lines))


def _most_rows(lanes: Branches, lines: Ints, lane: int) -> int:
    """Returns the most rows of an operator's output that are still to be read after it has made some.

    `lane`: the operator's index in the section. `lines`: all advances of the section, see `branch_advances`.
    """
    at = np.flatnonzero(lines[:, 1] == lane)
    begin, end = lines[at, 2], lines[at, 3]
    return int((end - np.minimum(begin, _lowest(lanes, lines, lane, at, begin))).max(initial=0))


def _lowest(lanes: Branches, lines: Ints, lane: int, at: Numbers, otherwise: Numbers | int) -> Numbers:
    """Returns the lowest row of an operator's output that is still to be read, after each of some advances.

    `lane`: the operator's index in the section, or INPUT for the section's input. `at`: the positions of the
    advances in `lines`. `otherwise`: the result where no row is still to be read.
    """
    low = np.full(len(at), NEVER)
    for reader, other in enumerate(lanes.lanes):
        made = _made(lines, reader, at)
        for read in (one for one in other.reads if one.lane == lane):
            rows = np.maximum(0, read.axis.lows(made))
            low = np.where(made < other.height, np.minimum(low, rows), low)
    return np.where(low < NEVER, low, otherwise)


def _made(lines: Ints, lane: int, at: Numbers) -> Numbers:
    """Returns the rows that an operator has made after each of some advances.

    `lane`: the operator's index in the section. `at`: the positions of the advances in `lines`.
    """
    own = np.flatnonzero(lines[:, 1] == lane)
    made = np.concatenate([np.zeros(1, np.int64), lines[own, 3]])
    return made[np.searchsorted(own, at, side="right")]


def _lowest_reads(lanes: Branches, lines: Ints) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns `Section.read_after` and `Section.read_from`, computed from the section's advances."""
    height, join = lanes.lanes[-1].height, len(lanes.lanes) - 1
    rows = np.full(len(lines), NEVER)  # the lowest input row that each line reads
    for index, lane in enumerate(lanes.lanes):
        at = np.flatnonzero(lines[:, 1] == index)
        for read in (one for one in lane.reads if one.lane == INPUT):
            rows[at] = np.minimum(rows[at], np.maximum(0, read.axis.lows(lines[at, 2])))
    low = np.minimum.accumulate(rows[::-1])[::-1]  # the lowest row that this or a later line reads
    before = _made(lines, join, np.arange(-1, len(lines) - 1))  # output rows before each line
    after, starting = np.full(height + 1, NEVER), np.full(height, NEVER)
    np.minimum.at(after, before, low)
    after = np.minimum.accumulate(after[::-1])[::-1]
    joins = np.flatnonzero(lines[:, 1] == join)
    starting[before[joins]] = low[joins]
    return tuple(after.tolist()), tuple(np.minimum(starting, after[1:]).tolist())


def section_progress(section: Section, tall: int) -> tuple[list[int], list[int]]:
    """Returns two lists of row numbers, with an item for each of the `tall` input rows.

    The first list says how many output rows are computed before the input row arrives. The second list says
    which is the lowest input row that is still read then. A ring is filled some rows at a time. While new
    rows arrive, it must contain all rows from the lowest one that is still read. Rows that the section never
    reads count as already read.
    """
    lanes, lines = section.lanes, branch_advances(section.lanes, asks=True)
    at = np.flatnonzero(lines[:, 0] < 0)
    count = lines[at, 3] - lines[at, 2]
    rows = np.repeat(_made(lines, len(lanes.lanes) - 1, at), count).tolist()
    low = np.repeat(_lowest(lanes, lines, INPUT, at, tall), count).tolist()
    rest = tall - len(rows)
    return rows + [lanes.lanes[-1].height] * rest, low + [tall] * rest
