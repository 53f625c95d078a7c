"""The order of execution, which the checker, the counters and the emitted C follow.

A streamed region is driven from its end: before a group makes some rows, the group before it makes the rows
that these need. The emitted C has the same loops, one inside the other. A group of branches asks for its
input a few rows at a time (see `branches`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.base.distinct import distinct
from buildtool.base.errors import PlanError
from buildtool.base.modes import Image
from buildtool.graph.macs import pixel_macs
from buildtool.graph.types import Graph
from buildtool.plan.schedule.advances import Ints, Link, Walk
from buildtool.plan.schedule.axis import N
from buildtool.plan.schedule.bands import band_ranges, bands_objection, first_row, swaps_objection
from buildtool.plan.schedule.branches import branches
from buildtool.plan.schedule.delivery import delivered_image, drives
from buildtool.plan.schedule.inner import (
    driving_tensor,
    forks_over_padding,
    inner_tensors,
    needs,
    remember,
    together,
    whole_tensors,
)
from buildtool.plan.schedule.pace import pace
from buildtool.plan.schedule.ranges import Ranges, column_gains
from buildtool.plan.schedule.receptive import axes, columns, row_inputs
from buildtool.plan.types import SOURCE, Group, Region, Scheme

Columns = npt.NDArray[np.int64]
Steps = Ints  # one row per step, with the fields of types.Step in their order
FEW = 64  # up to this many lines are not compressed
MOST_AT_ONCE = 1 << 16  # the number of steps, roughly, that are computed, packed and unpacked together


class Advance(NamedTuple):
    """Rows [y0, y1) that a group of a streamed region makes at a time.

    group: the group's index in the region; -1 if rows of the input image are delivered.
    ops: the operators that run. The last one of them makes these rows.
    """

    group: int
    ops: tuple[int, ...]
    y0: int
    y1: int


class Activity(NamedTuple):
    """What an operator does in a run of a region.

    first, last: its first and last step.
    columns: the most columns of a step.
    pixels: of all its steps, repetitions included.
    """

    first: int
    last: int
    columns: int
    pixels: int


@dataclass(frozen=True, eq=False)
class Run:
    """How a region runs: its steps, and the advances of its groups if it is streamed, both in order.

    Rows and columns of a step are those of Tensor.nhwc of the operator's first output. `count` is the number
    of steps. Both lists are stored compressed and are unpacked at each read, as long plans hold thousands of
    runs. Steps are stored in portions, each with its number of steps: a large image has millions of them.
    """

    region: Region
    count: int
    packed_steps: tuple[tuple[int, bytes], ...]
    advance_count: int
    packed_advances: bytes

    @staticmethod
    def of(region: Region, advances: Ints, portions: Iterable[Steps]) -> Run:
        """Returns a run with these advances and steps.

        `advances`: an array with a row (group, last operator, y0, y1) for each advance. `portions`: the
        steps, in order.
        """
        packed = tuple((len(steps), _pack(steps)) for steps in portions)
        return Run(region, sum(count for count, _ in packed), packed, len(advances), _pack(advances))

    @property
    def steps(self) -> Steps:
        """Returns the steps as an array, one row for each. For large images it needs much memory."""
        return np.concatenate([np.empty((0, 5), np.int32), *(steps for _, steps in self.portions())])

    def portions(self) -> Iterator[tuple[int, Steps]]:
        """Yields the steps in portions, each with the number of its first step."""
        begin = 0
        for count, packed in self.packed_steps:
            yield begin, _unpack(packed, count, 5)
            begin += count

    @property
    def advances(self) -> tuple[Advance, ...]:
        """Returns the advances, in order; empty if the region is not streamed."""
        lines = self.advance_lines.tolist()
        return tuple(Advance(group, self.advancing(group, last), y0, y1) for group, last, y0, y1 in lines)

    @property
    def advance_lines(self) -> Ints:
        """Returns the advances as an array with the columns group, last operator, y0, y1."""
        return _unpack(self.packed_advances, self.advance_count, 4)

    def advancing(self, group: int, last: int) -> tuple[int, ...]:
        """Returns the operators that run in an advance of a group.

        `group`: the group's index, -1 for deliveries of rows. `last`: the operator that ends the advance.
        """
        alone = (
            group < 0 or self.region.groups[group].scheme is Scheme.BRANCHES
        )  # operators advance by themselves
        return (last,) if alone else self.region.groups[group].ops

    @cached_property
    def activities(self) -> Mapping[int, Activity]:
        """Returns operator -> its activity, in ascending order. SOURCE stands for the deliveries of rows."""
        if not self.count:
            return {}
        if self.count == 1:
            ((only, y0, y1, x0, x1),) = self.steps.tolist()
            return {only: Activity(0, 0, x1 - x0, (y1 - y0) * (x1 - x0))}
        lowest, highest = min(SOURCE, *self.region.ops), max(self.region.ops)
        widest, area = np.zeros((2, highest - lowest + 1), np.int64)
        first, last = np.full((2, len(area)), -1)
        for begin, some in self.portions():
            ops, y0, y1, x0, x1 = some.T
            place, width = ops - lowest, x1 - x0  # numbered from 0, as indices
            area += np.bincount(place, (y1 - y0).astype(np.int64) * width, len(area)).astype(np.int64)
            np.maximum.at(widest, place, width)
            numbers, found = np.arange(begin, begin + len(some)), np.full(len(area), -1)
            last[place] = numbers  # of several values for one index the last one remains
            found[place[::-1]] = numbers[::-1]
            first = np.where(first < 0, found, first)
        lines = zip(*(field.tolist() for field in (first, last, widest, area)), strict=True)
        every = [Activity(*line) for line in lines]
        return {lowest + i: every[i] for i in np.flatnonzero(last >= 0).tolist()}


def count_executed_macs(graph: Graph, run: Run) -> int:
    """Returns the multiply-accumulates of a run, repetitions included."""
    return sum(pixel_macs(graph, graph.ops[op], a.pixels) for op, a in run.activities.items() if op != SOURCE)


def _pack(lines: Ints) -> bytes:
    """Packs an array as bytes, column by column; compressed if it has more than FEW rows."""
    if len(lines) <= FEW:
        return lines.T.tobytes()
    packer = zlib.compressobj(1)
    packed = [packer.compress(column.tobytes()) for column in lines.T]
    return b"".join((*packed, packer.flush()))


def _unpack(packed: bytes, count: int, width: int) -> Ints:
    """Unpacks an array of `count` rows and `width` columns that `_pack` packed."""
    plain = packed if count <= FEW else zlib.decompress(packed, bufsize=max(1, 4 * width * count))
    return np.frombuffer(plain, np.int32).reshape(width, count).T


def run(region: Region, graph: Graph, image: str = Image.OVERWRITABLE) -> Run:
    """Returns the run of a region. Raises PlanError for a region that no scheme can run.

    The first region that reads a streamed input image (`image` is "stream") delivers its rows.
    """
    if not region.groups:
        raise PlanError("a region without groups has no schedule")
    if region.is_streamed:
        chain = links(region, graph)
        advances = _advances(chain, graph, image)
        return Run.of(region, advances, _steps_of(chain, graph, advances))
    (group,) = region.groups
    position = _last(group, graph)
    if len(group.ops) != 1 or group.scheme is not Scheme.OPERATOR:
        raise PlanError("only a single operator runs over all rows in one step", operator=str(group.ops))
    _, height, width, _ = graph.tensors[graph.ops[position].outputs[0]].nhwc
    steps = np.array([(position, 0, height, 0, width)], np.int32)
    if image == Image.STREAM and position == delivered_image(graph).first:
        delivered = _delivery(graph, np.arange(_image_rows(graph), dtype=np.int32))
        steps = np.concatenate([delivered, steps])
    return Run.of(region, np.empty((0, 4), np.int32), [steps])


def _last(group: Group, graph: Graph) -> int:
    """Returns a group's last operator.

    Raises PlanError for an empty group, and for an operator that the graph does not have.
    """
    if not group.ops or not all(0 <= op < len(graph.ops) for op in group.ops):
        raise PlanError(f"a group names operators {list(group.ops)}, which the graph does not have")
    return group.ops[-1]


def links(region: Region, graph: Graph) -> list[Link]:
    """Returns the groups of a streamed region, in order, with the data of their loops.

    Raises PlanError for a group that cannot run under its scheme.
    """
    chain = []
    for index, group in enumerate(region.groups):
        is_invalid = (len(group.ops) == 1) != (group.scheme is Scheme.OPERATOR) or group.rows_per_step < 1
        is_invalid |= group.scheme is Scheme.EDGES and not group.hand_off
        last = graph.ops[_last(group, graph)] if not is_invalid else None
        is_chain = group.scheme in (Scheme.HALO, Scheme.H_CACHED, Scheme.EDGES)
        is_invalid |= is_chain and (not together(graph, group.ops) or forks_over_padding(graph, group.ops))
        if last is None or is_invalid:
            raise PlanError(f"operators {list(group.ops)} cannot run under scheme '{group.scheme}'")
        if group.in_bands:
            objection = swaps_objection if group.scheme is Scheme.SWAPS else bands_objection
            why = objection(graph, group.ops) if group.hand_off > 0 else "it hands over whole rows"
            if why:
                raise PlanError(f"operators {list(group.ops)} are no group of bands: {why}")
        source = driving_tensor(graph, region.groups, index)
        axis = needs(graph, group)[source][0]
        lanes = branches(graph, group, source) if group.scheme is Scheme.BRANCHES else None
        tall = graph.tensors[source].nhwc[1]
        chain.append(Link(group, axis, pace(graph, group), source, tall, lanes))
    return chain


def _advances(chain: Sequence[Link], graph: Graph, image: str) -> Ints:
    """Returns the advances of a streamed region: an array of rows (group, last operator, y0, y1).

    `chain`: the region's groups. `image`: as in Plan.
    """
    source = delivered_image(graph) if image == Image.STREAM else None
    asks = source is not None and any(source.first in link.group.ops for link in chain)
    begins = [first_row(graph, link.group) for link in chain]
    if not asks or is_driven(chain[0].group, graph):
        return Walk(chain, asks, begins).lines()
    first = np.array([(-1, SOURCE, 0, _image_rows(graph))], np.int32)
    return np.concatenate([first, Walk(chain, False, begins).lines()])


def is_driven(group: Group, graph: Graph) -> bool:
    """Returns whether a region gets the rows of a streamed image one by one.

    `group`: the region's first group.
    """
    image = delivered_image(graph)
    return group.ops[0] == image.first and drives(graph, image)


def _image_rows(graph: Graph) -> int:
    return graph.tensors[delivered_image(graph).tensor].nhwc[1]


def _steps_of(chain: Sequence[Link], graph: Graph, advances: Ints) -> Iterator[Steps]:
    """Yields the steps of all advances of a streamed region, in portions of about MOST_AT_ONCE steps."""
    length = advances[:, 3] - advances[:, 2]  # in steps: a streamed image comes row by row
    calls: dict[int, Ints] = {}  # operator that ends an advance -> the calls of the advance
    found = distinct(advances[:, 1])
    for last, at in zip(found.values.tolist(), found.first.tolist(), strict=True):
        if last != SOURCE:
            calls[last] = _calls(chain[advances[at, 0]], last, graph)
            length[advances[:, 1] == last] = len(calls[last])
    cuts = np.flatnonzero(np.diff((np.cumsum(length, dtype=np.int64) - 1) // MOST_AT_ONCE)) + 1
    for first, end in pairwise([0, *cuts.tolist(), len(advances)]):
        yield _portion(chain, graph, advances[first:end], length[first:end], calls)


def _portion(
    chain: Sequence[Link], graph: Graph, advances: Ints, length: Ints, calls: Mapping[int, Ints]
) -> Steps:
    """Returns the steps of some advances that follow each other.

    Advances with the same last operator are computed together; then their steps are put in their places.
    `length`: the number of steps of each advance. `calls`: the calls of an advance, by its last operator.
    """
    spans, begin = advances[:, 2:], np.cumsum(length) - length
    steps = np.empty((int(length.sum()), 5), np.int32)
    for last in distinct(advances[:, 1]).values.tolist():
        at = np.flatnonzero(advances[:, 1] == last)
        if last == SOURCE:
            y = np.arange(spans[at[0], 0], spans[at[-1], 1])
            steps[np.repeat(begin[at] - spans[at, 0], length[at]) + y] = _delivery(graph, y)
        else:
            link, own = chain[advances[at[0], 0]], calls[last]
            ops = (last,) if link.branches is not None else link.group.ops
            steps[begin[at, None] + np.arange(len(own))] = _block(link, ops, own, graph, spans[at])
    return steps


def _delivery(graph: Graph, y: Ints) -> Steps:
    """Returns the steps that deliver rows `y` of a streamed image."""
    width = np.full_like(y, graph.tensors[delivered_image(graph).tensor].nhwc[2])
    return np.stack([np.full_like(y, SOURCE), y, y + 1, np.zeros_like(y), width], axis=1)


def _calls(link: Link, alone: int, graph: Graph) -> Ints:
    """The calls of an advance: (place in the group, columns from, to). `alone`: the operator, of branches."""
    if link.branches is None:
        return np.array(hand_offs(link.group, graph), np.int32).reshape(-1, 3)
    return np.array([(0, 0, columns(graph, graph.ops[alone]))], np.int32)


def _block(link: Link, ops: tuple[int, ...], calls: Ints, graph: Graph, spans: Ints) -> Ints:
    """The steps of some advances of one kind, as an array indexed by advance, call, and field of a step.

    The result is an array indexed by advance, call, and field of a step. `ops`: the operators that run in
    each of these advances. `spans`: the rows (y0, y1) of each advance.
    """
    if link.branches is None:
        low, high = row_ranges(link.group, graph, spans[:, 0], spans[:, 1])
    else:
        low, high = spans[:, :1], spans[:, 1:]
    place, x0, x1 = calls.T
    block = np.empty((len(spans), len(calls), 5), np.int32)
    block[:, :, 0] = np.array(ops, np.int32)[place]
    block[:, :, 1], block[:, :, 2] = low[:, place], high[:, place]
    block[:, :, 3], block[:, :, 4] = x0, x1
    return block


def row_ranges(group: Group, graph: Graph, y0: N, y1: N) -> tuple[N, N]:
    """Returns the rows [low, high) that each operator of a group makes for rows [y0, y1) of the last one.

    `y0` and `y1` are arrays with an item for each advance. Both results have one row for each advance and one
    column for each operator. A group of bands makes no row twice; its y0 and y1 may be below 0 (see `bands`).
    """
    if group.in_bands:
        return band_ranges(graph, group, y0, y1)
    spans = {graph.ops[group.ops[-1]].outputs[0]: (y0, y1)}
    ranges = []
    for op in (graph.ops[position] for position in reversed(group.ops)):
        low, high = spans[op.outputs[0]]
        ranges.append((low, high))
        axis, _ = axes(graph, op)
        for t in row_inputs(graph, op):
            first, end = axis.read(low, high, graph.tensors[t].nhwc[1])
            other = spans.get(t, (first, end))
            spans[t] = (np.minimum(other[0], first), np.maximum(other[1], end))
    lows, highs = zip(*reversed(ranges), strict=True)
    return np.stack(lows, axis=1), np.stack(highs, axis=1)


def hand_offs(group: Group, graph: Graph) -> tuple[tuple[int, int, int], ...]:
    """Returns the calls that make one row of a group, in order.

    Each is (operator's place in the group, its first column, one past its last column).
    """
    return remember(graph, "hand-offs", group, lambda: _hand_offs(group, graph))


def _hand_offs(group: Group, graph: Graph) -> tuple[tuple[int, int, int], ...]:
    low, high = map(np.stack, zip(*column_ranges(group, graph), strict=True))
    hand_off, index = np.nonzero((low < high).T)
    lines = (index, low[index, hand_off], high[index, hand_off])
    return tuple(zip(*(line.tolist() for line in lines), strict=True))


def column_ranges(group: Group, graph: Graph) -> list[Ranges]:
    """Returns for each operator of a group the columns that it makes, with a range for each hand-off.

    A hand-off makes some columns of each tensor, from the group's first operator to its last. Columns that no
    operator of the group reads are left out, unless their tensor is also read outside of the group.
    """
    width = columns(graph, graph.ops[group.ops[-1]])
    step = group.hand_off or width
    ends = column_ends(group, graph, np.arange(first_column(group, graph), width, step) + step)
    whole, ranges = whole_tensors(graph, group), list[Ranges]()
    read_from: dict[int, Columns] = {}  # tensor -> its first column that is read in or after each hand-off
    for position, own_ends in zip(reversed(group.ops), reversed(ends), strict=True):
        op = graph.ops[position]
        result = op.outputs[0]
        made, first = column_gains(own_ends, None if result in whole else read_from.get(result))
        ranges.append(made)
        for t in row_inputs(graph, op):
            _, axis = axes(graph, op)
            low = np.maximum(axis.begin, axis.lows(first))
            read_from[t] = np.minimum(low, read_from.get(t, low))
    return ranges[::-1]


def first_column(group: Group, graph: Graph) -> int:
    """Returns the column where a group's loop over columns begins: 0 or less.

    It is so low that no operator has made columns before the loop. If the loop began at 0, the first hand-off
    would make many more columns of the first tensors than later hand-offs do, and the windows would have to
    hold them.
    """
    if not group.hand_off or len(group.ops) == 1:
        return 0
    along = [needs(graph, group)[t][1] for t in inner_tensors(graph, group)]
    ahead = max(-(-axis.high(0) // (axis.stride * group.hand_off)) for axis in along)  # in hand-offs
    return -max(0, ahead) * group.hand_off


def column_ends(group: Group, graph: Graph, ends: Columns) -> Columns:
    """Returns how far each operator of a group has come when the last one has made the columns below `ends`.

    The result has a row for each operator, with one past the last column that it has made, for each item of
    `ends`. A value of 0 or less means that no column is made yet.
    """
    last = graph.ops[group.ops[-1]]
    columns_needed = {last.outputs[0]: np.minimum(columns(graph, last), ends)}
    for op in (graph.ops[position] for position in reversed(group.ops)):
        _, axis = axes(graph, op)
        for t in row_inputs(graph, op):
            end = axis.reach(graph.tensors[t].nhwc[2])
            need = np.minimum(end, axis.highs(columns_needed[op.outputs[0]]))
            columns_needed[t] = np.maximum(need, columns_needed.get(t, need))
    return np.stack([columns_needed[graph.ops[position].outputs[0]] for position in group.ops])
