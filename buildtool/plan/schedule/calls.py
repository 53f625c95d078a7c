"""How often a region calls its kernels on which windows, without going through its steps.

All steps of a group make windows of the same columns, hand-off by hand-off; so what an operator of it
computes is every one of some ranges of rows with every one of some ranges of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.base.modes import Image
from buildtool.graph.types import Graph
from buildtool.plan.schedule.axis import Axis
from buildtool.plan.schedule.branches import Branches, Progress, branches
from buildtool.plan.schedule.inner import fed_by, known, needs
from buildtool.plan.schedule.receptive import columns, rows
from buildtool.plan.schedule.rings import windows
from buildtool.plan.schedule.schedule import column_ends, first_column, row_ranges
from buildtool.plan.types import Group, Region, Scheme
from buildtool.target.costs import Rings

Numbers = npt.NDArray[np.int64]


class Ranges(NamedTuple):
    """Half-open ranges along one axis, the n-th from low[n] to high[n]; some may be empty."""

    low: Numbers
    high: Numbers

    def read(self, axis: Axis, size: int) -> Ranges:
        """What has to be there of an input of `size` for each of the ranges."""
        return Ranges(np.maximum(0, axis.lows(self.low)), np.minimum(size, axis.highs(self.high)))

    @property
    def length(self) -> int:
        """The sum of the ranges' lengths."""
        return int((self.high - self.low).sum())

    def without_empty(self) -> Ranges:
        """The ranges that are not empty."""
        kept = self.low < self.high
        return self if kept.all() else Ranges(self.low[kept], self.high[kept])


class Calls(NamedTuple):
    """The calls of an operator: every range of rows with every range of columns, none of them empty.

    `rings`: the columns that are kept of what it reads and writes.
    """

    rows: Ranges
    columns: Ranges
    rings: Rings = Rings()

    @property
    def times(self) -> int:
        """The number of kernel calls."""
        return len(self.rows.low) * len(self.columns.low)

    @property
    def pixels(self) -> int:
        """The number of pixels that all calls make, repetitions included."""
        return self.rows.length * self.columns.length


def in_steps(made: int, step: int) -> Ranges:
    """The ranges of `step` rows at a time that make so many."""
    low = np.arange(0, made, step)
    return Ranges(low, np.minimum(low + step, made))


def gained(ends: Numbers) -> Ranges:
    """The columns that each hand-off adds, of where an operator has to have come by then."""
    done = np.maximum.accumulate(np.maximum(ends, 0))
    return Ranges(np.concatenate((np.zeros(1, np.int64), done[:-1])), done)


def all_of(size: int) -> Ranges:
    """The one range that covers everything."""
    return Ranges(np.array([0]), np.array([size]))


def _group_calls(graph: Graph, group: Group, made: int) -> dict[int, Calls]:
    """Operator -> its calls, of a group that makes the first `made` rows of its output."""
    found: dict[int, Calls] = {}
    width, step = columns(graph, graph.ops[group.ops[-1]]), in_steps(made, group.rows_per_step)
    hand_off = group.hand_off or width
    low, high = row_ranges(group, graph, step.low, step.high)
    ends = column_ends(group, graph, np.arange(first_column(group, graph), width, hand_off) + hand_off)
    held = {k.tensor: k.columns for k in windows(graph, group)} if group.hand_off else {}
    for place, position in enumerate(group.ops):
        op = graph.ops[position]
        kept = Rings(max((held.get(t, 0) for t in op.inputs), default=0), held.get(op.outputs[0], 0))
        own = Ranges(low[:, place], high[:, place]).without_empty()
        found[position] = Calls(own, gained(ends[place]).without_empty(), kept)
    return found


def branch_calls(lanes: Branches, widths: Sequence[int], made: int) -> Iterator[tuple[int, Calls]]:
    """The same of a group whose operators advance together; `widths`: of each lane's output."""
    made_by: list[list[tuple[int, int]]] = [[] for _ in lanes.lanes]
    progress = Progress(lanes)
    while progress.made[-1] < made:
        progress.ask()
        for lane, y0, y1 in progress.advance():
            made_by[lane].append((y0, y1))
    for lane_, width, ranges in zip(lanes.lanes, widths, made_by, strict=True):
        low, high = np.array(ranges, np.int64).reshape(-1, 2).T
        yield lane_.position, Calls(Ranges(low, high), all_of(width))


class RegionCalls(NamedTuple):
    """What a region does: the calls of each of its operators, and the rows of the image that it waits for."""

    operators: Mapping[int, Calls]
    delivered: int


def region_calls(graph: Graph, region: Region, image: str) -> RegionCalls:
    """The calls of a region's operators, in their order."""
    fed = image == Image.STREAM and graph.inputs[0] in graph.ops[region.ops[0]].inputs
    if not region.is_streamed:
        (position,) = region.ops
        _, height, width, _ = graph.tensors[graph.ops[position].outputs[0]].nhwc
        calls = Calls(all_of(height), all_of(width))
        return RegionCalls({position: calls}, graph.tensors[graph.inputs[0]].nhwc[1] if fed else 0)
    found: dict[int, Calls] = {}
    wanted = rows(graph, graph.ops[region.ops[-1]])
    for index in reversed(range(len(region.groups))):
        group = region.groups[index]
        source = fed_by(graph, region.groups, index)
        if group.scheme is Scheme.BRANCHES:
            lanes = branches(graph, group, source)
            widths = [columns(graph, graph.ops[p]) for p in group.ops]
            found.update(branch_calls(lanes, widths, wanted))
            wanted = lanes.wanted(wanted)[-1]
        else:
            height = rows(graph, graph.ops[group.ops[-1]])
            made = min(height, -(-wanted // group.rows_per_step) * group.rows_per_step)
            found.update(known(graph, "calls", (group, made), partial(_group_calls, graph, group, made)))
            axis = needs(graph, group)[source][0]
            wanted = max(0, min(graph.tensors[source].nhwc[1], axis.high(made)))
    fed = image == Image.STREAM and fed_by(graph, region.groups, 0) == graph.inputs[0]
    return RegionCalls({p: found[p] for p in region.ops}, wanted if fed else 0)
