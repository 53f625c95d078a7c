"""What a plan costs: how often a region calls its kernels on which windows, and what each call costs.

In all steps, the calls of a group make the same ranges of columns. So an operator computes every combination
of its ranges of rows and its ranges of columns, and single steps are not needed here. The target's formula
gives the cost of a call from its window. It is computed once for all calls of equal cost.

The search for plans, the plan, and its summary by region use the same function, so that their costs agree to
the last sixteenth (see `target.costs`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.base.distinct import distinct
from buildtool.base.modes import Image
from buildtool.graph.types import Graph
from buildtool.plan.schedule.advances import branch_advances
from buildtool.plan.schedule.bands import copied_rows, first_row, lines
from buildtool.plan.schedule.branches import Branches, branches
from buildtool.plan.schedule.delivery import delivered_image, portions
from buildtool.plan.schedule.inner import driving_tensor, needs, remember
from buildtool.plan.schedule.pace import pace
from buildtool.plan.schedule.ranges import Ranges, all_of
from buildtool.plan.schedule.receptive import accumulates, columns, fed_in_parts, rows
from buildtool.plan.schedule.rings import windows
from buildtool.plan.schedule.schedule import column_ranges, is_driven, row_ranges
from buildtool.plan.types import Group, Load, Region, Scheme
from buildtool.target.catalogue import channel_bytes
from buildtool.target.costs import Part, Pricer, Rings, along, geometry, part, whole
from buildtool.target.types import Costs, KernelVariant
from buildtool.target.variables import Geometry

FEW = 256  # up to this many ranges, counting one by one is faster
Numbers = npt.NDArray[np.int64]
Parts = tuple[tuple[Part, int], ...]  # each part with the number of times that it occurs


class Calls(NamedTuple):
    """The calls of an operator: every range of rows with every range of columns. No range is empty.

    rings: how many columns of its input and of its output are kept in windows.
    copies: the copies of its output's rows that a group of bands keeps, as (bytes of a copy, number of
        copies).
    swaps: whether these are swaps instead of copies (see `bands`).
    """

    rows: Ranges
    columns: Ranges
    rings: Rings = Rings()
    copies: tuple[tuple[int, int], ...] = ()
    swaps: bool = False

    @property
    def times(self) -> int:
        """Returns the number of kernel calls."""
        return len(self.rows.low) * len(self.columns.low)

    @property
    def pixels(self) -> int:
        """Returns the number of pixels that all calls make, repetitions included."""
        return self.rows.length * self.columns.length


class RegionCalls(NamedTuple):
    """The calls of each operator of a region, and how many rows of the input image are delivered to it."""

    operators: Mapping[int, Calls]
    delivered: int


def copies(
    rows: Ranges, columns: Ranges, kept: int, pixel: int, swaps: bool = False
) -> tuple[tuple[int, int], ...]:
    """Returns the copies with which a group of bands keeps rows of a tensor, as (bytes, number of copies).

    Each copy has some pixels of a row. `rows` and `columns`: the ranges of all steps; ranges of rows may be
    empty. `kept`: how many rows are kept from one step to the next. `pixel`: bytes of a pixel. `swaps`:
    whether rows are swapped with the window instead of copied in and back.
    """
    count = np.minimum(rows.high, kept) if swaps else copied_rows(*rows, kept)
    row_count, widths = int(count.sum()), (columns.high - columns.low).tolist()
    return tuple((width * pixel, times * row_count) for width, times in sorted(Counter(widths).items()))


def _group_calls(graph: Graph, group: Group, made: int) -> dict[int, Calls]:
    """Returns operator -> its calls, if the group makes the first `made` rows of its output."""
    step = pace(graph, group).steps(made, first_row(graph, group))
    low, high = row_ranges(group, graph, step.low, step.high)
    window_columns = {k.tensor: k.columns for k in windows(graph, group)} if group.hand_off else {}
    calls, kept, swaps = {}, lines(graph, group), group.scheme is Scheme.SWAPS
    for place, (position, across) in enumerate(zip(group.ops, column_ranges(group, graph), strict=True)):
        op = graph.ops[position]
        own_rings = Rings(
            max((window_columns.get(t, 0) for t in op.inputs), default=0),
            window_columns.get(op.outputs[0], 0),
        )
        own, gains = Ranges(low[:, place], high[:, place]), across.without_empty()
        t = op.outputs[0]
        pixel = graph.tensors[t].pixel_bytes
        own_copies = copies(own, gains, kept[t], pixel, swaps) if t in kept else ()
        calls[position] = Calls(own.without_empty(), gains, own_rings, own_copies, swaps)
    return calls


def branch_calls(lanes: Branches, widths: Sequence[int], made: int) -> Iterator[tuple[int, Calls]]:
    """Yields (operator, calls) for a group of branches that makes the first `made` rows of its output.

    `widths`: the columns of each operator's output.
    """
    lines = branch_advances(lanes, made).astype(np.int64)
    for index, (lane, width) in enumerate(zip(lanes.lanes, widths, strict=True)):
        own = lines[lines[:, 1] == index]
        yield lane.position, Calls(Ranges(own[:, 2], own[:, 3]), all_of(width))


def region_calls(graph: Graph, region: Region, image: str) -> RegionCalls:
    """Returns the calls of a region's operators, in the region's order. `image`: as in Plan."""
    source_image = delivered_image(graph) if image == Image.STREAM else None
    delivers = source_image is not None and source_image.first in region.ops
    image_rows = graph.tensors[source_image.tensor].nhwc[1] if source_image and delivers else 0
    if not region.is_streamed:
        (position,) = region.ops
        op = graph.ops[position]
        _, height, width, _ = graph.tensors[op.outputs[0]].nhwc
        return RegionCalls({position: Calls(all_of(height), all_of(width))}, image_rows)
    calls: dict[int, Calls] = {}
    needed = rows(graph, graph.ops[region.ops[-1]])
    source = -1
    for index in reversed(range(len(region.groups))):
        group, source = region.groups[index], driving_tensor(graph, region.groups, index)
        if group.scheme is Scheme.BRANCHES:
            lanes = branches(graph, group, source)
            calls.update(branch_calls(lanes, [columns(graph, graph.ops[p]) for p in group.ops], needed))
            needed = lanes.wanted(needed)[-1]
        else:
            rows_made = pace(graph, group).made(needed)
            calls.update(
                remember(graph, "calls", (group, rows_made), partial(_group_calls, graph, group, rows_made))
            )
            axis = needs(graph, group)[source][0]
            needed = max(0, min(graph.tensors[source].nhwc[1], axis.high(rows_made)))
    driven = delivers and is_driven(region.groups[0], graph)
    return RegionCalls({p: calls[p] for p in region.ops}, needed if driven else image_rows)


def parts(of: Geometry, axis: int, ranges: Ranges, rings: Rings = Rings()) -> Parts:  # noqa: B008
    """Returns the different parts of an operator's cost for ranges along an axis, with their numbers.

    The cost of a call is computed from a part for its rows and a part for its columns (see
    `target.costs.part`). `axis`: 0 for rows, 1 for columns. `rings`: for columns, how many columns of the
    operator's input and output are kept in windows.
    """
    low, high = ranges
    if len(low) == 1:
        return ((part(of, axis, int(low[0]), int(high[0]), rings), 1),)
    inputs, kernel, stride, dilation, pad = along(of, axis)
    extent = (kernel - 1) * dilation + 1
    inside = (low * stride >= pad) & ((high - 1) * stride - pad + extent <= inputs)
    counts: dict[Part, int] = {}
    border = zip(low[~inside].tolist(), high[~inside].tolist(), repeat(1))
    for begin, end, times in chain(_in_memory(low[inside], high[inside], rings), border):
        key = part(of, axis, begin, end, rings)
        counts[key] = counts.get(key, 0) + times
    return tuple(counts.items())


def _in_memory(low: Numbers, high: Numbers, rings: Rings) -> Iterator[tuple[int, int, int]]:
    """Yields (first, end, count): a range [first, end) of each kind, and how many ranges of this kind exist.

    Ranges are of one kind if they have the same length and begin at the same place in the windows (`rings`).
    `low`, `high`: all ranges. No range reads padding.
    """
    if not len(low):
        return
    period = math.lcm(*(ring for ring in rings if ring)) if any(rings) else 1
    kinds = (high - low) * period + low % period
    if len(low) <= FEW:
        kinds_seen: dict[int, tuple[int, int]] = {}  # kind -> one of it, and how many there are
        for which, kind in enumerate(kinds.tolist()):
            kinds_seen[kind] = which, kinds_seen[kind][1] + 1 if kind in kinds_seen else 1
        examples = list(kinds_seen.values())
    else:
        _, first, many = distinct(kinds)
        examples = list(zip(first.tolist(), many.tolist(), strict=True))
    yield from ((int(low[which]), int(high[which]), times) for which, times in examples)


class CostModel:
    """The costs of a graph's plans on a target.

    `kernels`: one per operator, None for aliases. Most costs are needed again: other blocks and plans have
    equal ranges of rows, and a network has equal operators. So each cost is computed once, and each list of
    parts has a number. In all methods `position` is an operator's, and `streamed` says whether the operator's
    region is streamed.
    """

    def __init__(self, graph: Graph, kernels: Sequence[KernelVariant | None], costs: Costs) -> None:
        self.graph, self.kernels, self.pricer = graph, kernels, Pricer(costs)
        self._numbers: dict[Parts, int] = {}
        self._parts: list[Parts] = []
        self._of_ranges: dict[tuple[int, bool, int, bytes, bytes, Rings], int] = {}
        self._costs: dict[tuple[int, bool, int, int], float] = {}

    @cached_property
    def geometries(self) -> dict[int, Geometry]:
        """Returns operator -> the geometry that its cost depends on, for operators with a kernel."""
        return {p: geometry(self.graph, self.graph.ops[p]) for p, kernel in enumerate(self.kernels) if kernel}

    @cached_property
    def fed_in_parts(self) -> frozenset[int]:
        """Returns the operators that read their input part by part in a streamed region."""
        return frozenset(p for p, op in enumerate(self.graph.ops) if fed_in_parts(self.graph, op))

    @cached_property
    def _first_equal(self) -> tuple[int, ...]:
        """Returns operator -> the first operator with equal geometry and kernel; both have the same cost."""
        first: dict[tuple[Geometry | None, str, bool], int] = {}
        keys = (
            (self.geometries.get(p), kernel.cost if kernel else "", p in self.fed_in_parts)
            for p, kernel in enumerate(self.kernels)
        )
        return tuple(first.setdefault(key, p) for p, key in enumerate(keys))

    def parts(
        self,
        position: int,
        axis: int,
        ranges: Ranges,
        rings: Rings = Rings(),  # noqa: B008
        streamed: bool = True,
    ) -> int:
        """Returns a number that identifies the parts of an operator's cost for ranges along an axis.

        Equal lists of parts (see the function `parts`) have equal numbers. For an operator that is fed part
        by part, only the lengths of the ranges matter.
        """
        alike = self._first_equal[position]
        in_parts = streamed and alike in self.fed_in_parts
        key = (alike, in_parts, axis, ranges.low.tobytes(), ranges.high.tobytes(), rings)
        number = self._of_ranges.get(key)
        if number is None:
            values: Parts = ()
            if self.kernels[alike] is not None and in_parts:
                counts = np.bincount(ranges.high - ranges.low)
                values = tuple((Part(n, n, n, 0), int(counts[n])) for n in np.flatnonzero(counts).tolist())
            elif self.kernels[alike] is not None:
                values = parts(self.geometries[alike], axis, ranges, rings)
            number = self._of_ranges[key] = self._numbers.setdefault(values, len(self._parts))
            if number == len(self._parts):
                self._parts.append(values)
        return number

    def cost(self, position: int, rows: int, columns: int, streamed: bool = True) -> float:
        """Returns the cost of all calls of an operator.

        `rows` and `columns`: numbers from `parts` for its ranges of rows and of columns.
        """
        alike = self._first_equal[position]
        in_parts = streamed and alike in self.fed_in_parts
        key = (alike, in_parts, rows, columns)
        cost = self._costs.get(key)
        if cost is None:
            cost, kernel, pricer = 0.0, self.kernels[alike], self.pricer
            if kernel is not None:
                of, along_x = self.geometries[alike], self._parts[columns]
                each = ((y, x, n * often) for y, n in self._parts[rows] for x, often in along_x)
                if in_parts and accumulates(self.graph, self.graph.ops[alike]):
                    cost = sum(pricer.sums(of, y.size, x.size) * times for y, x, times in each)
                    cost += pricer.sums_end(of)
                else:
                    of = of._replace(oh=of.ih, ow=of.iw) if in_parts else of  # its windows are the input's
                    cost = sum(pricer.cost(kernel, of, y, x) * times for y, x, times in each)
            self._costs[key] = cost
        return cost

    def operator(self, position: int, calls: Calls, streamed: bool) -> float:
        """Returns the cost of an operator's calls, with the copies of rows that a group of bands keeps."""
        rows = self.parts(position, 0, calls.rows, streamed=streamed)
        columns = self.parts(position, 1, calls.columns, calls.rings, streamed)
        return self.cost(position, rows, columns, streamed) + self.copying(calls.copies, calls.swaps)

    def copying(self, copies: Iterable[tuple[int, int]], swaps: bool) -> float:
        """Returns the cost of copies of kept rows (see `bands`), given as (bytes, number of copies).

        `swaps`: whether the rows are swapped with a window instead of copied.
        """
        price = self.pricer.swap if swaps else self.pricer.keep
        return sum(price(size) * times for size, times in copies)

    def delivery(self, rows: int) -> float:
        """Returns the cost of this many rows of the delivered input image."""
        if not rows:
            return 0.0
        number, size = portions(self.graph)
        return rows * number * self.pricer.row(size)

    def region(self, region: Region, image: str) -> float:
        """Returns the cost of a region, without loads of weights and without moves of tensors."""
        calls = region_calls(self.graph, region, image)
        operators = sum(self.operator(p, own, region.is_streamed) for p, own in calls.operators.items())
        return operators + self.delivery(calls.delivered)

    def loading(self, load: Load) -> float:
        """Returns the cost that loading an operator's constants once adds.

        With slices, the operator is called once per slice. Then the result includes by how much these calls
        cost more than one call for all channels.
        """
        if not load.channels:
            return self.pricer.load(load.size)
        kernel, of = self.kernels[load.op], self.geometries[load.op]
        assert kernel is not None
        rows, columns = whole(of)
        total = -self.pricer.cost(kernel, of, rows, columns)
        slices, rest = divmod(of.cout, load.channels)
        cut = channel_bytes(kernel, self.graph, self.graph.ops[load.op])
        is_narrow = cut is not None and load.channels < cut.group
        if is_narrow and kernel.slice_cost != "0":
            kernel = replace(kernel, cost=kernel.slice_cost)
        for count, times in ((load.channels, slices), (rest, 1 if rest else 0)):
            outputs, macs = of.outputs * count // of.cout, of.macs * count // of.cout
            share = of._replace(cout=count, outputs=outputs, macs=macs)
            if times:
                total += times * self.pricer.cost(kernel, share, rows, columns)
                sizes = [load.size * count // of.cout]
                if cut is not None and is_narrow:  # it has the head and the factors of its whole group
                    sizes = [cut.head, cut.factors * cut.group, cut.weights * count]
                total += times * sum(map(self.pricer.load, sizes))
        return total
