"""Blocks of elements that can be one group of a streamed region, and the forms a block can run in.

Each element of a block feeds the next one and nothing else, or the block is a section of branches.
Forms differ in how many pixels go from operator to operator: the fewer, the less memory and the more
calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from buildtool.base.session import Session, remembered
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.axis import Axis, union
from buildtool.plan.schedule.costs import branch_calls
from buildtool.plan.schedule.rings import accumulator_bytes
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.chain_ends import ChainCosts, ChainWindows
from buildtool.plan.search.sections import Section, section
from buildtool.plan.types import Group, Scheme

MOST_OPERATORS = 10  # in one block
STEPS = (1, 2, 3, 4, 6, 8)  # rows a block may make in one go
MOST_REPETITION = 6.0  # a block that multiplies its own work by more is not worth a look
ROW = 0  # Group.hand_off: a whole row
WHOLE = 1 << 40  # a lag that no ring keeps: the tensor has to be whole when the region begins

Lags = tuple[tuple[int, int], ...]  # (tensor, rows it has to lead by, or WHOLE), by tensor
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Elements [first, last] as one group that makes `step` rows in one go.

    `axis`: from its input's rows to its output's; `lags`: by how many rows tensors that its additions read
    besides have to be ahead; `sums`: aligned bytes of its accumulators, and of the rows that branches keep;
    `work`: multiply-accumulates of all its steps; `beside`: (element, tensor) of what is read besides.
    """

    first: int
    last: int
    step: int
    axis: Axis
    lags: Lags
    sums: int
    work: int
    beside: tuple[tuple[int, int], ...] = ()
    section: Section | None = None


@dataclass(frozen=True)
class Form:
    """How a block runs: its group, and aligned bytes of windows and scratch.

    `late`: a bit for each operator, the last one's the lowest: whether it still runs when a row's first
    pixels are made.
    """

    group: Group
    window: int
    late: int


@dataclass(frozen=True)
class Blocks:
    """All blocks of a graph; `hand_offs`: the pixels that may go from operator to operator, ascending.

    `session`: what may know the forms of equal chains already.
    """

    e: Elements
    hand_offs: tuple[int, ...]
    session: Session = field(compare=False)

    @cached_property
    def sections(self) -> tuple[Section | None, ...]:
        """Last element -> the section that ends there."""
        return tuple(section(self.e, last) for last in range(len(self.e.positions)))

    @remembered
    def ending_at(self, last: int) -> tuple[Block, ...]:
        """The blocks with this last element: first elements and steps that may be worth a look."""
        blocks, found = [*self._chains(last)], self.sections[last]
        if found is not None:
            beside = tuple((e, t) for e in range(found.first, last + 1) for t in self.e.read_whole[e])
            lags = tuple(sorted(dict.fromkeys((self.e.roots[t] for _, t in beside), WHOLE).items()))
            work = self._worked(self._section_pixels(found, self.e.heights[last]))
            blocks.append(Block(found.first, last, 1, found.axis, lags, found.rings, work, beside, found))
        return tuple(blocks)

    def _chains(self, last: int) -> Iterator[Block]:
        """The blocks of elements that feed each other."""
        if not self.e.by_rows[last] or self.e.uneven[last]:
            return
        height, sums = self.e.heights[last], 0
        if self.e.accumulates[last]:
            sums = round_up(accumulator_bytes(self.e.graph, self.e.positions[last]), self.e.alignment)
        for first in self._firsts(last):
            once = self.e.work_before[last + 1] - self.e.work_before[first]
            axis = self._axis(first, last)
            if axis is None:
                continue
            for step in STEPS if first < last else STEPS[:1]:
                if step > 1 and step >= 2 * height:
                    break
                work = self.work(first, last, step, height)
                if work <= MOST_REPETITION * once:
                    lags, beside = self._lags(first, last, step), tuple(self.e.beside(first, last))
                    yield Block(first, last, step, axis, lags, sums, work, beside)

    def _axis(self, first: int, last: int) -> Axis | None:
        """The row axis of a block; None if an addition reads the block's input at another stride."""
        axis = self._through(last)[last - first]
        for e, t in self.e.beside(first, last):
            if t == self.e.main[first]:
                after = self._through(last)[last - e]
                if after.stride != axis.stride:
                    return None
                axis = union(axis, after)
        return axis

    @remembered
    def _through(self, last: int) -> list[Axis]:
        """By how many elements earlier a chain begins: the row axis from its input to an element's output."""
        found = [self.e.axes_of[last][0]]
        for e in range(last - 1, self.lowest(last) - 1, -1):
            found.append(found[-1].after(self.e.axes_of[e][0]))
        return found

    def _lags(self, first: int, last: int, step: int) -> Lags:
        """See Block: only a path of stride 1 can be followed in a ring."""
        found: dict[int, int] = {}
        for e, t in self.e.beside(first, last):
            axis = self._through(e)[e - first]
            made = self._through(last)[last - e - 1].extent(step) if e < last else step
            root = self.e.roots[t]
            plain = axis.stride == 1 and root == t and t in self.e.rows_read[e]
            lag = made - 1 + axis.kernel - axis.pad if plain else WHOLE
            found[root] = max(found.get(root, 0), lag)
        return tuple(sorted(found.items()))

    def _firsts(self, last: int) -> Iterator[int]:
        """First elements of the blocks that end at `last`."""
        first = last
        yield first
        while (
            first
            and not self.e.uneven[first]
            and not self.e.uneven[first - 1]
            and self.e.feeds[first - 1]
            and last - first + 1 < MOST_OPERATORS
        ):
            inner = self.e.makes[first - 1]
            if self.e.readers[inner] != (first,) or inner in self.e.outputs:
                return
            first -= 1
            yield first

    def lowest(self, last: int) -> int:
        """The first element of the longest chain that ends at an element."""
        return self._lowest[last]

    @cached_property
    def _lowest(self) -> tuple[int, ...]:
        count = len(self.e.positions)
        return tuple(min(self._firsts(last)) if self.e.by_rows[last] else last for last in range(count))

    def block(
        self, first: int, last: int, step: int, axis: Axis, sums: int, work: int, branches: bool
    ) -> Block:
        """A block of which all is known that an equal one elsewhere has, too; `branches`: of a section."""
        if branches:
            return next(block for block in self.ending_at(last) if block.section is not None)
        lags, beside = self._lags(first, last, step), tuple(self.e.beside(first, last))
        return Block(first, last, step, axis, lags, sums, work, beside)

    def work(self, first: int, last: int, step: int, made: int) -> int:
        """Multiply-accumulates of a chain's block that makes `made` rows."""
        return self._works(last, step, made)[last - first]

    @remembered
    def _works(self, last: int, step: int, made: int) -> list[int]:
        """Of the chains that end at an element, by how many elements earlier they begin: see `work`."""
        pixels = self.pixels_made(self.lowest(last), last, step, made)
        return list(accumulate(self._worked([one]) for one in pixels))

    def work_of(self, block: Block, made: int) -> int:
        """Multiply-accumulates of a block that makes `made` rows."""
        if block.section is not None:
            return self._worked(self._section_pixels(block.section, made))
        return self.work(block.first, block.last, block.step, made)

    def _worked(self, pixels: Iterable[tuple[int, int]]) -> int:
        total = self.e.work_before
        return sum((total[e + 1] - total[e]) * n // (self.e.heights[e] * self.e.widths[e]) for e, n in pixels)

    def _section_pixels(self, section: Section, made: int) -> Iterator[tuple[int, int]]:
        for e, rows in zip(range(section.first, section.last + 1), section.lanes.wanted(made), strict=False):
            yield e, rows * self.e.widths[e]

    def pixels_made(self, first: int, last: int, step: int, made: int) -> Iterator[tuple[int, int]]:
        """Per element of a block, last to first, the pixels it makes in all steps, clipped at the borders.

        A global pooling makes none until the end. Columns that the next element steps over are not made.
        """
        low: Rows = np.arange(0, made, step)
        high: Rows = np.minimum(low + step, made)
        columns = self.e.widths[last]
        for e in range(last, first - 1, -1):
            pooling = self.e.accumulates[e]
            yield e, 0 if pooling else int((high - low).sum()) * columns
            if e > first:
                vertical, horizontal = self.e.axes_of[e]
                low = np.maximum(0, vertical.lows(low))
                high = np.minimum(self.e.heights[e - 1], vertical.highs(high))
                columns = max(0, min(self.e.widths[e - 1], horizontal.high(columns)))

    # ---- forms -----------------------------------------------------------------------------------

    def lean(self, block: Block) -> tuple[Form, ...]:
        """The forms with the least memory; of those that end a row alike, the one with the least."""
        *cached, rows = self.groups(block)
        strip = self._form(block, rows)
        kept = [strip]
        for group in cached:  # each with larger windows than the one before it
            late = self._windows.late(block.first, block.last, group.hand_off)
            if len(kept) > 1 and kept[-1].late == late:
                continue
            form = self._form(block, group)
            if form.window < strip.window:
                kept.append(form)
            if form.window < strip.window and not form.late & ~strip.late:
                return tuple(kept[1:])
        return tuple(kept)

    def forms(self, block: Block) -> tuple[tuple[Form, float], ...]:
        """All forms that no other is as good as in both memory and cost, by memory, ascending."""
        return self._undominated(block, self._every_form(block))

    def _undominated(self, block: Block, forms: Iterable[Form]) -> tuple[tuple[Form, float], ...]:
        costed = [(form, self.block_cost(block, form.group)) for form in forms]
        kept: list[tuple[Form, float]] = []
        for form, cost in sorted(costed, key=lambda one: (one[0].window, one[1])):
            if not any(not other.late & ~form.late and less <= cost for other, less in kept):
                kept.append((form, cost))
        return tuple(kept)

    def cheapest(self, block: Block, most_window: float) -> Form | None:
        """The cheapest of the forms with at most this many bytes of windows; None: they all have more."""
        fitting = [form for form in self._every_form(block) if form.window <= most_window]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        return self._undominated(block, fitting)[-1][0]

    def _form(self, block: Block, group: Group) -> Form:
        """How a block runs as a group."""
        if block.section is not None:
            elements = slice(block.first, block.last + 1)
            return Form(group, max(self.e.scratch[elements]), (1 << (block.last - block.first + 1)) - 1)
        window = self._windows.of(block.last, block.step, group.hand_off)[block.last - block.first]
        return Form(group, window, self._windows.late(block.first, block.last, group.hand_off))

    def _every_form(self, block: Block) -> tuple[Form, ...]:
        """A block by hand-off, whole rows last."""
        return tuple(self._form(block, group) for group in self.groups(block))

    @cached_property
    def _windows(self) -> ChainWindows:
        return ChainWindows(self.e, self._lowest)

    def groups(self, block: Block) -> Iterator[Group]:
        """A block by hand-off, whole rows last."""
        if block.section is None and block.first < block.last:
            # this many pixels of its output, or of its input if wider
            inner = range(block.first + 1, block.last + 1)
            stride = math.prod(self.e.axes_of[e][1].stride for e in inner)
            for pixels in dict.fromkeys(max(1, n // stride) for n in self.hand_offs):
                if pixels < self.e.widths[block.last]:
                    yield self.group(block, pixels)
        yield self.group(block, ROW)

    def group(self, block: Block, pixels: int) -> Group:
        """A block with a hand-off."""
        if block.section is not None:
            return block.section.group
        ops = self.e.positions[block.first : block.last + 1]
        if len(ops) == 1:
            return Group(ops, Scheme.OPERATOR, block.step, ROW)
        return Group(ops, Scheme.H_CACHED if pixels else Scheme.HALO, block.step, pixels)

    # ---- costs -----------------------------------------------------------------------------------

    def block_cost(self, block: Block, group: Group, made: int | None = None) -> float:
        """The target's estimate for all steps of a block that makes `made` rows (None: all)."""
        made = self.e.heights[block.last] if made is None else made
        key = (block.first, block.last, block.step, group.hand_off, made)
        if key not in self._costs:
            section = block.section
            if section is not None:
                widths = self.e.widths[section.first : section.last + 1]
                calls = branch_calls(section.lanes, widths, made)
                cost = sum(self.e.model.operator(position, own, True) for position, own in calls)
                cost += self.e.delivery(block.first, section.lanes.wanted(made)[-1])
            else:
                costs = self._chain_costs.of(block.last, block.step, group.hand_off, made)
                cost = costs[block.last - block.first]
                if self.e.fed(block.first):
                    rows, axis = self.e.input_rows(block.first), self._axis(block.first, block.last)
                    asked = rows if axis is None else max(0, min(rows, axis.high(made)))
                    cost += self.e.delivery(block.first, asked)
            self._costs[key] = cost
        return self._costs[key]

    @cached_property
    def _costs(self) -> dict[tuple[int, int, int, int, int], float]:
        return {}

    @cached_property
    def _chain_costs(self) -> ChainCosts:
        return ChainCosts(self.e, self._lowest)
