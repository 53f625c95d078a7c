"""The memory of chains besides their rings (windows between operators, scratch), and the cost of their calls.

A chain is a block in which each element (operator) feeds the next one. Chains with the same last elements
share most numbers. So the numbers of all chains that end with an element are computed together, from this
element back. A cost is computed from "parts" for the rows and the columns of calls; CostModel identifies a
list of parts by a number.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from buildtool.base.modes import InPlace
from buildtool.base.session import remembered
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.axis import Axis
from buildtool.plan.schedule.bands import leading_steps, swapped_rows
from buildtool.plan.schedule.costs import copies
from buildtool.plan.schedule.pace import Pace
from buildtool.plan.schedule.ranges import Ranges, column_gains, held
from buildtool.plan.search.chain import Elements
from buildtool.target.costs import Rings
from buildtool.target.types import Contract


class Bands(enum.IntEnum):
    """How a chain keeps the rows that two neighbouring steps both read (see `schedule.bands`).

    NONE: it does not keep them, but makes them again.
    COPIED: it copies them out of its windows, and back for the next step.
    POOLED: like COPIED; the chain ends with a global pooling.
    SWAPPED: each of their pixels is either in a window or outside; pixels change places instead of being
        copied.
    """

    NONE = 0
    COPIED = 1
    POOLED = 2
    SWAPPED = 3


class ChainEnds:
    """Computes the workspaces and costs of all chains that end with an element.

    `lowest`: element -> the first element of the longest chain that ends with it. In all methods `pace` has
    the rows of the chains' steps, and `pixels` is the number of pixels that operators hand over per call, or
    0 for whole rows (strips). `bands`: how the chains keep rows.
    """

    def __init__(self, e: Elements, lowest: Sequence[int]) -> None:
        self._e, self._lowest = e, lowest

    @remembered
    def windows(self, last: int, pace: Pace, pixels: int, bands: Bands = Bands.NONE) -> list[int]:
        """Returns for each chain that ends with `last` the aligned bytes of its workspace.

        Item i is for the chain of i + 1 elements. The layout is that of `assemble.workspace`. With hand-offs
        of pixels, all windows stay in memory. With strips, each operator needs its input's and its output's
        window. If it may overwrite its input, the two are one window. Windows that outlast a step are not
        counted.
        """
        shapes, scratch = self._shapes(last, pace, pixels, bands), self._scratch_of(last, pixels)
        if not pixels:
            return self._of_strips(shapes, scratch, last)
        own = [round_up(size, self._e.alignment) for _, _, size in shapes]
        if bands is Bands.SWAPPED:
            own = [0 if self._kept(last - i - 1) else size for i, size in enumerate(own)]
        sizes = accumulate(own, initial=0)
        return [windows + most for windows, most in zip(sizes, accumulate(scratch, max), strict=True)]

    def late(self, first: int, last: int, pixels: int) -> int:
        """Returns a number with a bit for each element of a chain; the lowest bit is the last element's.

        The bit is 1 if the element still has columns to compute after the last element has computed the first
        pixels of a row.
        """
        return self._late_of(last, pixels) & ((1 << (last - first + 1)) - 1)

    @remembered
    def _late_of(self, last: int, pixels: int) -> int:
        width = self._e.widths[last]
        end, first, late = width, min(width, pixels or width), 1  # columns after all calls, after the first
        for e in range(last, self._lowest[last], -1):
            axis = self._e.axes_of[e][1]
            most = axis.reach(self._e.widths[e - 1])
            end, first = min(most, axis.high(end)), min(most, axis.high(first))
            late |= (first < end) << (last - e + 1)
        return late

    def _of_strips(self, shapes: list[tuple[int, int, int]], scratch: list[int], last: int) -> list[int]:
        workspaces, most = [scratch[0]], 0
        for before, shape in enumerate(shapes):  # the element `before` the last one reads this window
            window = round_up(shape[2], self._e.alignment)
            inner = window + scratch[before]
            if before and not (shape == shapes[before - 1] and self._rewrites(last - before)):
                inner += round_up(shapes[before - 1][2], self._e.alignment)
            most = max(most, inner)
            workspaces.append(max(most, window + scratch[before + 1]))
        return workspaces

    def _rewrites(self, element: int) -> bool:
        """Returns whether an element may write its output over the window that it reads.

        The caller asks only if both windows have the same shape.
        """
        e, kernel = self._e, self._e.own_kernels[element]
        once = e.ops[element].inputs.count(e.makes[element - 1]) == 1
        allowed = e.in_place != InPlace.NONE and kernel is not None and kernel.overlap is Contract.PIXEL
        return allowed and once

    @remembered
    def _shapes(self, last: int, pace: Pace, pixels: int, bands: Bands) -> list[tuple[int, int, int]]:
        """Returns (rows, columns, bytes) of each window between elements, from the last to the first."""
        shapes: list[tuple[int, int, int]] = []
        _, columns = self.columns(last, pixels)
        rows = (self._band_rows if bands else self._row_ranges)(last, pace, pace.height)
        for i, across in enumerate(columns):
            down, made = self._e.axes_of[last - i][0], rows[i + 1]
            most = held(made, [(down, rows[i])]) if bands else max(1, made.longest)
            if bands is Bands.SWAPPED and (kept := self._kept(last - i - 1)):
                most = max(most, swapped_rows(*made, kept))
            pixel = self._e.graph.tensors[self._e.makes[last - i - 1]].pixel_bytes
            shapes.append((most, across, most * across * pixel))
        return shapes

    @remembered
    def columns(self, last: int, pixels: int) -> tuple[list[Ranges], list[int]]:
        """Returns the columns that each element makes per hand-off, and how many columns each window has.

        The windows are those between the elements. Both lists go from the last element to the first. All
        chains have the hand-offs of the longest chain. In the first of these hand-offs, shorter chains may
        have nothing to do.
        """
        e, width = self._e, self._e.widths[last]
        each = pixels or width
        ends = np.minimum(np.arange(-self._ahead(last, pixels) * each, width, each) + each, width)
        made, first = column_gains(ends)
        ranges, windows = [made], list[int]()
        for element in range(last, self._lowest[last], -1):
            axis = e.axes_of[element][1]
            ends = np.minimum(axis.reach(e.widths[element - 1]), axis.highs(ends))
            made, first = column_gains(ends, np.maximum(axis.begin, axis.lows(first)))
            windows.append(held(made, [(axis, ranges[-1])]))
            ranges.append(made)
        return ranges, windows

    @remembered
    def _scratch_of(self, last: int, pixels: int) -> list[int]:
        """Returns the aligned bytes of scratch for each element's largest call, from last to first."""
        made, _ = self.columns(last, pixels)
        return [self._e.scratch_for(last - i, columns.longest) for i, columns in enumerate(made)]

    # ---- the cost of calls ---------------------------------------------------------------------------

    @remembered
    def costs(self, last: int, pace: Pace, pixels: int, made: int, bands: Bands = Bands.NONE) -> list[float]:
        """Returns for each chain that ends with `last` its cost, without deliveries of rows of input images.

        Item i is for the chain of i + 1 elements. `made`: how many rows the chains make. The first element
        reads whole rows, the others read windows.
        """
        ranges = (self._band_rows if bands else self._row_ranges)(last, pace, made)
        rows, columns = self._row_parts(last, ranges), self._column_parts(last, pixels)
        copies = self._copies(last, ranges, pixels, bands) if bands else [0.0] * len(rows)
        costs, after = list[float](), 0.0
        for i, (own, (first, later)) in enumerate(zip(rows, columns, strict=True)):
            position = self._e.positions[last - i]
            after += copies[i]
            costs.append(after + self._e.model.cost(position, own, first))
            if i + 1 < len(rows):
                after += self._e.model.cost(position, own, later)
        return costs

    def _row_parts(self, last: int, ranges: Sequence[Ranges]) -> list[int]:
        """Returns for each element, from last to first, the number of its cost parts for rows.

        A part is what the rows of a call add to its cost. `CostModel.parts` gives the same number to equal
        lists of parts. `ranges`: the rows that each element makes in each step.
        """
        places = (self._e.positions[last - i] for i in range(len(ranges)))
        each = zip(places, ranges, strict=True)
        return [self._e.model.parts(position, 0, rows.without_empty()) for position, rows in each]

    @remembered
    def _row_ranges(self, last: int, pace: Pace, made: int) -> list[Ranges]:
        """Returns the rows that each element makes in each step, from the last element to the first."""
        found = [pace.steps(made)]
        for e in range(last, self._lowest[last], -1):
            found.append(found[-1].read(self._e.axes_of[e][0], self._e.heights[e - 1]))
        return found

    @remembered
    def _band_rows(self, last: int, pace: Pace, made: int) -> list[Ranges]:
        """Returns the rows that each element of a group of bands makes in each step, from last to first.

        All chains have the steps of the longest chain.
        """
        begin, end = pace.steps(made, -pace.step * self.leading(self._lowest[last], last, pace.step))
        found = [Ranges(begin, end)]
        for e in range(last, self._lowest[last], -1):
            axis = self._e.axes_of[e][0]
            most = axis.reach(self._e.heights[e - 1])
            begin, end = np.minimum(most, axis.highs(begin)), np.minimum(most, axis.highs(end))
            found.append(Ranges(np.maximum(0, begin), np.maximum(0, end)))
        return [Ranges(np.maximum(0, found[0].low), np.maximum(0, found[0].high)), *found[1:]]

    def leading(self, first: int, last: int, step: int) -> int:
        """Returns the number of steps of a group of bands before the step that makes its first row."""
        axes, axis = list[Axis](), Axis()
        for e in range(last, first, -1):
            axis = axis.after(self._e.axes_of[e][0])
            axes.append(axis)
        return leading_steps(axes, step)

    def lasting(self, first: int, last: int, pace: Pace, pixels: int) -> int:
        """Returns the aligned bytes that a group that swaps keeps from step to step.

        They are its windows, and the pixels of the kept rows outside of the windows.
        """
        (made, _), total = self.columns(last, pixels), 0
        for i, (rows, columns, size) in enumerate(self._shapes(last, pace, pixels, Bands.SWAPPED)):
            element = last - i - 1
            if first <= element and (kept := self._kept(element)):
                outside = max(0, int(made[i + 1].high.max()) - columns)
                pixel = size // (rows * columns)
                total += round_up(size, self._e.alignment)
                total += round_up(kept * outside * pixel, self._e.alignment)
        return total

    def lines(self, first: int, last: int) -> int:
        """Returns the aligned bytes of the rows that a group of bands keeps outside of its windows."""
        tensors = (self._e.graph.tensors[self._e.makes[e]] for e in range(first, last))
        kept = map(self._kept, range(first, last))
        sizes = (rows * t.row_bytes for rows, t in zip(kept, tensors, strict=True))
        return sum(round_up(size, self._e.alignment) for size in sizes)

    def _kept(self, element: int) -> int:
        """Returns how many rows of an element's output the next element reads again in its next step."""
        axis = self._e.axes_of[element + 1][0]
        return min(self._e.heights[element], max(0, axis.kernel - axis.stride))

    def _copies(self, last: int, ranges: Sequence[Ranges], pixels: int, bands: Bands) -> list[float]:
        """Returns the cost of copying or swapping rows of each element's output, from last to first element.

        `ranges`: the rows that each element makes in each step.
        """
        swaps = bands is Bands.SWAPPED
        columns, costs = [made.without_empty() for made in self.columns(last, pixels)[0]], [0.0]
        for i, (rows, made) in enumerate(zip(ranges[1:], columns[1:], strict=True), 1):
            e = last - i
            pixel = self._e.graph.tensors[self._e.makes[e]].pixel_bytes
            costs.append(self._e.model.copying(copies(rows, made, self._kept(e), pixel, swaps), swaps))
        return costs

    @remembered
    def _column_parts(self, last: int, pixels: int) -> list[tuple[int, int]]:
        """Returns for each element, from last to first, two numbers of its cost parts for columns.

        A part is what the columns of a call add to its cost. `CostModel.parts` gives the same number to equal
        lists of parts. The first number is for the element as the first one of a chain, the second for it as
        a later one, which reads a window.
        """
        (made, windows), parts, ring = self.columns(last, pixels), list[tuple[int, int]](), 0
        for columns, before in zip(made, [*(windows if pixels else [0] * len(windows)), 0], strict=True):
            ranges, position = columns.without_empty(), self._e.positions[last - len(parts)]
            first = later = self._e.model.parts(position, 1, ranges, Rings(0, ring))
            if before:
                later = self._e.model.parts(position, 1, ranges, Rings(before, ring))
            parts.append((first, later))
            ring = before
        return parts

    def _ahead(self, last: int, pixels: int) -> int:
        """Returns the number of hand-offs before the last element computes its first columns.

        See `schedule.first_column`.
        """
        ahead, stride, columns = 0, 1, 0  # `columns`: computed before the last element computes any
        for e in range(last, self._lowest[last], -1):
            axis = self._e.axes_of[e][1]
            stride, columns = stride * axis.stride, axis.high(columns)
            ahead = max(ahead, -(-columns // (stride * pixels)) if pixels else 0)
        return ahead
